//! Writing: [`Writer`] takes batches as the parquet crate's `ArrowWriter` does, with a
//! [`WriteStrategy`](crate::WriteStrategy) that says who owns the encoder buffers and pages.

mod new_file;
mod table;
mod upstream;
mod writer;
mod written;

pub use new_file::NewFile;
pub use writer::Writer;
pub use written::WrittenFile;
