//! The file that all columns of a reader share.

use std::sync::Arc;

use parquet::file::metadata::ParquetMetaData;

use crate::crypto::FileCrypto;

/// What every cursor of a file needs to know of it.
pub(crate) struct FileShared<T> {
    pub(crate) source: T,
    /// Length of the source, bytes.
    pub(crate) len: u64,
    pub(crate) metadata: Arc<ParquetMetaData>,
    pub(crate) crypto: Option<FileCrypto>,
    pub(crate) verify_checksums: bool,
}
