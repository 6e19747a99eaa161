//! A global allocator that counts what passes through it, and otherwise is the allocator it wraps.
//!
//! It counts requested bytes of the whole process: not what the allocator adds for its size classes
//! and metadata, and not what C code takes from libc directly (zstd's contexts). It is off until
//! [`Counting::start`]; while off, each call costs one relaxed load of a flag that nobody writes,
//! and a branch. [`Counting::start_explaining`] also knows every live block, and can halt all at a
//! call.

use std::alloc::{GlobalAlloc, Layout};
use std::sync::atomic::{AtomicI64, AtomicU8, AtomicU64, Ordering::Relaxed};

use super::blocks::{Guard, Hook, Locked};
use super::footprint::Footprint;

const OFF: u8 = 0;
const COUNTING: u8 = 1;
const EXPLAINING: u8 = 2;

/// Tells what a live block of the wrapped allocator takes.
pub(super) type Measure = unsafe fn(*const u8) -> Footprint;

/// Wraps the allocator `A` and counts, once started.
///
/// A failed allocation or reallocation changes no counter. A successful `realloc` is one
/// reallocation and no allocation: live bytes change by the difference of the sizes, allocated
/// bytes by what it grew. An allocator that cannot resize in place holds the old and the new block
/// at once for the length of a copy. The peak does not include that, because it depends on the
/// allocator, and one that remaps pages never holds both.
pub(crate) struct Counting<A> {
    inner: A,
    mode: AtomicU8,
    /// Signed: a block from before the start may be freed after it.
    live: AtomicI64,
    peak: AtomicI64,
    /// [`Self::calls`] when the peak was reached.
    peak_calls: AtomicU64,
    /// [`Self::calls`] when the peak was last reset.
    reset_calls: AtomicU64,
    allocated: AtomicU64,
    allocations: AtomicU64,
    reallocations: AtomicU64,
    measure: Measure,
    blocks: Locked,
}

/// What was counted, all in requested bytes and calls of this process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct HeapCounts {
    /// Bytes live now.
    pub(crate) live_bytes: u64,
    /// The most bytes that were live at once since the last [`Counting::reset_peak`].
    pub(crate) peak_bytes: u64,
    /// Allocations and reallocations since then up to the one that reached the peak, with it. It names the call only
    /// where one thread allocates.
    pub(crate) peak_ordinal: u64,
    /// Allocations and reallocations since then.
    pub(crate) ordinal: u64,
    /// Bytes ever allocated, and by how much reallocations grew blocks.
    pub(crate) allocated_bytes: u64,
    /// Successful calls of `alloc` and `alloc_zeroed`.
    pub(crate) allocations: u64,
    /// Successful calls of `realloc`.
    pub(crate) reallocations: u64,
}

impl<A> Counting<A> {
    /// Wraps `inner`, whose blocks `measure` can measure; counts nothing yet.
    pub(crate) const fn new(inner: A, measure: Measure) -> Self {
        Self {
            inner,
            mode: AtomicU8::new(OFF),
            live: AtomicI64::new(0),
            peak: AtomicI64::new(0),
            peak_calls: AtomicU64::new(0),
            reset_calls: AtomicU64::new(0),
            allocated: AtomicU64::new(0),
            allocations: AtomicU64::new(0),
            reallocations: AtomicU64::new(0),
            measure,
            blocks: Locked::new(),
        }
    }

    /// Counts from here on, until the process ends.
    pub(crate) fn start(&self) {
        self.mode.store(COUNTING, Relaxed);
    }

    /// Counts from here on and knows every live block, until the process ends. `hook` is what a halt does.
    pub(crate) fn start_explaining(&self, hook: Hook) {
        if let Some(mut blocks) = self.blocks.lock() {
            blocks.start(hook);
        }
        self.mode.store(EXPLAINING, Relaxed);
    }

    /// Whether [`Self::start`] or [`Self::start_explaining`] was called.
    pub(crate) fn is_started(&self) -> bool {
        self.mode.load(Relaxed) != OFF
    }

    /// Whether [`Self::start_explaining`] was called.
    pub(crate) fn is_explaining(&self) -> bool {
        self.mode.load(Relaxed) == EXPLAINING
    }

    /// Halts once the call number `ordinal` after the next [`Self::reset_peak`] has been made and another one comes, on
    /// any thread: by then the program has had its chance to touch what it got. 0 is before all calls.
    pub(crate) fn halt_after(&self, ordinal: u64) {
        if let Some(mut blocks) = self.blocks.lock() {
            (blocks.halt_after, blocks.halt_at) = (Some(ordinal), None);
        }
    }

    /// Halts now if the call to halt after has been made and no other came since.
    pub(crate) fn halt_if_due(&self) {
        if let Some(mut blocks) = self.blocks.lock() {
            self.halt_before_a_call(&mut blocks);
        }
    }

    /// Halts now.
    pub(crate) fn halt(&self) {
        if let Some(mut blocks) = self.blocks.lock() {
            blocks.run_hook();
        }
    }

    /// Forgets earlier peaks: the peak is now what is live now.
    pub(crate) fn reset_peak(&self) {
        self.peak.store(self.live.load(Relaxed), Relaxed);
        let calls = self.calls();
        self.peak_calls.store(calls, Relaxed);
        self.reset_calls.store(calls, Relaxed);
        if self.is_explaining()
            && let Some(mut blocks) = self.blocks.lock()
        {
            blocks.halt_at = blocks.halt_after.map(|ordinal| calls + ordinal);
        }
    }

    /// The counters as they stand.
    pub(crate) fn counts(&self) -> HeapCounts {
        let since_reset = |calls: u64| calls.saturating_sub(self.reset_calls.load(Relaxed));
        HeapCounts {
            live_bytes: u64::try_from(self.live.load(Relaxed)).unwrap_or(0),
            peak_bytes: u64::try_from(self.peak.load(Relaxed)).unwrap_or(0),
            peak_ordinal: since_reset(self.peak_calls.load(Relaxed)),
            ordinal: since_reset(self.calls()),
            allocated_bytes: self.allocated.load(Relaxed),
            allocations: self.allocations.load(Relaxed),
            reallocations: self.reallocations.load(Relaxed),
        }
    }

    /// Allocations and reallocations so far.
    fn calls(&self) -> u64 {
        self.allocations.load(Relaxed) + self.reallocations.load(Relaxed)
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
        if live > self.peak.load(Relaxed) && self.peak.fetch_max(live, Relaxed) < live {
            self.peak_calls.store(self.calls(), Relaxed);
        }
    }

    fn shrink(&self, bytes: usize) {
        self.live.fetch_sub(bytes as i64, Relaxed);
    }

    fn halt_before_a_call(&self, blocks: &mut Guard<'_>) {
        if blocks.halt_at.is_some_and(|at| self.calls() >= at) {
            (blocks.halt_after, blocks.halt_at) = (None, None);
            blocks.run_hook();
        }
    }

    /// Enters a block that the inner allocator has just made.
    fn enter(&self, blocks: &mut Guard<'_>, block: *const u8, size: usize) {
        // SAFETY: the block is the inner allocator's, which `measure` knows, and as new as can be.
        let footprint = unsafe { (self.measure)(block) };
        blocks.insert(block, size, footprint);
    }
}

impl<A: GlobalAlloc> Counting<A> {
    /// `alloc`, or `alloc_zeroed` where `zeroed`, once started.
    ///
    /// # Safety
    ///
    /// As of `alloc`.
    #[inline(never)]
    unsafe fn started_alloc(&self, layout: Layout, zeroed: bool) -> *mut u8 {
        let allocate = || {
            if zeroed {
                // SAFETY: the caller keeps `alloc_zeroed`'s contract, which is the same one.
                unsafe { self.inner.alloc_zeroed(layout) }
            } else {
                // SAFETY: the caller keeps `alloc`'s contract, which is the same one.
                unsafe { self.inner.alloc(layout) }
            }
        };
        if !self.is_explaining() {
            let pointer = allocate();
            if !pointer.is_null() {
                self.record_alloc(layout.size());
            }
            return pointer;
        }
        let Some(mut blocks) = self.blocks.lock() else {
            return allocate();
        };
        self.halt_before_a_call(&mut blocks);
        let pointer = allocate();
        if !pointer.is_null() {
            self.record_alloc(layout.size());
            self.enter(&mut blocks, pointer, layout.size());
        }
        pointer
    }

    /// `dealloc`, once started.
    ///
    /// # Safety
    ///
    /// As of `dealloc`.
    #[inline(never)]
    unsafe fn started_dealloc(&self, pointer: *mut u8, layout: Layout) {
        let mut blocks = None;
        if self.is_explaining() {
            blocks = self.blocks.lock();
            if let Some(blocks) = &mut blocks {
                self.halt_before_a_call(blocks);
                blocks.remove(pointer);
                self.shrink(layout.size());
            }
        } else {
            self.shrink(layout.size());
        }
        // SAFETY: the caller keeps `dealloc`'s contract, and `pointer` came from `inner`.
        unsafe { self.inner.dealloc(pointer, layout) };
        drop(blocks);
    }

    /// `realloc`, once started.
    ///
    /// # Safety
    ///
    /// As of `realloc`.
    #[inline(never)]
    unsafe fn started_realloc(&self, pointer: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        let reallocate = || {
            // SAFETY: the caller keeps `realloc`'s contract, and `pointer` came from `inner`.
            unsafe { self.inner.realloc(pointer, layout, new_size) }
        };
        if !self.is_explaining() {
            let moved = reallocate();
            if !moved.is_null() {
                self.record_realloc(layout.size(), new_size);
            }
            return moved;
        }
        let Some(mut blocks) = self.blocks.lock() else {
            return reallocate();
        };
        self.halt_before_a_call(&mut blocks);
        let old = blocks.remove(pointer);
        let moved = reallocate();
        if !moved.is_null() {
            self.record_realloc(layout.size(), new_size);
            self.enter(&mut blocks, moved, new_size);
        } else if let Some(old) = old {
            blocks.restore(old);
        }
        moved
    }
}

// SAFETY: every method hands its arguments to the same method of `inner`, which is a `GlobalAlloc`,
// and returns what that returned; counting touches atomics and memory of its own, so it neither
// allocates nor unwinds.
unsafe impl<A: GlobalAlloc> GlobalAlloc for Counting<A> {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if self.is_started() {
            // SAFETY: the caller keeps `alloc`'s contract, which is the same one.
            return unsafe { self.started_alloc(layout, false) };
        }
        // SAFETY: the caller keeps `alloc`'s contract, which is the same one.
        unsafe { self.inner.alloc(layout) }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // Forwarded as such: the default would be `alloc` and a memset, which touches every page.
        if self.is_started() {
            // SAFETY: the caller keeps `alloc_zeroed`'s contract, which is the same one.
            return unsafe { self.started_alloc(layout, true) };
        }
        // SAFETY: the caller keeps `alloc_zeroed`'s contract, which is the same one.
        unsafe { self.inner.alloc_zeroed(layout) }
    }

    #[inline]
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        if self.is_started() {
            // SAFETY: the caller keeps `dealloc`'s contract, which is the same one.
            return unsafe { self.started_dealloc(pointer, layout) };
        }
        // SAFETY: the caller keeps `dealloc`'s contract, and `pointer` came from `inner`.
        unsafe { self.inner.dealloc(pointer, layout) }
    }

    #[inline]
    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        if self.is_started() {
            // SAFETY: the caller keeps `realloc`'s contract, which is the same one.
            return unsafe { self.started_realloc(pointer, layout, new_size) };
        }
        // SAFETY: the caller keeps `realloc`'s contract, and `pointer` came from `inner`.
        unsafe { self.inner.realloc(pointer, layout, new_size) }
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

    /// As if no block were larger than what was asked for.
    unsafe fn nothing_more(_: *const u8) -> Footprint {
        Footprint::default()
    }

    fn started() -> Counting<System> {
        let counting = Counting::new(System, nothing_more);
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
        let counting = Counting::new(System, nothing_more);
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
                peak_ordinal: 2,
                ordinal: 3,
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
        assert_eq!(counting.counts().peak_ordinal, 0);
        let more = alloc(&counting, 1);
        assert_eq!(counting.counts().peak_ordinal, 1);
        dealloc(&counting, more, 1);
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
                peak_ordinal: 2,
                ordinal: 3,
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
        let counting = Counting::new(Exhausted, nothing_more);
        counting.start();
        assert!(alloc(&counting, 100).is_null());
        assert!(realloc(&counting, null_mut(), 100, 200).is_null());
        assert_eq!(counting.counts(), HeapCounts::default());
    }

    #[test]
    fn a_block_from_before_the_start_may_be_freed_after_it() {
        let counting = Counting::new(System, nothing_more);
        let pointer = alloc(&counting, 100);
        counting.start();
        dealloc(&counting, pointer, 100);
        assert_eq!(counting.counts().live_bytes, 0);
        let pointer = alloc(&counting, 150);
        assert_eq!(counting.counts().live_bytes, 50);
        dealloc(&counting, pointer, 150);
    }

    #[test]
    fn a_halt_comes_before_the_call_after_the_one_named() {
        static LIVE: AtomicU64 = AtomicU64::new(0);
        let counting = Counting::new(System, nothing_more);
        counting.start_explaining(|blocks| LIVE.store(blocks.size(), Relaxed));
        let before = alloc(&counting, 1000);
        counting.halt_after(2);
        counting.reset_peak();
        let first = alloc(&counting, 10);
        let second = realloc(&counting, first, 10, 30);
        assert_eq!(LIVE.load(Relaxed), 0);
        dealloc(&counting, second, 30);
        assert_eq!(LIVE.load(Relaxed), 1030);
        // Once is enough.
        dealloc(&counting, before, 1000);
        assert_eq!(LIVE.load(Relaxed), 1030);
        assert_eq!(counting.counts().live_bytes, 0);
    }

    #[test]
    fn a_halt_that_no_call_follows_is_due() {
        static HALTS: AtomicU64 = AtomicU64::new(0);
        let counting = Counting::new(System, nothing_more);
        counting.start_explaining(|_| {
            HALTS.fetch_add(1, Relaxed);
        });
        counting.halt_after(1);
        counting.reset_peak();
        counting.halt_if_due();
        assert_eq!(HALTS.load(Relaxed), 0);
        let pointer = alloc(&counting, 8);
        counting.halt_if_due();
        assert_eq!(HALTS.load(Relaxed), 1);
        dealloc(&counting, pointer, 8);
        assert_eq!(HALTS.load(Relaxed), 1);
    }
}
