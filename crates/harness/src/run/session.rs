//! One run: prepares, measures step by step, writes each row as soon as it is taken.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use alloquet_datagen::keys::KeySet;
use alloquet_report::companions::{CompanionWriter, Companions};
use alloquet_report::format::plural;
use alloquet_report::sample::{Kind, Sample, SampleError, SampleWriter, Status};
use anyhow::{Context, Result, bail, ensure};
use indicatif::{ProgressBar, ProgressStyle};

use super::binary::Binary;
use super::environment::RunEnvironment;
use super::prepare::{Folders, Prepared};
use super::resume::{Earlier, PeakCalls, plan_hash};
use super::row::{LIMITED_BY_RSS, Place, Recorded, RunFacts, record};
use super::setup::Setup;
use super::worker::{Limits, Taken, take};
use crate::interruption::Interruption;
use crate::measure::{Conduct, Job};
use crate::output::remark;
use crate::plan::{Plan, Step, Work, order};
use crate::sys::{self, group::MemoryGroup};

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
    /// Whether to go on with the last run of the CSV.
    pub(crate) resume: bool,
    /// The keys of a user's own file.
    pub(crate) keys: Option<KeySet>,
    /// How long a sample may take, where its work does not say.
    pub(crate) limit: Duration,
    /// When to stop before the last repetition, if ever.
    pub(crate) budget: Option<Budget>,
    /// The CPUs that workers run on; all where there are none.
    pub(crate) cpus: Vec<usize>,
}

/// When a run has enough repetitions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Budget {
    /// So long after its first sample it begins no other.
    pub(crate) time: Duration,
    /// It stops once the intervals of CPU ratios reach no further than this share to either side.
    pub(crate) width: f64,
}

/// What a run gave.
pub(crate) struct Outcome {
    /// All samples that were taken, failed ones and those of a run that was gone on with too.
    pub(crate) samples: Vec<Sample>,
    /// What they have besides their rows.
    pub(crate) companions: Companions,
    /// The CSV they were appended to.
    pub(crate) csv: Option<PathBuf>,
    /// Whether it was interrupted before its end.
    pub(crate) interrupted: bool,
    /// Whether it can be gone on with: its command has an option for that.
    pub(crate) can_resume: bool,
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

/// A run under way.
struct Run {
    session: Session,
    setups: Vec<Setup>,
    facts: RunFacts,
    files: Vec<Prepared>,
    writer: Option<Writers>,
    samples: Vec<Sample>,
    companions: Companions,
    /// Positions that an interrupted run took.
    taken: BTreeSet<usize>,
    peaks: PeakCalls,
    /// The work that the last sample was of.
    warm: Option<usize>,
}

/// The CSV and what stands beside it.
struct Writers {
    samples: SampleWriter,
    companions: CompanionWriter,
}

/// Why a run ended before its last sample.
enum Stop {
    Interrupted,
    NotWritten(SampleError),
    Budget,
}

impl Session {
    /// Carries the run out.
    ///
    /// # Errors
    ///
    /// The CSV cannot be written, a file cannot be generated or read, a setting is none. A sample that fails is no error
    /// but a row.
    pub(crate) fn run(self) -> Result<Outcome> {
        let setups = Setup::all(&self.binaries, &self.plan.settings)?;
        self.check_system(&setups)?;
        let (facts, earlier) = self.begin(&setups)?;
        // Before anything is generated: a folder that cannot be written would waste it all.
        let writer = match &self.results {
            Some(folder) => Some(self.open(folder, &facts, &setups, earlier.is_empty())?),
            None => None,
        };
        let interrupted = Interruption::catch()?;
        let files = self.files(&interrupted)?;
        let mut run = Run {
            taken: earlier.iter().map(|s| s.position as usize).collect(),
            setups,
            facts,
            files,
            companions: match &writer {
                Some(writer) => Companions::beside(writer.samples.path(), &earlier)?.0,
                None => Companions::default(),
            },
            writer,
            samples: earlier,
            peaks: PeakCalls::default(),
            warm: None,
            session: self,
        };
        let stop = run.measure(&interrupted);
        Ok(Outcome {
            interrupted: matches!(stop, Some(Stop::Interrupted)),
            can_resume: false,
            planned: run.session.plan.samples(run.setups.len()),
            samples: run.samples,
            companions: run.companions,
            csv: run.writer.map(|writer| writer.samples.path().to_owned()),
            not_written: match stop {
                Some(Stop::NotWritten(error)) => Some(error),
                _ => None,
            },
        })
    }

    /// Whether this system can do what is asked; what a sample can do without is no error.
    fn check_system(&self, setups: &[Setup]) -> Result<()> {
        let explains = self.plan.works.iter().any(|work| work.watch.explain);
        ensure!(
            sys::CAN_EXPLAIN || !explains,
            "this system does not tell what is in each page, so nothing can be explained: leave out --explain"
        );
        ensure!(
            sys::CAN_PIN || self.cpus.is_empty(),
            "this system keeps no process on chosen CPUs: leave out --pin"
        );
        let sets_huge_pages = setups.iter().any(|setup| setup.settings.thp.is_some());
        ensure!(
            sys::HAS_HUGE_PAGES || !sets_huge_pages,
            "this system has no transparent huge pages to be allowed or not: leave thp out of the settings"
        );
        Ok(())
    }

    fn plan_hash(&self, setups: &[Setup]) -> String {
        plan_hash(&self.plan, setups, &self.cpus, self.limit)
    }

    /// The run's names, and the samples that it has already where it is gone on with.
    fn begin(&self, setups: &[Setup]) -> Result<(RunFacts, Vec<Sample>)> {
        let matrix = self.plan.matrix.clone();
        if self.resume {
            let folder = self.results.as_deref().unwrap_or(Path::new(""));
            let csv = folder.join(format!("{matrix}.csv"));
            let earlier = Earlier::find(&csv, &self.plan_hash(setups))?;
            if let Some(seed) = self.seed.filter(|seed| *seed != earlier.seed) {
                bail!(
                    "run {} has the seed {}, and not {seed}: leave --seed out to go on with it",
                    earlier.run_id,
                    earlier.seed
                );
            }
            remark(format_args!(
                "going on with run {}: it has {}",
                earlier.run_id,
                plural(earlier.positions().len() as u64, "sample")
            ));
            let facts = RunFacts {
                run_id: earlier.run_id,
                matrix,
                seed: earlier.seed,
            };
            return Ok((facts, earlier.samples));
        }
        let now = chrono::Utc::now();
        let facts = RunFacts {
            // Two runs can begin in one millisecond; they are not one process.
            run_id: format!("{}-{}", now.format("%Y%m%dT%H%M%S%3fZ"), std::process::id()),
            matrix,
            seed: self.seed.unwrap_or(now.timestamp_micros() as u64),
        };
        Ok((facts, Vec::new()))
    }

    /// Opens the CSV, and adds the run to the folder's `environment.json` where it is a new one.
    fn open(
        &self,
        folder: &Path,
        facts: &RunFacts,
        setups: &[Setup],
        is_new: bool,
    ) -> Result<Writers> {
        std::fs::create_dir_all(folder)
            .with_context(|| format!("cannot make the results folder {}", folder.display()))?;
        let csv = folder.join(format!("{}.csv", facts.matrix));
        let writer = Writers {
            samples: SampleWriter::append(&csv)?,
            companions: CompanionWriter::beside(&csv)?,
        };
        let torn = writer.companions.torn().into_iter();
        for torn in torn.chain(writer.samples.torn()) {
            remark(format_args!(
                "note: what an earlier run wrote was cut short in its last row; it is kept in {}",
                torn.display()
            ));
        }
        if is_new {
            let started = chrono::Utc::now().format("%Y-%m-%dT%H:%M:%SZ").to_string();
            let plan = self.plan_hash(setups);
            RunEnvironment::new(&facts.matrix, facts.seed, started, &self.binaries, plan)
                .add(&facts.run_id, folder)?;
        }
        Ok(writer)
    }

    /// Makes the file of each work ready.
    fn files(&self, interrupted: &Interruption) -> Result<Vec<Prepared>> {
        let works = &self.plan.works;
        let mut files: Vec<Prepared> = Vec::with_capacity(works.len());
        for (place, work) in works.iter().enumerate() {
            // Works that differ in how the file is used share it.
            let earlier = works[..place].iter();
            let same = earlier
                .zip(&files)
                .find(|(other, _)| other.input == work.input);
            if let Some((_, prepared)) = same {
                let prepared = prepared.clone();
                files.push(prepared);
                continue;
            }
            let prepared = Prepared::new(work, &self.folders, self.keys.as_ref());
            if interrupted.happened() {
                bail!("interrupted before the first sample");
            }
            files.push(prepared?);
        }
        Ok(files)
    }
}

impl Run {
    /// Takes every sample that is not there yet; says why where it ends before.
    fn measure(&mut self, interrupted: &Interruption) -> Option<Stop> {
        let rounds = self.session.plan.rounds();
        let setups = self.setups.len();
        let bar = bar(self.session.plan.samples(setups), self.session.budget);
        let began = Instant::now();
        let mut position = 0;
        let mut stop = None;
        'run: for repetition in 0..rounds {
            for step in order(&self.session.plan, setups, self.facts.seed, repetition) {
                let here = position;
                position += 1;
                if self.taken.contains(&here) {
                    if let Some(sample) = self.samples.iter().find(|s| s.position as usize == here)
                    {
                        self.peaks.note(step, sample);
                    }
                    bar.inc(1);
                    continue;
                }
                let budget = self.session.budget;
                if repetition > 0 && budget.is_some_and(|budget| began.elapsed() >= budget.time) {
                    stop = Some(Stop::Budget);
                    break 'run;
                }
                if let Err(reason) = self.take(step, here, interrupted, &bar) {
                    stop = Some(reason);
                    break 'run;
                }
                bar.inc(1);
            }
            if self.has_enough() {
                stop = Some(Stop::Budget);
                break;
            }
        }
        bar.finish_and_clear();
        if let Some(budget) = self.session.budget {
            remark(format_args!(
                "{} in {} s: {}",
                plural(self.samples.len() as u64, "sample"),
                began.elapsed().as_secs(),
                if self.has_enough() {
                    format!(
                        "every interval of CPU time is within {:.1} %",
                        budget.width * 100.0
                    )
                } else if stop.is_none() {
                    "the repetitions asked for were taken".to_owned()
                } else {
                    "the budget is spent".to_owned()
                }
            ));
        }
        stop
    }

    /// Where the profile of a sample goes, if its binary takes one: the folder of the CSV, or the present one.
    fn profile(&self, setup: &Setup, position: usize) -> Option<PathBuf> {
        (setup.binary.environment.allocator.name == "dhat").then(|| {
            let folder = self.session.results.as_deref().unwrap_or(Path::new("."));
            folder.join(format!("dhat-heap.{}.{position}.json", self.facts.run_id))
        })
    }

    /// Whether the intervals are as small as the budget asks.
    fn has_enough(&self) -> bool {
        let budget = self.session.budget;
        budget.is_some_and(|budget| alloquet_report::stats::enough(&self.samples, budget.width))
    }

    /// Takes one sample and writes its row.
    fn take(
        &mut self,
        step: Step,
        position: usize,
        interrupted: &Interruption,
        bar: &ProgressBar,
    ) -> Result<(), Stop> {
        let work = &self.session.plan.works[step.work];
        let setup = &self.setups[step.setup];
        let file = &self.files[step.work];
        let strategy = &work.strategies[step.strategy];
        bar.set_message(format!("{work}, {strategy}, {}", setup.binary.label));
        // Not once only: meanwhile other works may have driven the file out of the page cache.
        if self.warm != Some(step.work) {
            // Where it cannot be read, its samples say so.
            let _ = file.warm();
            self.warm = Some(step.work);
        }
        let conduct = Conduct {
            threads: work.threads,
            concurrent: work.concurrent,
            cycles: work.watch.cycles.unwrap_or(1),
            timeline_ms: work.watch.timeline_ms.unwrap_or(10),
            peak_call: self.peaks.of(step),
            cpus: self.session.cpus.clone(),
            profile: self.profile(setup, position),
            settings: setup.settings.clone(),
        };
        let job = Job {
            workload: work.workload,
            kind: step.kind,
            file: file.file.clone(),
            strategy: strategy.clone(),
            batch_rows: work.batch_rows,
            writing: work.writing.clone(),
            conduct,
            dataset: file.dataset.clone(),
            keys: file.keys.clone(),
        };
        let limits = limits(work, step.kind, self.session.limit);
        let unmeasured = self.peaks.failure(step);
        let taken = match unmeasured.filter(|_| step.kind == Kind::Explain) {
            Some(why) => Taken::not_tried(why),
            None => take(&setup.binary, &job, &limits),
        };
        // The terminal interrupts the worker too: that sample says nothing of its cell. A worker can die of it
        // before this process hears of it.
        if interrupted.happened() || taken.interrupted {
            return Err(Stop::Interrupted);
        }
        let place = Place {
            step,
            position,
            work,
            setup,
            conduct: &job.conduct,
            limited_by: limited_by(work, step.kind, &limits),
        };
        let recorded = record(&self.facts, &place, taken);
        self.peaks.note(step, &recorded.sample);
        let written = self
            .writer
            .as_mut()
            .map_or(Ok(()), |writer| writer.write(&recorded));
        let Recorded {
            sample,
            parts,
            points,
        } = recorded;
        self.companions.insert(&sample, parts, points);
        self.samples.push(sample);
        written.map_err(Stop::NotWritten)
    }
}

impl Writers {
    /// Writes what is recorded of a sample: its row last, which says that the rest is whole.
    fn write(&mut self, recorded: &Recorded) -> Result<(), SampleError> {
        let Recorded {
            sample,
            parts,
            points,
        } = recorded;
        self.companions.write(sample, parts, points)?;
        self.samples.write(sample)
    }
}

/// What a sample is held to. One that counts is not held to a limit of memory: it says how much would be needed.
fn limits(work: &Work, kind: Kind, time: Duration) -> Limits {
    let limit = work.memory_limit.filter(|_| is_limited(kind));
    Limits {
        time: work.timeout_s.map_or(time, Duration::from_secs),
        memory: limit.and_then(|limit| Some((limit, MemoryGroup::new(limit.0).ok()?))),
    }
}

fn is_limited(kind: Kind) -> bool {
    !matches!(kind, Kind::Heap | Kind::Explain)
}

/// What holds a sample to its limit of memory, as in the CSV.
fn limited_by(work: &Work, kind: Kind, limits: &Limits) -> &'static str {
    match (&limits.memory, work.memory_limit) {
        (Some((_, group)), _) => group.name(),
        (None, Some(_)) if is_limited(kind) => LIMITED_BY_RSS,
        _ => "",
    }
}

fn bar(samples: usize, budget: Option<Budget>) -> ProgressBar {
    let template = match budget {
        None => "{bar:30} {pos}/{len} samples, {eta} left: {msg}",
        // How many there will be is not known.
        Some(_) => "{spinner} {pos} samples, {elapsed}: {msg}",
    };
    let style =
        ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    let bar = ProgressBar::new(samples as u64).with_style(style);
    if bar.is_hidden() {
        remark(match budget {
            None => format!("measuring {}", plural(samples as u64, "sample")),
            Some(budget) => format!("measuring for {} s at most", budget.time.as_secs()),
        });
    }
    bar
}
