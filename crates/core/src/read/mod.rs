//! Reading: a builder that reads like the parquet crate's, and the reader it builds.
//!
//! # Choosing a strategy
//!
//! - `direct` holds the least and takes the least time: one decompressed page a column, and batches that are slices of them. Take it where
//!   batches are worked through and dropped.
//! - `pooled` gives batches of their own: a page a column, and a batch. Take it where arrays live longer than the next few batches.
//! - `upstream` is the parquet crate's own reader, to compare with; `retained`, `temp-decrypt` and `temp-both` are how other readers own
//!   their buffers.
//!
//! ```
//! # use std::sync::Arc;
//! # use arrow_array::{ArrayRef, Int64Array, RecordBatch};
//! # use bytes::Bytes;
//! # use parquet::arrow::ArrowWriter;
//! use alloquet_core::{DecodePath, Purpose, ReaderBuilder};
//! # let array: ArrayRef = Arc::new(Int64Array::from_iter_values(0..10_000));
//! # let batch = RecordBatch::try_from_iter([("id", array)])?;
//! # let mut file = Vec::new();
//! # let properties = parquet::file::properties::WriterProperties::builder()
//! #     .set_dictionary_enabled(false)
//! #     .set_compression(parquet::basic::Compression::SNAPPY)
//! #     .build();
//! # let mut writer = ArrowWriter::try_new(&mut file, batch.schema(), Some(properties))?;
//! # writer.write(&batch)?;
//! # writer.close()?;
//! # let file = Bytes::from(file);
//!
//! // A `File` is a source as good as bytes in memory.
//! let reader = ReaderBuilder::try_new(file)?
//!     .with_strategy("direct".parse()?)
//!     .with_batch_size(1_000)
//!     .with_threads(2)
//!     .build()?;
//! assert_eq!(reader.decode_path(0), Some(DecodePath::Direct));
//! let ledger = reader.ledger();
//! let rows: usize = reader.map(|batch| batch.map(|batch| batch.num_rows())).sum::<Result<_, _>>()?;
//! assert_eq!(rows, 10_000);
//!
//! // Where the memory went, by the reader's own account.
//! for (purpose, bytes) in ledger.peak().by_purpose() {
//!     println!("{purpose}: {bytes} bytes at the peak");
//! }
//! // Every batch was a slice of a page: nothing was copied.
//! assert_eq!(ledger.shared_value_bytes(), 8 * 10_000);
//! assert_eq!(ledger.written_value_bytes(), 0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What an array that is kept holds
//!
//! A slice of a page holds the page, and so does a view of a string: ten rows that are kept can hold a MiB a column. The ledger shows
//! it: what arrays hold of pages that the reader is done with is [`Purpose::Kept`](crate::Purpose::Kept), also after the reader is
//! gone. Where few rows of many are kept, or for long, add `arrays=owned` to any strategy (`direct,arrays=owned`): then what points into a
//! page is copied out of it when the batch is made. Where whole batches are kept for a while, slices hold no more than copies would.
//!
//! # Columns that are decoded here
//!
//! With `decode=direct`: flat columns of booleans, of numbers, dates and times that are stored as they are in an array, and of bytes of
//! fixed length, in the encodings PLAIN, RLE_DICTIONARY, DELTA_BINARY_PACKED and, of booleans, RLE.
//! [`Reader::decode_path`] says of each column who decodes it, and why it is the parquet crate. A batch is a slice where it lies in one
//! PLAIN page of fixed width and none of its rows is null; other rows are written once, into the batch.
//!
//! # Hostile files
//!
//! Every length that a file states is held against its metadata, the codec and [`Limits`](crate::Limits) before anything is allocated for
//! it; checksums of pages are checked where the file has them. An error says in which column, row group and page it was met (data pages are
//! counted from 0), and ends the reader.
//!
//! # A service that watches its readers
//!
//! A ledger can be asked by any thread at any time, while the reader works and after it:
//!
//! ```
//! use std::sync::{Arc, Mutex, Weak};
//! use alloquet_core::{Ledger, Purpose};
//!
//! /// The readers that are at work, for a page of metrics.
//! #[derive(Default)]
//! struct Readers(Mutex<Vec<Weak<Ledger>>>);
//!
//! impl Readers {
//!     fn watch(&self, ledger: &Arc<Ledger>) {
//!         self.0.lock().unwrap().push(Arc::downgrade(ledger));
//!     }
//!
//!     /// One gauge for each purpose, in the text format of Prometheus.
//!     fn render(&self) -> String {
//!         let mut readers = self.0.lock().unwrap();
//!         readers.retain(|ledger| ledger.strong_count() > 0);
//!         let live: Vec<_> = readers.iter().filter_map(Weak::upgrade).collect();
//!         let line = |purpose: &Purpose| {
//!             let bytes: u64 = live.iter().map(|ledger| ledger.live(*purpose)).sum();
//!             format!("parquet_reader_bytes{{purpose=\"{purpose}\"}} {bytes}\n")
//!         };
//!         Purpose::ALL.iter().map(line).collect()
//!     }
//! }
//!
//! let readers = Readers::default();
//! assert!(readers.render().contains("parquet_reader_bytes{purpose=\"page\"} 0"));
//! ```
//!
//! # How it is made
//!
//! A batch's rows are chosen by `selection`; its columns are dealt to shares (`share`), which are decoded by one thread or several
//! (`threads`). `owned` says which bytes of an array are its own.

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
