//! From a matrix to the samples that will be taken: which cells, and in which order.
//!
//! Nothing here reads a data file or starts a process: a plan is computed, then carried out by `run`.

mod matrix;
mod order;

use std::fmt;
use std::path::PathBuf;

use alloquet_report::sample::{Kind, Workload};
use anyhow::Result;

pub(crate) use self::matrix::{
    MOST_WRITERS, Matrix, Repetitions, check_scale, check_strategies, names,
};
pub(crate) use self::order::{Step, order};
use crate::measure::{WriteLane, Writing};

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
    /// What is worked on; each is measured with each of its strategies and each binary.
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

    /// The number of samples with `binaries` binaries.
    pub(crate) fn samples(&self, binaries: usize) -> usize {
        let cells: usize = self.works.iter().map(|work| work.strategies.len()).sum();
        cells * binaries * (self.repetitions.rss + self.repetitions.heap)
    }
}

/// The kinds that are measured in repetition `repetition`.
fn kinds(repetitions: &Repetitions, repetition: usize) -> impl Iterator<Item = Kind> {
    [(Kind::Heap, repetitions.heap), (Kind::Rss, repetitions.rss)]
        .into_iter()
        .filter(move |(_, count)| repetition < *count)
        .map(|(kind, _)| kind)
}
