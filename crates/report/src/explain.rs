//! Where the RSS of one sample is: a waterfall from live heap to RSS, beside what bare samples of its cell reach.

mod names;
mod text;

use crate::cell::Cell;
use crate::metric::Metric;
use crate::parts::{Part, Source};
use crate::sample::Sample;
use crate::stats::Summary;
use serde::Serialize;

pub use text::{render, render_pair};

/// An `explain` sample with what is to be said of it.
#[derive(Debug, Clone, Copy)]
pub struct Explained<'a> {
    /// The sample.
    pub sample: &'a Sample,
    /// Its parts, which add up to its RSS where the heap was largest.
    pub parts: &'a [Part],
    /// All samples, of which the `rss` samples of its cell are what it is held against.
    pub samples: &'a [Sample],
}

/// From live heap to RSS, step by step.
#[derive(Debug, Clone, Serialize)]
pub struct Waterfall {
    /// The sample's RSS, in bytes: the sum of the parts.
    pub rss_bytes: i64,
    /// The live heap in it, in bytes.
    pub live_bytes: i64,
    /// The parts, those of the live heap first.
    pub steps: Vec<Step>,
    /// Max RSS of the bare samples of the same cell, in bytes; `None` where there are none.
    pub bare_max_rss_bytes: Option<Summary>,
    /// How far the sample's RSS lies above the smallest of them, in bytes.
    pub above_bare_bytes: Option<f64>,
    /// The largest parts in a sentence.
    pub text: String,
}

/// One part of a waterfall.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Step {
    /// Its name.
    pub part: String,
    /// What it is called in tables.
    pub title: String,
    /// Whether it is a part of the live heap.
    pub live: bool,
    /// How much it adds, in bytes.
    pub bytes: i64,
    /// The sum up to and with it, in bytes.
    pub sum_bytes: i64,
    /// How it is known.
    pub source: Source,
    /// From what.
    pub how: String,
}

impl Explained<'_> {
    fn waterfall(&self) -> (Cell, Waterfall) {
        let cell = Cell::of(self.sample);
        let all = self.samples.iter();
        let waterfall = Waterfall::of(self.parts, all.filter(|other| Cell::of(other) == cell));
        (cell, waterfall)
    }
}

impl Waterfall {
    /// Of the parts of one sample, and the bare samples of its cell.
    #[must_use]
    pub fn of<'a>(parts: &[Part], bare: impl IntoIterator<Item = &'a Sample>) -> Self {
        let (live, others): (Vec<&Part>, Vec<&Part>) =
            parts.iter().partition(|part| names::is_live(&part.part));
        let live_bytes = live.iter().map(|part| part.bytes).sum();
        let mut sum_bytes = 0;
        let steps: Vec<Step> = live
            .into_iter()
            .chain(others)
            .map(|part| {
                sum_bytes += part.bytes;
                Step {
                    title: names::title(&part.part).to_owned(),
                    live: names::is_live(&part.part),
                    part: part.part.clone(),
                    bytes: part.bytes,
                    sum_bytes,
                    source: part.source,
                    how: part.how.clone(),
                }
            })
            .collect();
        let bare = bare
            .into_iter()
            .filter_map(|sample| Metric::MaxRss.of(sample));
        let bare = Summary::of(&bare.collect::<Vec<_>>());
        Self {
            text: text::largest(sum_bytes, live_bytes, &steps),
            rss_bytes: sum_bytes,
            live_bytes,
            steps,
            above_bare_bytes: bare.map(|bare| sum_bytes as f64 - bare.min),
            bare_max_rss_bytes: bare,
        }
    }

    /// Below what a part is put together with others of its size.
    fn tiny(&self) -> i64 {
        const SMALLEST: i64 = 50 * 1024;
        (self.rss_bytes / 1_000).max(SMALLEST)
    }
}
