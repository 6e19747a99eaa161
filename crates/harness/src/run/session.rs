//! One run: prepares, measures step by step, writes each row as soon as it is taken.

use std::path::{Path, PathBuf};
use std::time::Duration;

use alloquet_datagen::keys::KeySet;
use alloquet_report::format::plural;
use alloquet_report::sample::{Sample, SampleError, SampleWriter, Status};
use anyhow::{Context, Result, bail};
use indicatif::{ProgressBar, ProgressStyle};

use super::binary::Binary;
use super::environment::RunEnvironment;
use super::prepare::{Folders, Prepared};
use super::row::{RunFacts, row};
use super::worker::take;
use crate::interruption::Interruption;
use crate::measure::{Conduct, Job};
use crate::output::remark;
use crate::plan::{Plan, order};

/// A run that is about to begin.
pub(crate) struct Session {
    /// What to measure.
    pub(crate) plan: Plan,
    /// With which binaries.
    pub(crate) binaries: Vec<Binary>,
    /// The order's seed; `None` takes one from the clock.
    pub(crate) seed: Option<u64>,
    /// Where datasets and generated files are.
    pub(crate) folders: Folders,
    /// Where the CSV goes, if anywhere.
    pub(crate) results: Option<PathBuf>,
    /// The keys of a user's own file.
    pub(crate) keys: Option<KeySet>,
    /// How long a sample may take.
    pub(crate) limit: Duration,
}

/// What a run gave.
pub(crate) struct Outcome {
    /// All samples that were taken, failed ones too.
    pub(crate) samples: Vec<Sample>,
    /// The CSV they were appended to.
    pub(crate) csv: Option<PathBuf>,
    /// Whether it was interrupted before its end.
    pub(crate) interrupted: bool,
    /// Why the run ended early: the last sample could not be written.
    pub(crate) not_written: Option<SampleError>,
    /// How many samples it would have had.
    pub(crate) planned: usize,
}

impl Outcome {
    /// The samples that failed.
    pub(crate) fn failures(&self) -> usize {
        let failed = |sample: &&Sample| sample.status == Status::Failed;
        self.samples.iter().filter(failed).count()
    }
}

impl Session {
    /// Carries the run out.
    ///
    /// # Errors
    ///
    /// The CSV cannot be written, a file cannot be generated or read. A sample that fails is no error but a row.
    pub(crate) fn run(self) -> Result<Outcome> {
        let now = chrono::Utc::now();
        let seed = self.seed.unwrap_or(now.timestamp_micros() as u64);
        let facts = RunFacts {
            // Two runs can begin in one millisecond; they are not one process.
            run_id: format!("{}-{}", now.format("%Y%m%dT%H%M%S%3fZ"), std::process::id()),
            matrix: self.plan.matrix.clone(),
            seed,
        };
        // Before anything is generated: a folder that cannot be written would waste it all.
        let mut writer = match &self.results {
            Some(folder) => Some(self.open(folder, &facts)?),
            None => None,
        };
        let interrupted = Interruption::catch()?;
        let steps = order(&self.plan, self.binaries.len(), seed);
        let mut files = Vec::with_capacity(self.plan.works.len());
        for (place, work) in self.plan.works.iter().enumerate() {
            // Works that differ in how the file is used share it.
            let earlier = self.plan.works[..place].iter();
            let same = earlier
                .zip(&files)
                .find(|(other, _)| other.input == work.input);
            if let Some((_, prepared)) = same {
                let prepared: &Prepared = prepared;
                files.push(prepared.clone());
                continue;
            }
            let prepared = Prepared::new(work, &self.folders, self.keys.as_ref());
            if interrupted.happened() {
                bail!("interrupted before the first sample");
            }
            files.push(prepared?);
        }

        let bar = bar(steps.len());
        let mut samples = Vec::with_capacity(steps.len());
        let mut not_written = None;
        let mut stopped = false;
        for (position, step) in steps.iter().enumerate() {
            let work = &self.plan.works[step.work];
            let binary = &self.binaries[step.binary];
            let file = &files[step.work];
            let strategy = &work.strategies[step.strategy];
            bar.set_message(format!("{work}, {strategy}, {}", binary.label));
            // Not once only: meanwhile other works may have driven the file out of the page cache.
            if position == 0 || steps[position - 1].work != step.work {
                // Where it cannot be read, its samples say so.
                let _ = file.warm();
            }
            let job = Job {
                workload: work.workload,
                kind: step.kind,
                file: file.file.clone(),
                strategy: strategy.clone(),
                batch_rows: work.batch_rows,
                writing: work.writing.clone(),
                conduct: Conduct::default(),
                dataset: file.dataset.clone(),
                keys: file.keys.clone(),
            };
            let taken = take(&binary.path, &job, self.limit);
            // The terminal interrupts the worker too: that sample says nothing of its cell. A worker can die of it
            // before this process hears of it.
            if interrupted.happened() || taken.interrupted {
                stopped = true;
                break;
            }
            let sample = row(&facts, *step, position, work, binary, taken);
            let written = writer
                .as_mut()
                .map_or(Ok(()), |writer| writer.write(&sample));
            samples.push(sample);
            bar.inc(1);
            if let Err(error) = written {
                not_written = Some(error);
                break;
            }
        }
        bar.finish_and_clear();
        Ok(Outcome {
            interrupted: stopped,
            not_written,
            samples,
            csv: writer.map(|writer| writer.path().to_owned()),
            planned: steps.len(),
        })
    }

    fn open(&self, folder: &Path, facts: &RunFacts) -> Result<SampleWriter> {
        std::fs::create_dir_all(folder)
            .with_context(|| format!("cannot make the results folder {}", folder.display()))?;
        let csv = folder.join(format!("{}.csv", facts.matrix));
        let writer = SampleWriter::append(&csv)?;
        if let Some(torn) = writer.torn() {
            remark(format_args!(
                "note: the last row of {} was cut short by an earlier run; it is kept in {}",
                csv.display(),
                torn.display()
            ));
        }
        let started = chrono::Utc::now().format("%Y-%m-%dT%H:%M:%SZ").to_string();
        RunEnvironment::new(&facts.matrix, facts.seed, started, &self.binaries)
            .add(&facts.run_id, folder)?;
        Ok(writer)
    }
}

fn bar(samples: usize) -> ProgressBar {
    let style = ProgressStyle::with_template("{bar:30} {pos}/{len} samples, {eta} left: {msg}")
        .unwrap_or_else(|_| ProgressStyle::default_bar());
    let bar = ProgressBar::new(samples as u64).with_style(style);
    if bar.is_hidden() {
        remark(format_args!(
            "measuring {}",
            plural(samples as u64, "sample")
        ));
    }
    bar
}
