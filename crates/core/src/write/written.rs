//! What a finished file says of itself.

use parquet::errors::Result;
use parquet::file::metadata::{ParquetMetaData, ParquetMetaDataReader};

/// A file that was written to its end.
#[derive(Debug, Clone)]
pub struct WrittenFile {
    pub(super) rows: u64,
    pub(super) row_groups: usize,
    pub(super) bytes: u64,
    pub(super) metadata: Metadata,
}

/// The file's metadata, as far as it was needed for writing.
#[derive(Debug, Clone)]
pub(super) enum Metadata {
    /// As the parquet crate's writer leaves it.
    Decoded(Box<ParquetMetaData>),
    /// The footer's Thrift, without length and magic.
    Encoded(Vec<u8>),
}

impl WrittenFile {
    /// Rows in the file.
    pub fn num_rows(&self) -> u64 {
        self.rows
    }

    /// Row groups in the file.
    pub fn num_row_groups(&self) -> usize {
        self.row_groups
    }

    /// The file's length in bytes.
    pub fn bytes_written(&self) -> u64 {
        self.bytes
    }

    /// The file's metadata, decoded when asked for: of a wide table it is larger than what writing held.
    /// The page index is not in it where this crate wrote the file; read it from the file.
    ///
    /// # Errors
    /// None for a file that was written whole; the parquet crate's decoder can give some.
    pub fn metadata(&self) -> Result<ParquetMetaData> {
        match &self.metadata {
            Metadata::Decoded(metadata) => Ok(metadata.as_ref().clone()),
            Metadata::Encoded(footer) => ParquetMetaDataReader::decode_metadata(footer),
        }
    }
}
