//! The public reader: a builder that reads like the parquet crate's, and the reader it builds.
//!
//! A batch's rows are chosen by [`selection`]; its columns are dealt to [`share`]s, which are decoded by one thread or several
//! ([`threads`]). [`columns`] reads one column after the other. [`owned`] says which bytes of an array are its own.

mod builder;
mod columns;
mod owned;
mod reader;
mod selection;
mod share;
mod threads;

pub use builder::ReaderBuilder;
pub use columns::{ColumnReader, ColumnValues};
pub use reader::Reader;
