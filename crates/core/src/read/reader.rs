//! [`Reader`]: the batches of a file, and the ledger of the bytes that reading them holds.

use std::fmt;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{BinaryViewType, ByteViewType, StringViewType};
use arrow_array::{Array, RecordBatch, RecordBatchReader};
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
    pub(super) fn new(inner: ParquetRecordBatchReader, ledger: Arc<Ledger>) -> Self {
        Self {
            inner,
            ledger,
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
            Some(Ok(batch)) => self.charge_output(batch.columns().iter().map(owned_bytes).sum()),
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

/// Bytes of an array's own buffers. The data of a byte-view array are pages, which count as pages.
fn owned_bytes(array: &Arc<dyn Array>) -> u64 {
    fn views<T: ByteViewType>(array: &dyn Array) -> usize {
        let array = array.as_byte_view::<T>();
        let nulls = array.nulls().map_or(0, |n| n.buffer().capacity());
        array.views().inner().capacity() + nulls
    }
    let bytes = match array.data_type() {
        DataType::Utf8View => views::<StringViewType>(array),
        DataType::BinaryView => views::<BinaryViewType>(array),
        _ => array.get_buffer_memory_size(),
    };
    bytes as u64
}
