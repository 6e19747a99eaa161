//! What a worker is told to do: one line of JSON on its standard input.
//!
//! Keys travel here and nowhere else. Arguments and the environment of a process are there for
//! others to see.

use std::path::PathBuf;

use alloquet_datagen::keys::KeySet;
use alloquet_datagen::{Dataset, Scale};
use alloquet_report::sample::{Kind, Situation, Workload};
use serde::{Deserialize, Serialize};

use super::changes::Changes;
use crate::settings::SetupSettings;

/// One sample to take.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Job {
    /// What to do with the file.
    pub(crate) workload: Workload,
    /// What to measure; the worker's `--kind` says the same.
    pub(crate) kind: Kind,
    /// The Parquet file that is read, or whose batches are written.
    pub(crate) file: PathBuf,
    /// The strategy as written, such as `pooled` or `temp-both,codec=shared`.
    pub(crate) strategy: String,
    /// Rows asked for in a batch.
    pub(crate) batch_rows: usize,
    /// How to write, besides the strategy; of no meaning for a read.
    #[serde(default)]
    pub(crate) writing: Writing,
    /// How it is done, whatever the work.
    #[serde(default)]
    pub(crate) conduct: Conduct,
    /// Where the file was generated from, if it was.
    pub(crate) dataset: Option<DatasetSource>,
    /// The file's keys, resolved.
    pub(crate) keys: Option<KeySet>,
}

/// How a table is written, besides the strategy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Writing {
    /// Where the batches come from.
    pub(crate) situation: Situation,
    /// Writers that are open at once, each writing the whole table to a file of its own; at least 1.
    pub(crate) writers: usize,
    /// What the writer is told otherwise than the dataset, or the user's own file, says.
    pub(crate) changes: Changes,
}

impl Default for Writing {
    fn default() -> Self {
        Self {
            situation: Situation::default(),
            writers: 1,
            changes: Changes::default(),
        }
    }
}

/// How a sample's work is done, whatever the work.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Conduct {
    /// Threads that share the work of one reader; at least 1.
    pub(crate) threads: usize,
    /// Readers or writers at work at once, each in a thread of its own with the whole work; at least 1.
    pub(crate) concurrent: usize,
    /// How often a `cycles` sample does the work.
    pub(crate) cycles: u32,
    /// Milliseconds between the points of a `timeline` sample.
    pub(crate) timeline_ms: u32,
    /// The call of the window, of those that allocate or reallocate, from 1, after which an `explain` sample looks:
    /// that at which the heap of a `heap` sample of its cell peaked.
    pub(crate) peak_call: Option<u64>,
    /// The CPUs to run on; all where there are none.
    pub(crate) cpus: Vec<usize>,
    /// Where a build with the feature `dhat` writes its profile.
    pub(crate) profile: Option<PathBuf>,
    /// What the worker was started with, and must find.
    pub(crate) settings: SetupSettings,
}

impl Default for Conduct {
    fn default() -> Self {
        Self {
            threads: 1,
            concurrent: 1,
            cycles: 1,
            timeline_ms: 10,
            peak_call: None,
            cpus: Vec::new(),
            profile: None,
            settings: SetupSettings::default(),
        }
    }
}

/// A definition and the scale at which it was generated.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct DatasetSource {
    /// Path of the definition.
    pub(crate) definition: PathBuf,
    /// Scale of its rows; 1 is as defined.
    pub(crate) scale_rows: f64,
    /// Scale of its columns; 1 is as defined.
    pub(crate) scale_columns: f64,
}

impl DatasetSource {
    /// The definition at its scale.
    ///
    /// # Errors
    ///
    /// The definition cannot be read or scaled so.
    pub(crate) fn load(&self) -> alloquet_datagen::Result<Dataset> {
        let scale = Scale {
            rows: self.scale_rows,
            columns: self.scale_columns,
        };
        Dataset::load(&self.definition)?.scaled(&scale)
    }
}
