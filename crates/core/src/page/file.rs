//! The file that all columns of a reader share.

use std::io;
use std::sync::Arc;

use bytes::Bytes;
use parquet::file::metadata::ParquetMetaData;

use crate::buffer::Buffer;
use crate::crypto::FileCrypto;
use crate::ledger::Ledger;
use crate::limits::Limits;
use crate::source::ReadAt;

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

impl<T: ReadAt> FileShared<T> {
    /// Fills `buf` with the bytes at `offset`: one request.
    pub(crate) fn read(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        self.ledger.count_read(buf.len() as u64);
        self.source.read_exact_at(buf, offset)
    }

    /// Fills `buffer` with the `len` bytes at `offset`: one request.
    pub(crate) fn read_into(&self, buffer: &mut Buffer, offset: u64, len: usize) -> io::Result<()> {
        self.ledger.count_read(len as u64);
        buffer.read_from(&self.source, offset, len)
    }

    /// The `len` bytes at `offset` where the source holds them in memory: one request.
    pub(crate) fn share(&self, offset: u64, len: usize) -> Option<Bytes> {
        let bytes = self.source.share_at(offset, len)?;
        self.ledger.count_read(len as u64);
        Some(bytes)
    }
}
