//! Looks at this process's memory while a sample lasts: what becomes the points of a series.
//!
//! The place for all of them is set aside, and touched, before the first: a look changes nothing of what it looks at.

use std::time::{Duration, Instant};

use alloquet_report::series::Point;
use anyhow::Result;

use super::window::resident;
use crate::allocator;
use crate::sys::smaps_rollup::SmapsRollup;

/// One look.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Look {
    pub(super) phase: &'static str,
    /// Since some moment that all looks of a series share; negative before it.
    pub(super) at_s: f64,
    pub(super) rss_bytes: u64,
    pub(super) lazy_free_bytes: Option<u64>,
    pub(super) heap_live_bytes: Option<u64>,
}

/// Stands where no look is yet. Not all zeros: memory that is to be zero need not be there.
pub(super) const NO_LOOK: Look = Look {
    phase: "none",
    at_s: f64::MAX,
    rss_bytes: u64::MAX,
    lazy_free_bytes: Some(u64::MAX),
    heap_live_bytes: Some(u64::MAX),
};

/// The looks of a sample, in order.
#[derive(Debug)]
pub(super) struct Looks {
    began: Instant,
    looks: Vec<Look>,
}

impl Looks {
    /// With room for `most` looks; time starts now.
    pub(super) fn new(most: usize) -> Self {
        let mut looks = vec![NO_LOOK; most];
        looks.clear();
        Self {
            began: Instant::now(),
            looks,
        }
    }

    /// Looks now.
    ///
    /// # Errors
    ///
    /// `/proc` cannot be read.
    pub(super) fn look(&mut self, phase: &'static str) -> Result<()> {
        let look = Look {
            phase,
            at_s: since(self.began),
            rss_bytes: resident()?.rss_bytes,
            lazy_free_bytes: SmapsRollup::now().ok().map(|rollup| rollup.lazy_free_bytes),
            heap_live_bytes: allocator::is_counting().then(|| allocator::heap_counts().live_bytes),
        };
        self.looks.push(look);
        Ok(())
    }

    /// Adds a peak that was read otherwise. When it was reached is not known: the time is now.
    pub(super) fn peak(&mut self, phase: &'static str, rss_bytes: u64) {
        self.looks.push(Look {
            phase,
            at_s: since(self.began),
            rss_bytes,
            lazy_free_bytes: None,
            heap_live_bytes: None,
        });
    }

    /// Time starts now; what was before it is negative.
    pub(super) fn restart(&mut self) {
        let passed = since(self.began);
        self.looks.iter_mut().for_each(|look| look.at_s -= passed);
        self.began = Instant::now();
    }

    /// Waits until so much time has passed.
    pub(super) fn wait_until(&self, at: Duration) {
        std::thread::sleep(at.saturating_sub(self.began.elapsed()));
    }

    /// The resident bytes of the last look; 0 before the first.
    pub(super) fn last_rss_bytes(&self) -> u64 {
        self.looks.last().map_or(0, |look| look.rss_bytes)
    }

    /// As they are reported.
    pub(super) fn points(&self) -> Vec<Point> {
        points(&self.looks)
    }
}

/// Looks as they are reported.
pub(super) fn points(looks: &[Look]) -> Vec<Point> {
    let numbered = looks.iter().zip(0..);
    let point = |(look, number): (&Look, u32)| Point {
        phase: look.phase.to_owned(),
        point: number,
        // Never the zero that is written with a sign.
        at_s: (look.at_s * 1e6).round() / 1e6 + 0.0,
        rss_bytes: look.rss_bytes,
        lazy_free_bytes: look.lazy_free_bytes,
        heap_live_bytes: look.heap_live_bytes,
    };
    numbered.map(point).collect()
}

fn since(began: Instant) -> f64 {
    began.elapsed().as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_before_the_start_is_negative() {
        let mut looks = Looks::new(3);
        looks.look("before").unwrap();
        std::thread::sleep(Duration::from_millis(2));
        looks.peak("peak", 7);
        looks.restart();
        looks.wait_until(Duration::from_millis(3));
        looks.look("dropped").unwrap();
        let points = looks.points();
        let phases: Vec<_> = points
            .iter()
            .map(|point| (point.phase.as_str(), point.point))
            .collect();
        assert_eq!(phases, [("before", 0), ("peak", 1), ("dropped", 2)]);
        assert!(
            points[0].at_s < -0.002 && points[1].at_s <= 0.0,
            "{points:?}"
        );
        assert!(points[2].at_s >= 0.003, "{points:?}");
        assert_eq!((points[1].rss_bytes, points[1].lazy_free_bytes), (7, None));
        // The tests' own process does not count.
        assert_eq!(points[2].heap_live_bytes, None);
    }
}
