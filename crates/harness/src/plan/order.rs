//! The order of samples: shuffled inside each repetition with a recorded seed.
//!
//! Samples of one work stand together inside a repetition, so that those which are compared in pairs are
//! neighbours in time; which setup and strategy goes first changes from repetition to repetition. The order of a
//! repetition depends on the seed and its number alone, so a run can be gone on with.

use alloquet_report::sample::Kind;
use rand::seq::SliceRandom;
use rand_pcg::Pcg64;

use super::{Plan, kinds};

/// One sample to take: indices into the plan and into the list of setups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    /// Number of the repetition, from 0.
    pub(crate) repetition: usize,
    /// Which work.
    pub(crate) work: usize,
    /// Which of the work's strategies.
    pub(crate) strategy: usize,
    /// Which setup.
    pub(crate) setup: usize,
    /// What is measured.
    pub(crate) kind: Kind,
}

/// The samples of one repetition of `plan` with `setups` setups, in the order that `seed` gives.
pub(crate) fn order(plan: &Plan, setups: usize, seed: u64, repetition: usize) -> Vec<Step> {
    let mut rng = Pcg64::new(u128::from(seed), repetition as u128);
    let mut steps = Vec::with_capacity(plan.samples_of(repetition, setups));
    let mut works: Vec<usize> = (0..plan.works.len()).collect();
    works.shuffle(&mut rng);
    for work in works {
        // Samples of a kind stand together too: only they are compared with one another.
        let mut of_kinds: Vec<Kind> = kinds(plan, &plan.works[work], repetition).collect();
        // An `explain` sample needs what the `heap` sample of its cell finds.
        let often = of_kinds
            .iter()
            .filter(|kind| matches!(kind, Kind::Heap | Kind::Rss))
            .count();
        of_kinds[..often].shuffle(&mut rng);
        of_kinds[often..].shuffle(&mut rng);
        for kind in of_kinds {
            let strategies = plan.works[work].strategies.len();
            let mut cells: Vec<Step> = (0..strategies * setups)
                .map(|cell| Step {
                    repetition,
                    work,
                    strategy: cell / setups,
                    setup: cell % setups,
                    kind,
                })
                .collect();
            cells.shuffle(&mut rng);
            steps.extend(cells);
        }
    }
    steps
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::path::PathBuf;

    use alloquet_report::sample::Workload;

    use super::*;
    use crate::plan::{Input, Repetitions, Settings, Watch, Work};

    fn whole(plan: &Plan, setups: usize, seed: u64) -> Vec<Step> {
        let rounds = 0..plan.rounds();
        rounds
            .flat_map(|repetition| order(plan, setups, seed, repetition))
            .collect()
    }

    fn plan() -> Plan {
        let work = |strategies: &[&str]| {
            let strategies = strategies.iter().map(|&s| s.to_owned()).collect();
            let file = Input::File(PathBuf::from("file.parquet"));
            Work::new(Workload::Read, file, 1, strategies)
        };
        Plan {
            matrix: "test".to_owned(),
            repetitions: Repetitions { rss: 4, heap: 2 },
            settings: Settings::Defaults,
            works: vec![work(&["a", "b", "c"]), work(&["a"])],
        }
    }

    #[test]
    fn every_sample_is_taken_once() {
        let steps = whole(&plan(), 3, 1);
        assert_eq!(steps.len(), plan().samples(3));
        let distinct: HashSet<String> = steps.iter().map(|step| format!("{step:?}")).collect();
        assert_eq!(distinct.len(), steps.len());
    }

    #[test]
    fn repetitions_follow_one_another_and_works_stand_together() {
        let steps = whole(&plan(), 3, 1);
        assert!(steps.is_sorted_by_key(|step| step.repetition));
        let mut blocks: Vec<_> = steps
            .iter()
            .map(|s| (s.repetition, s.work, s.kind))
            .collect();
        blocks.dedup();
        assert_eq!(blocks.len(), 4 * 2 + 2 * 2, "a block was interrupted");
    }

    #[test]
    fn the_seed_decides_and_repetitions_differ() {
        assert_eq!(whole(&plan(), 3, 7), whole(&plan(), 3, 7));
        assert_ne!(whole(&plan(), 3, 7), whole(&plan(), 3, 8));
        let first = |repetition| {
            whole(&plan(), 3, 7)
                .into_iter()
                .filter(|s| s.repetition == repetition && s.work == 0 && s.kind == Kind::Rss)
                .map(|s| (s.strategy, s.setup))
                .collect::<Vec<_>>()
        };
        assert_ne!(first(0), first(1));
    }

    #[test]
    fn what_is_watched_is_watched_once_and_explained_after_the_heap_was_measured() {
        let mut plan = plan();
        plan.works[0].watch = Watch {
            explain: true,
            settle: true,
            cycles: Some(3),
            timeline_ms: Some(1),
        };
        let steps = whole(&plan, 2, 9);
        assert_eq!(steps.len(), plan.samples(2));
        let of = |kind| {
            let steps = steps.iter().enumerate();
            steps
                .filter(move |(_, step)| step.kind == kind && step.work == 0)
                .map(|(place, _)| place)
                .collect::<Vec<_>>()
        };
        for kind in [Kind::Explain, Kind::Settle, Kind::Cycles, Kind::Timeline] {
            assert_eq!(of(kind).len(), 3 * 2, "{kind}");
        }
        // The heap's first repetition is over before anything is explained.
        assert!(of(Kind::Heap)[3 * 2 - 1] < of(Kind::Explain)[0]);
    }
}
