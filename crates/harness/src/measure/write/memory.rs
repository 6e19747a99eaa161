//! Holds what a writer says of its memory against the counted heap.

use crate::allocator;

/// Below this many bytes counted, a difference is held against this many: of a few KiB anything is a large share.
const LEAST_BYTES: u64 = 64 * 1024;

/// From this difference on, a writer that is held to it has told another figure than the truth.
pub(super) const TOLERANCE: f64 = 0.05;

/// The largest difference so far.
pub(super) struct MemoryCheck {
    before_bytes: u64,
    /// `None` until it was looked at.
    worst: Option<f64>,
}

impl MemoryCheck {
    /// From here on, what is live above what is live now is the writer's.
    pub(super) fn start() -> Self {
        Self {
            before_bytes: allocator::heap_counts().live_bytes,
            worst: None,
        }
    }

    /// Compares what is live with what the writer says it holds. Allocates nothing.
    pub(super) fn look(&mut self, said_bytes: usize) {
        let live = allocator::heap_counts().live_bytes;
        self.compare(live.saturating_sub(self.before_bytes), said_bytes as u64);
    }

    fn compare(&mut self, counted: u64, said: u64) {
        let off = counted.abs_diff(said) as f64 / counted.max(LEAST_BYTES) as f64;
        self.worst = Some(self.worst.unwrap_or(0.0).max(off));
    }

    /// The largest difference as a share of what was counted, to four digits; `None` where nobody said anything.
    pub(super) fn worst(&self) -> Option<f64> {
        self.worst.map(|worst| (worst * 1e4).round() / 1e4)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_difference_is_kept() {
        let mut check = MemoryCheck {
            before_bytes: 0,
            worst: None,
        };
        assert_eq!(check.worst(), None);
        check.compare(1_000_000, 1_000_000);
        assert_eq!(check.worst(), Some(0.0));
        check.compare(1_000_000, 970_000);
        assert_eq!(check.worst(), Some(0.03));
        check.compare(1_000_000, 1_010_000);
        assert_eq!(check.worst(), Some(0.03));
        // 6,554 of 65,536, though 100 % of what was counted.
        check.compare(0, 6_554);
        assert_eq!(check.worst(), Some(0.1));
    }
}
