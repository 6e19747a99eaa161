//! Memory over time: the points of a `settle`, `cycles` or `timeline` sample.

use crate::companions::{CompanionRow, Key};
use crate::rows::{Row, columns};
use crate::sample::{Kind, SCHEMA_VERSION, Sample};
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

/// One point of one sample: one row of `MATRIX.series.csv`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PointRow {
    /// [`SCHEMA_VERSION`] of the program that wrote the row.
    pub schema_version: u32,
    /// The sample's run.
    pub run_id: String,
    /// Its place in the run's order.
    pub position: u32,
    /// What the sample measures: `settle`, `cycles` or `timeline`.
    pub kind: Kind,
    /// See [`Point::phase`].
    pub phase: String,
    /// See [`Point::point`].
    pub point: u32,
    /// See [`Point::at_s`].
    pub at_s: f64,
    /// See [`Point::rss_bytes`].
    pub rss_bytes: u64,
    /// See [`Point::lazy_free_bytes`].
    pub lazy_free_bytes: Option<u64>,
    /// See [`Point::heap_live_bytes`].
    pub heap_live_bytes: Option<u64>,
}

impl Row for PointRow {
    const WHAT: &'static str = "series of samples";
    const REMEDY: &'static str = "move it away: tables are then without cycles and settling";

    fn blank() -> Self {
        Self {
            schema_version: SCHEMA_VERSION,
            run_id: String::new(),
            position: 0,
            kind: Kind::Settle,
            phase: String::new(),
            point: 0,
            at_s: 0.0,
            rss_bytes: 0,
            lazy_free_bytes: None,
            heap_live_bytes: None,
        }
    }

    fn known_columns() -> Vec<(u32, Vec<String>)> {
        // Version 4 had the same.
        vec![(4, columns::<Self>()), (SCHEMA_VERSION, columns::<Self>())]
    }

    fn check(&self) -> Result<(), (&'static str, String)> {
        if !self.at_s.is_finite() {
            return Err(("at_s", format!("{} is no time", self.at_s)));
        }
        Ok(())
    }
}

impl CompanionRow for PointRow {
    type Content = Point;
    const NAME: &'static str = "series";

    fn new(sample: &Sample, point: &Point) -> Self {
        Self {
            schema_version: SCHEMA_VERSION,
            run_id: sample.run_id.clone(),
            position: sample.position,
            kind: sample.kind,
            phase: point.phase.clone(),
            point: point.point,
            at_s: point.at_s,
            rss_bytes: point.rss_bytes,
            lazy_free_bytes: point.lazy_free_bytes,
            heap_live_bytes: point.heap_live_bytes,
        }
    }

    fn key(&self) -> Key {
        (self.run_id.clone(), self.position)
    }

    fn name(&self) -> (String, u32) {
        (self.phase.clone(), self.point)
    }

    /// Points lie one after the other in time.
    fn are_whole(points: &[Point]) -> bool {
        points.is_sorted_by(|a, b| a.at_s <= b.at_s)
    }

    fn content(self) -> Point {
        Point {
            phase: self.phase,
            point: self.point,
            at_s: self.at_s,
            rss_bytes: self.rss_bytes,
            lazy_free_bytes: self.lazy_free_bytes,
            heap_live_bytes: self.heap_live_bytes,
        }
    }
}
