//! [`Share`]: some root columns of a file, and who decodes each. A reader has one share, or several that threads decode.

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatchReader};
use arrow_schema::{ArrowError, FieldRef};
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ParquetRecordBatchReader, RowSelection, RowSelector,
};
use parquet::arrow::{ProjectionMask, parquet_to_arrow_field_levels};
use parquet::basic::Encoding;
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::ParquetMetaData;

use super::owned;
use crate::decode::column::{ColumnParts, DirectColumn, undecoded, uneven};
use crate::decode::kind::{DecodePath, Kind};
use crate::guard;
use crate::ledger::Ledger;
use crate::page::row_groups::StrategyRowGroups;
use crate::source::ReadAt;
use crate::strategy::{Arrays, BufferOwners, Decode};

/// A root column of the batches.
#[derive(Debug, Clone, Copy)]
pub(super) struct Root {
    /// Its place among the file's root columns.
    pub(super) index: usize,
    /// Its first leaf column, and the one behind its last.
    pub(super) leaves: (usize, usize),
    /// Who decodes it, if it is decoded here.
    pub(super) kind: Option<Kind>,
    pub(super) path: DecodePath,
    /// Bytes of it by the file's metadata, uncompressed: the work that it is.
    pub(super) bytes: u64,
}

/// An array of a batch, and its place among the batch's columns.
pub(super) struct Piece {
    pub(super) place: usize,
    pub(super) array: ArrayRef,
    /// Bytes of the array's own buffers, without pages that it points into.
    pub(super) owned_bytes: u64,
}

/// Arrays of a batch, in no order, and how many rows they have.
pub(super) type Pieces = (Vec<Piece>, usize);

/// Root columns that are decoded one after the other.
pub(super) struct Share {
    /// Those that the parquet crate decodes, and their places.
    parquet: Option<(ParquetRecordBatchReader, Vec<usize>)>,
    /// Those that are decoded here, and their places.
    direct: Vec<(usize, Box<dyn DirectColumn>)>,
    arrays: Arrays,
}

/// What shares are made of.
pub(super) struct Plan<S> {
    pub(super) row_groups: StrategyRowGroups<S>,
    pub(super) metadata: ArrowReaderMetadata,
    pub(super) projection: ProjectionMask,
    pub(super) strategy: BufferOwners,
    pub(super) batch_size: usize,
    pub(super) selection: Option<RowSelection>,
    pub(super) ledger: Arc<Ledger>,
}

impl<S: ReadAt + 'static> Plan<S> {
    /// The root columns of the projection.
    pub(super) fn roots(&self) -> Vec<Root> {
        let schema = self.metadata.parquet_schema();
        let leaves = schema.num_columns();
        let mut roots: Vec<Root> = Vec::new();
        let mut start = 0;
        while start < leaves {
            let index = schema.get_column_root_idx(start);
            let end = (start..leaves)
                .find(|leaf| schema.get_column_root_idx(*leaf) != index)
                .unwrap_or(leaves);
            if (start..end).any(|leaf| self.projection.leaf_included(leaf)) {
                let kind = self.kind(index, start);
                roots.push(Root {
                    index,
                    leaves: (start, end),
                    kind: kind.ok(),
                    path: match kind {
                        Ok(_) => DecodePath::Direct,
                        Err(why) => DecodePath::Parquet { why },
                    },
                    bytes: self.bytes(start, end),
                });
            }
            start = end;
        }
        roots
    }

    /// How root column `index`, whose first leaf is `leaf`, is decoded here.
    fn kind(&self, index: usize, leaf: usize) -> Result<Kind, &'static str> {
        if self.strategy.decode == Decode::Parquet {
            return Err("the strategy has the parquet crate decode");
        }
        let column = self.metadata.parquet_schema().column(leaf);
        let field = self.metadata.schema().fields().get(index);
        let field = field.ok_or("it has no field in the Arrow schema")?;
        let kind = Kind::of(&column, field.data_type())?;
        if undecoded(kind, self.encodings(leaf)) {
            return Err("it has pages in an encoding that is not decoded here");
        }
        Ok(kind)
    }

    fn encodings(&self, leaf: usize) -> impl Iterator<Item = Encoding> {
        let metadata = self.metadata.metadata();
        let chunks = self.row_groups.row_groups.iter();
        chunks.flat_map(move |group| metadata.row_group(*group).column(leaf).encodings())
    }

    fn bytes(&self, start: usize, end: usize) -> u64 {
        let metadata = self.metadata.metadata();
        let groups = self.row_groups.row_groups.iter();
        let chunks = groups.flat_map(|group| &metadata.row_group(*group).columns()[start..end]);
        let sizes = chunks.map(|chunk| u64::try_from(chunk.uncompressed_size()).unwrap_or(0));
        sizes.fold(1, u64::saturating_add)
    }

    /// The share of `roots`, whose places in the batch start at `first`, and its fields.
    pub(super) fn share(&self, roots: &[Root], first: usize) -> Result<(Share, Vec<FieldRef>)> {
        let mut fields: Vec<Option<FieldRef>> = vec![None; roots.len()];
        let mut direct = Vec::new();
        let mut leaves = Vec::new();
        let mut places = Vec::new();
        for (at, root) in roots.iter().enumerate() {
            let place = first + at;
            let field = self.metadata.schema().fields().get(root.index);
            match (root.kind, field) {
                (Some(kind), Some(field)) => {
                    fields[at] = Some(Arc::clone(field));
                    direct.push((place, self.column(root, field, kind)));
                }
                _ => {
                    let all = root.leaves.0..root.leaves.1;
                    leaves.extend(all.filter(|leaf| self.projection.leaf_included(*leaf)));
                    places.push(place);
                }
            }
        }
        let mut parquet = None;
        // Without a column there are rows still.
        if !places.is_empty() || roots.is_empty() {
            let reader = self.parquet(&leaves)?;
            for (place, field) in places.iter().zip(reader.schema().fields()) {
                fields[place - first] = Some(Arc::clone(field));
            }
            parquet = Some((reader, places));
        }
        let share = Share {
            parquet,
            direct,
            arrays: self.strategy.arrays,
        };
        let fields: Option<Vec<FieldRef>> = fields.into_iter().collect();
        let fields = fields.ok_or_else(|| {
            ParquetError::General("a column of the projection has no field".into())
        })?;
        Ok((share, fields))
    }

    fn column(&self, root: &Root, field: &FieldRef, kind: Kind) -> Box<dyn DirectColumn> {
        let leaf = root.leaves.0;
        ColumnParts {
            file: Arc::clone(&self.row_groups.file),
            owners: self.row_groups.owners.column(leaf),
            column: leaf,
            row_groups: self.row_groups.row_groups.clone(),
            data_type: field.data_type().clone(),
            arrays: self.strategy.arrays,
            ledger: Arc::clone(&self.ledger),
        }
        .build(kind)
    }

    fn parquet(&self, leaves: &[usize]) -> Result<ParquetRecordBatchReader> {
        let schema = self.metadata.parquet_schema();
        let levels = parquet_to_arrow_field_levels(
            schema,
            ProjectionMask::leaves(schema, leaves.iter().copied()),
            Some(self.metadata.schema().fields()),
        )?;
        ParquetRecordBatchReader::try_new_with_row_groups(
            &levels,
            &self.row_groups,
            self.batch_size,
            self.selection.clone(),
        )
    }
}

impl Share {
    /// How many rows a batch has that ends where a page does, and has no more than `most`. Only where all is decoded here.
    pub(super) fn rows_in_page(&mut self, most: usize) -> Result<usize, ArrowError> {
        let direct = &mut self.direct;
        let left = guard::catch(|| {
            let mut left = direct.iter_mut().map(|(_, column)| column.rows_in_page());
            left.try_fold(most, |least, left| Ok(least.min(left?)))
        });
        let left: Result<usize> = left.map_err(ArrowError::ParquetError)?;
        Ok(left?)
    }

    /// The arrays of the rows that `steps` select, and how many rows they have. There are fewer than selected at the end of the file.
    pub(super) fn next(&mut self, steps: &[RowSelector]) -> Result<Pieces, ArrowError> {
        guard::catch(|| self.decode(steps)).unwrap_or_else(|why| Err(ArrowError::ParquetError(why)))
    }

    fn decode(&mut self, steps: &[RowSelector]) -> Result<Pieces, ArrowError> {
        let mut pieces = Vec::with_capacity(self.direct.len());
        let mut rows = None;
        if let Some((reader, places)) = &mut self.parquet {
            let batch = reader.next().transpose()?;
            rows = Some(batch.as_ref().map_or(0, |batch| batch.num_rows()));
            for (place, array) in places.iter().zip(batch.iter().flat_map(|b| b.columns())) {
                let array = match self.arrays {
                    Arrays::Shared => Arc::clone(array),
                    Arrays::Owned => owned::owned(array)?,
                };
                pieces.push(Piece {
                    place: *place,
                    owned_bytes: owned::bytes(&array),
                    array,
                });
            }
        }
        for (place, column) in &mut self.direct {
            let mut read = 0;
            for step in steps {
                if step.skip {
                    let skipped = column.skip(step.row_count)?;
                    if skipped < step.row_count {
                        return Err(ArrowError::ParquetError(format!(
                            "{} rows are to be skipped and {skipped} are left",
                            step.row_count
                        )));
                    }
                } else {
                    let now = column.read(step.row_count)?;
                    read += now;
                    if now < step.row_count {
                        break;
                    }
                }
            }
            let before = *rows.get_or_insert(read);
            if before != read {
                return Err(uneven(before, read).into());
            }
            if read > 0 {
                let decoded = column.finish()?;
                pieces.push(Piece {
                    place: *place,
                    array: decoded.array,
                    owned_bytes: decoded.owned_bytes as u64,
                });
            }
        }
        Ok((pieces, rows.unwrap_or(0)))
    }
}

/// Deals root columns, in order, to the shares of `threads` threads: some for each, so that one that ends early has more to do.
pub(super) fn deal(roots: &[Root], threads: usize) -> Vec<&[Root]> {
    if threads == 1 || roots.is_empty() {
        return vec![roots];
    }
    let shares = roots.len().min(threads.saturating_mul(SHARES_PER_THREAD));
    let total: u64 = roots
        .iter()
        .fold(0, |sum, root| sum.saturating_add(root.bytes));
    let most = total / shares as u64;
    let mut bytes = 0u64;
    let shares = roots.chunk_by(move |before, _| {
        bytes = bytes.saturating_add(before.bytes);
        let same = bytes < most;
        if !same {
            bytes = 0;
        }
        same
    });
    shares.collect()
}

/// More shares are dealt more evenly, and each has a reader of the parquet crate if it needs one.
const SHARES_PER_THREAD: usize = 4;

/// Rows of a file by its metadata.
pub(super) fn rows(metadata: &ParquetMetaData) -> Result<usize> {
    let num_rows = metadata.file_metadata().num_rows();
    usize::try_from(num_rows).map_err(|_| {
        ParquetError::General(format!(
            "the metadata says that the file has {num_rows} rows"
        ))
    })
}
