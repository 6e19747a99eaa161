//! The measured window: what is read before the work, right after it, and after everything was
//! dropped.
//!
//! Inside the window nothing of this module runs. A `heap` sample reads the counters alone and an
//! `rss` sample the operating system's figures alone: counting slows the work, so its times and
//! faults would be wrong.

use std::time::{Duration, Instant};

use alloquet_report::sample::Kind;
use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use crate::allocator::{self, HeapCounts};
use crate::sys::memory::{self, Resident};
use crate::sys::smaps_rollup::SmapsRollup;
use crate::sys::usage::Usage;

/// An open window.
pub(crate) struct Window {
    kind: Kind,
    flags: Vec<String>,
    resident_before: Resident,
    counts_before: HeapCounts,
    usage_before: Usage,
    started: Instant,
}

/// What a window measured, of one kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub(crate) enum Measures {
    /// Of a `heap` sample.
    Heap(HeapMeasures),
    /// Of an `rss` sample.
    Rss(RssMeasures),
    /// Of a sample that looks at memory while or after it works: `explain`, `settle`, `cycles`, `timeline`.
    Watched(WatchedMeasures),
}

/// The counted heap: requested bytes and calls of the global allocator, within the window.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct HeapMeasures {
    /// Bytes live when the window opened.
    pub(crate) heap_before_bytes: u64,
    /// The most bytes live at once in the window, with those from before.
    pub(crate) heap_peak_bytes: u64,
    /// Bytes allocated in the window, freed or not; a reallocation adds what it grew.
    pub(crate) allocated_bytes: u64,
    /// Allocations in the window.
    pub(crate) allocations: u64,
    /// Reallocations in the window.
    pub(crate) reallocations: u64,
    /// Bytes still live once everything the work made was dropped.
    pub(crate) heap_after_bytes: u64,
    /// Number of the call, of those that allocate or reallocate in the window, from 1, at which the heap peaked; `None`
    /// where nothing came to the peak that was there before.
    pub(crate) heap_peak_call: Option<u64>,
}

/// What a sample that looks at memory while or after it works has in common with the others.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct WatchedMeasures {
    /// The counted heap, where allocations are counted.
    pub(crate) heap: Option<HeapMeasures>,
    /// `VmHWM` at the end of the window, in bytes, reset when it opened.
    pub(crate) max_rss_bytes: u64,
    /// Resident bytes when the window opened.
    pub(crate) rss_before_bytes: u64,
    /// Resident bytes right after everything the work made was dropped.
    pub(crate) rss_after_bytes: u64,
    /// `VmHWM` over all phases so far, in bytes.
    pub(crate) process_max_rss_bytes: u64,
}

/// The operating system's view of the process.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct RssMeasures {
    /// Wall time of the window in seconds.
    pub(crate) wall_s: f64,
    /// User CPU time of the window in seconds, all threads.
    pub(crate) user_s: f64,
    /// System CPU time of the window in seconds, all threads.
    pub(crate) sys_s: f64,
    /// `VmHWM` at the end of the window, reset when it opened, in bytes.
    pub(crate) max_rss_bytes: u64,
    /// Resident bytes when the window opened.
    pub(crate) rss_before_bytes: u64,
    /// Resident bytes at the end of the window, with everything still held.
    pub(crate) rss_end_bytes: u64,
    /// The anonymous part of [`Self::rss_end_bytes`]; this and the next where the system tells them.
    pub(crate) rss_anon_bytes: Option<u64>,
    /// The file-backed part of [`Self::rss_end_bytes`].
    pub(crate) rss_file_bytes: Option<u64>,
    /// Resident bytes right after everything the work made was dropped.
    pub(crate) rss_after_bytes: u64,
    /// `VmHWM` over all phases so far: before the window, in it, and after what the work made was
    /// dropped.
    pub(crate) process_max_rss_bytes: u64,
    /// Page faults of the window that needed no reading.
    pub(crate) minor_faults: u64,
    /// Page faults of the window that waited for a device.
    pub(crate) major_faults: u64,
    /// Bytes that a block device was read for in the window, where the system tells them.
    pub(crate) disk_read_bytes: Option<u64>,
    /// `Pss` at the end of the window, in bytes; this and the next three where the kernel has `smaps_rollup`.
    pub(crate) pss_bytes: Option<u64>,
    /// `Private_Dirty` at the end of the window, in bytes.
    pub(crate) private_dirty_bytes: Option<u64>,
    /// `LazyFree` at the end of the window, in bytes.
    pub(crate) lazy_free_bytes: Option<u64>,
    /// `AnonHugePages` at the end of the window, in bytes.
    pub(crate) anon_huge_bytes: Option<u64>,
    /// Bytes live at the end of the window, by the allocator's own statistics.
    pub(crate) allocator_live_bytes: Option<u64>,
    /// Bytes that the allocator could use then without asking the system, by its own statistics.
    pub(crate) allocator_committed_bytes: Option<u64>,
    /// Those of them that were neither live nor its own records.
    pub(crate) allocator_retained_bytes: Option<u64>,
    /// Bytes in use in libc's own heap at the end of the window; this and the next two where libc tells.
    pub(crate) libc_heap_bytes: Option<u64>,
    /// Bytes free in libc's own heap at the end of the window.
    pub(crate) libc_free_bytes: Option<u64>,
    /// Bytes free in libc's own heap right after everything the work made was dropped.
    pub(crate) libc_free_after_bytes: Option<u64>,
}

/// A window that was closed while everything the work made is still held.
pub(crate) struct Closed {
    measures: Measures,
    flags: Vec<String>,
}

impl Window {
    /// Opens a window: what is live and resident now becomes the peak, and the clock starts.
    ///
    /// # Errors
    ///
    /// `/proc` or `getrusage` cannot be read, or a `heap` window is opened in a process that does
    /// not count.
    pub(crate) fn open(kind: Kind) -> Result<Self> {
        anyhow::ensure!(
            !kind.counts() || allocator::can_count(),
            "this build counts nothing, because it is of the feature `bare`: take samples of kind {kind} with one built without it"
        );
        anyhow::ensure!(
            !kind.counts() || allocator::is_counting(),
            "a sample of kind {kind} needs counting from the start: run `alloquet worker --kind {kind}`"
        );
        let mut flags = Vec::new();
        let resident_before = resident()?;
        if kind != Kind::Heap
            && let Err(error) = memory::reset_peak()
        {
            flags.push(format!(
                "peak RSS not reset before the window ({error}), so it includes what came before"
            ));
        }
        // From here on nothing allocates or faults on its own account.
        allocator::reset_peak();
        let counts_before = allocator::heap_counts();
        let usage_before =
            Usage::now().context("cannot read this process's CPU time and faults")?;
        let started = Instant::now();
        Ok(Self {
            kind,
            flags,
            resident_before,
            counts_before,
            usage_before,
            started,
        })
    }

    /// Closes the window. Call it with everything the work made still held.
    ///
    /// # Errors
    ///
    /// `/proc` or `getrusage` cannot be read.
    pub(crate) fn close(self) -> Result<Closed> {
        let wall = self.started.elapsed();
        let counts = allocator::heap_counts();
        let usage = Usage::now()
            .context("cannot read this process's CPU time and faults")?
            .since(&self.usage_before);
        let resident = resident()?;
        let heap = HeapMeasures {
            heap_before_bytes: self.counts_before.live_bytes,
            heap_peak_bytes: counts.peak_bytes,
            allocated_bytes: counts.allocated_bytes - self.counts_before.allocated_bytes,
            allocations: counts.allocations - self.counts_before.allocations,
            reallocations: counts.reallocations - self.counts_before.reallocations,
            heap_after_bytes: 0,
            heap_peak_call: Some(counts.peak_ordinal).filter(|&call| call > 0),
        };
        let process_max_rss_bytes = resident.peak_bytes.max(self.resident_before.peak_bytes);
        let measures = match self.kind {
            Kind::Heap => Measures::Heap(heap),
            Kind::Explain | Kind::Settle | Kind::Cycles | Kind::Timeline => {
                Measures::Watched(WatchedMeasures {
                    heap: self.kind.counts().then_some(heap),
                    max_rss_bytes: resident.peak_bytes,
                    rss_before_bytes: self.resident_before.rss_bytes,
                    rss_after_bytes: 0,
                    process_max_rss_bytes,
                })
            }
            Kind::Rss => {
                // The clock has stopped, so these may take their time.
                let rollup = SmapsRollup::now().ok();
                let libc_heap = allocator::mallinfo2();
                let statistics = allocator::statistics();
                Measures::Rss(RssMeasures {
                    wall_s: seconds(wall),
                    user_s: seconds(usage.user),
                    sys_s: seconds(usage.system),
                    max_rss_bytes: resident.peak_bytes,
                    rss_before_bytes: self.resident_before.rss_bytes,
                    rss_end_bytes: resident.rss_bytes,
                    rss_anon_bytes: resident.anon_bytes,
                    rss_file_bytes: resident.file_bytes,
                    rss_after_bytes: 0,
                    process_max_rss_bytes,
                    minor_faults: usage.minor_faults,
                    major_faults: usage.major_faults,
                    disk_read_bytes: usage.disk_read_bytes,
                    pss_bytes: rollup.map(|rollup| rollup.pss_bytes),
                    private_dirty_bytes: rollup.map(|rollup| rollup.private_dirty_bytes),
                    lazy_free_bytes: rollup.map(|rollup| rollup.lazy_free_bytes),
                    anon_huge_bytes: rollup.map(|rollup| rollup.anon_huge_bytes),
                    allocator_live_bytes: statistics.live_bytes,
                    allocator_committed_bytes: statistics.committed_bytes,
                    allocator_retained_bytes: statistics.retained_bytes,
                    libc_heap_bytes: libc_heap.map(|heap| heap.live_bytes()),
                    libc_free_bytes: libc_heap.map(|heap| heap.free_bytes),
                    libc_free_after_bytes: None,
                })
            }
        };
        Ok(Closed {
            measures,
            flags: self.flags,
        })
    }
}

impl Closed {
    /// `VmHWM` at the window's end, in bytes; 0 of a `heap` sample.
    pub(crate) fn max_rss_bytes(&self) -> u64 {
        match &self.measures {
            Measures::Heap(_) => 0,
            Measures::Rss(rss) => rss.max_rss_bytes,
            Measures::Watched(watched) => watched.max_rss_bytes,
        }
    }

    /// Completes the measures. Call it once everything the work made is dropped.
    ///
    /// # Errors
    ///
    /// `/proc` cannot be read.
    pub(crate) fn after_drop(mut self) -> Result<(Measures, Vec<String>)> {
        match &mut self.measures {
            Measures::Heap(heap) => heap.heap_after_bytes = allocator::heap_counts().live_bytes,
            Measures::Rss(rss) => {
                rss.rss_after_bytes = resident()?.rss_bytes;
                rss.libc_free_after_bytes = allocator::mallinfo2().map(|heap| heap.free_bytes);
            }
            Measures::Watched(watched) => {
                watched.rss_after_bytes = resident()?.rss_bytes;
                if let Some(heap) = &mut watched.heap {
                    heap.heap_after_bytes = allocator::heap_counts().live_bytes;
                }
            }
        }
        Ok((self.measures, self.flags))
    }
}

/// Resident memory now.
///
/// # Errors
///
/// `/proc` cannot be read.
pub(super) fn resident() -> Result<Resident> {
    Resident::now().with_context(|| {
        format!(
            "cannot read this process's resident memory from {}",
            memory::RESIDENT_SOURCE
        )
    })
}

/// To the microsecond, which is what `getrusage` resolves.
fn seconds(duration: Duration) -> f64 {
    duration.as_micros() as f64 / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_heap_window_is_refused_where_nothing_counts() {
        // No test here starts counting in this process.
        let refused = Window::open(Kind::Heap).map(|_| ()).unwrap_err();
        let said = refused.to_string();
        let expected = if cfg!(feature = "bare") {
            "take samples of kind heap with one built without it"
        } else {
            "a sample of kind heap needs counting from the start"
        };
        assert!(said.contains(expected), "{said}");
    }
}
