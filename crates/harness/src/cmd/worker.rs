//! The hidden command `worker`: takes one sample in this process and says how it went on one line of JSON.
//!
//! The job comes on standard input. Whatever goes wrong short of a signal, a panic included, becomes a reply with the
//! reason and a non-zero exit, so that the parent can make a row of it.

use std::io::{self, Write};
use std::panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind, set_hook};
use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result, bail, ensure};

use crate::allocator;
use crate::cli::WorkerArgs;
use crate::measure::{DoneReply, Job, Measures, Reply, measure};
use crate::sys::build::Build;
use crate::sys::machine::Thp;
use crate::sys::memory::Resident;

/// Where the last panic was.
static PANIC: Mutex<Option<String>> = Mutex::new(None);

/// Runs the command.
pub(crate) fn run(args: &WorkerArgs) -> ExitCode {
    set_hook(Box::new(note_panic));
    let result = catch_unwind(AssertUnwindSafe(|| take_sample(args)));
    let reply = match result {
        Ok(Ok(done)) => Reply::Done(Box::new(done)),
        Ok(Err(error)) => Reply::Failed {
            error: one_line(&format!("{error:#}")),
        },
        Err(_) => {
            let place = PANIC.lock().unwrap_or_else(PoisonError::into_inner).take();
            Reply::Failed {
                error: format!("the worker panicked {}", place.unwrap_or_default()),
            }
        }
    };
    let failed = matches!(reply, Reply::Failed { .. });
    match print(&reply) {
        Ok(()) if !failed => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}

fn take_sample(args: &WorkerArgs) -> Result<DoneReply> {
    let job: Job = serde_json::from_reader(io::stdin().lock())
        .context("the job on standard input is not valid")?;
    ensure!(
        job.kind == args.kind.into(),
        "the job is of kind {}, the worker was started with another",
        job.kind
    );

    let allocator = allocator::facts();
    let mut check = allocator::check_settings(&allocator);
    if !check.refused.is_empty() {
        bail!(
            "{} did not take its settings: {}",
            allocator.name,
            check.refused.join("; ")
        );
    }
    let mut outcome = measure(&job)?;
    if let Measures::Rss(rss) = &mut outcome.measures {
        // Verifying what was written comes after the window, and counts in the parent's `ru_maxrss`.
        let peak = Resident::now()
            .context("cannot read /proc/self/status")?
            .peak_bytes;
        rss.process_max_rss_bytes = rss.process_max_rss_bytes.max(peak);
    }
    outcome.flags.extend(
        check
            .unread
            .drain(..)
            .map(|name| format!("{name} cannot be read back from {}", allocator.name)),
    );
    Ok(DoneReply {
        allocator,
        profile: Build::current().profile,
        thp: Thp::now(),
        outcome,
    })
}

/// Notes where a panic was, and what it says if that is a literal: a formatted message can hold anything, keys too.
fn note_panic(info: &PanicHookInfo<'_>) {
    let place = info.location().map(ToString::to_string).unwrap_or_default();
    let message = info
        .payload()
        .downcast_ref::<&str>()
        .map(|message| format!(": {message}"))
        .unwrap_or_default();
    *PANIC.lock().unwrap_or_else(PoisonError::into_inner) = Some(format!("at {place}{message}"));
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn print(reply: &Reply) -> io::Result<()> {
    let mut line = serde_json::to_string(reply)?;
    line.push('\n');
    io::stdout().lock().write_all(line.as_bytes())
}
