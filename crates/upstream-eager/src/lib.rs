//! The parquet crate's own writer as it was before arrow-rs #11149: release 59.3.2, whose encoder of deltas
//! reserves 1 MiB at birth. It is the "before" that measurements compare with, and nothing else should use it.
//!
//! Arrays and properties of that release are other types than those of the release that the rest of the
//! project uses, so both come in a form that neither owns: a [`Table`] from the bytes of an Arrow IPC stream,
//! and [`Options`].
//!
//! ```
//! # fn main() -> Result<(), alloquet_upstream_eager::Error> {
//! use alloquet_upstream_eager::{Encoding, Options, Table, WriterVersion};
//! # use std::sync::Arc;
//! # use arrow_array::{ArrayRef, RecordBatch, StringArray};
//! # let column: ArrayRef = Arc::new(StringArray::from(vec!["a", "b", "a"]));
//! # let batch = RecordBatch::try_from_iter([("s", column)])?;
//! # let mut stream = Vec::new();
//! # let mut writer = arrow_ipc::writer::StreamWriter::try_new(&mut stream, &batch.schema())?;
//! # writer.write(&batch)?;
//! # writer.finish()?;
//! # drop(writer);
//!
//! // `stream` has the bytes that some release's `arrow_ipc::writer::StreamWriter` wrote.
//! let table = Table::from_ipc(&stream)?;
//! let mut options = Options::default();
//! options.writer_version = WriterVersion::PARQUET_2_0;
//! options.every_column.encoding = Some(Encoding::DELTA_BYTE_ARRAY);
//! let bytes = table.write(std::io::sink(), &options.properties())?;
//! assert!(bytes > 0);
//! # Ok(())
//! # }
//! ```

#![forbid(unsafe_code)]

mod error;
mod options;
mod table;

pub use error::{Error, Result};
pub use options::{ColumnOptions, Options, Properties};
pub use parquet::basic::{BrotliLevel, Compression, Encoding, GzipLevel, ZstdLevel};
pub use parquet::file::properties::{EnabledStatistics, WriterVersion};
pub use table::Table;
