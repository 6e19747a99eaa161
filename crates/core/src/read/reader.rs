//! [`Reader`]: the batches of a file, and the ledger of the bytes that reading them holds.

use std::fmt;
use std::sync::Arc;

use arrow_array::{Array, RecordBatch, RecordBatchReader};
use arrow_buffer::Buffer;
use arrow_data::ArrayData;
use arrow_schema::{ArrowError, DataType, SchemaRef};
use parquet::arrow::arrow_reader::ParquetRecordBatchReader;

use crate::guard;
use crate::ledger::{Ledger, Purpose};

/// Reads a file's record batches with the buffers of a strategy.
///
/// After an error it gives nothing more.
pub struct Reader {
    inner: ParquetRecordBatchReader,
    ledger: Arc<Ledger>,
    /// Bytes of the metadata, as charged to the ledger.
    metadata: u64,
    /// Bytes of the last batch, as charged to the ledger.
    output: u64,
    failed: bool,
}

impl fmt::Debug for Reader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reader")
            .field("schema", &self.inner.schema())
            .field("ledger", &self.ledger)
            .finish_non_exhaustive()
    }
}

impl Reader {
    /// `metadata` is the size of the file's metadata in bytes.
    pub(super) fn new(inner: ParquetRecordBatchReader, ledger: Arc<Ledger>, metadata: u64) -> Self {
        ledger.charge(Purpose::Metadata, None, metadata);
        Self {
            inner,
            ledger,
            metadata,
            output: 0,
            failed: false,
        }
    }

    /// The bytes that this reader owns, by purpose; it can outlive the reader.
    ///
    /// A batch counts from when it is returned until the next one is asked for: a caller that keeps
    /// batches holds more than the ledger knows. Of the control `upstream` only the metadata and the
    /// batches are known.
    pub fn ledger(&self) -> Arc<Ledger> {
        Arc::clone(&self.ledger)
    }

    fn charge_output(&mut self, bytes: u64) {
        self.ledger.release(Purpose::Output, None, self.output);
        self.ledger.charge(Purpose::Output, None, bytes);
        self.output = bytes;
    }
}

impl Iterator for Reader {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        self.charge_output(0);
        let next = guard::catch(|| self.inner.next())
            .unwrap_or_else(|message| Some(Err(ArrowError::ParquetError(message))));
        match &next {
            Some(Ok(batch)) => {
                self.charge_output(batch.columns().iter().map(|array| owned_bytes(array)).sum())
            }
            Some(Err(_)) => self.failed = true,
            None => {}
        }
        next
    }
}

impl RecordBatchReader for Reader {
    fn schema(&self) -> SchemaRef {
        self.inner.schema()
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.charge_output(0);
        self.ledger.release(Purpose::Metadata, None, self.metadata);
    }
}

/// Bytes of an array's own buffers. The data of byte-view arrays, nested ones too, are pages, which
/// count as pages.
fn owned_bytes(array: &dyn Array) -> u64 {
    fn bytes(data: &ArrayData) -> usize {
        let own = match data.data_type() {
            // The views come first, then the pages that they point into.
            DataType::Utf8View | DataType::BinaryView => &data.buffers()[..1],
            _ => data.buffers(),
        };
        let own: usize = own.iter().map(Buffer::capacity).sum();
        let nulls = data.nulls().map_or(0, |nulls| nulls.buffer().capacity());
        own + nulls + data.child_data().iter().map(bytes).sum::<usize>()
    }
    match array.data_type() {
        kind if kind.is_nested() || matches!(kind, DataType::Utf8View | DataType::BinaryView) => {
            bytes(&array.to_data()) as u64
        }
        _ => array.get_buffer_memory_size() as u64,
    }
}
