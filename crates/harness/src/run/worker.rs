//! Takes one sample: starts a worker, hands it its job, waits for exactly that child.

use std::io::{Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use wait4::{ResUse, Wait4};

use super::binary::worker_environment;
use crate::measure::{DoneReply, Job, Reply};

/// What became of a worker.
pub(super) struct Taken {
    /// Its reply, or why there is none.
    pub(super) reply: Result<Box<DoneReply>, String>,
    /// Its peak RSS by `wait4`, bytes.
    pub(super) ru_maxrss_bytes: Option<u64>,
    /// Whether it died of Ctrl-C.
    pub(super) interrupted: bool,
}

/// Takes the sample `job` with `binary`. A worker that has not answered after `limit` is killed.
pub(super) fn take(binary: &Path, job: &Job, limit: Duration) -> Taken {
    match start(binary, job) {
        Err(error) => Taken {
            reply: Err(format!(
                "cannot start a worker of {}: {error}",
                binary.display()
            )),
            ru_maxrss_bytes: None,
            interrupted: false,
        },
        Ok(child) => finish(child, job, limit),
    }
}

fn start(binary: &Path, job: &Job) -> std::io::Result<Child> {
    Command::new(binary)
        .args(["worker", "--kind", &job.kind.to_string()])
        .env_clear()
        .envs(worker_environment())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
}

fn finish(mut child: Child, job: &Job, limit: Duration) -> Taken {
    let watchdog = Watchdog::start(&child, limit);
    // A worker that dies early breaks the pipe; what it died of is said below.
    if let (Some(mut stdin), Ok(line)) = (child.stdin.take(), serde_json::to_vec(job)) {
        let _ = stdin.write_all(&line);
    }
    // Both pipes are read at once: neither may fill up while the other is waited for.
    let stderr = child.stderr.take();
    let complaints = std::thread::spawn(move || read(stderr));
    let answer = read(child.stdout.take());
    let complaints = complaints.join().unwrap_or_default();
    let waited = child.wait4();
    let killed = watchdog.is_some_and(Watchdog::stop);
    let reply = match (&waited, serde_json::from_slice::<Reply>(&answer)) {
        _ if killed => Err(format!(
            "no answer within {} s: the worker was killed",
            limit.as_secs()
        )),
        (_, Ok(Reply::Failed { error })) => Err(error),
        (Ok(ResUse { status, .. }), Ok(Reply::Done(done))) if status.success() => Ok(done),
        (Err(error), _) => Err(format!("the worker could not be waited for: {error}")),
        (Ok(ResUse { status, .. }), _) => {
            // Of another program's words nothing is repeated once it was told keys.
            let said = match job.keys {
                Some(_) => String::new(),
                None => last_line(&complaints),
            };
            Err(format!(
                "the worker ended without an answer ({status}) at {} {said}",
                job.file.display()
            ))
        }
    };
    let died_of = waited.as_ref().ok().and_then(|used| used.status.signal());
    Taken {
        reply,
        interrupted: died_of == Some(Signal::INT.as_raw()),
        ru_maxrss_bytes: waited.ok().map(|used| used.rusage.maxrss),
    }
}

/// Kills a worker that takes too long, such as one whose file is on a disk that does not answer.
struct Watchdog {
    finished: Sender<()>,
    thread: JoinHandle<bool>,
}

impl Watchdog {
    /// Watches `child`; `None` where the system has no handles of processes (Linux before 5.3).
    fn start(child: &Child, limit: Duration) -> Option<Self> {
        // A handle and not a number: the number may be another process's once the child was waited for.
        let process = pidfd_open(Pid::from_child(child), PidfdFlags::empty()).ok()?;
        let (finished, heard) = channel();
        let thread = std::thread::spawn(move || {
            heard.recv_timeout(limit) == Err(RecvTimeoutError::Timeout)
                && pidfd_send_signal(&process, Signal::KILL).is_ok()
        });
        Some(Self { finished, thread })
    }

    /// Stops watching and says whether the child was killed.
    fn stop(self) -> bool {
        // Nobody listens where the time was up already.
        let _ = self.finished.send(());
        self.thread.join().unwrap_or(false)
    }
}

fn read(pipe: Option<impl Read>) -> Vec<u8> {
    let mut bytes = Vec::new();
    if let Some(mut pipe) = pipe {
        // What came before an error is all there is to show.
        let _ = pipe.read_to_end(&mut bytes);
    }
    bytes
}

/// What a dying process said last, such as that an allocation failed.
fn last_line(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    text.lines()
        .rfind(|line| !line.trim().is_empty())
        .unwrap_or_default()
        .to_owned()
}
