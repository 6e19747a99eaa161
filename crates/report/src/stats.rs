//! Statistics that assume nothing about how measurements are distributed.
//!
//! Minimum and spread for figures; for comparisons the median of paired ratios with an interval
//! from order statistics. Where there are too few pairs for an interval, there is none.

mod enough;
mod real;

use crate::metric::Metric;
use crate::sample::Sample;
use serde::Serialize;
use std::collections::BTreeMap;

pub use enough::{enough, widest};
pub use real::{COMPARED, Called, called_real, differences};

/// How sure an interval is to hold the true median, at the least.
pub const CONFIDENCE: f64 = 0.95;

/// What repeated measurements of one figure come to.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Summary {
    /// How many measurements.
    pub samples: usize,
    /// The smallest.
    pub min: f64,
    /// The middle one, or the mean of the middle two.
    pub median: f64,
    /// The largest.
    pub max: f64,
}

impl Summary {
    /// Of `figures`, which must be numbers; `None` where there are none.
    #[must_use]
    pub fn of(figures: &[f64]) -> Option<Self> {
        let sorted = sorted(figures);
        Some(Self {
            samples: sorted.len(),
            min: *sorted.first()?,
            median: median(&sorted)?,
            max: *sorted.last()?,
        })
    }

    /// How far the largest lies above the smallest.
    #[must_use]
    pub fn spread(&self) -> f64 {
        self.max - self.min
    }
}

/// A comparison: the median of paired ratios.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Ratio {
    /// How many pairs.
    pub pairs: usize,
    /// The median of their ratios; below 1 where the first of a pair is the smaller.
    pub median: f64,
    /// Where the true median lies with 95 % confidence; `None` below six pairs, for then no
    /// interval of observed ratios is that sure.
    pub interval: Option<Interval>,
}

/// An interval, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl Ratio {
    /// Of `ratios`, which must be numbers; `None` where there are none.
    #[must_use]
    pub fn of(ratios: &[f64]) -> Option<Self> {
        let sorted = sorted(ratios);
        let interval = interval_rank(sorted.len()).map(|rank| Interval {
            low: sorted[rank - 1],
            high: sorted[sorted.len() - rank],
        });
        Some(Self {
            pairs: sorted.len(),
            median: median(&sorted)?,
            interval,
        })
    }

    /// `ours` over `theirs` in `metric`, paired by repetition.
    ///
    /// Both must be samples of one cell each, of the same run. A repetition that only one of them
    /// has is left out, and so is a pair whose divisor is 0. `None` where no pair is left.
    #[must_use]
    pub fn paired<'a>(
        metric: Metric,
        ours: impl IntoIterator<Item = &'a Sample>,
        theirs: impl IntoIterator<Item = &'a Sample>,
    ) -> Option<Self> {
        let ours = by_repetition(metric, ours);
        let theirs = by_repetition(metric, theirs);
        let mut ratios = Vec::new();
        for (repetition, ours) in &ours {
            let theirs = theirs.get(repetition).into_iter().flatten();
            for ((_, ours), (_, theirs)) in ours.iter().zip(theirs) {
                if *theirs > 0.0 {
                    ratios.push(ours / theirs);
                }
            }
        }
        Self::of(&ratios)
    }
}

/// The figures of each repetition with their places in the run's order, by which they are sorted.
fn by_repetition<'a>(
    metric: Metric,
    samples: impl IntoIterator<Item = &'a Sample>,
) -> BTreeMap<u32, Vec<(u32, f64)>> {
    let mut figures: BTreeMap<u32, Vec<(u32, f64)>> = BTreeMap::new();
    for sample in samples {
        if let Some(figure) = metric.of(sample) {
            let repetition = figures.entry(sample.repetition).or_default();
            repetition.push((sample.position, figure));
        }
    }
    for repetition in figures.values_mut() {
        repetition.sort_by_key(|(position, _)| *position);
    }
    figures
}

fn sorted(figures: &[f64]) -> Vec<f64> {
    let mut sorted = figures.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

fn median(sorted: &[f64]) -> Option<f64> {
    let upper = *sorted.get(sorted.len() / 2)?;
    if sorted.len() % 2 == 1 {
        return Some(upper);
    }
    Some(f64::midpoint(sorted[sorted.len() / 2 - 1], upper))
}

/// The rank, from 1, of the order statistic that is the lower end of the interval; the upper end
/// has the same rank from above.
///
/// The true median lies below the observation of rank k with the chance that fewer than k of n
/// fair coins show heads, and as likely above the one of rank n + 1 − k. The largest k is taken for
/// which both chances together stay within 1 − [`CONFIDENCE`].
fn interval_rank(n: usize) -> Option<usize> {
    let half = (1.0 - CONFIDENCE) / 2.0;
    // Logarithms, for 2^-n is no longer a number from n = 1075 on.
    let mut log_chance = -(n as f64) * std::f64::consts::LN_2;
    let mut below = 0.0;
    let mut rank = None;
    for heads in 0..n / 2 {
        below += log_chance.exp();
        if below > half {
            break;
        }
        rank = Some(heads + 1);
        log_chance += ((n - heads) as f64 / (heads + 1) as f64).ln();
    }
    rank
}

/// How often an interval of so many pairs leaves out the true median, at the most: below 1 − [`CONFIDENCE`], because
/// ranks are whole. `None` where there is no interval.
fn miss(n: usize) -> Option<f64> {
    let rank = interval_rank(n)?;
    let mut log_chance = -(n as f64) * std::f64::consts::LN_2;
    let mut below = 0.0;
    for heads in 0..rank {
        below += log_chance.exp();
        log_chance += ((n - heads) as f64 / (heads + 1) as f64).ln();
    }
    Some(2.0 * below)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{Kind, Workload};
    use proptest::prelude::*;
    use proptest::strategy::ValueTree;
    use proptest::test_runner::{Config, TestRunner};

    #[test]
    fn summaries_by_hand() {
        let summary = Summary::of(&[3.0, 1.0, 2.5]).unwrap();
        let expected = Summary {
            samples: 3,
            min: 1.0,
            median: 2.5,
            max: 3.0,
        };
        assert_eq!(summary, expected);
        assert_eq!(summary.spread(), 2.0);
        assert_eq!(Summary::of(&[4.0, 1.0]).unwrap().median, 2.5);
        assert_eq!(Summary::of(&[]), None);
    }

    #[test]
    fn ranks_are_those_of_the_sign_test_tables() {
        // Half the distribution's tail within 2.5 %: the textbook's table for the sign test.
        let table = [
            (5, None),
            (6, Some(1)),
            (8, Some(1)),
            (9, Some(2)),
            (10, Some(2)),
            (12, Some(3)),
            (15, Some(4)),
            (20, Some(6)),
            (25, Some(8)),
            (100, Some(40)),
        ];
        for (n, rank) in table {
            assert_eq!(interval_rank(n), rank, "{n} pairs");
        }
        assert_eq!(interval_rank(0), None);
    }

    #[test]
    fn ranks_are_the_largest_that_are_sure_enough() {
        // Against exact integers: the coverage of ranks k is 1 - 2 * sum(C(n, i), i < k) / 2^n.
        for n in 1..=100_u32 {
            let mut choose = 1_u128;
            let mut below = 0_u128;
            let mut expected = None;
            for k in 1..=n / 2 {
                below += choose;
                choose = choose * u128::from(n - k + 1) / u128::from(k);
                if below * 40 <= 1_u128 << n {
                    expected = Some(k as usize);
                }
            }
            assert_eq!(interval_rank(n as usize), expected, "{n} pairs");
        }
    }

    #[test]
    fn intervals_miss_less_often_than_they_may() {
        for (n, expected) in [(6, 2.0 / 64.0), (10, 22.0 / 1024.0), (11, 24.0 / 2048.0)] {
            assert!((miss(n).unwrap() - expected).abs() < 1e-12, "{n} pairs");
        }
        assert!((6..2_000).all(|n| miss(n).unwrap() <= 0.05));
        assert_eq!(miss(5), None);
    }

    #[test]
    fn ratios_by_hand() {
        let ratio = Ratio::of(&[0.9, 0.5, 0.7, 0.6, 0.8, 1.0]).unwrap();
        assert_eq!(ratio.pairs, 6);
        assert!((ratio.median - 0.75).abs() < 1e-12);
        let interval = ratio.interval.unwrap();
        assert_eq!((interval.low, interval.high), (0.5, 1.0));
        let ten: Vec<f64> = (1..=10).map(f64::from).collect();
        let interval = Ratio::of(&ten).unwrap().interval.unwrap();
        assert_eq!((interval.low, interval.high), (2.0, 9.0));
    }

    #[test]
    fn below_six_pairs_there_is_no_interval() {
        let ratio = Ratio::of(&[0.5; 5]).unwrap();
        assert_eq!((ratio.pairs, ratio.interval), (5, None));
        assert_eq!(Ratio::of(&[]), None);
    }

    fn sample(repetition: u32, position: u32, wall_s: f64) -> Sample {
        Sample {
            repetition,
            position,
            wall_s: Some(wall_s),
            ..Sample::new(Kind::Rss, Workload::Read)
        }
    }

    #[test]
    fn pairs_are_of_the_same_repetition() {
        let ours = [sample(0, 9, 1.0), sample(1, 4, 3.0), sample(2, 0, 8.0)];
        let theirs = [
            sample(1, 8, 4.0),
            sample(0, 2, 2.0),
            sample(3, 1, 1.0),
            sample(2, 5, 0.0),
        ];
        let ratio = Ratio::paired(Metric::Wall, &ours, &theirs).unwrap();
        // 1/2 and 3/4; repetition 2 has a zero divisor, repetition 3 has no counterpart.
        assert_eq!((ratio.pairs, ratio.median), (2, 0.625));
        assert_eq!(Ratio::paired(Metric::Cpu, &ours, &theirs), None);
    }

    #[test]
    fn several_of_one_repetition_pair_in_their_order() {
        let ours = [sample(0, 5, 6.0), sample(0, 1, 1.0)];
        let theirs = [sample(0, 2, 2.0), sample(0, 7, 3.0)];
        let ratio = Ratio::paired(Metric::Wall, &ours, &theirs).unwrap();
        assert_eq!((ratio.pairs, ratio.median), (2, 1.25));
    }

    #[test]
    fn the_interval_covers_the_true_median() {
        // A skewed distribution (the square of a uniform one) whose median is 1/4.
        let mut runner = TestRunner::deterministic();
        let trials = 4_000;
        for n in [6, 10, 17, 30] {
            let held = (0..trials)
                .filter(|_| {
                    let draws = prop::collection::vec(0.0..1.0_f64, n);
                    let draws = draws.new_tree(&mut runner).unwrap().current();
                    let squares: Vec<f64> = draws.iter().map(|draw| draw * draw).collect();
                    let interval = Ratio::of(&squares).unwrap().interval.unwrap();
                    interval.low <= 0.25 && 0.25 <= interval.high
                })
                .count();
            // Four standard errors of 95 % over 4,000 trials are 1.4 %.
            assert!(held >= trials * 936 / 1000, "{n} pairs: {held} of {trials}");
        }
    }

    proptest! {
        #![proptest_config(Config::with_cases(256))]

        #[test]
        fn the_interval_lies_around_the_median(
            ratios in prop::collection::vec(0.01..100.0_f64, 1..60),
        ) {
            let ratio = Ratio::of(&ratios).unwrap();
            prop_assert_eq!(ratio.interval.is_some(), ratios.len() >= 6);
            if let Some(interval) = ratio.interval {
                prop_assert!(interval.low <= ratio.median && ratio.median <= interval.high);
                prop_assert!(ratios.contains(&interval.low) && ratios.contains(&interval.high));
            }
            let mut reversed = ratios.clone();
            reversed.reverse();
            prop_assert_eq!(Ratio::of(&reversed).unwrap(), ratio);
        }
    }
}
