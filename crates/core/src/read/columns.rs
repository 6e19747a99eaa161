//! [`ColumnReader`]: the values of a file column after column and page after page, of which no batch is made.

use std::fmt;
use std::iter::FusedIterator;
use std::sync::Arc;
use std::vec;

use arrow_array::ArrayRef;
use arrow_schema::ArrowError;
use parquet::arrow::arrow_reader::RowSelector;
use parquet::errors::Result;

use super::share::{Plan, Root, Share};
use crate::guard;
use crate::ledger::{Ledger, Purpose};
use crate::source::ReadAt;

/// Reads the values of a file one column after the other, for whoever looks at each once and keeps none.
///
/// An array ends where its page does, or at the batch size before that. So one page's buffer serves the whole file where columns are
/// decoded here, as long as each array is dropped before the next is asked for. Columns that the parquet crate decodes (nested ones;
/// all of them with `decode=parquet`) come in arrays of the batch size.
///
/// After an error it gives nothing more.
///
/// ```no_run
/// use alloquet_core::{ReadStrategy, ReaderBuilder};
/// use std::fs::File;
///
/// let file = File::open("a.parquet")?;
/// let builder = ReaderBuilder::try_new(file)?.with_strategy("direct".parse::<ReadStrategy>()?);
/// for values in builder.with_batch_size(65_536).build_column_wise()? {
///     let values = values?;
///     println!("column {}: {} rows", values.column, values.array.len());
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct ColumnReader {
    /// Root columns that were not begun.
    roots: vec::IntoIter<Root>,
    /// Makes the reader of one.
    open: Box<Open>,
    current: Option<(Root, Share)>,
    batch_size: usize,
    ledger: Arc<Ledger>,
    /// Bytes of the metadata, as charged to the ledger.
    metadata: u64,
    /// Bytes of the last array, as charged to the ledger.
    output: u64,
}

/// Makes the reader of a root column.
type Open = dyn Fn(&Root) -> Result<Share> + Send;

/// Some values of a column, in the order of its rows.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ColumnValues {
    /// Root column of the file, counted from 0: its field's place in the Arrow schema.
    pub column: usize,
    /// The values.
    pub array: ArrayRef,
}

impl fmt::Debug for ColumnReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ColumnReader")
            .field("ledger", &self.ledger)
            .finish_non_exhaustive()
    }
}

impl ColumnReader {
    /// `metadata` is the size of the file's metadata in bytes.
    pub(super) fn new<S: ReadAt + 'static>(plan: Plan<S>, metadata: u64) -> Self {
        let ledger = Arc::clone(&plan.ledger);
        ledger.charge(Purpose::Metadata, None, metadata);
        Self {
            roots: plan.roots().into_iter(),
            batch_size: plan.batch_size,
            open: Box::new(move |root| Ok(plan.share(std::slice::from_ref(root), 0)?.0)),
            current: None,
            ledger,
            metadata,
            output: 0,
        }
    }

    /// The bytes that this reader owns, by purpose; it can outlive the reader. An array counts until the next one is asked for.
    pub fn ledger(&self) -> Arc<Ledger> {
        Arc::clone(&self.ledger)
    }

    fn read(&mut self) -> Result<Option<(ColumnValues, u64)>, ArrowError> {
        loop {
            if self.current.is_none() {
                let Some(root) = self.roots.next() else {
                    return Ok(None);
                };
                let share = guard::catch(|| (self.open)(&root));
                let share = share.map_err(ArrowError::ParquetError)??;
                self.current = Some((root, share));
            }
            if let Some((root, share)) = &mut self.current {
                let rows = share.rows_in_page(self.batch_size)?;
                let piece = match rows {
                    0 => None,
                    _ => share.next(&[RowSelector::select(rows)])?.0.pop(),
                };
                if let Some(piece) = piece {
                    let values = ColumnValues {
                        column: root.index,
                        array: piece.array,
                    };
                    return Ok(Some((values, piece.owned_bytes)));
                }
            }
            // Its buffers are free for the next column.
            self.current = None;
        }
    }

    fn charge_output(&mut self, bytes: u64) {
        self.ledger.release(Purpose::Output, None, self.output);
        self.ledger.charge(Purpose::Output, None, bytes);
        self.output = bytes;
    }
}

impl FusedIterator for ColumnReader {}

impl Iterator for ColumnReader {
    type Item = Result<ColumnValues, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.charge_output(0);
        match self.read() {
            Ok(Some((values, bytes))) => {
                self.charge_output(bytes);
                Some(Ok(values))
            }
            Ok(None) => None,
            Err(error) => {
                self.current = None;
                self.roots = Vec::new().into_iter();
                Some(Err(error))
            }
        }
    }
}

impl Drop for ColumnReader {
    fn drop(&mut self) {
        self.charge_output(0);
        self.ledger.release(Purpose::Metadata, None, self.metadata);
    }
}
