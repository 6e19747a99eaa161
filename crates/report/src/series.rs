//! Memory over time: the points of a `settle`, `cycles` or `timeline` sample.

use serde::{Deserialize, Serialize};

/// One look at a process's memory.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// What the process was at. Of a `settle` sample: `before`, `peak`, `dropped`, `joined` (its threads have ended, where
    /// it had any), `settled`, `before-purge`, `purged`. Of `cycles`: `before`, `cycle`. Of a `timeline`: `before`, `work`,
    /// `dropped`.
    pub phase: String,
    /// Number of the point, from 0; of a `cycles` sample, the cycle, with 0 before the first.
    pub point: u32,
    /// When, in seconds from the sample's first point; of a `settle` sample from when everything was dropped, so that it is
    /// negative before.
    pub at_s: f64,
    /// Resident then (`VmRSS`), in bytes. At a `peak` it is `VmHWM`, and the time is when that was read.
    pub rss_bytes: u64,
    /// The part of it that the kernel takes back when it needs to (`LazyFree`), in bytes.
    pub lazy_free_bytes: Option<u64>,
    /// Live in the Rust heap then, in bytes; where allocations are counted.
    pub heap_live_bytes: Option<u64>,
}
