//! The writer against the parquet crate's own: files read back equal, and say the same of themselves.

mod failures;
mod limits;
mod metadata;
mod nested;
mod round_trip;
mod support;
