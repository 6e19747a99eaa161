//! The file that all columns of a reader share.

use std::sync::Arc;

use parquet::file::metadata::ParquetMetaData;

use crate::crypto::FileCrypto;
use crate::ledger::Ledger;
use crate::limits::Limits;

/// What every cursor of a file needs to know of it.
pub(crate) struct FileShared<T> {
    pub(crate) source: T,
    /// Length of the source, bytes.
    pub(crate) len: u64,
    pub(crate) metadata: Arc<ParquetMetaData>,
    pub(crate) crypto: Option<FileCrypto>,
    pub(crate) verify_checksums: bool,
    pub(crate) limits: Limits,
    /// Where requests to the source are counted.
    pub(crate) ledger: Arc<Ledger>,
}
