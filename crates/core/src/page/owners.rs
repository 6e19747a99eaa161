//! The owners of every buffer, made from a strategy once per reader and once per column.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::buffer::{Home, Keep};
use crate::codec::Contexts;
use crate::ledger::{Ledger, Purpose};
use crate::strategy::{BufferOwners, CodecContext, Decrypt, Fetch, PageBuffer};

/// What all columns of a reader share.
pub(crate) struct ReaderOwners {
    strategy: BufferOwners,
    ledger: Arc<Ledger>,
    /// Homes that keep nothing need no column, so one serves all.
    fetch: Arc<Home>,
    decrypt: Arc<Home>,
    page: Arc<Home>,
    dictionary: Arc<Home>,
    codec: Arc<Contexts>,
    /// Columns that are being read.
    columns: Arc<AtomicUsize>,
}

/// What one column uses.
#[derive(Clone)]
pub(crate) struct ColumnOwners {
    /// Stored bytes, where another buffer follows.
    pub(crate) fetch: Arc<Home>,
    /// Decrypted bytes; `None` to decrypt where they were fetched.
    pub(crate) decrypt: Option<Arc<Home>>,
    /// Data pages.
    pub(crate) page: Arc<Home>,
    /// Dictionary pages: they live as long as their chunk is read, so nothing is gained by keeping them.
    pub(crate) dictionary: Arc<Home>,
    pub(crate) codec: Arc<Contexts>,
    reading: Arc<Reading>,
}

impl ColumnOwners {
    /// Whose a data page is, or the dictionary page.
    pub(crate) fn page(&self, dictionary: bool) -> &Arc<Home> {
        match dictionary {
            true => &self.dictionary,
            false => &self.page,
        }
    }

    /// Whose the decrypted bytes are; `None` where they stay where they were fetched.
    pub(crate) fn decrypt_into(&self, is_encrypted: bool) -> Option<&Arc<Home>> {
        self.decrypt.as_ref().filter(|_| is_encrypted)
    }

    /// Bytes that the column may read ahead of the page that is asked for: all columns of a reader share [`READ_AHEAD_ALL`].
    pub(crate) fn read_ahead(&self) -> usize {
        let columns = self.reading.0.load(Ordering::Relaxed).max(1);
        READ_AHEAD.min(READ_AHEAD_ALL / columns)
    }
}

/// The most that a column reads ahead, bytes.
const READ_AHEAD: usize = 64 << 10;
/// The most that all columns of a reader read ahead, bytes.
const READ_AHEAD_ALL: usize = 4 << 20;

/// One of the columns that are being read, for as long as its owners exist.
struct Reading(Arc<AtomicUsize>);

impl Reading {
    fn new(columns: &Arc<AtomicUsize>) -> Arc<Self> {
        columns.fetch_add(1, Ordering::Relaxed);
        Arc::new(Self(Arc::clone(columns)))
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl ReaderOwners {
    /// For a reader whose columns are decoded by so many threads: what is shared is there once for each of them.
    pub(crate) fn new(strategy: BufferOwners, threads: usize, ledger: &Arc<Ledger>) -> Self {
        let home = |keep, purpose| Home::new(keep, purpose, None, ledger);
        Self {
            strategy,
            ledger: Arc::clone(ledger),
            fetch: match strategy.fetch {
                Fetch::Shared => home(Keep::Most(threads), Purpose::Fetch),
                Fetch::Temporary | Fetch::Retained => home(Keep::Nothing, Purpose::Fetch),
            },
            decrypt: home(Keep::Nothing, Purpose::Decrypt),
            page: match strategy.page {
                PageBuffer::Pooled => home(Keep::All, Purpose::Page),
                PageBuffer::Temporary | PageBuffer::Retained => home(Keep::Nothing, Purpose::Page),
            },
            dictionary: home(Keep::Nothing, Purpose::Dictionary),
            codec: Arc::new(Contexts::new(Arc::clone(ledger), None)),
            columns: Arc::default(),
        }
    }

    pub(crate) fn column(&self, column: usize) -> ColumnOwners {
        let retained = |purpose| Home::new(Keep::Most(1), purpose, Some(column), &self.ledger);
        ColumnOwners {
            fetch: match self.strategy.fetch {
                Fetch::Retained => retained(Purpose::Fetch),
                Fetch::Temporary | Fetch::Shared => Arc::clone(&self.fetch),
            },
            decrypt: match self.strategy.decrypt {
                Decrypt::InPlace => None,
                Decrypt::Retained => Some(retained(Purpose::Decrypt)),
                Decrypt::Temporary => Some(Arc::clone(&self.decrypt)),
            },
            page: match self.strategy.page {
                PageBuffer::Retained => retained(Purpose::Page),
                PageBuffer::Temporary | PageBuffer::Pooled => {
                    self.page.serve_column();
                    Arc::clone(&self.page)
                }
            },
            dictionary: Arc::clone(&self.dictionary),
            codec: match self.strategy.codec {
                CodecContext::Shared => Arc::clone(&self.codec),
                CodecContext::PerColumn => {
                    Arc::new(Contexts::new(Arc::clone(&self.ledger), Some(column)))
                }
            },
            reading: Reading::new(&self.columns),
        }
    }
}
