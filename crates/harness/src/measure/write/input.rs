//! The table that a write sample writes: a file's batches, decoded before the window and compact in memory.

use alloquet_core::ReadStrategy;
use anyhow::Result;
use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;

use super::super::checksum::Checksum;
use super::super::fold::Fold;
use super::super::job::Job;
use super::super::read::open;
use super::copy::compact;

/// What is written, and what reading it back must give.
pub(super) struct Input {
    pub(super) schema: SchemaRef,
    pub(super) batches: Vec<RecordBatch>,
    pub(super) fold: Fold,
    pub(super) checksum: u64,
}

impl Input {
    /// Decodes the job's file. Of each batch a compact copy is kept: decoders leave buffers that are larger than what
    /// they hold, or that batches share, and the table is to cost what its values take.
    pub(super) fn decode(job: &Job) -> Result<Self> {
        let builder = open(job)?
            .with_strategy(ReadStrategy::Upstream)
            .with_batch_size(job.batch_rows);
        let schema = SchemaRef::clone(builder.schema());
        let mut checksum = Checksum::new(&schema)?;
        let mut fold = Fold::default();
        let mut batches = Vec::new();
        for batch in builder.build()? {
            let batch = batch?;
            fold.add(&batch)?;
            checksum.add(&batch)?;
            batches.push(compact(&batch)?);
        }
        Ok(Self {
            schema,
            batches,
            fold,
            checksum: checksum.finish(),
        })
    }

    /// The table in runs of batches of one row group each, for a writer that takes a row group at once; the batches
    /// are slices, which copy nothing.
    pub(super) fn row_groups(&self, most_rows: usize) -> Vec<Vec<RecordBatch>> {
        let mut groups = vec![Vec::new()];
        let mut room = most_rows;
        for batch in &self.batches {
            let mut offset = 0;
            while offset < batch.num_rows() {
                if room == 0 {
                    groups.push(Vec::new());
                    room = most_rows;
                }
                let rows = room.min(batch.num_rows() - offset);
                if let Some(group) = groups.last_mut() {
                    group.push(batch.slice(offset, rows));
                }
                offset += rows;
                room -= rows;
            }
        }
        groups
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{ArrayRef, Int32Array};

    use super::*;

    #[test]
    fn row_groups_end_where_they_are_full() {
        let batch = |rows: i32| {
            let column: ArrayRef = Arc::new(Int32Array::from_iter_values(0..rows));
            RecordBatch::try_from_iter([("a", column)]).unwrap()
        };
        let rows = |batches: &[i32], most: usize| {
            let input = Input {
                schema: batch(0).schema(),
                batches: batches.iter().map(|rows| batch(*rows)).collect(),
                fold: Fold::default(),
                checksum: 0,
            };
            let groups = input.row_groups(most);
            let rows = |group: &Vec<RecordBatch>| {
                let rows = group.iter().map(RecordBatch::num_rows);
                rows.collect::<Vec<_>>()
            };
            groups.iter().map(rows).collect::<Vec<_>>()
        };
        assert_eq!(rows(&[4, 4, 4], 6), [vec![4, 2], vec![2, 4]]);
        assert_eq!(rows(&[10], 4), [[4].as_slice(), &[4], &[2]]);
        assert_eq!(rows(&[4, 4], usize::MAX), [[4, 4]]);
        assert_eq!(rows(&[], 4), [Vec::<usize>::new()]);
    }
}
