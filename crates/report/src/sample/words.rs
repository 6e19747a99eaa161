//! The words that a row of the CSV is written in.

use serde::{Deserialize, Serialize};
use std::fmt;

/// What a sample measures. Counting slows the work, so times and heap come from separate processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Allocations are counted: peak heap, calls and bytes. No times, RSS or faults.
    Heap,
    /// The allocator is bare: times, RSS and faults. No heap figures.
    Rss,
    /// Allocations are counted, and the work is halted where the heap is largest: where the RSS is then.
    Explain,
    /// The allocator is bare: RSS after everything was dropped, at once and later, and after a purge.
    Settle,
    /// Allocations are counted: RSS and live heap after each of many times the same work in one process.
    Cycles,
    /// Allocations are counted: RSS and live heap over time, looked at from another thread.
    Timeline,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Self; 6] = [
        Self::Heap,
        Self::Rss,
        Self::Explain,
        Self::Settle,
        Self::Cycles,
        Self::Timeline,
    ];

    /// Whether its allocations are counted.
    #[must_use]
    pub fn counts(self) -> bool {
        !matches!(self, Self::Rss | Self::Settle)
    }
}

/// Whether the sample's work was done. Agreement with other samples is for [`verify`](crate::verify::verify).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// The work was done and the sample is consistent in itself.
    Ok,
    /// It was not; the `error` column says why, and the measures are empty.
    Failed,
    /// It needs more memory than the limit that it was given: a result, and no failure.
    DidNotFit,
    /// It needs more time than it was given: a result, and no failure.
    DidNotFinish,
}

/// What is done with the dataset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Workload {
    /// The file is read, batch by batch.
    Read,
    /// The file is written from batches made beforehand.
    Write,
}

/// Where the batches that are written come from.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum Situation {
    /// The whole table is in memory anyway: what counts is the heap above it.
    #[default]
    Resident,
    /// Batches come one after the other and are dropped once they are written: what a writer holds of them counts.
    Arriving,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Heap => "heap",
            Self::Rss => "rss",
            Self::Explain => "explain",
            Self::Settle => "settle",
            Self::Cycles => "cycles",
            Self::Timeline => "timeline",
        })
    }
}

impl fmt::Display for Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Read => "read",
            Self::Write => "write",
        })
    }
}

impl fmt::Display for Situation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Resident => "resident",
            Self::Arriving => "arriving",
        })
    }
}
