//! [`Growth`]: how the buffers that values are encoded into get their memory, the part of a write
//! strategy named `encode`.
//!
//! It decides when bytes are allocated and who has them between two pages. What is put into a
//! buffer, and how much room that needs, is the encoders' business.

use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::strategy::Encode;

/// What an encoder of deltas reserves at birth under [`Encode::Eager`], in bytes.
const EAGER_BYTES: usize = 1 << 20;

/// Idle buffers of a pool that are not larger than this serve whoever asks, however little they need.
const SMALL_BYTES: usize = 64 << 10;

/// An idle buffer of a pool serves whoever needs at least one part in this many of it.
const LARGEST_MULTIPLE: usize = 4;

/// The owner of encoder buffers. Clones share one pool.
#[derive(Clone)]
pub(crate) struct Growth {
    encode: Encode,
    /// Idle buffers by capacity, smallest first; stays empty unless `encode` is [`Encode::Pooled`].
    idle: Arc<Mutex<Idle>>,
}

/// Idle buffers, and how many bytes they are.
#[derive(Default)]
struct Idle {
    buffers: Vec<Vec<u8>>,
    bytes: usize,
}

impl Idle {
    fn remove(&mut self, at: usize) -> Vec<u8> {
        let buffer = self.buffers.remove(at);
        self.bytes -= buffer.capacity();
        buffer
    }
}

impl Growth {
    /// Buffers that get their memory as `encode` says.
    pub(crate) fn new(encode: Encode) -> Self {
        Self {
            encode,
            idle: Arc::default(),
        }
    }

    /// The buffer that an encoder of deltas is born with: 1 MiB under [`Encode::Eager`], else nothing.
    pub(crate) fn birth_delta(&self) -> Vec<u8> {
        match self.encode {
            Encode::Eager => Vec::with_capacity(EAGER_BYTES),
            Encode::Grow | Encode::Exact | Encode::Pooled => Vec::new(),
        }
    }

    /// Makes room for `additional` bytes after what `buffer` holds.
    ///
    /// To be called once for the values at hand, not for each of them: under [`Encode::Exact`] every
    /// call that finds too little room moves the buffer.
    pub(crate) fn reserve(&self, buffer: &mut Vec<u8>, additional: usize) {
        if buffer.capacity() - buffer.len() >= additional {
            return;
        }
        match self.encode {
            Encode::Eager | Encode::Grow => buffer.reserve(additional),
            Encode::Exact => buffer.reserve_exact(additional),
            Encode::Pooled => self.reserve_pooled(buffer, additional),
        }
    }

    /// Takes a page's bytes out of use: the buffer is emptied, and kept or given to the pool.
    pub(crate) fn page_done(&self, buffer: &mut Vec<u8>) {
        buffer.clear();
        if self.encode == Encode::Pooled {
            give(&mut self.idle(), mem::take(buffer));
        }
    }

    /// Bytes of the pool in the heap: what lies idle, and the list of it.
    pub(crate) fn heap_bytes(&self) -> usize {
        let idle = self.idle();
        idle.bytes + idle.buffers.capacity() * size_of::<Vec<u8>>()
    }

    fn idle(&self) -> MutexGuard<'_, Idle> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Swaps `buffer` for an idle one that fits, or else lets it grow.
    ///
    /// A pool never holds more buffers than were in use at once: whoever takes a larger one leaves its
    /// own, one that grows leaves nothing, and one that is allocated replaces an idle one.
    fn reserve_pooled(&self, buffer: &mut Vec<u8>, additional: usize) {
        let needed = buffer.len().saturating_add(additional);
        let mut idle = self.idle();
        let at = idle.buffers.partition_point(|one| one.capacity() < needed);
        if idle.buffers.get(at).is_some_and(|one| fits(one, needed)) {
            let mut larger = idle.remove(at);
            larger.extend_from_slice(buffer);
            give(&mut idle, mem::replace(buffer, larger));
            return;
        }
        if buffer.capacity() == 0 && !idle.buffers.is_empty() {
            // Freed before its successor is allocated, so that the two do not stand side by side. It is
            // not grown: that would copy what nobody reads.
            let replaced = at.min(idle.buffers.len() - 1);
            drop(idle.remove(replaced));
        }
        drop(idle);
        buffer.reserve(additional);
    }
}

/// Whether an idle buffer that is large enough for `needed` bytes is not too large for them: buffers
/// of large pages would be spent on small ones, and then be allocated again beside them.
fn fits(one: &Vec<u8>, needed: usize) -> bool {
    one.capacity() <= SMALL_BYTES || one.capacity() / LARGEST_MULTIPLE <= needed
}

/// Puts an emptied `buffer` among the `idle` ones.
fn give(idle: &mut Idle, mut buffer: Vec<u8>) {
    if buffer.capacity() == 0 {
        return;
    }
    buffer.clear();
    idle.bytes += buffer.capacity();
    let at = idle
        .buffers
        .partition_point(|one| one.capacity() < buffer.capacity());
    idle.buffers.insert(at, buffer);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ALL: [Encode; 4] = [Encode::Eager, Encode::Grow, Encode::Exact, Encode::Pooled];

    /// A buffer out of `growth` that holds `len` bytes.
    fn filled(growth: &Growth, len: usize) -> Vec<u8> {
        let mut buffer = Vec::new();
        growth.reserve(&mut buffer, len);
        buffer.resize(len, 7);
        buffer
    }

    /// Bytes of the buffers that lie idle.
    fn idle(growth: &Growth) -> usize {
        growth.idle().bytes
    }

    #[test]
    fn only_eager_reserves_at_birth() {
        for encode in ALL {
            let eager = encode == Encode::Eager;
            let expected = if eager { 1 << 20 } else { 0 };
            assert_eq!(Growth::new(encode).birth_delta().capacity(), expected);
        }
    }

    #[test]
    fn exact_reserves_what_is_asked_for() {
        let growth = Growth::new(Encode::Exact);
        let mut buffer = filled(&growth, 1000);
        assert_eq!(buffer.capacity(), 1000);
        growth.reserve(&mut buffer, 1);
        assert_eq!(buffer.capacity(), 1001);
    }

    #[test]
    fn growing_doubles() {
        for encode in [Encode::Eager, Encode::Grow, Encode::Pooled] {
            let growth = Growth::new(encode);
            let mut buffer = filled(&growth, 1000);
            growth.reserve(&mut buffer, 1);
            assert_eq!(buffer.capacity(), 2000);
        }
    }

    #[test]
    fn a_page_leaves_its_buffer_to_the_column_or_to_all() {
        for encode in ALL {
            let growth = Growth::new(encode);
            let mut buffer = filled(&growth, 1000);
            growth.page_done(&mut buffer);
            assert!(buffer.is_empty());
            let expected = if encode == Encode::Pooled {
                (0, 1000)
            } else {
                (1000, 0)
            };
            assert_eq!((buffer.capacity(), idle(&growth.clone())), expected);
        }
    }

    #[test]
    fn the_smallest_that_is_large_enough_is_taken() {
        let growth = Growth::new(Encode::Pooled);
        for len in [3000, 1000, 2000] {
            growth.page_done(&mut Vec::with_capacity(len));
        }
        let mut buffer = filled(&growth, 1500);
        assert_eq!(buffer.capacity(), 2000);
        growth.reserve(&mut buffer, 1000);
        assert_eq!((buffer.capacity(), idle(&growth)), (3000, 3000));
        assert_eq!(buffer, [7; 1500]);
    }

    #[test]
    fn a_large_idle_buffer_is_not_spent_on_little() {
        let growth = Growth::new(Encode::Pooled);
        for (needed, capacity) in [(SMALL_BYTES / 4, SMALL_BYTES + 1), (100, 100)] {
            growth.page_done(&mut Vec::with_capacity(SMALL_BYTES + 1));
            assert_eq!(filled(&growth, needed).capacity(), capacity);
            assert_eq!(idle(&growth), 0);
        }
    }

    #[test]
    fn a_new_buffer_replaces_an_idle_one_that_is_too_small() {
        let growth = Growth::new(Encode::Pooled);
        growth.page_done(&mut Vec::with_capacity(1000));
        growth.page_done(&mut Vec::with_capacity(2000));
        assert_eq!(filled(&growth, 2001).capacity(), 2001);
        assert_eq!(idle(&growth), 1000);
    }

    #[test]
    fn the_list_of_idle_buffers_is_counted() {
        let growth = Growth::new(Encode::Pooled);
        assert_eq!(growth.heap_bytes(), 0);
        growth.page_done(&mut Vec::with_capacity(1000));
        let list = growth.idle().buffers.capacity() * size_of::<Vec<u8>>();
        assert_eq!(growth.heap_bytes(), 1000 + list);
    }

    proptest! {
        /// What columns hold is kept, and there are never more buffers than were in use at once.
        #[test]
        fn a_pool_keeps_bytes_and_does_not_multiply(
            steps in prop::collection::vec((0..4usize, 0..200_000usize, any::<bool>()), 0..60)
        ) {
            let growth = Growth::new(Encode::Pooled);
            let mut columns = vec![Vec::new(); 4];
            let mut lens = [0; 4];
            let mut most_out = 0;
            for (column, additional, done) in steps {
                let buffer = &mut columns[column];
                growth.reserve(buffer, additional);
                prop_assert!(buffer.capacity() - buffer.len() >= additional);
                buffer.resize(lens[column] + additional, column as u8);
                lens[column] += additional;
                prop_assert!(buffer.iter().all(|&byte| byte == column as u8));
                let out = columns.iter().filter(|buffer| buffer.capacity() > 0).count();
                most_out = most_out.max(out);
                if done {
                    growth.page_done(&mut columns[column]);
                    lens[column] = 0;
                }
                let out = columns.iter().filter(|buffer| buffer.capacity() > 0).count();
                prop_assert!(out + growth.idle().buffers.len() <= most_out);
            }
        }
    }
}
