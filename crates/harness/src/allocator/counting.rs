//! A global allocator that counts what passes through it, and otherwise is the allocator it wraps.
//!
//! It counts requested bytes of the whole process: not what the allocator adds for its size classes
//! and metadata, and not what C code takes from libc directly (zstd's contexts). It is off until
//! [`Counting::start`]; while off, each call costs one relaxed load of a flag that nobody writes,
//! and a branch.

use std::alloc::{GlobalAlloc, Layout};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering::Relaxed};

/// Wraps the allocator `A` and counts, once started.
///
/// A failed allocation or reallocation changes no counter. A successful `realloc` is one
/// reallocation and no allocation: live bytes change by the difference of the sizes, allocated
/// bytes by what it grew. An allocator that cannot resize in place holds the old and the new block
/// at once for the length of a copy. The peak does not include that, because it depends on the
/// allocator, and one that remaps pages never holds both.
pub(crate) struct Counting<A> {
    inner: A,
    enabled: AtomicBool,
    /// Signed: a block from before the start may be freed after it.
    live: AtomicI64,
    peak: AtomicI64,
    allocated: AtomicU64,
    allocations: AtomicU64,
    reallocations: AtomicU64,
}

/// What was counted, all in requested bytes and calls of this process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct HeapCounts {
    /// Bytes live now.
    pub(crate) live_bytes: u64,
    /// The most bytes that were live at once since the last [`Counting::reset_peak`].
    pub(crate) peak_bytes: u64,
    /// Bytes ever allocated, and by how much reallocations grew blocks.
    pub(crate) allocated_bytes: u64,
    /// Successful calls of `alloc` and `alloc_zeroed`.
    pub(crate) allocations: u64,
    /// Successful calls of `realloc`.
    pub(crate) reallocations: u64,
}

impl<A> Counting<A> {
    /// Wraps `inner`; counts nothing yet.
    pub(crate) const fn new(inner: A) -> Self {
        Self {
            inner,
            enabled: AtomicBool::new(false),
            live: AtomicI64::new(0),
            peak: AtomicI64::new(0),
            allocated: AtomicU64::new(0),
            allocations: AtomicU64::new(0),
            reallocations: AtomicU64::new(0),
        }
    }

    /// Counts from here on, until the process ends.
    pub(crate) fn start(&self) {
        self.enabled.store(true, Relaxed);
    }

    /// Whether [`Self::start`] was called.
    pub(crate) fn is_started(&self) -> bool {
        self.enabled.load(Relaxed)
    }

    /// Forgets earlier peaks: the peak is now what is live now.
    pub(crate) fn reset_peak(&self) {
        self.peak.store(self.live.load(Relaxed), Relaxed);
    }

    /// The counters as they stand.
    pub(crate) fn counts(&self) -> HeapCounts {
        HeapCounts {
            live_bytes: u64::try_from(self.live.load(Relaxed)).unwrap_or(0),
            peak_bytes: u64::try_from(self.peak.load(Relaxed)).unwrap_or(0),
            allocated_bytes: self.allocated.load(Relaxed),
            allocations: self.allocations.load(Relaxed),
            reallocations: self.reallocations.load(Relaxed),
        }
    }

    fn record_alloc(&self, size: usize) {
        self.allocations.fetch_add(1, Relaxed);
        self.grow(size);
    }

    fn record_realloc(&self, old: usize, new: usize) {
        self.reallocations.fetch_add(1, Relaxed);
        if new >= old {
            self.grow(new - old);
        } else {
            self.shrink(old - new);
        }
    }

    fn grow(&self, bytes: usize) {
        // A `Layout` is at most `isize::MAX` bytes, so neither cast changes the value.
        self.allocated.fetch_add(bytes as u64, Relaxed);
        let live = self.live.fetch_add(bytes as i64, Relaxed) + bytes as i64;
        if live > self.peak.load(Relaxed) {
            self.peak.fetch_max(live, Relaxed);
        }
    }

    fn shrink(&self, bytes: usize) {
        self.live.fetch_sub(bytes as i64, Relaxed);
    }
}

// SAFETY: every method hands its arguments to the same method of `inner`, which is a `GlobalAlloc`,
// and returns what that returned; counting touches atomics only, so it neither allocates nor
// unwinds.
unsafe impl<A: GlobalAlloc> GlobalAlloc for Counting<A> {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps `alloc`'s contract, which is the same one.
        let pointer = unsafe { self.inner.alloc(layout) };
        if self.is_started() && !pointer.is_null() {
            self.record_alloc(layout.size());
        }
        pointer
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // Forwarded as such: the default would be `alloc` and a memset, which touches every page.
        // SAFETY: the caller keeps `alloc_zeroed`'s contract, which is the same one.
        let pointer = unsafe { self.inner.alloc_zeroed(layout) };
        if self.is_started() && !pointer.is_null() {
            self.record_alloc(layout.size());
        }
        pointer
    }

    #[inline]
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        if self.is_started() {
            self.shrink(layout.size());
        }
        // SAFETY: the caller keeps `dealloc`'s contract, and `pointer` came from `inner`.
        unsafe { self.inner.dealloc(pointer, layout) }
    }

    #[inline]
    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // SAFETY: the caller keeps `realloc`'s contract, and `pointer` came from `inner`.
        let moved = unsafe { self.inner.realloc(pointer, layout, new_size) };
        if self.is_started() && !moved.is_null() {
            self.record_realloc(layout.size(), new_size);
        }
        moved
    }
}

#[cfg(test)]
mod tests {
    use std::alloc::System;
    use std::ptr::null_mut;

    use super::*;

    fn layout(bytes: usize) -> Layout {
        Layout::from_size_align(bytes, 8).unwrap()
    }

    fn started() -> Counting<System> {
        let counting = Counting::new(System);
        counting.start();
        counting
    }

    fn alloc<A: GlobalAlloc>(counting: &Counting<A>, bytes: usize) -> *mut u8 {
        // SAFETY: the size is not zero.
        unsafe { counting.alloc(layout(bytes)) }
    }

    fn dealloc(counting: &Counting<System>, pointer: *mut u8, bytes: usize) {
        // SAFETY: each test passes what it allocated from `counting`, with its size.
        unsafe { counting.dealloc(pointer, layout(bytes)) }
    }

    fn realloc<A: GlobalAlloc>(
        counting: &Counting<A>,
        pointer: *mut u8,
        old: usize,
        new: usize,
    ) -> *mut u8 {
        // SAFETY: each test passes what it allocated from `counting`, with its size; `new` is not
        // zero.
        unsafe { counting.realloc(pointer, layout(old), new) }
    }

    /// Refuses everything.
    struct Exhausted;

    // SAFETY: a null pointer says that the allocation failed, which is always allowed.
    unsafe impl GlobalAlloc for Exhausted {
        unsafe fn alloc(&self, _: Layout) -> *mut u8 {
            null_mut()
        }

        unsafe fn dealloc(&self, _: *mut u8, _: Layout) {}

        unsafe fn realloc(&self, _: *mut u8, _: Layout, _: usize) -> *mut u8 {
            null_mut()
        }
    }

    #[test]
    fn nothing_is_counted_before_the_start() {
        let counting = Counting::new(System);
        let pointer = alloc(&counting, 100);
        dealloc(&counting, pointer, 100);
        assert_eq!(counting.counts(), HeapCounts::default());
    }

    #[test]
    fn peak_outlives_what_made_it() {
        let counting = started();
        let first = alloc(&counting, 100);
        let second = alloc(&counting, 50);
        dealloc(&counting, first, 100);
        let third = alloc(&counting, 10);
        assert_eq!(
            counting.counts(),
            HeapCounts {
                live_bytes: 60,
                peak_bytes: 150,
                allocated_bytes: 160,
                allocations: 3,
                reallocations: 0
            }
        );
        dealloc(&counting, second, 50);
        dealloc(&counting, third, 10);
        assert_eq!(counting.counts().live_bytes, 0);
    }

    #[test]
    fn reset_peak_starts_from_what_is_live() {
        let counting = started();
        let kept = alloc(&counting, 100);
        let gone = alloc(&counting, 500);
        dealloc(&counting, gone, 500);
        counting.reset_peak();
        assert_eq!(counting.counts().peak_bytes, 100);
        dealloc(&counting, kept, 100);
    }

    #[test]
    fn realloc_counts_the_difference() {
        let counting = started();
        let pointer = alloc(&counting, 100);
        let pointer = realloc(&counting, pointer, 100, 300);
        let pointer = realloc(&counting, pointer, 300, 20);
        assert_eq!(
            counting.counts(),
            HeapCounts {
                live_bytes: 20,
                peak_bytes: 300,
                allocated_bytes: 300,
                allocations: 1,
                reallocations: 2
            }
        );
        dealloc(&counting, pointer, 20);
    }

    #[test]
    fn zeroed_memory_is_zero_and_counted() {
        let counting = started();
        // SAFETY: the size is not zero.
        let pointer = unsafe { counting.alloc_zeroed(layout(64)) };
        // SAFETY: `pointer` holds 64 initialised bytes.
        let bytes = unsafe { std::slice::from_raw_parts(pointer, 64) };
        assert!(bytes.iter().all(|&byte| byte == 0));
        assert_eq!(counting.counts().allocations, 1);
        dealloc(&counting, pointer, 64);
    }

    #[test]
    fn failures_are_not_counted() {
        let counting = Counting::new(Exhausted);
        counting.start();
        assert!(alloc(&counting, 100).is_null());
        assert!(realloc(&counting, null_mut(), 100, 200).is_null());
        assert_eq!(counting.counts(), HeapCounts::default());
    }

    #[test]
    fn a_block_from_before_the_start_may_be_freed_after_it() {
        let counting = Counting::new(System);
        let pointer = alloc(&counting, 100);
        counting.start();
        dealloc(&counting, pointer, 100);
        assert_eq!(counting.counts().live_bytes, 0);
        let pointer = alloc(&counting, 150);
        assert_eq!(counting.counts().live_bytes, 50);
        dealloc(&counting, pointer, 150);
    }
}
