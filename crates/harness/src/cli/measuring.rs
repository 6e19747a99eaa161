//! How to measure: the arguments that `run`, `read`, `write`, `explain` and `fit` share.

use std::num::NonZeroUsize;
use std::time::Duration;

use alloquet_report::sample::Workload;
use anyhow::{Result, ensure};
use clap::builder::TypedValueParser;
use clap::{Args, value_parser};

use crate::plan::{
    Bytes, LONGEST_INTERVAL_MS, MOST_CYCLES, MOST_THREADS, Plan, Settings, Work, duration,
};
use crate::run::Budget;

/// How to measure.
#[derive(Debug, Args)]
pub(crate) struct MeasuringArgs {
    /// Measure another build of this program too, in the same run; can be repeated.
    #[arg(long, value_name = "NAME=BINARY")]
    pub(crate) with: Vec<String>,
    /// Measure with these settings of the allocator: a preset's name (see `alloquet list`), variables
    /// (MIMALLOC_PURGE_DELAY=0), jemalloc's options (dirty_decay_ms:0,muzzy_decay_ms:0), glibc's tunables, thp=off, or
    /// default; can be repeated, each is a column of its own. Of several allocators, each takes what is written for it.
    #[arg(long, value_name = "SETTINGS")]
    set: Vec<String>,
    /// Timed samples of each cell; with --budget, at most so many. Heap samples, which repeat exactly, stay as they are.
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..=1000).map(|n| n as usize))]
    reps: Option<usize>,
    /// Repeat until the intervals of CPU times are small enough (--precision), for so long at most, such as 10m; the
    /// first repetition is always whole.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    budget: Option<Duration>,
    /// With --budget: how far an interval of a CPU ratio may reach to either side, in percent.
    #[arg(
        long,
        value_name = "PERCENT",
        default_value_t = 2.0,
        requires = "budget"
    )]
    precision: f64,
    /// Seed of the order of samples; from the clock if not given, and recorded.
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    /// Seconds after which a sample is ended: that it did not finish is its result.
    #[arg(long, value_name = "SECONDS", default_value_t = 600, value_parser = value_parser!(u64).range(1..))]
    timeout: u64,
    /// The memory that samples must fit in, such as 256MiB: by a control group, or, where none can be made, by holding
    /// max RSS against it. That one does not fit is its result.
    #[arg(long, value_name = "SIZE")]
    memory_limit: Option<Bytes>,
    /// Run the workers on these CPUs alone, such as 0 or 0,1.
    #[arg(long, value_name = "CPUS", value_delimiter = ',')]
    pub(crate) pin: Vec<usize>,
    /// Threads that share the work of one reader; can be repeated.
    #[arg(long, value_name = "N", value_parser = threads)]
    threads: Vec<usize>,
    /// Readers or writers at work at once, each in a thread of its own; can be repeated.
    #[arg(long, value_name = "N", value_parser = threads)]
    concurrent: Vec<usize>,
    /// Explain each cell: halt where its heap is largest and say where the RSS is (see `alloquet explain`).
    #[arg(long)]
    explain: bool,
    /// Look at what stays resident after everything was dropped: at once, after 0.1, 1 and 5 seconds, and after a purge.
    #[arg(long)]
    settle: bool,
    /// Do the same work so many times in one process, and look at memory after each.
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(2..=i64::from(MOST_CYCLES)))]
    cycles: Option<u32>,
    /// Look at memory over time, every so many milliseconds (1 to 100).
    #[arg(long, value_name = "MS", value_parser = value_parser!(u32).range(1..=i64::from(LONGEST_INTERVAL_MS)))]
    timeline: Option<u32>,
}

fn threads(text: &str) -> Result<usize, String> {
    let number = text.parse::<NonZeroUsize>().ok().map(NonZeroUsize::get);
    let number = number.filter(|number| *number <= MOST_THREADS);
    number.ok_or_else(|| format!("it must be 1 to {MOST_THREADS}"))
}

impl MeasuringArgs {
    /// How long a sample may take.
    pub(crate) fn limit(&self) -> Duration {
        Duration::from_secs(self.timeout)
    }

    /// When a run has enough repetitions, if that is asked.
    pub(crate) fn budget(&self) -> Option<Budget> {
        self.budget.map(|time| Budget {
            time,
            width: self.precision / 100.0,
        })
    }

    /// The timed samples of a cell: as asked, as many as there can be within a budget, or `planned`.
    pub(crate) fn repetitions(&self, planned: usize) -> usize {
        /// As many as `--reps` takes.
        const MOST: usize = 1000;
        self.reps
            .unwrap_or(if self.budget.is_some() { MOST } else { planned })
    }

    /// The settings asked for.
    pub(crate) fn settings(&self) -> Settings {
        if self.set.is_empty() {
            Settings::Defaults
        } else {
            Settings::Given(self.set.clone())
        }
    }

    /// The plan as the arguments change it.
    ///
    /// # Errors
    ///
    /// They ask of a write what only a read can do, or name the same thing twice.
    pub(crate) fn apply(&self, plan: &mut Plan) -> Result<()> {
        plan.repetitions.rss = self.repetitions(plan.repetitions.rss);
        if !self.set.is_empty() {
            plan.settings = self.settings();
        }
        ensure!(
            self.precision > 0.0 && self.precision <= 100.0,
            "--precision is {}: it must be above 0 and at most 100 percent",
            self.precision
        );
        let mut works = Vec::with_capacity(plan.works.len());
        for work in plan.works.drain(..) {
            works.extend(self.with_threads(work)?);
        }
        plan.works = works;
        for work in &mut plan.works {
            let watch = &mut work.watch;
            watch.explain |= self.explain;
            watch.settle |= self.settle;
            watch.cycles = self.cycles.or(watch.cycles);
            watch.timeline_ms = self.timeline.or(watch.timeline_ms);
            work.memory_limit = self.memory_limit.or(work.memory_limit);
        }
        Ok(())
    }

    /// The work with each number of threads asked for; itself where none is.
    fn with_threads(&self, work: Work) -> Result<Vec<Work>> {
        let or = |asked: &[usize], own: usize| {
            if asked.is_empty() {
                vec![own]
            } else {
                asked.to_vec()
            }
        };
        let threads = or(&self.threads, work.threads);
        ensure!(
            work.workload == Workload::Read || threads == [1],
            "--threads is for reads alone: several writers at once are --concurrent, or --writers in one thread"
        );
        let mut works: Vec<Work> = Vec::new();
        for &threads in &threads {
            for &concurrent in &or(&self.concurrent, work.concurrent) {
                let work = Work {
                    threads,
                    concurrent,
                    ..work.clone()
                };
                ensure!(
                    !works.contains(&work),
                    "--threads or --concurrent is given twice with the same number"
                );
                works.push(work);
            }
        }
        Ok(works)
    }
}
