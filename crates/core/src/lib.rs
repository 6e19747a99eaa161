//! Reads Parquet files with the ownership of page buffers as a parameter.
//!
//! A page goes fetch → decrypt → decompress → decode. A [`ReadStrategy`] names who owns the buffer
//! of each step: nobody (allocated for one page and freed), the column, or the whole reader.
//! Everything after the page buffer — every encoding, type and nesting — is the [`parquet`] crate's
//! own code, so whatever that crate reads is read here, and the batches are equal.
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
//! This crate knows nothing of allocators and measures nothing but its own buffers (the [`Ledger`]).

#![forbid(unsafe_code)]

mod buffer;
mod codec;
mod crypto;
mod format;
mod guard;
pub mod ledger;
mod page;
pub mod read;
mod source;
pub mod strategy;
pub mod write;

pub use ledger::{Ledger, LedgerPeak, Purpose};
pub use page::info::PageInfo;
pub use read::{Reader, ReaderBuilder};
pub use source::ReadAt;
pub use strategy::{ReadStrategy, StrategyError, WriteStrategy};
pub use write::{NewFile, Writer, WrittenFile};
