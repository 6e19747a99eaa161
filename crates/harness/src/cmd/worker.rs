//! The hidden command `worker`: takes one sample in this process and says how it went on one line
//! of JSON.
//!
//! The job comes on standard input. Whatever goes wrong short of a signal, a panic included,
//! becomes a reply with the reason and a non-zero exit, so that the parent can make a row of it.

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt;
use std::panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind, set_hook};
use std::process::{Command, ExitCode};
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result, anyhow, bail, ensure};

use crate::allocator::{self, AllocatorFacts};
use crate::cli::WorkerArgs;
use crate::measure::{DoneReply, Job, Measures, Reply, measure};
use crate::output;
use crate::settings::SetupSettings;
use crate::sys::affinity;
use crate::sys::build::Build;
use crate::sys::machine::Thp;
use crate::sys::memory::{RESIDENT_SOURCE, Resident};
use crate::sys::process;

/// Where the last panic was.
static PANIC: Mutex<Option<String>> = Mutex::new(None);

/// Runs the command.
pub(crate) fn run(args: &WorkerArgs) -> ExitCode {
    let reply = reply_of(|| take_sample(args));
    let failed = matches!(reply, Reply::Failed { .. });
    match print(&reply) {
        Ok(()) if !failed => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}

/// Where these are the arguments of a worker that is to be in a control group: joins it and starts this program anew
/// without that argument, so that all its memory counts there. Returns only where that fails, with the reason, or where
/// there is no such argument.
pub(crate) fn join_group(arguments: impl Iterator<Item = OsString>) -> Option<String> {
    let arguments: Vec<OsString> = arguments.collect();
    let [program, worker, kind, of, group, processes] = arguments.as_slice() else {
        return None;
    };
    if worker != "worker" || group != "--group" {
        return None;
    }
    // 0 stands for the process that writes it.
    if let Err(error) = std::fs::write(processes, "0") {
        let name = processes.display();
        return Some(format!("cannot join the control group of {name}: {error}"));
    }
    let error = Command::new("/proc/self/exe")
        .arg0(program)
        .args([worker, kind, of])
        .exec();
    Some(format!("cannot start this program anew: {error}"))
}

/// The reply that `work` makes, whether it ends well, with an error or in a panic.
fn reply_of(work: impl FnOnce() -> Result<DoneReply>) -> Reply {
    set_hook(Box::new(note_panic));
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(done)) => Reply::Done(Box::new(done)),
        Ok(Err(error)) => Reply::Failed {
            error: output::message(&error),
        },
        Err(_) => {
            let place = PANIC.lock().unwrap_or_else(PoisonError::into_inner).take();
            Reply::Failed {
                error: format!("the worker panicked {}", place.unwrap_or_default()),
            }
        }
    }
}

fn take_sample(args: &WorkerArgs) -> Result<DoneReply> {
    // A worker whose parent is gone measures for nobody.
    process::end_with_parent().context("cannot ask to end with the parent")?;
    let job = read_job(io::stdin().lock())?;
    ensure!(
        job.kind == args.kind.into(),
        "the job is of kind {}, the worker was started with another",
        job.kind
    );

    ensure!(
        !args.counted || allocator::is_counting(),
        "this build counts nothing, because it is of the feature `bare`, or --counted does not come right after the kind"
    );

    pin(&job.conduct.cpus)?;
    let allocator = allocator::facts();
    let thp = Thp::now();
    check_started(&job.conduct.settings, &allocator, &thp)?;
    let check = allocator::check_settings(&allocator);
    if !check.refused.is_empty() {
        bail!(
            "{} did not take its settings: {}",
            allocator.name,
            check.refused.join("; ")
        );
    }
    let profile = job.conduct.profile.as_deref();
    let profile = profile.and_then(allocator::start_profile);
    let mut outcome = measure(&job)?;
    if let Some(profile) = profile {
        profile.finish();
    }
    let process_max = match &mut outcome.measures {
        Measures::Heap(_) => None,
        Measures::Rss(rss) => Some(&mut rss.process_max_rss_bytes),
        Measures::Watched(watched) => Some(&mut watched.process_max_rss_bytes),
    };
    if let Some(process_max) = process_max {
        // Verifying what was written comes after the window, and counts in the parent's
        // `ru_maxrss`.
        let peak = Resident::now()
            .with_context(|| format!("cannot read {RESIDENT_SOURCE}"))?
            .peak_bytes;
        *process_max = peak.max(*process_max);
    }
    outcome.flags.extend(
        check
            .unread
            .iter()
            .map(|name| format!("{name} cannot be read back from {}", allocator.name)),
    );
    Ok(DoneReply {
        allocator,
        profile: Build::current().profile,
        thp,
        outcome,
    })
}

/// Whether this process was started with exactly the settings that its job names.
fn check_started(asked: &SetupSettings, allocator: &AllocatorFacts, thp: &Thp) -> Result<()> {
    ensure!(
        allocator.environment == asked.variables,
        "the worker of {} was to be started with the settings '{asked}' and has {:?}",
        allocator.name,
        allocator.environment
    );
    if let (Some(asked), Some(allowed)) = (asked.thp, thp.process_enabled) {
        ensure!(
            asked == allowed,
            "huge pages were to be {} in the worker of {} and are {}",
            if asked { "allowed" } else { "off" },
            allocator.name,
            if allowed { "allowed" } else { "off" }
        );
    }
    Ok(())
}

/// Keeps this process on the job's CPUs, if it names any.
fn pin(cpus: &[usize]) -> Result<()> {
    if cpus.is_empty() {
        return Ok(());
    }
    affinity::pin(cpus).with_context(|| {
        let cpus: Vec<String> = cpus.iter().map(ToString::to_string).collect();
        format!(
            "cannot run on the CPUs {} alone: name some that there are and that this process may use, or none",
            cpus.join(",")
        )
    })
}

/// Reads the job. An error says where it is wrong, not how: that could quote a key.
fn read_job(input: impl Read) -> Result<Job> {
    serde_json::from_reader(input).map_err(|error| {
        anyhow!(
            "the job on standard input is not valid at line {}, column {}",
            error.line(),
            error.column()
        )
    })
}

/// Notes where a panic was, and what it says if that is a literal: a formatted message can hold
/// anything, keys too.
fn note_panic(info: &PanicHookInfo<'_>) {
    let place = info.location().map(ToString::to_string).unwrap_or_default();
    let message = info
        .payload()
        .downcast_ref::<&str>()
        .map(|message| format!(": {message}"))
        .unwrap_or_default();
    *PANIC.lock().unwrap_or_else(PoisonError::into_inner) = Some(format!("at {place}{message}"));
}

fn print(reply: &Reply) -> io::Result<()> {
    let mut line = serde_json::to_string(reply)?;
    line.push('\n');
    io::stdout().lock().write_all(line.as_bytes())
}

#[cfg(test)]
mod tests {
    use std::panic::take_hook;
    use std::sync::MutexGuard;

    use super::*;

    /// The hook is the process's: one test at a time.
    static HOOK: Mutex<()> = Mutex::new(());

    fn hook() -> MutexGuard<'static, ()> {
        HOOK.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn error_of(work: impl FnOnce() -> Result<DoneReply>) -> String {
        let reply = reply_of(work);
        drop(take_hook());
        match reply {
            Reply::Failed { error } => error,
            Reply::Done(_) => panic!("the work failed"),
        }
    }

    #[test]
    fn a_panic_is_a_reply_that_says_where() {
        let _hook = hook();
        let error = error_of(|| panic!("a literal"));
        assert!(
            error.starts_with("the worker panicked at crates/harness/src/cmd/worker.rs:"),
            "{error}"
        );
        assert!(error.ends_with(": a literal"), "{error}");
    }

    #[test]
    fn what_a_panic_formats_is_not_repeated() {
        let _hook = hook();
        let key = "0123456789012345";
        let error = error_of(|| panic!("a key: {key}"));
        assert!(error.starts_with("the worker panicked at "), "{error}");
        assert!(!error.contains(key), "{error}");
    }

    #[test]
    fn an_error_is_one_line() {
        let _hook = hook();
        let error = error_of(|| bail!("two\nlines"));
        assert_eq!(error, "two lines");
    }

    #[test]
    fn an_invalid_job_is_not_repeated() {
        let job = r#"{"workload": "read", "keys": "0123456789012345"}"#;
        let error = read_job(job.as_bytes()).unwrap_err();
        assert_eq!(
            format!("{error:#}"),
            "the job on standard input is not valid at line 1, column 47"
        );
    }
}
