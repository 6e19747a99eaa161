//! A row group's input: ranges of rows of batches, borrowed where the caller has them anyway.

use arrow_array::{Array, RecordBatch};
use arrow_data::ArrayData;
use std::collections::HashSet;

/// Rows `offset..offset + rows` of a batch.
#[derive(Clone, Copy)]
pub(super) struct Piece<'a> {
    pub(super) batch: &'a RecordBatch,
    pub(super) offset: usize,
    pub(super) rows: usize,
}

/// Cuts batches into runs of at most `limit` rows, calling `group` with the pieces of each; the last
/// one is whatever is left.
pub(super) fn cut<'a, E>(
    batches: &'a [RecordBatch],
    limit: usize,
    mut group: impl FnMut(&[Piece<'a>]) -> Result<(), E>,
) -> Result<(), E> {
    let mut pieces = Vec::new();
    let mut room = limit;
    for batch in batches {
        let mut offset = 0;
        while offset < batch.num_rows() {
            let rows = room.min(batch.num_rows() - offset);
            pieces.push(Piece {
                batch,
                offset,
                rows,
            });
            offset += rows;
            room -= rows;
            if room == 0 {
                group(&pieces)?;
                pieces.clear();
                room = limit;
            }
        }
    }
    if pieces.is_empty() {
        Ok(())
    } else {
        group(&pieces)
    }
}

/// Batches that wait for their row group to be complete.
#[derive(Default)]
pub(super) struct Held {
    batches: Vec<RecordBatch>,
    rows: usize,
    /// Buffers of the held batches by address, so that one which several batches share counts once.
    seen: HashSet<usize>,
    bytes: u64,
}

impl Held {
    pub(super) fn push(&mut self, batch: RecordBatch) {
        for column in batch.columns() {
            self.count(&column.to_data());
        }
        self.rows += batch.num_rows();
        self.batches.push(batch);
    }

    fn count(&mut self, data: &ArrayData) {
        let nulls = data.nulls().map(arrow_buffer::NullBuffer::buffer);
        for buffer in data.buffers().iter().chain(nulls) {
            if self.seen.insert(buffer.data_ptr().as_ptr() as usize) {
                self.bytes += buffer.capacity() as u64;
            }
        }
        for child in data.child_data() {
            self.count(child);
        }
    }

    /// Bytes of the buffers that are held.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    /// Takes all batches, which are then nobody's but the caller's.
    pub(super) fn take(&mut self) -> Vec<RecordBatch> {
        self.rows = 0;
        self.bytes = 0;
        self.seen = HashSet::new();
        std::mem::take(&mut self.batches)
    }
}
