//! Buffers that go back to their owner when their last reference is dropped.
//!
//! A [`Home`] is an owner: it keeps no buffer (temporary), one (retained, shared) or as many as were
//! needed at once (pooled). A [`Buffer`] turns into [`Bytes`] that decoders and arrays may hold as
//! long as they like; a home only ever hands out buffers that nobody holds.

use std::io;
use std::mem;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use bytes::Bytes;

use crate::ledger::{Ledger, Purpose};
use crate::source::ReadAt;

/// How many buffers a home keeps when they come back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keep {
    Nothing,
    /// So many, at most.
    Most(usize),
    All,
}

/// An owner of buffers.
pub(crate) struct Home {
    keep: Keep,
    purpose: Purpose,
    /// Whom idle buffers are charged to: a column, or nobody in particular.
    owner: Option<usize>,
    ledger: Arc<Ledger>,
    /// Idle buffers, by capacity, smallest first. Their length is what of them was ever initialised.
    idle: Mutex<Vec<Vec<u8>>>,
    /// Buffers that are out.
    out: AtomicUsize,
    /// Columns that take buffers from here.
    columns: AtomicUsize,
}

impl Home {
    pub(crate) fn new(
        keep: Keep,
        purpose: Purpose,
        owner: Option<usize>,
        ledger: &Arc<Ledger>,
    ) -> Arc<Self> {
        Arc::new(Self {
            keep,
            purpose,
            owner,
            ledger: Arc::clone(ledger),
            idle: Mutex::new(Vec::new()),
            out: AtomicUsize::new(0),
            columns: AtomicUsize::new(0),
        })
    }

    /// Notes that one column more takes buffers from here.
    pub(crate) fn serve_column(&self) {
        self.columns.fetch_add(1, Ordering::Relaxed);
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Vec<u8>>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A buffer of `len` initialised bytes (what they hold is left over) behind `lead` that are not shown, for leaf column `column`.
    pub(crate) fn take_behind(self: &Arc<Self>, lead: usize, len: usize, column: usize) -> Buffer {
        self.buffer(
            lead + len,
            column,
            |capacity| vec![0; capacity],
            |data| {
                if data.len() < lead + len {
                    data.resize(lead + len, 0);
                }
                lead..lead + len
            },
        )
    }

    /// An empty buffer that takes `len` bytes behind `lead` that are not shown, for leaf column `column`. Unlike
    /// [`take_behind`](Self::take_behind) it does not zero what is overwritten at once: see [`Buffer::read_from`] and [`Buffer::copy_from`].
    pub(crate) fn take_empty(self: &Arc<Self>, lead: usize, len: usize, column: usize) -> Buffer {
        self.buffer(lead + len, column, Vec::with_capacity, |_| lead..lead)
    }

    fn buffer(
        self: &Arc<Self>,
        len: usize,
        column: usize,
        allocate: impl Fn(usize) -> Vec<u8>,
        prepare: impl FnOnce(&mut Vec<u8>) -> Range<usize>,
    ) -> Buffer {
        let mut data = self.find(len).unwrap_or_else(|| {
            let allocate = || {
                self.ledger.count_allocation(self.purpose);
                allocate(self.capacity_for(len))
            };
            let data = allocate();
            for _ in 0..self.spare() {
                self.keep(allocate());
            }
            data
        });
        self.out.fetch_add(1, Ordering::Relaxed);
        let range = prepare(&mut data);
        self.ledger
            .charge(self.purpose, Some(column), data.capacity() as u64);
        Buffer {
            data,
            range,
            column,
            purpose: self.purpose,
            is_kept: AtomicBool::new(false),
            ledger: Arc::clone(&self.ledger),
            home: Arc::downgrade(self),
        }
    }

    /// The smallest idle buffer that is large enough and not too large. Where there is none, idle ones
    /// are freed first, as many bytes as will be allocated: so the one to be allocated replaces them and does
    /// not stand beside them. A pool keeps its high-water mark: it holds what was out at the most, and some spare.
    fn find(&self, len: usize) -> Option<Vec<u8>> {
        let mut idle = self.idle();
        let at = idle.partition_point(|buffer| buffer.capacity() < len);
        if let Some(larger) = idle.get(at) {
            let fits = self.may_hold(larger.capacity(), len);
            let larger = idle.remove(at);
            self.release_idle(&larger);
            // Small pages follow large ones: for each that is found, one of the large ones goes, as for each that is allocated.
            if fits
                && let Some(largest) =
                    idle.pop_if(|largest| !self.may_hold(largest.capacity(), len))
            {
                self.release_idle(&largest);
            }
            return fits.then_some(larger);
        }
        let wanted = len.saturating_mul(1 + self.spare());
        let mut freed = 0;
        while freed < wanted
            && let Some(smaller) = idle.pop()
        {
            freed += smaller.capacity();
            self.release_idle(&smaller);
        }
        None
    }

    fn release_idle(&self, buffer: &Vec<u8>) {
        self.ledger
            .release(self.purpose, self.owner, buffer.capacity() as u64);
    }

    /// Whether a buffer of `capacity` bytes may be used for `len` bytes. In a pool not one more than
    /// twice as large: small pages would capture the buffers of large ones, which would then be
    /// allocated again beside them.
    fn may_hold(&self, capacity: usize, len: usize) -> bool {
        match self.keep {
            Keep::All => capacity <= self.capacity_for(len).saturating_mul(2),
            Keep::Nothing | Keep::Most(_) => true,
        }
    }

    /// What to allocate for `len` bytes.
    ///
    /// Pages of one kind differ by a few bytes. Buffers of a pool serve any of them, so they are rounded
    /// up to a 512th of the next power of two, and to 64 bytes at least (from 16 KiB on that is 0.4 % at
    /// most; a page of 2^n bytes stays exact): or a pool would replace buffers that are a little too
    /// small for as long as it reads.
    fn capacity_for(&self, len: usize) -> usize {
        match self.keep {
            Keep::All => {
                let step = (len.next_power_of_two() / 512).max(64);
                len.next_multiple_of(step)
            }
            Keep::Nothing | Keep::Most(_) => len,
        }
    }

    /// How many buffers more than the one that is wanted are allocated when none is idle.
    ///
    /// A pool of many buffers grows by some at once: a sixteenth of it, seven at most, and no more than there are columns that will
    /// take one. Arrays are
    /// allocated between the pages of successive columns; were each fenced in between two pages that
    /// never go back, the allocator could not join what arrays leave behind. jemalloc, whose large
    /// blocks are a page longer than their size class, finds none of it again for the next batch.
    fn spare(&self) -> usize {
        match self.keep {
            Keep::All => {
                let out = self.out.load(Ordering::Relaxed);
                let to_come = self.columns.load(Ordering::Relaxed).saturating_sub(out + 1);
                (out / 16).min(7).min(to_come)
            }
            Keep::Nothing | Keep::Most(_) => 0,
        }
    }

    fn give_back(&self, data: Vec<u8>) {
        self.out.fetch_sub(1, Ordering::Relaxed);
        self.keep(data);
    }

    fn keep(&self, data: Vec<u8>) {
        let mut idle = self.idle();
        let keep = match self.keep {
            Keep::Nothing => false,
            // A decoder may hold a page while it asks for the next one, and an array may hold one for
            // good: then two are out, and one of them is kept.
            Keep::Most(most) => idle.len() < most,
            Keep::All => true,
        };
        if keep {
            let capacity = data.capacity();
            let at = idle.partition_point(|buffer| buffer.capacity() < capacity);
            idle.insert(at, data);
            self.ledger
                .charge(self.purpose, self.owner, capacity as u64);
        }
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        for buffer in mem::take(&mut *self.idle()) {
            self.ledger
                .release(self.purpose, self.owner, buffer.capacity() as u64);
        }
    }
}

/// A buffer that is out of its home; dropping it sends it back, or frees it if the reader is gone.
pub(crate) struct Buffer {
    data: Vec<u8>,
    range: Range<usize>,
    column: usize,
    purpose: Purpose,
    /// Whether the reader is done with it and arrays hold it still: see [`Lease`].
    is_kept: AtomicBool,
    ledger: Arc<Ledger>,
    /// Weak, so that a page that an array holds does not keep all the others of a pool alive.
    home: Weak<Home>,
}

impl Buffer {
    /// Fills the buffer with `len` bytes at `offset` of `source`.
    pub(crate) fn read_from(
        &mut self,
        source: &impl ReadAt,
        offset: u64,
        len: usize,
    ) -> io::Result<()> {
        let lead = self.range.start;
        match self.data.get_mut(lead..lead + len) {
            Some(initialised) => source.read_exact_at(initialised, offset)?,
            None => {
                self.data.clear();
                self.data.resize(lead, 0);
                source.append_at(&mut self.data, len, offset)?;
                if self.data.len() != lead + len {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
            }
        }
        self.range = lead..lead + len;
        Ok(())
    }

    /// Fills the buffer with `bytes`.
    pub(crate) fn copy_from(&mut self, bytes: &[u8]) {
        let lead = self.range.start;
        match self.data.get_mut(lead..lead + bytes.len()) {
            Some(initialised) => initialised.copy_from_slice(bytes),
            None => {
                self.data.clear();
                self.data.resize(lead, 0);
                self.data.extend_from_slice(bytes);
            }
        }
        self.range = lead..lead + bytes.len();
    }

    /// Narrows the buffer to `range` of what it shows now.
    pub(crate) fn narrow(&mut self, range: Range<usize>) {
        debug_assert!(range.end <= self.range.len());
        self.range = self.range.start + range.start..self.range.start + range.end;
    }

    /// Bytes that it takes, those that it does not show included.
    pub(crate) fn capacity(&self) -> usize {
        self.data.capacity()
    }

    /// Moves what the buffer shows towards its start, so that the byte at `at` of it lies at a multiple of `alignment`, if what stands
    /// in front is long enough.
    pub(crate) fn align(&mut self, at: usize, alignment: usize) {
        let by = (self.range.start + at) % alignment;
        if let Some(start) = self.range.start.checked_sub(by).filter(|_| by > 0) {
            self.data.copy_within(self.range.clone(), start);
            self.range = start..self.range.end - by;
        }
    }

    pub(crate) fn as_mut_slice(&mut self) -> &mut [u8] {
        &mut self.data[self.range.clone()]
    }

    /// Shares the buffer: it goes home when the last clone or slice is dropped.
    pub(crate) fn into_bytes(self) -> Bytes {
        Bytes::from_owner(self)
    }

    /// As [`into_bytes`](Self::into_bytes), with the reader's own hold: the buffer goes home when that is dropped too.
    pub(crate) fn share(self) -> (Bytes, Lease) {
        let buffer = Arc::new(self);
        (
            Bytes::from_owner(Shared(Arc::clone(&buffer))),
            Lease(buffer),
        )
    }
}

impl AsRef<[u8]> for Buffer {
    fn as_ref(&self) -> &[u8] {
        &self.data[self.range.clone()]
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let data = mem::take(&mut self.data);
        let purpose = match self.is_kept.get_mut() {
            true => Purpose::Kept,
            false => self.purpose,
        };
        self.ledger
            .release(purpose, Some(self.column), data.capacity() as u64);
        if let Some(home) = self.home.upgrade() {
            home.give_back(data);
        }
    }
}

/// The owner behind [`Bytes`] of a buffer.
struct Shared(Arc<Buffer>);

impl AsRef<[u8]> for Shared {
    fn as_ref(&self) -> &[u8] {
        self.0.as_ref().as_ref()
    }
}

/// The reader's own hold on a page that it has shared. When it is dropped and arrays hold the page still, the ledger counts the
/// page as [`Purpose::Kept`].
pub(crate) struct Lease(Arc<Buffer>);

impl Drop for Lease {
    fn drop(&mut self) {
        let buffer = &self.0;
        // This hold keeps the buffer from being dropped meanwhile, so what is said here is undone when it is.
        if Arc::strong_count(buffer) > 1 && !buffer.is_kept.swap(true, Ordering::Relaxed) {
            let bytes = buffer.data.capacity() as u64;
            buffer
                .ledger
                .transfer(buffer.purpose, Purpose::Kept, buffer.column, bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn home(keep: Keep) -> (Arc<Home>, Arc<Ledger>) {
        let ledger = Arc::new(Ledger::new(1));
        (Home::new(keep, Purpose::Page, None, &ledger), ledger)
    }

    fn address(buffer: &Buffer) -> *const u8 {
        buffer.data.as_ptr()
    }

    #[test]
    fn a_temporary_buffer_is_freed() {
        let (home, ledger) = home(Keep::Nothing);
        drop(home.take_behind(0, 100, 0));
        assert_eq!((ledger.live_bytes(), ledger.peak().total_bytes()), (0, 100));
    }

    #[test]
    fn a_kept_buffer_is_used_again() {
        for keep in [Keep::Most(1), Keep::All] {
            let (home, ledger) = home(keep);
            let first = home.take_behind(0, 128, 0);
            let at = address(&first);
            drop(first);
            assert_eq!(ledger.live_bytes(), 128);
            let second = home.take_behind(0, 60, 0);
            assert_eq!((address(&second), second.as_ref().len()), (at, 60));
            assert_eq!(ledger.live_bytes(), 128);
        }
    }

    #[test]
    fn bytes_that_are_held_are_never_overwritten() {
        let (home, _) = home(Keep::Most(1));
        let mut first = home.take_behind(0, 4, 0);
        first.as_mut_slice().copy_from_slice(b"abcd");
        let held = first.share().0;
        let slice = held.slice(1..3);
        drop(held);
        let mut second = home.take_behind(0, 4, 0);
        second.as_mut_slice().copy_from_slice(b"wxyz");
        assert_eq!(&slice[..], b"bc");
    }

    #[test]
    fn small_pages_do_not_capture_the_buffers_of_large_ones() {
        let (home, ledger) = home(Keep::All);
        for i in 0..100 {
            // A column of large pages asks while all that it had is idle; small ones grow a little each time.
            drop(home.take_behind(0, 1 << 20, 0));
            let _small: Vec<_> = (0..4)
                .map(|_| home.take_behind(0, 10_000 + 80 * i, 0))
                .collect();
        }
        assert!(
            ledger.live_bytes() < (1 << 20) + 4 * 2 * 20_000,
            "{}",
            ledger.live_bytes()
        );
    }

    #[test]
    fn pages_of_another_size_replace_what_is_idle() {
        // As at the end of a column chunk, whose last pages are small, and at the start of the next.
        let (home, ledger) = home(Keep::All);
        let mut pages: Vec<_> = (0..50)
            .map(|_| Some(home.take_behind(0, 1 << 20, 0)))
            .collect();
        let most = ledger.live_bytes();
        for len in [1 << 18, 1 << 20, 1 << 18] {
            for page in &mut pages {
                // The decoder drops a page before it asks for the next one.
                *page = None;
                *page = Some(home.take_behind(0, len, 0));
            }
        }
        let peak = ledger.peak().total_bytes();
        assert!(peak <= most + (4 << 20), "{peak} after {most}");
    }

    #[test]
    fn a_page_that_is_held_does_not_hold_the_pool() {
        let (home, ledger) = home(Keep::All);
        let held = home.take_behind(0, 1_024, 0).share().0;
        drop([home.take_behind(0, 2_048, 0), home.take_behind(0, 4_096, 0)]);
        drop(home);
        assert_eq!(ledger.live_bytes(), 1_024);
        drop(held);
        assert_eq!(ledger.live_bytes(), 0);
    }

    #[test]
    fn filling_grows_what_is_initialised() {
        let (home, _) = home(Keep::Most(1));
        for text in [&b"some bytes"[..], b"fewer", b"and more of them"] {
            let mut copied = home.take_empty(0, text.len(), 0);
            copied.copy_from(text);
            assert_eq!(copied.as_ref(), text);
            drop(copied);
            let mut read = home.take_empty(0, text.len(), 0);
            let source = Bytes::copy_from_slice(text);
            read.read_from(&source, 0, text.len()).unwrap();
            assert_eq!(read.as_ref(), text);
            assert!(read.read_from(&source, 1, text.len()).is_err());
        }
    }

    #[test]
    fn one_keeps_one_whatever_comes_back() {
        let (home, ledger) = home(Keep::Most(1));
        let (first, second) = (home.take_behind(0, 100, 0), home.take_behind(0, 100, 0));
        drop(first);
        drop(second);
        assert_eq!(ledger.live_bytes(), 100);
    }

    #[test]
    fn a_larger_page_replaces_the_buffer() {
        let (home, ledger) = home(Keep::Most(1));
        drop(home.take_behind(0, 100, 0));
        drop(home.take_behind(0, 300, 0));
        assert_eq!(
            (ledger.live_bytes(), ledger.peak().total_bytes()),
            (300, 300)
        );
    }

    #[test]
    fn pages_that_differ_a_little_share_buffers() {
        let (home, ledger) = home(Keep::All);
        let mut addresses = std::collections::HashSet::new();
        for len in [1_119_345, 1_121_467, 1_118_000, 1_120_003] {
            addresses.insert(address(&home.take_behind(0, len, 0)));
        }
        assert_eq!(addresses.len(), 1);
        assert!(ledger.live_bytes() < 1_121_467 * 1016 / 1000);
        assert_eq!(home.capacity_for(1 << 20), 1 << 20);
    }

    #[test]
    fn a_large_pool_grows_by_a_few_buffers_at_once() {
        let (home, ledger) = home(Keep::All);
        let mut out = Vec::new();
        for count in 1..=500u64 {
            out.push(home.take_behind(0, 128, 0));
            let spare = ledger.allocated_buffers(Purpose::Page) - count;
            assert!(
                spare <= 7 && spare * 16 <= count,
                "{spare} spare of {count}"
            );
        }
    }

    #[test]
    fn a_pool_holds_what_was_out_at_once() {
        let (home, ledger) = home(Keep::All);
        for _ in 0..10 {
            let _three = [
                home.take_behind(0, 128, 0),
                home.take_behind(0, 256, 0),
                home.take_behind(0, 384, 0),
            ];
        }
        assert_eq!(ledger.live_bytes(), 768);
        drop(home);
        assert_eq!(ledger.live_bytes(), 0);
    }
}
