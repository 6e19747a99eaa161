//! What many times the same work in one process says: whether memory comes back, is kept, or grows.
//!
//! The rules are in `docs/methodology.md`. Lines are fitted by least squares; what follows one another is seldom
//! independent (an allocator that kept much after one cycle keeps it after the next), so intervals are widened by
//! the correlation of neighbours.

use crate::format;
use crate::series::Point;
use crate::stats::Interval;
use serde::Serialize;

/// How far above what was there before memory may be and count as given back, in bytes; see [`near`].
const NEAR_BYTES: f64 = 10.0 * 1024.0 * 1024.0;
const NEAR_SHARE: f64 = 0.05;

/// Cycles that are looked at, at the least.
const FEWEST: usize = 8;

/// Resident memory that grows by less than this over all cycles looked at does not grow: stacks, tables of the C
/// library and the like are touched once, somewhen. In bytes.
const SMALLEST_RSS_GROWTH: f64 = 64.0 * 1024.0;

/// What the cycles of a sample come to.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Cycles {
    /// How many cycles there were.
    pub cycles: usize,
    /// Those at the beginning that are no part of the trends.
    pub warm_up: usize,
    /// RSS before the first, in bytes.
    pub before_bytes: f64,
    /// RSS after the cycles' second half: the median, in bytes.
    pub level_bytes: f64,
    /// How the RSS goes on, in bytes a cycle; `None` where there are too few cycles to tell.
    pub rss: Option<Trend>,
    /// How the live heap goes on; `None` where it was not counted, too.
    pub heap: Option<Trend>,
    /// What that means.
    pub verdict: Verdict,
    /// The same in words.
    pub text: String,
}

/// The slope of a line through what followed one another.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Trend {
    /// Bytes a cycle.
    pub slope: f64,
    /// Where the true slope lies with 95 % confidence.
    pub interval: Interval,
    /// Whether it is above 0 for sure, and has not slowed down by half from the first half to the second.
    pub grows: bool,
}

/// What cycles show.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Memory is what it was before the first cycle.
    Returns,
    /// More is kept than before, and no more with each cycle.
    LevelsOff,
    /// The live heap grows with each cycle: the program keeps something.
    HeapGrows,
    /// Only the RSS grows with each cycle: the allocator keeps something.
    RssGrows,
    /// There are too few cycles to tell.
    TooFew,
}

/// Whether `bytes` are near enough to what was there `before` to be called given back.
pub(crate) fn near(bytes: f64, before: f64) -> bool {
    bytes - before <= NEAR_BYTES.max(NEAR_SHARE * before)
}

impl Cycles {
    /// Of a sample's points: the first of `before`, and one of each `cycle`. `None` where it has neither.
    #[must_use]
    pub fn of(points: &[Point]) -> Option<Self> {
        let before = points.iter().find(|point| point.phase == "before");
        let cycles: Vec<&Point> = points
            .iter()
            .filter(|point| point.phase == "cycle" && point.point > 0)
            .collect();
        // Cycle 0, before the first, says the same where a sample calls it so.
        let zero = points.iter().find(|point| point.point == 0);
        let before_bytes = before.or(zero)?.rss_bytes as f64;
        if cycles.is_empty() {
            return None;
        }
        let rss: Vec<f64> = cycles.iter().map(|point| point.rss_bytes as f64).collect();
        let heap: Option<Vec<f64>> = cycles
            .iter()
            .map(|point| point.heap_live_bytes.map(|bytes| bytes as f64))
            .collect();
        let warm_up = (cycles.len() / 5).max(2).min(cycles.len());
        let level_bytes = median(&rss[rss.len() / 2..]);
        let rss_trend = Trend::of(&rss[warm_up..], SMALLEST_RSS_GROWTH);
        let heap_trend = heap.and_then(|heap| Trend::of(&heap[warm_up..], 0.0));

        let grows = |trend: Option<Trend>| trend.is_some_and(|trend| trend.grows);
        let verdict = if rss_trend.is_none() {
            Verdict::TooFew
        } else if grows(heap_trend) {
            Verdict::HeapGrows
        } else if grows(rss_trend) {
            Verdict::RssGrows
        } else if near(level_bytes, before_bytes) {
            Verdict::Returns
        } else {
            Verdict::LevelsOff
        };
        let mut cycles = Self {
            cycles: cycles.len(),
            warm_up,
            before_bytes,
            level_bytes,
            rss: rss_trend,
            heap: heap_trend,
            verdict,
            text: String::new(),
        };
        cycles.text = cycles.in_words();
        Some(cycles)
    }

    fn in_words(&self) -> String {
        let kept = self.level_bytes - self.before_bytes;
        let before = format::mib(self.before_bytes as u64);
        let of_rss = self.rss.map_or_else(String::new, |trend| trend.in_words());
        let of_heap = self.heap.map_or_else(String::new, |trend| trend.in_words());
        match self.verdict {
            Verdict::TooFew => format!(
                "too few cycles to tell: {} are left after {} of warm-up, {FEWEST} are needed",
                self.cycles - self.warm_up,
                self.warm_up
            ),
            Verdict::Returns => format!(
                "returns: RSS is {} the {before} before, slope {of_rss}",
                above(kept)
            ),
            Verdict::LevelsOff => format!(
                "levels off (retention): keeps {} MiB more than the {before} before, slope {of_rss}",
                format::mib_number(kept)
            ),
            Verdict::HeapGrows => {
                format!("grows: live heap by {of_heap}: a leak in the program (RSS by {of_rss})")
            }
            Verdict::RssGrows => {
                let heap = match self.heap {
                    Some(_) => format!("live heap does not ({of_heap})"),
                    None => "live heap was not counted".to_owned(),
                };
                format!("grows: RSS by {of_rss}, {heap}: it is the allocator's")
            }
        }
    }
}

impl Trend {
    /// Of figures that followed one another; `None` where they are too few. Growth of less than `smallest` in all is
    /// none.
    #[must_use]
    pub fn of(figures: &[f64], smallest: f64) -> Option<Self> {
        if figures.len() < FEWEST {
            return None;
        }
        let whole = Line::through(figures);
        let reach = whole.error * t_95(whole.freedom);
        let interval = Interval {
            low: whole.slope - reach,
            high: whole.slope + reach,
        };
        let half = figures.len() / 2;
        let (first, last) = (
            Line::through(&figures[..half]),
            Line::through(&figures[half..]),
        );
        // Slower for sure, and by more than half: it comes to an end.
        let slowing = first.slope - last.slope;
        let slows = last.slope < first.slope / 2.0 && slowing > 2.0 * first.error.hypot(last.error);
        let total = whole.slope * (figures.len() - 1) as f64;
        Some(Self {
            slope: whole.slope,
            interval,
            grows: interval.low > 0.0 && total >= smallest && !slows,
        })
    }

    /// `12.0 KiB a cycle [11.0, 13.0]`.
    fn in_words(&self) -> String {
        format!(
            "{} KiB a cycle [{}, {}]",
            format::kib_number(self.slope),
            format::kib_number(self.interval.low),
            format::kib_number(self.interval.high)
        )
    }
}

/// A line by least squares, and how sure its slope is.
struct Line {
    slope: f64,
    /// Standard error of the slope.
    error: f64,
    /// Degrees of freedom.
    freedom: usize,
}

impl Line {
    /// Through at least three figures at 0, 1, 2 and so on.
    fn through(figures: &[f64]) -> Self {
        let n = figures.len() as f64;
        let (mean_x, mean_y) = ((n - 1.0) / 2.0, figures.iter().sum::<f64>() / n);
        let at = |x: usize| x as f64 - mean_x;
        let squares: f64 = (0..figures.len()).map(|x| at(x).powi(2)).sum();
        let products = figures
            .iter()
            .enumerate()
            .map(|(x, y)| at(x) * (y - mean_y));
        let slope = products.sum::<f64>() / squares;
        let rest: Vec<f64> = figures
            .iter()
            .enumerate()
            .map(|(x, y)| y - mean_y - slope * at(x))
            .collect();
        let variance = rest.iter().map(|rest| rest * rest).sum::<f64>() / (n - 2.0);
        // Where neighbours are alike, there are fewer figures than it seems.
        let alike = correlation(&rest);
        let error = (variance / squares * (1.0 + alike) / (1.0 - alike)).sqrt();
        Self {
            slope,
            error,
            freedom: figures.len() - 2,
        }
    }
}

/// How alike neighbours are: between 0, not at all, and 0.95.
fn correlation(rest: &[f64]) -> f64 {
    let squares: f64 = rest.iter().map(|rest| rest * rest).sum();
    if squares <= 0.0 {
        return 0.0;
    }
    let products: f64 = rest.windows(2).map(|pair| pair[0] * pair[1]).sum();
    let found = products / squares;
    // Of few figures it comes out too small; this is by how much.
    (found + (1.0 + 3.0 * found.max(0.0)) / rest.len() as f64).clamp(0.0, 0.95)
}

/// The 97.5 % quantile of Student's t, by Hill's expansion from the normal one; within 1 % from 3 degrees on.
fn t_95(freedom: usize) -> f64 {
    let (z, f) = (1.959_964_f64, freedom as f64);
    let (z3, z5, z7) = (z.powi(3), z.powi(5), z.powi(7));
    z + (z3 + z) / (4.0 * f)
        + (5.0 * z5 + 16.0 * z3 + 3.0 * z) / (96.0 * f * f)
        + (3.0 * z7 + 19.0 * z5 + 17.0 * z3 - 15.0 * z) / (384.0 * f.powi(3))
}

fn median(figures: &[f64]) -> f64 {
    crate::stats::Summary::of(figures).map_or(0.0, |summary| summary.median)
}

/// `12.0 MiB above` or `3.0 MiB below`.
pub(crate) fn above(bytes: f64) -> String {
    let side = if bytes < 0.0 { "below" } else { "above" };
    format!("{} MiB {side}", format::mib_number(bytes.abs()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use proptest::test_runner::TestRunner;

    const MIB: f64 = 1024.0 * 1024.0;
    const KIB: f64 = 1024.0;

    /// Noise of about ±1, the same each time.
    fn noise(count: usize) -> Vec<f64> {
        let mut runner = TestRunner::deterministic();
        let rng = runner.rng();
        let mut one = || f64::from(rng.next_u32()) / f64::from(u32::MAX) - 0.5;
        (0..count).map(|_| one() + one() + one() + one()).collect()
    }

    /// 50 cycles from 20 MiB on, each at what `rss` and `heap` make of its number.
    fn cycles(rss: impl Fn(usize) -> f64, heap: impl Fn(usize) -> f64) -> Cycles {
        let point = |place: usize| Point {
            phase: if place == 0 { "before" } else { "cycle" }.to_owned(),
            point: place as u32,
            at_s: place as f64,
            rss_bytes: (20.0 * MIB + rss(place)) as u64,
            lazy_free_bytes: None,
            heap_live_bytes: Some((MIB + heap(place)) as u64),
        };
        let before = Point {
            rss_bytes: (20.0 * MIB) as u64,
            ..point(0)
        };
        let points: Vec<Point> = [before].into_iter().chain((1..=50).map(point)).collect();
        Cycles::of(&points).unwrap()
    }

    fn verdict(rss: impl Fn(usize) -> f64) -> Verdict {
        cycles(rss, |_| 0.0).verdict
    }

    #[test]
    fn what_is_flat_but_for_noise_returns() {
        let noise = noise(51);
        let found = cycles(|n| 3.0 * MIB + noise[n] * MIB, |_| 0.0);
        assert_eq!(found.verdict, Verdict::Returns, "{}", found.text);
        assert!(
            found.text.contains("MiB above the 20.0 MiB before"),
            "{}",
            found.text
        );
    }

    #[test]
    fn a_step_that_stays_is_retention() {
        let noise = noise(51);
        for at in [0, 5, 12, 16, 20] {
            let step = |n: usize| if n >= at { 60.0 * MIB } else { 30.0 * MIB };
            let found = cycles(|n| step(n) + noise[n] * 0.2 * MIB, |_| 0.0);
            assert_eq!(found.verdict, Verdict::LevelsOff, "{at}: {}", found.text);
            assert!(found.text.contains("keeps 60.0 MiB more"), "{}", found.text);
        }
    }

    #[test]
    fn a_leak_in_the_program_is_found_to_the_byte() {
        let noise = noise(51);
        let found = cycles(|n| noise[n] * MIB, |n| 24.0 * n as f64);
        assert_eq!(found.verdict, Verdict::HeapGrows, "{}", found.text);
        let heap = found.heap.unwrap();
        assert!((heap.slope - 24.0).abs() < 1e-6, "{heap:?}");
        assert!(
            found.text.contains("a leak in the program"),
            "{}",
            found.text
        );
    }

    #[test]
    fn growth_of_rss_alone_is_the_allocators() {
        let noise = noise(51);
        let found = cycles(|n| 300.0 * KIB * n as f64 + noise[n] * 0.2 * MIB, |_| 0.0);
        assert_eq!(found.verdict, Verdict::RssGrows, "{}", found.text);
        let rss = found.rss.unwrap();
        assert!(rss.interval.low < 300.0 * KIB && 300.0 * KIB < rss.interval.high);
        assert!(
            found.text.contains("it is the allocator's"),
            "{}",
            found.text
        );
    }

    #[test]
    fn slow_growth_under_noise_is_found() {
        let noise = noise(51);
        // A tenth of the noise a cycle, and a chunk every few cycles.
        let slow = |n: usize| 10.0 * KIB * n as f64 + noise[n] * 100.0 * KIB;
        assert_eq!(verdict(slow), Verdict::RssGrows);
        assert_eq!(verdict(|n| (n / 4 * 64) as f64 * KIB), Verdict::RssGrows);
        assert_eq!(verdict(|n| (n / 10) as f64 * MIB), Verdict::RssGrows);
    }

    #[test]
    fn a_sawtooth_does_not_grow() {
        for period in [2, 3, 7, 13] {
            let tooth = |n: usize| (n % period) as f64 / period as f64 * 40.0 * MIB;
            let found = cycles(tooth, |_| 0.0);
            assert!(
                matches!(found.verdict, Verdict::Returns | Verdict::LevelsOff),
                "{period}: {}",
                found.text
            );
        }
    }

    #[test]
    fn what_rises_ever_more_slowly_levels_off() {
        let noise = noise(51);
        let rising = |n: usize| 100.0 * MIB * (1.0 - 1.0 / (n as f64).max(1.0).sqrt());
        assert_eq!(verdict(rising), Verdict::LevelsOff);
        let noisy = |n: usize| rising(n) + noise[n] * MIB;
        assert_eq!(verdict(noisy), Verdict::LevelsOff);
    }

    #[test]
    fn a_few_pages_are_no_growth() {
        assert_eq!(verdict(|n| (n / 12) as f64 * 4.0 * KIB), Verdict::Returns);
    }

    #[test]
    fn too_few_cycles_say_so() {
        let point = |place: u32| Point {
            phase: "cycle".to_owned(),
            point: place,
            at_s: 0.0,
            rss_bytes: 1 << 20,
            lazy_free_bytes: None,
            heap_live_bytes: None,
        };
        let points: Vec<Point> = (0..6).map(point).collect();
        let found = Cycles::of(&points).unwrap();
        assert_eq!(found.verdict, Verdict::TooFew);
        assert!(found.text.contains("3 are left after 2"), "{}", found.text);
        assert_eq!(Cycles::of(&points[..1]), None);
        assert_eq!(Cycles::of(&[]), None);
    }

    #[test]
    fn quantiles_are_those_of_the_tables() {
        let table = [
            (3, 3.182),
            (6, 2.447),
            (10, 2.228),
            (18, 2.101),
            (38, 2.024),
            (98, 1.984),
        ];
        for (freedom, quantile) in table {
            let found = t_95(freedom);
            assert!((found / quantile - 1.0).abs() < 0.01, "{freedom}: {found}");
        }
    }

    #[test]
    fn chance_is_seldom_called_growth() {
        let mut runner = TestRunner::deterministic();
        // Each figure is a part of the one before, and chance: what an allocator keeps is kept for a while.
        for (kept, most) in [(0.0, 0.04), (0.5, 0.06)] {
            let trials = 2_000;
            let called = (0..trials)
                .filter(|_| {
                    let rng = runner.rng();
                    let mut at = 0.0;
                    let figures = (0..40).map(|_| {
                        at = kept * at + f64::from(rng.next_u32()) / f64::from(u32::MAX) - 0.5;
                        at * 1e9
                    });
                    Trend::of(&figures.collect::<Vec<_>>(), 0.0).unwrap().grows
                })
                .count();
            let share = called as f64 / f64::from(trials);
            assert!(share <= most, "{kept}: {share}");
        }
    }
}
