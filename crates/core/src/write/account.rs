//! Keeps the ledger of a writer: charges what changed since it was last told.

use std::sync::Arc;

use super::column::ChunkHeap;
use crate::ledger::{Ledger, Purpose};

/// What the ledger was last told.
pub(super) struct Account {
    ledger: Arc<Ledger>,
    columns: Vec<ChunkHeap>,
    upstream: Vec<usize>,
    metadata: usize,
    encoder: usize,
    page_store: usize,
    codec: usize,
}

impl Account {
    pub(super) fn new(ledger: Arc<Ledger>, columns: usize) -> Self {
        Self {
            ledger,
            columns: vec![ChunkHeap::default(); columns],
            upstream: Vec::new(),
            metadata: 0,
            encoder: 0,
            page_store: 0,
            codec: 0,
        }
    }

    /// What a column of this crate holds now.
    pub(super) fn column(&mut self, column: usize, now: ChunkHeap) {
        let before = std::mem::replace(&mut self.columns[column], now);
        if before == now {
            return;
        }
        for (purpose, before, now) in [
            (Purpose::Encoder, before.encoder, now.encoder),
            (Purpose::Dictionary, before.dictionary, now.dictionary),
            (Purpose::PageStore, before.page_store, now.page_store),
            (Purpose::Metadata, before.metadata, now.metadata),
            (Purpose::Codec, before.codec, now.codec),
        ] {
            change(&self.ledger, purpose, Some(column), before, now);
        }
    }

    /// What a column that the parquet crate writes holds now, as far as it tells.
    pub(super) fn upstream(&mut self, column: usize, now: usize) {
        if self.upstream.len() <= column {
            self.upstream.resize(self.columns.len(), 0);
        }
        let before = std::mem::replace(&mut self.upstream[column], now);
        change(&self.ledger, Purpose::Upstream, Some(column), before, now);
    }

    /// What the file's metadata takes now.
    pub(super) fn metadata(&mut self, now: usize) {
        let before = std::mem::replace(&mut self.metadata, now);
        change(&self.ledger, Purpose::Metadata, None, before, now);
    }

    /// What the columns share takes now, and took in between at the most.
    pub(super) fn shared(&mut self, purpose: Purpose, now: usize, peak: usize) {
        let told = match purpose {
            Purpose::PageStore => &mut self.page_store,
            Purpose::Codec => &mut self.codec,
            _ => &mut self.encoder,
        };
        let before = std::mem::replace(told, now);
        let top = peak.max(before).max(now);
        change(&self.ledger, purpose, None, before, top);
        change(&self.ledger, purpose, None, top, now);
    }

    /// Bytes that keeping count takes in the heap, the ledger included.
    pub(super) fn heap_bytes(&self) -> usize {
        self.ledger.heap_bytes()
            + self.columns.capacity() * size_of::<ChunkHeap>()
            + self.upstream.capacity() * size_of::<usize>()
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        for column in 0..self.columns.len() {
            self.column(column, ChunkHeap::default());
        }
        for column in 0..self.upstream.len() {
            self.upstream(column, 0);
        }
        self.metadata(0);
        for purpose in [Purpose::Encoder, Purpose::PageStore, Purpose::Codec] {
            self.shared(purpose, 0, 0);
        }
    }
}

fn change(ledger: &Ledger, purpose: Purpose, column: Option<usize>, before: usize, now: usize) {
    if now > before {
        ledger.charge(purpose, column, (now - before) as u64);
    } else if before > now {
        ledger.release(purpose, column, (before - now) as u64);
    }
}
