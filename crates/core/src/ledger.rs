//! The ledger: this crate's own count of the bytes it owns, by purpose and by column.
//!
//! It costs a lock and an addition when a buffer is taken and when it comes back, nothing per value. It counts capacities, because a buffer
//! holds its capacity whatever its length. What the parquet crate's decoders hold besides the batch
//! is not seen here; nor are the pages of the `upstream` control. A batch counts from when it is
//! returned until the next is asked for, so the arrays under construction while a page is loaded are
//! not seen beside that page, and the peak can be some pages below the heap's.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What a buffer is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Purpose {
    /// Stored bytes of a page, as read from the file.
    Fetch,
    /// Decrypted, still compressed bytes of a page.
    Decrypt,
    /// Data pages as decoders read them, those kept for reuse included.
    Page,
    /// Data pages that the reader is done with and that arrays still hold: one row of a slice or a view keeps its whole page. What is
    /// here after the reader is dropped is what its arrays hold; see [`Arrays`](crate::strategy::Arrays).
    Kept,
    /// Dictionary pages; of a writer, the table of values that a dictionary is built with.
    Dictionary,
    /// Contexts of codecs that tell their size (zstd; C heap, outside the global allocator).
    Codec,
    /// The arrays of the last batch returned, until the next one is asked for.
    Output,
    /// Metadata: of a file that is read, parsed; of one that is written, as it will be written, with what
    /// each open column keeps of its pages.
    Metadata,
    /// Batches that a writer holds until it can encode them.
    Input,
    /// Values and levels under encoding, and the pages made of them until they are handed on.
    Encoder,
    /// Finished pages that wait in memory for their column chunk to be complete.
    PageStore,
    /// Columns that the parquet crate's own writer encodes, as far as it tells.
    Upstream,
}

impl Purpose {
    /// Every purpose, in the order in which a page meets them.
    pub const ALL: &'static [Self] = &[
        Self::Fetch,
        Self::Decrypt,
        Self::Page,
        Self::Kept,
        Self::Dictionary,
        Self::Codec,
        Self::Output,
        Self::Metadata,
        Self::Input,
        Self::Encoder,
        Self::PageStore,
        Self::Upstream,
    ];

    const fn index(self) -> usize {
        self as usize
    }
}

impl fmt::Display for Purpose {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Fetch => "fetch",
            Self::Decrypt => "decrypt",
            Self::Page => "page",
            Self::Kept => "kept",
            Self::Dictionary => "dictionary",
            Self::Codec => "codec",
            Self::Output => "output",
            Self::Metadata => "metadata",
            Self::Input => "input",
            Self::Encoder => "encoder",
            Self::PageStore => "page store",
            Self::Upstream => "upstream",
        })
    }
}

type Amounts = [u64; Purpose::ALL.len()];

/// A count that remembers what it was when the total last peaked, without being visited at each peak.
///
/// `peak` is brought up to date only when the count changes: what it held before the change is what it
/// held at every peak since its last change. That makes a peak cost the same for 1 and 10,000 columns.
#[derive(Debug, Clone, Default)]
struct Account {
    live: Amounts,
    at_peak: Amounts,
    seen_peaks: u64,
    shared_values: u64,
    written_values: u64,
}

impl Account {
    fn change(&mut self, peaks: u64, purpose: Purpose, add: u64, sub: u64) {
        if self.seen_peaks != peaks {
            self.at_peak = self.live;
            self.seen_peaks = peaks;
        }
        let live = &mut self.live[purpose.index()];
        *live = live.saturating_add(add).saturating_sub(sub);
    }

    fn at_peak(&self, peaks: u64) -> &Amounts {
        if self.seen_peaks == peaks {
            &self.at_peak
        } else {
            &self.live
        }
    }
}

#[derive(Debug, Default)]
struct State {
    total: u64,
    peak_total: u64,
    /// How often the total has reached a new peak.
    peaks: u64,
    /// Bytes that belong to no one column.
    shared: Account,
    /// By leaf column of the file.
    columns: Vec<Account>,
    /// Buffers allocated so far, those used again not counted.
    allocations: Amounts,
    /// Requests to the source so far, and the bytes that they gave.
    reads: u64,
    read_bytes: u64,
}

/// Bytes owned by one reader or writer: live now, and live at its own peak.
///
/// Shared with whoever asks; see [`Reader::ledger`](crate::Reader::ledger) and
/// [`Writer::ledger`](crate::Writer::ledger).
#[derive(Debug)]
pub struct Ledger {
    state: Mutex<State>,
}

impl Ledger {
    /// A ledger for a file of `columns` leaf columns, with nothing in it.
    pub(crate) fn new(columns: usize) -> Self {
        Self {
            state: Mutex::new(State {
                columns: vec![Account::default(); columns],
                ..State::default()
            }),
        }
    }

    /// Bytes that the ledger itself takes in the heap.
    pub(crate) fn heap_bytes(&self) -> usize {
        size_of::<Self>() + self.lock().columns.capacity() * size_of::<Account>()
    }

    // A panic while the lock is held cannot leave the counts torn, so poisoning is no reason to fail.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a buffer of `bytes`, for leaf column `column` or for all of them.
    pub(crate) fn charge(&self, purpose: Purpose, column: Option<usize>, bytes: u64) {
        let mut state = self.lock();
        let peaks = state.peaks;
        state.account(column).change(peaks, purpose, bytes, 0);
        state.total = state.total.saturating_add(bytes);
        if state.total > state.peak_total {
            state.peak_total = state.total;
            state.peaks += 1;
        }
    }

    /// Moves `bytes` of leaf column `column` from one purpose to another; the total stays.
    pub(crate) fn transfer(&self, from: Purpose, to: Purpose, column: usize, bytes: u64) {
        let mut state = self.lock();
        let peaks = state.peaks;
        let account = state.account(Some(column));
        account.change(peaks, from, 0, bytes);
        account.change(peaks, to, bytes, 0);
    }

    /// Takes back what [`charge`](Self::charge) added.
    pub(crate) fn release(&self, purpose: Purpose, column: Option<usize>, bytes: u64) {
        let mut state = self.lock();
        let peaks = state.peaks;
        state.account(column).change(peaks, purpose, 0, bytes);
        state.total = state.total.saturating_sub(bytes);
    }

    /// Notes that a buffer was allocated, and not taken from those that were kept.
    pub(crate) fn count_allocation(&self, purpose: Purpose) {
        self.lock().allocations[purpose.index()] += 1;
    }

    /// Buffers that were allocated for a purpose so far. A buffer that is used again counts once: so this
    /// is what tells owners that keep buffers from owners that do not.
    pub fn allocated_buffers(&self, purpose: Purpose) -> u64 {
        self.lock().allocations[purpose.index()]
    }

    /// Notes a request to the source for `bytes`.
    pub(crate) fn count_read(&self, bytes: u64) {
        let mut state = self.lock();
        state.reads += 1;
        state.read_bytes += bytes;
    }

    /// Requests for pages that the source was asked so far (`pread`, of a file).
    pub fn reads(&self) -> u64 {
        self.lock().reads
    }

    /// Bytes that these requests were for.
    pub fn read_bytes(&self) -> u64 {
        self.lock().read_bytes
    }

    /// Notes how many bytes of values of leaf column `column` arrays share with its pages, and how many were written into arrays.
    pub(crate) fn count_values(&self, column: usize, shared: u64, written: u64) {
        let mut state = self.lock();
        if let Some(account) = state.columns.get_mut(column) {
            account.shared_values += shared;
            account.written_values += written;
        }
    }

    /// Bytes of values in arrays that are slices of pages, over the columns that are decoded here (`decode=direct`).
    pub fn shared_value_bytes(&self) -> u64 {
        self.lock().columns.iter().map(|c| c.shared_values).sum()
    }

    /// Bytes of values that were written into arrays: copied or decoded out of pages, over the columns that are decoded here
    /// (`decode=direct`).
    pub fn written_value_bytes(&self) -> u64 {
        self.lock().columns.iter().map(|c| c.written_values).sum()
    }

    /// [`shared_value_bytes`](Self::shared_value_bytes) and [`written_value_bytes`](Self::written_value_bytes) of leaf column
    /// `column`; zeros for a column that the file does not have.
    pub fn column_value_bytes(&self, column: usize) -> (u64, u64) {
        let state = self.lock();
        let account = state.columns.get(column);
        account.map_or((0, 0), |c| (c.shared_values, c.written_values))
    }

    /// Bytes live now, over all purposes and columns.
    pub fn live_bytes(&self) -> u64 {
        self.lock().total
    }

    /// Bytes live now for one purpose, over all columns.
    pub fn live(&self, purpose: Purpose) -> u64 {
        let i = purpose.index();
        let state = self.lock();
        state.shared.live[i] + state.columns.iter().map(|c| c.live[i]).sum::<u64>()
    }

    /// What was live when the total was highest.
    pub fn peak(&self) -> LedgerPeak {
        let state = self.lock();
        LedgerPeak {
            total_bytes: state.peak_total,
            shared: *state.shared.at_peak(state.peaks),
            columns: state
                .columns
                .iter()
                .map(|column| *column.at_peak(state.peaks))
                .collect(),
        }
    }
}

impl State {
    fn account(&mut self, column: Option<usize>) -> &mut Account {
        match column.and_then(|c| self.columns.get_mut(c)) {
            Some(account) => account,
            None => &mut self.shared,
        }
    }
}

/// What a reader or writer owned when it owned most.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LedgerPeak {
    total_bytes: u64,
    shared: Amounts,
    columns: Vec<Amounts>,
}

impl LedgerPeak {
    /// All bytes live at the peak.
    pub fn total_bytes(&self) -> u64 {
        self.total_bytes
    }

    /// Bytes live at the peak for one purpose, over all columns.
    pub fn bytes(&self, purpose: Purpose) -> u64 {
        let i = purpose.index();
        self.shared[i] + self.columns.iter().map(|c| c[i]).sum::<u64>()
    }

    /// Bytes live at the peak by purpose; every purpose is present.
    pub fn by_purpose(&self) -> BTreeMap<Purpose, u64> {
        Purpose::ALL.iter().map(|p| (*p, self.bytes(*p))).collect()
    }

    /// Bytes live at the peak for one purpose that belonged to leaf column `column` of the file;
    /// 0 for a column that the file does not have.
    pub fn column_bytes(&self, column: usize, purpose: Purpose) -> u64 {
        self.columns
            .get(column)
            .map_or(0, |amounts| amounts[purpose.index()])
    }

    /// Bytes live at the peak for one purpose that belonged to no one column (shared buffers).
    pub fn shared_bytes(&self, purpose: Purpose) -> u64 {
        self.shared[purpose.index()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_peak_is_split_as_it_was_then() {
        let ledger = Ledger::new(2);
        ledger.charge(Purpose::Page, Some(0), 100);
        ledger.charge(Purpose::Decrypt, Some(1), 50);
        ledger.release(Purpose::Decrypt, Some(1), 50);
        ledger.charge(Purpose::Output, None, 20);
        ledger.release(Purpose::Page, Some(0), 100);

        let peak = ledger.peak();
        assert_eq!(peak.total_bytes(), 150);
        assert_eq!(peak.bytes(Purpose::Page), 100);
        assert_eq!(peak.column_bytes(1, Purpose::Decrypt), 50);
        assert_eq!(peak.bytes(Purpose::Output), 0);
        assert_eq!(ledger.live_bytes(), 20);
    }

    proptest! {
        /// The lazily kept split equals a snapshot taken at each new peak.
        #[test]
        fn the_split_equals_an_eager_snapshot(
            steps in prop::collection::vec((0..Purpose::ALL.len(), 0..4usize, 0..1000u64, any::<bool>()), 0..200)
        ) {
            let ledger = Ledger::new(3);
            let mut live = vec![[0u64; Purpose::ALL.len()]; 4];
            let (mut best, mut snapshot) = (0, live.clone());
            for (purpose, column, bytes, add) in steps {
                let owner = (column < 3).then_some(column);
                if add {
                    ledger.charge(Purpose::ALL[purpose], owner, bytes);
                    live[column][purpose] += bytes;
                } else {
                    let bytes = bytes.min(live[column][purpose]);
                    ledger.release(Purpose::ALL[purpose], owner, bytes);
                    live[column][purpose] -= bytes;
                }
                let total: u64 = live.iter().flatten().sum();
                if total > best {
                    (best, snapshot) = (total, live.clone());
                }
            }
            let peak = ledger.peak();
            prop_assert_eq!(peak.total_bytes(), best);
            for &purpose in Purpose::ALL {
                for (column, amounts) in snapshot.iter().take(3).enumerate() {
                    prop_assert_eq!(peak.column_bytes(column, purpose), amounts[purpose.index()]);
                }
                prop_assert_eq!(peak.shared_bytes(purpose), snapshot[3][purpose.index()]);
            }
        }
    }
}
