//! Writing: [`Writer`] takes batches as the parquet crate's `ArrowWriter` does, with a
//! [`WriteStrategy`](crate::WriteStrategy) that says who owns the encoder buffers and pages.

mod account;
mod column;
mod compress;
pub(crate) mod encode;
mod file;
mod footer;
mod new_file;
mod output;
mod page_header;
mod pages;
mod table;
mod upstream;
mod upstream_column;
mod writer;
mod written;

pub use new_file::NewFile;
pub use writer::Writer;
pub use written::WrittenFile;
