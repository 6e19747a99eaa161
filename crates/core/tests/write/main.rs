//! The writer against the parquet crate's own: files read back equal, and say the same of themselves.

#![forbid(unsafe_code)]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod failures;
mod limits;
mod metadata;
mod nested;
mod round_trip;
mod support;
