//! From a matrix to the samples that will be taken: which cells, and in which order.
//!
//! Nothing here reads a data file or starts a process: a plan is computed, then carried out by `run`.

mod matrix;
mod order;
mod quantity;

use std::fmt;
use std::path::PathBuf;

use alloquet_report::sample::{Kind, Workload};
use anyhow::Result;

pub(crate) use self::matrix::{
    LONGEST_INTERVAL_MS, MOST_CYCLES, MOST_THREADS, MOST_WRITERS, Matrix, Repetitions, check_scale,
    check_strategies, names,
};
pub(crate) use self::order::{Step, order};
pub(crate) use self::quantity::{Bytes, duration};
use crate::measure::{WriteLane, Writing};
use crate::settings::SetupSettings;

/// What a cell works on: a file, and what is done with it, under fixed options.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Work {
    /// What is done.
    pub(crate) workload: Workload,
    /// With what.
    pub(crate) input: Input,
    /// Rows asked for in a batch.
    pub(crate) batch_rows: usize,
    /// How a table is written, besides the strategy; of no meaning for a read.
    pub(crate) writing: Writing,
    /// The strategies to measure, as written.
    pub(crate) strategies: Vec<String>,
    /// Threads that share the work of one reader.
    pub(crate) threads: usize,
    /// Readers or writers at work at once.
    pub(crate) concurrent: usize,
    /// What is looked at besides heap, RSS and times.
    pub(crate) watch: Watch,
    /// The memory that samples must fit in.
    pub(crate) memory_limit: Option<Bytes>,
    /// Seconds after which a sample has not finished; the run's own limit where there is none.
    pub(crate) timeout_s: Option<u64>,
}

impl Work {
    /// Work that is done by one thread, without a limit, and looked at as every work is.
    pub(crate) fn new(
        workload: Workload,
        input: Input,
        batch_rows: usize,
        strategies: Vec<String>,
    ) -> Self {
        Self {
            workload,
            input,
            batch_rows,
            writing: Writing::default(),
            strategies,
            threads: 1,
            concurrent: 1,
            watch: Watch::default(),
            memory_limit: None,
            timeout_s: None,
        }
    }
}

/// What is looked at besides heap, RSS and times: one sample of each cell for each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Watch {
    /// Where the RSS is when the heap is largest.
    pub(crate) explain: bool,
    /// What stays resident once everything is dropped.
    pub(crate) settle: bool,
    /// Memory after each of so many times the same work.
    pub(crate) cycles: Option<u32>,
    /// Memory over time, at points so many milliseconds apart.
    pub(crate) timeline_ms: Option<u32>,
}

impl Watch {
    /// The kinds of sample for it.
    fn kinds(&self) -> impl Iterator<Item = Kind> {
        let kinds = [
            (Kind::Explain, self.explain),
            (Kind::Settle, self.settle),
            (Kind::Cycles, self.cycles.is_some()),
            (Kind::Timeline, self.timeline_ms.is_some()),
        ];
        kinds
            .into_iter()
            .filter(|(_, is_asked)| *is_asked)
            .map(|(kind, _)| kind)
    }
}

/// Which settings the allocators are measured with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Settings {
    /// Each allocator's defaults.
    #[default]
    Defaults,
    /// Those of a matrix: an allocator's name and settings as written, in the order of the file.
    Rows(Vec<(String, String)>),
    /// Each of these, with every allocator that they are written for.
    Given(Vec<String>),
}

/// Where the file comes from.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Input {
    /// Generated from a definition.
    Dataset {
        /// Name of the definition.
        name: String,
        /// Scale of its rows, above 0 and at most 1.
        scale_rows: f64,
        /// Scale of its columns, above 0 and at most 1.
        scale_columns: f64,
    },
    /// A user's own file.
    File(PathBuf),
}

impl Input {
    /// The name in the CSV: the dataset's, or the file's without its folder.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::Dataset { name, .. } => name.clone(),
            Self::File(path) => path
                .file_name()
                .unwrap_or(path.as_os_str())
                .to_string_lossy()
                .replace(char::is_control, "\u{fffd}"),
        }
    }

    /// Scale of rows and columns; 1 for a user's own file.
    pub(crate) fn scale(&self) -> (f64, f64) {
        match self {
            Self::Dataset {
                scale_rows,
                scale_columns,
                ..
            } => (*scale_rows, *scale_columns),
            Self::File(_) => (1.0, 1.0),
        }
    }
}

impl fmt::Display for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.workload, self.input.name())?;
        match self.workload {
            Workload::Read => Ok(()),
            Workload::Write => write!(f, " ({})", self.writing.situation),
        }
    }
}

/// What will be measured, before it is ordered.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Plan {
    /// Name of the matrix.
    pub(crate) matrix: String,
    /// How often each cell is measured, by kind.
    pub(crate) repetitions: Repetitions,
    /// The settings of the allocators.
    pub(crate) settings: Settings,
    /// What is worked on; each is measured with each of its strategies and each setup.
    pub(crate) works: Vec<Work>,
}

impl Plan {
    /// Whether this build can do what the plan asks of it. Another binary's samples say so themselves.
    ///
    /// # Errors
    ///
    /// It lacks a strategy; the message says which feature has it.
    pub(crate) fn check_build(&self) -> Result<()> {
        let writes = self.works.iter();
        let writes = writes.filter(|work| work.workload == Workload::Write);
        for strategy in writes.flat_map(|work| &work.strategies) {
            strategy.parse::<WriteLane>()?.check_build()?;
        }
        Ok(())
    }

    /// Leaves out what a system cannot do that tells nothing of pages (`explains` is false), or has no huge pages. Says
    /// what that was.
    pub(crate) fn leave_out(&mut self, explains: bool, huge_pages: bool) -> Vec<&'static str> {
        let mut left_out = Vec::new();
        if !explains && self.works.iter().any(|work| work.watch.explain) {
            for work in &mut self.works {
                work.watch.explain = false;
            }
            left_out.push("explain samples");
        }
        if let Settings::Rows(rows) = &mut self.settings
            && !huge_pages
        {
            let before = rows.len();
            rows.retain(|(allocator, text)| {
                let settings = SetupSettings::parse(allocator, text);
                !settings.is_ok_and(|settings| settings.thp.is_some())
            });
            if rows.len() < before {
                left_out.push("settings of huge pages");
            }
        }
        left_out
    }

    /// The repetitions that it has.
    pub(crate) fn rounds(&self) -> usize {
        let watched = self
            .works
            .iter()
            .any(|work| work.watch.kinds().next().is_some());
        let counts = self.repetitions.rss.max(self.repetitions.heap);
        counts.max(usize::from(watched))
    }

    /// The number of samples of repetition `repetition` with `setups` setups.
    pub(crate) fn samples_of(&self, repetition: usize, setups: usize) -> usize {
        let of_work =
            |work: &Work| work.strategies.len() * kinds(self, work, repetition).count() * setups;
        self.works.iter().map(of_work).sum()
    }

    /// The number of samples with `setups` setups.
    pub(crate) fn samples(&self, setups: usize) -> usize {
        (0..self.rounds())
            .map(|repetition| self.samples_of(repetition, setups))
            .sum()
    }
}

/// The kinds of a work that are measured in repetition `repetition`: first those that are measured again and again.
fn kinds(plan: &Plan, work: &Work, repetition: usize) -> impl Iterator<Item = Kind> {
    let often = [
        (Kind::Heap, plan.repetitions.heap),
        (Kind::Rss, plan.repetitions.rss),
    ];
    let often = often
        .into_iter()
        .filter(move |(_, count)| repetition < *count)
        .map(|(kind, _)| kind);
    often.chain(work.watch.kinds().filter(move |_| repetition == 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_system_cannot_do_is_left_out_and_named() {
        let row = |name: &str, text: &str| (name.to_owned(), text.to_owned());
        let work = Work {
            workload: Workload::Read,
            input: Input::File("a.parquet".into()),
            batch_rows: 1024,
            writing: Writing::default(),
            strategies: vec!["pooled".to_owned()],
            threads: 1,
            concurrent: 1,
            watch: Watch {
                explain: true,
                settle: true,
                ..Watch::default()
            },
            memory_limit: None,
            timeout_s: None,
        };
        let asked = Plan {
            matrix: "all".to_owned(),
            repetitions: Repetitions { rss: 1, heap: 1 },
            settings: Settings::Rows(vec![
                row("system", "default"),
                row("mimalloc", "purge_delay=0;thp=off"),
            ]),
            works: vec![work.clone(), work],
        };

        let mut plan = asked.clone();
        assert!(plan.leave_out(true, true).is_empty());
        assert_eq!(plan, asked);

        let left_out = plan.leave_out(false, false);
        assert_eq!(left_out, ["explain samples", "settings of huge pages"]);
        assert_eq!(
            plan.settings,
            Settings::Rows(vec![row("system", "default")])
        );
        for work in &plan.works {
            assert_eq!((work.watch.explain, work.watch.settle), (false, true));
        }
        assert!(plan.leave_out(false, false).is_empty());
    }
}
