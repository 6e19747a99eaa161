//! Whether there are enough repetitions: how wide the widest interval still is.

use super::{Interval, Ratio};
use crate::cell::{Block, CONTROL, Cell, Lane, Strategy};
use crate::metric::Metric;
use crate::sample::Sample;
use std::collections::BTreeMap;

/// Whether the intervals of every cell's CPU time are at most `width` wide: half of each, relative to its middle, so
/// 0.02 is ± 2 %.
///
/// What counts is a cell's ratio to `upstream` on the same setup. Where there is no such cell, it is the CPU time's own
/// median, and so it is of an `upstream` that stands alone there. Cells without any figure (none of their samples fit, say) have nothing to wait for.
#[must_use]
pub fn enough(samples: &[Sample], width: f64) -> bool {
    widest(samples).is_none_or(|(_, widest)| widest <= width)
}

/// The cell whose interval is the widest, and how wide it is, as in [`enough`]; infinitely, where there are too few
/// repetitions for an interval. `None` where no cell has a figure.
#[must_use]
pub fn widest(samples: &[Sample]) -> Option<(Cell, f64)> {
    let mut blocks: BTreeMap<Block, BTreeMap<Lane, Vec<&Sample>>> = BTreeMap::new();
    for sample in samples {
        if Metric::Cpu.of(sample).is_some() {
            let cell = Cell::of(sample);
            let lanes = blocks.entry(cell.block).or_default();
            lanes.entry(cell.lane).or_default().push(sample);
        }
    }
    let widths = blocks.iter().flat_map(|(block, lanes)| {
        let counts = move |lane: &&Lane| lane.strategy.0 != CONTROL || is_alone(lanes, lane);
        lanes.keys().filter(counts).map(move |lane| {
            let cell = Cell {
                block: block.clone(),
                lane: lane.clone(),
            };
            (cell, width(lanes, lane))
        })
    });
    widths.max_by(|a, b| a.1.total_cmp(&b.1))
}

/// Whether no other lane has the same setup.
fn is_alone(lanes: &BTreeMap<Lane, Vec<&Sample>>, lane: &Lane) -> bool {
    let mut others = lanes.keys().filter(|other| *other != lane);
    !others.any(|other| other.setup == lane.setup)
}

fn width(lanes: &BTreeMap<Lane, Vec<&Sample>>, lane: &Lane) -> f64 {
    let ours = || lanes[lane].iter().copied();
    let control = Lane {
        strategy: Strategy(CONTROL.to_owned()),
        setup: lane.setup.clone(),
    };
    let control = lanes.get(&control).filter(|_| lane.strategy.0 != CONTROL);
    let compared = match control {
        Some(theirs) => Ratio::paired(Metric::Cpu, ours(), theirs.iter().copied()),
        None => {
            let figures: Vec<f64> = ours().filter_map(|one| Metric::Cpu.of(one)).collect();
            Ratio::of(&figures)
        }
    };
    compared.map_or(f64::INFINITY, |compared| match compared.interval {
        Some(Interval { low, high }) if compared.median > 0.0 => {
            (high - low) / 2.0 / compared.median
        }
        _ => f64::INFINITY,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{Kind, Status, Workload};

    /// Ten repetitions of a lane at about 1 s, that swing by as much as is told.
    fn lane(strategy: &str, swing: impl Fn(u32) -> f64) -> Vec<Sample> {
        (0..10)
            .map(|repetition| Sample {
                repetition,
                strategy: strategy.to_owned(),
                user_s: Some(1.0 + swing(repetition)),
                sys_s: Some(0.0),
                ..Sample::new(Kind::Rss, Workload::Read)
            })
            .collect()
    }

    fn noisy(repetition: u32) -> f64 {
        f64::from(repetition % 5) / 10.0
    }

    #[test]
    fn what_swings_together_is_sure_and_alone_is_not() {
        // Both slow down in the same repetitions: their ratio is always 1.
        let mut samples = lane("pooled", noisy);
        samples.extend(lane("upstream", noisy));
        let (cell, width) = widest(&samples).unwrap();
        assert_eq!((cell.lane.strategy.0.as_str(), width), ("pooled", 0.0));
        assert!(enough(&samples, 0.001));
        // Of a control alone it is its own time that must be sure.
        let (cell, width) = widest(&lane("upstream", noisy)).unwrap();
        assert_eq!(cell.lane.strategy.0, "upstream");
        assert!((0.1..0.2).contains(&width), "{width}");
    }

    #[test]
    fn without_a_control_the_time_itself_counts() {
        assert!(enough(&lane("pooled", |_| 0.0), 0.001));
        assert!(!enough(&lane("pooled", noisy), 0.01));
    }

    #[test]
    fn five_repetitions_are_never_enough() {
        let few = lane("pooled", |_| 0.0)[..5].to_vec();
        assert!(widest(&few).unwrap().1.is_infinite());
        assert!(!enough(&few, 1.0));
    }

    #[test]
    fn what_does_not_fit_is_not_waited_for() {
        let mut samples = lane("pooled", |_| 0.0);
        let never = lane("retained", noisy).into_iter();
        samples.extend(never.map(|sample| sample.without_measures(Status::DidNotFit, "no")));
        assert!(enough(&samples, 0.01));
        assert!(enough(&[], 0.01));
    }
}
