//! Reads and writes Parquet files with the ownership of buffers as a parameter.
//!
//! # Reading
//!
//! A page goes fetch → decrypt → decompress → decode. A [`ReadStrategy`] names who owns the buffer
//! of each step: nobody (allocated for one page and freed), the column, or the whole reader; and who decodes. With
//! `decode=parquet` everything after the page buffer is the [`parquet`] crate's own code; with `decode=direct` flat columns are
//! decoded here, as slices of their pages where that is possible. What is read is what that crate reads, and the batches are
//! equal. [`read`] says which strategy to choose, what an array that is kept holds, and how to watch a reader.
//!
//! ```no_run
//! use std::fs::File;
//! use alloquet_core::{ReaderBuilder, ReadStrategy};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let reader = ReaderBuilder::try_new(File::open("data.parquet")?)?
//!     .with_strategy("pooled".parse::<ReadStrategy>()?)
//!     .with_batch_size(65_536)
//!     .build()?;
//! let ledger = reader.ledger();
//! for batch in reader {
//!     println!("{} rows", batch?.num_rows());
//! }
//! println!("{} bytes of buffers at the peak", ledger.peak().total_bytes());
//! # Ok(())
//! # }
//! ```
//!
//! A damaged file gives an error, also where it makes a decoder of the parquet crate panic: such a panic is caught, its place
//! and message are in the error, and nothing is printed. For that, opening a file installs a panic hook, once in a process, which
//! hands every other panic to the hook that was there before. A hook that the program sets afterwards replaces it, and
//! prints those panics too.
//!
//! # Writing
//!
//! A value goes encoder → page → file. A [`WriteStrategy`] names when encoder buffers are born and how they grow, in which
//! order the columns of a row group are encoded, and where finished pages wait. [`Writer`] has the shape of the parquet
//! crate's `ArrowWriter` and takes its `WriterProperties`; its files say the same of themselves.
//!
//! ```no_run
//! use alloquet_core::{WriteStrategy, Writer};
//! # use arrow_array::RecordBatch;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let batches: Vec<RecordBatch> = Vec::new();
//! // The file has its name only once it is whole.
//! let mut writer = Writer::create("data.parquet", batches[0].schema(), None)?
//!     .with_strategy("bounded".parse::<WriteStrategy>()?)?;
//! for batch in &batches {
//!     writer.write(batch)?;
//!     println!("{} bytes are held", writer.memory_size());
//! }
//! let written = writer.close()?;
//! println!("{} rows in {} bytes", written.num_rows(), written.bytes_written());
//! # Ok(())
//! # }
//! ```
//!
//! Which to take: `bounded` where batches come and go, since it holds neither the row group's batches nor its pages;
//! `pooled` where the table is in memory anyway ([`Writer::write_table`]), since it then holds one column's page and nothing
//! else. Flat columns are encoded here. Nested ones, and flat ones with what is rare (geometry, ALP, LZ4 of old, layouts of
//! deltas, counts of distinct values), are encoded by the parquet crate's own writer into the same file, whose memory is under
//! [`Purpose::Upstream`]. Encrypted files are refused: the control `upstream` writes them.
//!
//! This crate knows nothing of allocators and measures nothing but its own buffers (the [`Ledger`]).

#![forbid(unsafe_code)]

mod buffer;
mod codec;
mod crypto;
mod decode;
mod format;
mod guard;
pub mod ledger;
mod limits;
mod page;
pub mod read;
mod source;
#[doc(hidden)]
pub mod stages;
pub mod strategy;
pub mod write;

pub use decode::kind::DecodePath;
pub use ledger::{Ledger, LedgerPeak, Purpose};
pub use limits::Limits;
pub use page::info::PageInfo;
pub use read::{ColumnReader, ColumnValues, Reader, ReaderBuilder};
pub use source::{ChunkSource, ReadAt, SharedBytes};
pub use strategy::{ReadStrategy, StrategyError, WriteStrategy};
pub use write::{NewFile, Writer, WrittenFile};
