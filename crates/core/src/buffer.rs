//! Buffers that go back to their owner when their last reference is dropped.
//!
//! A [`Home`] is an owner: it keeps no buffer (temporary), one (retained, shared) or as many as were
//! needed at once (pooled). A [`Buffer`] turns into [`Bytes`] that decoders and arrays may hold as
//! long as they like; a home only ever hands out buffers that nobody holds.

use std::mem;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;

use crate::ledger::{Ledger, Purpose};

/// How many buffers a home keeps when they come back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keep {
    Nothing,
    One,
    All,
}

/// An owner of buffers.
pub(crate) struct Home {
    keep: Keep,
    purpose: Purpose,
    /// Whom idle buffers are charged to: a column, or nobody in particular.
    owner: Option<usize>,
    ledger: Arc<Ledger>,
    /// Idle buffers, by capacity, smallest first.
    idle: Mutex<Vec<Vec<u8>>>,
    /// Buffers that are out.
    out: AtomicUsize,
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
        })
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Vec<u8>>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A buffer of `len` initialised bytes (what they hold is left over) for leaf column `column`.
    pub(crate) fn take(self: &Arc<Self>, len: usize, column: usize) -> Buffer {
        let found = self.find(len);
        let mut data = match found {
            Some(data) => {
                self.ledger
                    .release(self.purpose, self.owner, data.capacity() as u64);
                data
            }
            None => vec![0; self.capacity_for(len)],
        };
        if data.len() < len {
            data.resize(len, 0);
        }
        self.ledger
            .charge(self.purpose, Some(column), data.capacity() as u64);
        self.out.fetch_add(1, Ordering::Relaxed);
        Buffer {
            data,
            range: 0..len,
            column,
            home: Arc::clone(self),
        }
    }

    /// The smallest idle buffer that is large enough. Where there is none, the largest idle one is
    /// freed first, so that the one to be allocated replaces it and does not stand beside it.
    fn find(&self, len: usize) -> Option<Vec<u8>> {
        let mut idle = self.idle();
        let at = idle.partition_point(|buffer| buffer.capacity() < len);
        if at < idle.len() {
            return Some(idle.remove(at));
        }
        if let Some(too_small) = idle.pop() {
            self.ledger
                .release(self.purpose, self.owner, too_small.capacity() as u64);
        }
        None
    }

    /// What to allocate for `len` bytes.
    ///
    /// Pages of one kind differ by a few bytes. Buffers of a pool serve any of them, so they are rounded
    /// up to a 128th of the next power of two (1.6 % at most; a page of 2^n bytes stays exact): or a
    /// pool would replace buffers that are a little too small for as long as it reads. What is not used
    /// of a new buffer is never touched, so it is not resident either.
    fn capacity_for(&self, len: usize) -> usize {
        match self.keep {
            Keep::All => {
                let step = (len.next_power_of_two() / 128).max(64);
                len.next_multiple_of(step)
            }
            Keep::Nothing | Keep::One => len,
        }
    }

    fn give_back(&self, data: Vec<u8>, column: usize) {
        let still_out = self.out.fetch_sub(1, Ordering::Relaxed) - 1;
        let bytes = data.capacity() as u64;
        self.ledger.release(self.purpose, Some(column), bytes);
        let kept = match self.keep {
            Keep::Nothing => false,
            // While another is out (a decoder holds a page while it asks for the next one, or an array
            // holds it for good) that one takes this one's place.
            Keep::One => still_out == 0,
            Keep::All => true,
        };
        if kept {
            let mut idle = self.idle();
            let at = idle.partition_point(|buffer| buffer.capacity() < data.capacity());
            idle.insert(at, data);
            self.ledger.charge(self.purpose, self.owner, bytes);
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

/// A buffer that is out of its home; dropping it sends it back.
pub(crate) struct Buffer {
    data: Vec<u8>,
    range: Range<usize>,
    column: usize,
    home: Arc<Home>,
}

impl Buffer {
    /// Narrows the buffer to `range` of what it shows now.
    pub(crate) fn narrow(&mut self, range: Range<usize>) {
        debug_assert!(range.end <= self.range.len());
        self.range = self.range.start + range.start..self.range.start + range.end;
    }

    pub(crate) fn as_mut_slice(&mut self) -> &mut [u8] {
        &mut self.data[self.range.clone()]
    }

    /// Shares the buffer; it goes home when the last clone or slice is dropped.
    pub(crate) fn into_bytes(self) -> Bytes {
        Bytes::from_owner(self)
    }
}

impl AsRef<[u8]> for Buffer {
    fn as_ref(&self) -> &[u8] {
        &self.data[self.range.clone()]
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        self.home.give_back(mem::take(&mut self.data), self.column);
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
        drop(home.take(100, 0));
        assert_eq!((ledger.live_bytes(), ledger.peak().total_bytes()), (0, 100));
    }

    #[test]
    fn a_kept_buffer_is_used_again() {
        for keep in [Keep::One, Keep::All] {
            let (home, ledger) = home(keep);
            let first = home.take(128, 0);
            let at = address(&first);
            drop(first);
            assert_eq!(ledger.live_bytes(), 128);
            let second = home.take(60, 0);
            assert_eq!((address(&second), second.as_ref().len()), (at, 60));
            assert_eq!(ledger.live_bytes(), 128);
        }
    }

    #[test]
    fn bytes_that_are_held_are_never_overwritten() {
        let (home, _) = home(Keep::One);
        let mut first = home.take(4, 0);
        first.as_mut_slice().copy_from_slice(b"abcd");
        let held = first.into_bytes();
        let slice = held.slice(1..3);
        drop(held);
        let mut second = home.take(4, 0);
        second.as_mut_slice().copy_from_slice(b"wxyz");
        assert_eq!(&slice[..], b"bc");
    }

    #[test]
    fn one_keeps_one_whatever_comes_back() {
        let (home, ledger) = home(Keep::One);
        let (first, second) = (home.take(100, 0), home.take(100, 0));
        drop(first);
        drop(second);
        assert_eq!(ledger.live_bytes(), 100);
    }

    #[test]
    fn a_larger_page_replaces_the_buffer() {
        let (home, ledger) = home(Keep::One);
        drop(home.take(100, 0));
        drop(home.take(300, 0));
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
            addresses.insert(address(&home.take(len, 0)));
        }
        assert_eq!(addresses.len(), 1);
        assert!(ledger.live_bytes() < 1_121_467 * 1016 / 1000);
        assert_eq!(home.capacity_for(1 << 20), 1 << 20);
    }

    #[test]
    fn a_pool_holds_what_was_out_at_once() {
        let (home, ledger) = home(Keep::All);
        for _ in 0..10 {
            let _three = [home.take(128, 0), home.take(256, 0), home.take(384, 0)];
        }
        assert_eq!(ledger.live_bytes(), 768);
        drop(home);
        assert_eq!(ledger.live_bytes(), 0);
    }
}
