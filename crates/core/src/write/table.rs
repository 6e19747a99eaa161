//! A row group's input: ranges of rows of batches, borrowed where the caller has them anyway.

use std::collections::HashSet;
use std::sync::Arc;

use arrow_array::{Array, RecordBatch};
use arrow_data::ArrayData;

use crate::ledger::{Ledger, Purpose};

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

/// The two counts of an `Arc`, bytes.
const ARC_BYTES: usize = 2 * size_of::<usize>();

/// What arrow keeps of a buffer besides its bytes: where they are, how they are freed, and the counts.
const BUFFER_BYTES: usize = ARC_BYTES + 5 * size_of::<usize>();

/// Batches that wait for their row group to be complete.
pub(super) struct Held {
    ledger: Arc<Ledger>,
    /// What the ledger was told.
    charged: u64,
    batches: Vec<RecordBatch>,
    rows: usize,
    /// Buffers of the held batches by address, so that one which several batches share counts once.
    seen: HashSet<usize>,
    bytes: u64,
}

impl Held {
    pub(super) fn new(ledger: Arc<Ledger>) -> Self {
        Self {
            ledger,
            charged: 0,
            batches: Vec::new(),
            rows: 0,
            seen: HashSet::new(),
            bytes: 0,
        }
    }

    fn charge(&mut self) {
        let bytes = self.bytes();
        self.ledger.release(Purpose::Input, None, self.charged);
        self.ledger.charge(Purpose::Input, None, bytes);
        self.charged = bytes;
    }

    pub(super) fn push(&mut self, batch: RecordBatch) {
        for column in batch.columns() {
            self.count(&column.to_data());
            // The array itself, and what points to it.
            let array = column.get_array_memory_size() - column.get_buffer_memory_size();
            self.bytes += (array + ARC_BYTES + size_of_val(column)) as u64;
        }
        self.rows += batch.num_rows();
        self.batches.push(batch);
        self.charge();
    }

    fn count(&mut self, data: &ArrayData) {
        let nulls = data.nulls().map(arrow_buffer::NullBuffer::buffer);
        for buffer in data.buffers().iter().chain(nulls) {
            if self.seen.insert(buffer.data_ptr().as_ptr() as usize) {
                self.bytes += (buffer.capacity() + BUFFER_BYTES) as u64;
            }
        }
        for child in data.child_data() {
            self.count(child);
        }
    }

    /// Bytes that the held batches keep in the heap.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
            + (self.batches.capacity() * size_of::<RecordBatch>()) as u64
            // The set has a byte beside each entry, and is at most seven eighths full.
            + (self.seen.capacity() * 8 / 7 * (size_of::<usize>() + 1)) as u64
    }

    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    /// Takes all batches. They count as held until [`release`](Self::release).
    pub(super) fn take(&mut self) -> Vec<RecordBatch> {
        self.rows = 0;
        self.bytes = 0;
        self.seen = HashSet::new();
        std::mem::take(&mut self.batches)
    }

    /// What was taken is gone.
    pub(super) fn release(&mut self) {
        self.charge();
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.ledger.release(Purpose::Input, None, self.charged);
    }
}
