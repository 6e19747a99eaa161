//! What happens inside a worker: one sample of one cell, from its [`Job`] to its [`Outcome`].
//!
//! `read` and `write` say what the work is, a task or several at once; `conduct` has them done once or many times, in a
//! window, and looks at memory as the kind of sample asks. The parent's side (spawning, `wait4`, rows) is not
//! here.

mod changes;
mod checksum;
mod conduct;
pub(crate) mod explain;
mod fold;
mod job;
mod looks;
mod outcome;
mod properties;
mod read;
mod settle;
mod task;
mod timeline;
mod walk;
mod window;
mod write;

use alloquet_report::sample::Workload;
use anyhow::Result;

pub(crate) use self::changes::Changes;
pub(crate) use self::job::{Conduct, DatasetSource, Job, Writing};
pub(crate) use self::outcome::{DoneReply, Outcome, Reply};
pub(crate) use self::read::ReadLane;
pub(crate) use self::window::{HeapMeasures, Measures, RssMeasures, WatchedMeasures};
pub(crate) use self::write::{WriteLane, write_strategies};

/// Does the job's work and measures it.
///
/// # Errors
///
/// The work cannot be done or its result is not what it must be. The message names the file.
pub(crate) fn measure(job: &Job) -> Result<Outcome> {
    conduct::check(job)?;
    match job.workload {
        Workload::Read => read::measure(job),
        Workload::Write => write::measure(job),
    }
}
