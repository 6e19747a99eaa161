//! [`Reader`]: the batches of a file, and the ledger of the bytes that reading them holds.

use std::fmt;
use std::iter::FusedIterator;
use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchOptions, RecordBatchReader};
use arrow_schema::{ArrowError, SchemaRef};
use parquet::arrow::arrow_reader::ParquetRecordBatchReader;

use super::owned;
use super::selection::Batches;
use super::threads::Shares;
use crate::decode::kind::DecodePath;
use crate::guard;
use crate::ledger::{Ledger, Purpose};

/// Reads a file's record batches with the buffers of a strategy.
///
/// After an error it gives nothing more.
pub struct Reader {
    inner: Inner,
    schema: SchemaRef,
    /// By leaf column of the file; `None` for those that are not read.
    paths: Vec<Option<DecodePath>>,
    ledger: Arc<Ledger>,
    /// Bytes of the metadata, as charged to the ledger.
    metadata: u64,
    /// Bytes of the last batch, as charged to the ledger.
    output: u64,
}

/// Who makes the batches.
pub(super) enum Inner {
    /// The parquet crate's own reader.
    Upstream(Box<ParquetRecordBatchReader>),
    /// This crate.
    Owned { batches: Batches, shares: Shares },
    /// Nobody any more: what the file was read with is gone.
    Ended,
}

impl fmt::Debug for Reader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reader")
            .field("schema", &self.schema)
            .field("ledger", &self.ledger)
            .finish_non_exhaustive()
    }
}

impl Reader {
    /// `metadata` is the size of the file's metadata in bytes.
    pub(super) fn new(
        inner: Inner,
        schema: SchemaRef,
        paths: Vec<Option<DecodePath>>,
        ledger: Arc<Ledger>,
        metadata: u64,
    ) -> Self {
        ledger.charge(Purpose::Metadata, None, metadata);
        Self {
            inner,
            schema,
            paths,
            ledger,
            metadata,
            output: 0,
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

    /// Who decodes leaf column `column` of the file; `None` where it is not read.
    pub fn decode_path(&self, column: usize) -> Option<DecodePath> {
        self.paths.get(column).copied().flatten()
    }

    /// The next batch, and the bytes that its arrays own.
    fn read(&mut self) -> Result<Option<(RecordBatch, u64)>, ArrowError> {
        match &mut self.inner {
            Inner::Upstream(reader) => {
                let next = guard::catch(|| reader.next()).map_err(ArrowError::ParquetError)?;
                Ok(next.transpose()?.map(|batch| {
                    let bytes = batch.columns().iter().map(|array| owned::bytes(array));
                    let bytes = bytes.sum();
                    (batch, bytes)
                }))
            }
            Inner::Ended => Ok(None),
            Inner::Owned { batches, shares } => {
                let steps = batches.next();
                if steps.is_empty() {
                    return Ok(None);
                }
                let (mut pieces, rows) = shares.next(steps)?;
                if rows == 0 {
                    return Ok(None);
                }
                pieces.sort_unstable_by_key(|piece| piece.place);
                let bytes = pieces.iter().map(|piece| piece.owned_bytes).sum();
                let arrays = pieces.into_iter().map(|piece| piece.array).collect();
                let options = RecordBatchOptions::new().with_row_count(Some(rows));
                let schema = Arc::clone(&self.schema);
                let batch = RecordBatch::try_new_with_options(schema, arrays, &options)?;
                Ok(Some((batch, bytes)))
            }
        }
    }

    fn charge_output(&mut self, bytes: u64) {
        self.ledger.release(Purpose::Output, None, self.output);
        self.ledger.charge(Purpose::Output, None, bytes);
        self.output = bytes;
    }
}

impl FusedIterator for Reader {}

impl Iterator for Reader {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.charge_output(0);
        match self.read() {
            Ok(Some((batch, bytes))) => {
                self.charge_output(bytes);
                Some(Ok(batch))
            }
            Ok(None) => {
                self.inner = Inner::Ended;
                None
            }
            Err(error) => {
                self.inner = Inner::Ended;
                Some(Err(error))
            }
        }
    }
}

impl RecordBatchReader for Reader {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.charge_output(0);
        self.ledger.release(Purpose::Metadata, None, self.metadata);
    }
}
