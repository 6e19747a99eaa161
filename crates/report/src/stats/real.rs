//! Which differences between two lanes are called real, and how often chance is.

use super::Ratio;
use crate::metric::Metric;
use crate::sample::Sample;
use serde::Serialize;

impl Ratio {
    /// Whether the difference is called real: its interval is there and excludes 1. This is the rule by which tables
    /// are read.
    #[must_use]
    pub fn is_real(&self) -> bool {
        self.interval
            .is_some_and(|interval| interval.high < 1.0 || interval.low > 1.0)
    }
}

/// What is compared where two builds are held against one another.
pub const COMPARED: [Metric; 3] = [Metric::Cpu, Metric::Wall, Metric::MaxRss];

/// The differences between the samples of two builds, of the same cell and run: each metric of which they share a
/// repetition. [`Ratio::is_real`] says which are called real.
#[must_use]
pub fn differences<'a>(
    ours: impl IntoIterator<Item = &'a Sample> + Clone,
    theirs: impl IntoIterator<Item = &'a Sample> + Clone,
) -> Vec<(Metric, Ratio)> {
    let ratio = |metric| Ratio::paired(metric, ours.clone(), theirs.clone());
    COMPARED
        .into_iter()
        .filter_map(|metric| Some((metric, ratio(metric)?)))
        .collect()
}

/// How often a build was called another than itself.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Called {
    /// In which metric.
    pub metric: Metric,
    /// How many pairs the halves had.
    pub pairs: usize,
    /// How many times the samples were halved.
    pub halvings: usize,
    /// How many of these were called a real difference.
    pub real: usize,
    /// How large a share of them chance is to be called: at most 0.05, and as a rule less, for ranks are whole.
    pub expected: f64,
}

impl Called {
    /// Whether more were called real than intervals of 95 % account for: 5 %, and what chance may add to that (three
    /// standard errors).
    #[must_use]
    pub fn too_many(&self) -> bool {
        let level = 1.0 - super::CONFIDENCE;
        let halvings = self.halvings as f64;
        let chance = 3.0 * (level * (1.0 - level) * halvings).sqrt();
        self.real as f64 > level * halvings + chance
    }
}

/// Halves the `samples` of one lane at random, `halvings` times, and counts how often the halves are called two
/// different builds. `shuffle` must put places in a random order, every order as likely as another.
///
/// A half's samples are paired with the other's in the order that chance gave them. Pairing them by when they were taken
/// would let a machine that grows slower make the same half the faster one in pair after pair.
pub fn called_real(
    samples: &[Sample],
    halvings: usize,
    mut shuffle: impl FnMut(&mut [usize]),
) -> Vec<Called> {
    COMPARED
        .into_iter()
        .filter_map(|metric| {
            let figures: Vec<f64> = samples
                .iter()
                .filter_map(|sample| metric.of(sample))
                .collect();
            let pairs = figures.len() / 2;
            let mut places: Vec<usize> = (0..figures.len()).collect();
            let mut real = 0;
            for _ in 0..halvings {
                shuffle(&mut places);
                let halves = places.split_at(pairs);
                let ratios = halves.0.iter().zip(halves.1);
                let ratios = ratios.map(|(ours, theirs)| figures[*ours] / figures[*theirs]);
                let ratios: Vec<f64> = ratios.filter(|ratio| ratio.is_finite()).collect();
                real += usize::from(Ratio::of(&ratios).is_some_and(|ratio| ratio.is_real()));
            }
            (pairs > 0).then_some(Called {
                metric,
                pairs,
                halvings,
                real,
                expected: super::miss(pairs).unwrap_or(0.0),
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{Kind, Workload};
    use proptest::prelude::Rng;
    use proptest::test_runner::TestRunner;

    fn sample(repetition: u32, wall_s: f64, max_rss_bytes: u64) -> Sample {
        Sample {
            repetition,
            wall_s: Some(wall_s),
            max_rss_bytes: Some(max_rss_bytes),
            ..Sample::new(Kind::Rss, Workload::Read)
        }
    }

    /// A number from 0 to 1.
    fn uniform(rng: &mut impl Rng) -> f64 {
        f64::from(rng.next_u32()) / f64::from(u32::MAX)
    }

    /// About normal, with a deviation of 1.
    fn normal(rng: &mut impl Rng) -> f64 {
        (0..12).map(|_| uniform(rng)).sum::<f64>() - 6.0
    }

    fn shuffled(rng: &mut impl Rng, places: &mut [usize]) {
        for place in (1..places.len()).rev() {
            let other = (uniform(rng) * (place + 1) as f64) as usize;
            places.swap(place, other.min(place));
        }
    }

    /// A long run as machines have them: skewed, in two modes, ever slower; RSS in a few steps of a page.
    fn long_run(rng: &mut impl Rng, count: u32) -> Vec<Sample> {
        (0..count)
            .map(|n| {
                let drift = 1.0 + 0.3 * f64::from(n) / f64::from(count);
                let mode = if uniform(rng) < 0.3 { 1.25 } else { 1.0 };
                let wall_s = drift * mode * (0.05 * normal(rng)).exp();
                let pages = 50_000 + (uniform(rng) * 3.0) as u64;
                sample(n, wall_s, pages * 4096)
            })
            .collect()
    }

    #[test]
    fn of_a_hundred_halvings_of_one_build_five_at_most_are_called_real() {
        let mut runner = TestRunner::deterministic();
        let run = long_run(runner.rng(), 60);
        let called = called_real(&run, 100, |places| shuffled(runner.rng(), places));
        let metrics: Vec<Metric> = called.iter().map(|called| called.metric).collect();
        assert_eq!(metrics, [Metric::Wall, Metric::MaxRss]);
        for called in called {
            assert_eq!((called.pairs, called.halvings), (30, 100));
            assert!(called.real <= 5, "{called:?}");
        }
    }

    #[test]
    fn chance_is_called_real_in_a_twentieth_at_most() {
        let mut runner = TestRunner::deterministic();
        for count in [12, 20, 41, 100] {
            let run = long_run(runner.rng(), count);
            for called in called_real(&run, 4_000, |places| shuffled(runner.rng(), places)) {
                // Four standard errors of 5 % over 4,000 are 1.4 %.
                assert!(called.real <= 4_000 * 64 / 1_000, "{count}: {called:?}");
                assert!(!called.too_many(), "{count}: {called:?}");
                if called.metric == Metric::Wall {
                    // Nothing is equal, so it is neither more nor less often than is expected.
                    let off = called.real as f64 / 4_000.0 - called.expected;
                    assert!(off.abs() < 0.014, "{count}: {called:?}");
                }
            }
        }
    }

    #[test]
    fn equal_figures_are_no_difference() {
        let run: Vec<Sample> = (0..40).map(|n| sample(n, 1.0, 4096)).collect();
        let mut runner = TestRunner::deterministic();
        let called = called_real(&run, 100, |places| shuffled(runner.rng(), places));
        assert!(called.iter().all(|called| called.real == 0), "{called:?}");
    }

    #[test]
    fn a_few_more_than_five_of_a_hundred_may_be_chance() {
        let called = |halvings, real| Called {
            metric: Metric::Cpu,
            pairs: 40,
            halvings,
            real,
            expected: 0.038,
        };
        assert!(!called(100, 11).too_many() && called(100, 12).too_many());
        assert!(!called(10_000, 565).too_many() && called(10_000, 566).too_many());
    }

    #[test]
    fn a_difference_that_is_there_is_called_real() {
        let mut runner = TestRunner::deterministic();
        let ours = long_run(runner.rng(), 20);
        let theirs: Vec<Sample> = long_run(runner.rng(), 20)
            .into_iter()
            .map(|sample| Sample {
                wall_s: sample.wall_s.map(|wall_s| wall_s * 1.5),
                ..sample
            })
            .collect();
        let found = differences(&ours, &theirs);
        assert_eq!(found.len(), 2);
        assert!(found[0].0 == Metric::Wall && found[0].1.is_real());
        assert!(found[1].0 == Metric::MaxRss && !found[1].1.is_real());
        // Too few pairs are called nothing.
        assert!(!differences(&ours[..5], &theirs)[0].1.is_real());
    }
}
