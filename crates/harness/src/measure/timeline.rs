//! Memory over time: a thread that looks again and again while the work is done by others.
//!
//! What it needs is there before the work: the place for the points, the open file, its stack. It allocates nothing. What
//! it costs is stated with the sample.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Barrier, Mutex, MutexGuard, PoisonError};
use std::thread::{JoinHandle, park_timeout, spawn};
use std::time::{Duration, Instant};

use alloquet_report::series::Point;
use anyhow::{Context, Result, anyhow};
use rustix::time::{ClockId, clock_gettime};

use super::looks::{Look, NO_LOOK, points};
use crate::allocator;
use crate::sys::memory::{STATM_SOURCE, Statm};

/// The most points: 1 MiB, which is live and resident before the work begins. When they are full every second one goes,
/// and the time between them doubles: at 1 ms that is after 16 seconds.
const MOST_POINTS: usize = 16_384;

/// A sampling thread at work.
pub(super) struct Timeline {
    shared: Arc<Shared>,
    /// Gives its CPU time.
    thread: JoinHandle<Result<Duration>>,
    interval: Duration,
}

/// What the sampling thread and the one that waits for the work share.
struct Shared {
    statm: Statm,
    began: Instant,
    /// Where both are once the sampling thread has all that it needs.
    ready: Barrier,
    ended: AtomicBool,
    track: Mutex<Track>,
}

/// The points so far.
struct Track {
    phase: &'static str,
    looks: Vec<Look>,
    most: usize,
    /// So many times the interval lies between two points.
    stride: u32,
}

impl Timeline {
    /// Starts to look every `interval_ms` milliseconds, in the phase `before`.
    ///
    /// # Errors
    ///
    /// `/proc` cannot be read.
    pub(super) fn start(interval_ms: u32) -> Result<Self> {
        let interval = Duration::from_millis(interval_ms.into());
        let statm = Statm::open().with_context(|| format!("cannot open {STATM_SOURCE}"))?;
        let track = Mutex::new(Track::new(MOST_POINTS));
        let shared = Arc::new(Shared {
            statm,
            began: Instant::now(),
            ready: Barrier::new(2),
            ended: AtomicBool::new(false),
            track,
        });
        let thread = {
            let shared = Arc::clone(&shared);
            spawn(move || shared.watch(interval))
        };
        shared.ready.wait();
        Ok(Self {
            shared,
            thread,
            interval,
        })
    }

    /// Looks now, by this thread, as the last of the phase that ends; the next points are of `phase`.
    ///
    /// # Errors
    ///
    /// `/proc` cannot be read.
    pub(super) fn enter(&self, phase: &'static str) -> Result<()> {
        let now = self.shared.now()?;
        let mut track = self.shared.track();
        track.add(now);
        track.phase = phase;
        Ok(())
    }

    /// Looks for the last time, and says what looking cost.
    ///
    /// # Errors
    ///
    /// `/proc` could not be read.
    pub(super) fn end(self, flags: &mut Vec<String>) -> Result<Vec<Point>> {
        self.shared.ended.store(true, Relaxed);
        self.thread.thread().unpark();
        let spent = self.thread.join();
        let spent = spent.map_err(|_| anyhow!("the thread that samples memory panicked"))??;
        let now = self.shared.now()?;
        let mut track = self.shared.track();
        track.add(now);
        flags.push(format!(
            "timeline-cost: {:.3} s CPU for {} points of {} ms",
            spent.as_secs_f64(),
            track.looks.len(),
            self.interval.as_millis() * u128::from(track.stride),
        ));
        let first = track.looks.first().map_or(0.0, |look| look.at_s);
        track.looks.iter_mut().for_each(|look| look.at_s -= first);
        Ok(points(&track.looks))
    }
}

impl Shared {
    fn track(&self) -> MutexGuard<'_, Track> {
        self.track.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Resident and live bytes now, with the time.
    fn now(&self) -> Result<Look> {
        let rss_bytes = self.statm.rss_bytes();
        Ok(Look {
            at_s: self.began.elapsed().as_secs_f64(),
            rss_bytes: rss_bytes.with_context(|| format!("cannot read {STATM_SOURCE}"))?,
            lazy_free_bytes: None,
            heap_live_bytes: Some(allocator::heap_counts().live_bytes),
            ..NO_LOOK
        })
    }

    /// What the sampling thread does. Gives its CPU time.
    fn watch(&self, interval: Duration) -> Result<Duration> {
        let first = self.now();
        let first = first.map(|first| self.track().add(first));
        self.ready.wait();
        first?;
        let mut next = Instant::now();
        loop {
            let stride = self.track().stride;
            // Looks that come too late are left out.
            next = (next + interval * stride).max(Instant::now());
            park_timeout(next.saturating_duration_since(Instant::now()));
            if self.ended.load(Relaxed) {
                break;
            }
            let now = self.now()?;
            self.track().add(now);
        }
        let spent = clock_gettime(ClockId::ThreadCPUTime);
        Ok(Duration::new(
            u64::try_from(spent.tv_sec).unwrap_or(0),
            u32::try_from(spent.tv_nsec).unwrap_or(0),
        ))
    }
}

impl Track {
    fn new(most: usize) -> Self {
        let mut looks = vec![NO_LOOK; most];
        looks.clear();
        Self {
            phase: "before",
            looks,
            most,
            stride: 1,
        }
    }

    /// Adds a look of the phase that it is. Allocates nothing.
    fn add(&mut self, look: Look) {
        if self.looks.len() == self.most {
            let mut number = 0_usize;
            self.looks.retain(|_| {
                number += 1;
                number % 2 == 1
            });
            self.stride = self.stride.saturating_mul(2);
        }
        self.looks.push(Look {
            phase: self.phase,
            ..look
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_track_keeps_every_second_point() {
        let mut track = Track::new(8);
        let room = track.looks.capacity();
        let kept = |track: &Track| {
            let rss = track.looks.iter().map(|look| look.rss_bytes);
            rss.collect::<Vec<_>>()
        };
        for rss_bytes in 0..9 {
            track.add(Look {
                rss_bytes,
                ..NO_LOOK
            });
        }
        assert_eq!(kept(&track), [0, 2, 4, 6, 8]);
        assert_eq!(track.stride, 2);
        for rss_bytes in 9..13 {
            track.phase = "work";
            track.add(Look {
                rss_bytes,
                ..NO_LOOK
            });
        }
        assert_eq!(kept(&track), [0, 4, 8, 10, 12]);
        assert_eq!(track.stride, 4);
        assert_eq!(track.looks.last().map(|look| look.phase), Some("work"));
        assert_eq!(track.looks.capacity(), room);
    }

    #[test]
    fn phases_follow_one_another_and_the_cost_is_told() {
        let timeline = Timeline::start(1).unwrap();
        timeline.enter("work").unwrap();
        std::thread::sleep(Duration::from_millis(30));
        timeline.enter("dropped").unwrap();
        let mut flags = Vec::new();
        let points = timeline.end(&mut flags).unwrap();
        let mut phases: Vec<_> = points.iter().map(|point| point.phase.as_str()).collect();
        let of_work = phases.iter().filter(|phase| **phase == "work").count();
        assert!(of_work > 2, "{points:?}");
        phases.dedup();
        assert_eq!(phases, ["before", "work", "dropped"]);
        let at: Vec<f64> = points.iter().map(|point| point.at_s).collect();
        assert!(at[0] == 0.0 && at.last() > Some(&0.03), "{at:?}");
        let expected = format!("s CPU for {} points of 1 ms", points.len());
        assert!(
            flags[0].starts_with("timeline-cost: 0.") && flags[0].ends_with(&expected),
            "{flags:?}"
        );
    }
}
