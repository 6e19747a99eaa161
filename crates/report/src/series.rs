//! Memory over time: the points of a `settle`, `cycles` or `timeline` sample.

use serde::{Deserialize, Serialize};

/// One look at a process's memory.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// What the process was at: `before`, `cycle`, `work`, `dropped`, `settled` or `purged`.
    pub phase: String,
    /// Number of the point, from 0; of a `cycles` sample, the cycle, with 0 before the first.
    pub point: u32,
    /// When, in seconds from the sample's first point.
    pub at_s: f64,
    /// Resident then (`VmRSS`), in bytes.
    pub rss_bytes: u64,
    /// The part of it that the kernel takes back when it needs to (`LazyFree`), in bytes.
    pub lazy_free_bytes: Option<u64>,
    /// Live in the Rust heap then, in bytes; where allocations are counted.
    pub heap_live_bytes: Option<u64>,
}
