//! Going on with a run that was interrupted: which of its samples there are already.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::Hasher;
use std::path::Path;
use std::time::Duration;

use alloquet_report::sample::{Kind, Sample, Status, read_samples};
use anyhow::{Context, Result, bail, ensure};
use twox_hash::XxHash64;

use super::environment::RunEnvironment;
use super::setup::Setup;
use crate::plan::{Plan, Step};
use crate::sys::machine::Machine;

/// What a run was before it was interrupted.
pub(super) struct Earlier {
    pub(super) run_id: String,
    pub(super) seed: u64,
    /// Its samples, in the order of the file.
    pub(super) samples: Vec<Sample>,
}

impl Earlier {
    /// The last run of the matrix in `csv`, which must have been of the plan whose hash is `plan`.
    ///
    /// # Errors
    ///
    /// There is no such file or run, or it was of another plan, other settings or other builds.
    pub(super) fn find(csv: &Path, plan: &str) -> Result<Self> {
        let name = csv.display();
        let read = read_samples(csv).with_context(|| format!("no run to go on with in {name}"))?;
        let Some(run_id) = read.rows.last().map(|sample| sample.run_id.clone()) else {
            bail!("no run to go on with: {name} has no samples; run without --resume");
        };
        let folder = csv.parent().unwrap_or(Path::new(""));
        let known = RunEnvironment::plan_and_seed(&run_id, folder)?;
        let Some((of_plan, seed)) = known else {
            bail!(
                "the environment.json beside {name} does not tell the plan of its last run, {run_id}; run without --resume"
            );
        };
        ensure!(
            of_plan == plan,
            "the last run of {name}, {run_id}, was not of the same plan: its matrix, options (--reps, --set, --pin, limits and the \
             like), settings, builds and machine must be those of now; give the same ones, or run without --resume"
        );
        let samples = read.rows.into_iter();
        Ok(Self {
            samples: samples.filter(|sample| sample.run_id == run_id).collect(),
            run_id,
            seed,
        })
    }

    /// The positions that are taken.
    pub(super) fn positions(&self) -> BTreeSet<usize> {
        let positions = self.samples.iter().map(|sample| sample.position as usize);
        positions.collect()
    }
}

/// A hash of what a run measures and with what: the same for runs whose samples belong together.
pub(super) fn plan_hash(plan: &Plan, setups: &[Setup], cpus: &[usize], limit: Duration) -> String {
    let mut hasher = XxHash64::default();
    hasher.write(format!("{plan:?} {cpus:?} {limit:?}").as_bytes());
    hasher.write(Machine::now().summary().as_bytes());
    for setup in setups {
        let environment = &setup.binary.environment;
        let text = format!(
            "{}|{}|{}|{}|{:?}",
            setup.binary.label,
            setup.settings,
            environment.allocator.name,
            environment.allocator.version,
            environment.build
        );
        hasher.write(text.as_bytes());
    }
    format!("{:016x}", hasher.finish())
}

/// At which call the heap of each cell peaked: what an `explain` sample needs of the `heap` sample before it.
#[derive(Default)]
pub(super) struct PeakCalls {
    by_cell: BTreeMap<(usize, usize, usize), u64>,
    failures: BTreeMap<(usize, usize, usize), String>,
}

impl PeakCalls {
    /// Notes what `sample`, taken at `step`, found.
    pub(super) fn note(&mut self, step: Step, sample: &Sample) {
        if step.kind == Kind::Heap && sample.status != Status::Ok {
            self.failures
                .entry(cell(step))
                .or_insert_with(|| sample.error.clone());
        }
        if step.kind == Kind::Heap
            && let Some(call) = sample.heap_peak_call
        {
            self.by_cell.entry(cell(step)).or_insert(call);
        }
    }

    /// Why the heap of the cell of `step` could not be measured; `None` where it was.
    pub(super) fn failure(&self, step: Step) -> Option<&str> {
        let cell = cell(step);
        let failure = self.failures.get(&cell).map(String::as_str);
        failure.filter(|_| !self.by_cell.contains_key(&cell))
    }

    /// At which call the heap of the cell of `step` peaked; `None` where no sample says.
    pub(super) fn of(&self, step: Step) -> Option<u64> {
        self.by_cell.get(&cell(step)).copied()
    }
}

fn cell(step: Step) -> (usize, usize, usize) {
    (step.work, step.strategy, step.setup)
}
