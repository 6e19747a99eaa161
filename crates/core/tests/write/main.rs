//! The writer against the parquet crate's own: files read back equal, and say the same of themselves.

mod metadata;
mod round_trip;
mod support;
