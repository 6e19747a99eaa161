//! The order of samples: shuffled inside each repetition with a recorded seed.
//!
//! Samples of one work stand together inside a repetition, so that those which are compared in pairs are
//! neighbours in time; which binary and strategy goes first changes from repetition to repetition.

use alloquet_report::sample::Kind;
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_pcg::Pcg64;

use super::{Plan, kinds};

/// One sample to take: indices into the plan and into the list of binaries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    /// Number of the repetition, from 0.
    pub(crate) repetition: usize,
    /// Which work.
    pub(crate) work: usize,
    /// Which of the work's strategies.
    pub(crate) strategy: usize,
    /// Which binary.
    pub(crate) binary: usize,
    /// What is measured.
    pub(crate) kind: Kind,
}

/// The samples of `plan` with `binaries` binaries, in the order that `seed` gives.
pub(crate) fn order(plan: &Plan, binaries: usize, seed: u64) -> Vec<Step> {
    let mut rng = Pcg64::seed_from_u64(seed);
    let mut steps = Vec::with_capacity(plan.samples(binaries));
    for repetition in 0..plan.repetitions.rss.max(plan.repetitions.heap) {
        let mut works: Vec<usize> = (0..plan.works.len()).collect();
        works.shuffle(&mut rng);
        for work in works {
            // Samples of a kind stand together too: only they are compared with one another.
            let mut of_kinds: Vec<Kind> = kinds(&plan.repetitions, repetition).collect();
            of_kinds.shuffle(&mut rng);
            for kind in of_kinds {
                let strategies = plan.works[work].strategies.len();
                let mut cells: Vec<Step> = (0..strategies * binaries)
                    .map(|cell| Step {
                        repetition,
                        work,
                        strategy: cell / binaries,
                        binary: cell % binaries,
                        kind,
                    })
                    .collect();
                cells.shuffle(&mut rng);
                steps.extend(cells);
            }
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
    use crate::measure::Writing;
    use crate::plan::{Input, Repetitions, Work};

    fn plan() -> Plan {
        let work = |strategies: &[&str]| Work {
            workload: Workload::Read,
            input: Input::File(PathBuf::from("file.parquet")),
            batch_rows: 1,
            writing: Writing::default(),
            strategies: strategies.iter().map(|&s| s.to_owned()).collect(),
        };
        Plan {
            matrix: "test".to_owned(),
            repetitions: Repetitions { rss: 4, heap: 2 },
            works: vec![work(&["a", "b", "c"]), work(&["a"])],
        }
    }

    #[test]
    fn every_sample_is_taken_once() {
        let steps = order(&plan(), 3, 1);
        assert_eq!(steps.len(), plan().samples(3));
        let distinct: HashSet<String> = steps.iter().map(|step| format!("{step:?}")).collect();
        assert_eq!(distinct.len(), steps.len());
    }

    #[test]
    fn repetitions_follow_one_another_and_works_stand_together() {
        let steps = order(&plan(), 3, 1);
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
        assert_eq!(order(&plan(), 3, 7), order(&plan(), 3, 7));
        assert_ne!(order(&plan(), 3, 7), order(&plan(), 3, 8));
        let first = |repetition| {
            order(&plan(), 3, 7)
                .into_iter()
                .filter(|s| s.repetition == repetition && s.work == 0 && s.kind == Kind::Rss)
                .map(|s| (s.strategy, s.binary))
                .collect::<Vec<_>>()
        };
        assert_ne!(first(0), first(1));
    }
}
