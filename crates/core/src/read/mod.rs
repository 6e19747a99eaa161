//! The public reader: a builder that reads like the parquet crate's, and the reader it builds.

mod builder;
mod reader;

pub use builder::ReaderBuilder;
pub use reader::Reader;
