//! What can go wrong.

use arrow_schema::ArrowError;
use parquet::errors::ParquetError;

/// A result of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a table was not read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The bytes are no Arrow IPC stream, or one of types that this release does not have.
    #[error("parquet 59.3.2 cannot take the table over: {0}")]
    Ipc(#[from] ArrowError),
    /// The writer or its sink failed.
    #[error("parquet 59.3.2 cannot write the table: {0}")]
    Write(#[from] ParquetError),
}
