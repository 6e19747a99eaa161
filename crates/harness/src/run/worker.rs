//! Takes one sample: starts a worker, hands it its job, waits for exactly that child.

use std::io::{Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::process::Signal;
use wait4::{ResUse, Wait4};
use zeroize::Zeroizing;

use alloquet_report::sample::Status;

use super::binary::{Binary, worker_environment};
use crate::measure::{DoneReply, Job, Reply};
use crate::plan::Bytes;
use crate::sys::group::MemoryGroup;
use crate::sys::process::Handle;
use crate::sys::thp::with_thp;

/// What a worker is held to.
pub(super) struct Limits {
    /// How long it may take.
    pub(super) time: Duration,
    /// The memory that it may use, where that is limited and a group can be made.
    pub(super) memory: Option<(Bytes, MemoryGroup)>,
}

/// What became of a worker.
pub(super) struct Taken {
    /// Its reply, or why there is none.
    pub(super) reply: Result<Box<DoneReply>, Ended>,
    /// Its peak RSS by `wait4`, bytes.
    pub(super) ru_maxrss_bytes: Option<u64>,
    /// Whether it died of Ctrl-C.
    pub(super) interrupted: bool,
    /// When it was started, in seconds of Unix time.
    pub(super) started_s: f64,
    /// When it had ended, in seconds of Unix time.
    pub(super) ended_s: f64,
}

/// Why a worker gave no sample.
pub(super) struct Ended {
    /// A failure, or a limit that it met.
    pub(super) status: Status,
    /// In words.
    pub(super) why: String,
}

impl Ended {
    fn failed(why: impl Into<String>) -> Self {
        Self {
            status: Status::Failed,
            why: why.into(),
        }
    }
}

impl Taken {
    /// Of a sample that needs what another one failed to find, and `why` that failed.
    pub(super) fn not_tried(why: &str) -> Self {
        let now = unix_seconds();
        Self {
            reply: Err(Ended::failed(why)),
            ru_maxrss_bytes: None,
            interrupted: false,
            started_s: now,
            ended_s: now,
        }
    }
}

/// Takes the sample `job` with `binary`. A worker that meets a limit is killed.
pub(super) fn take(binary: &Binary, job: &Job, limits: &Limits) -> Taken {
    let started_s = unix_seconds();
    let (reply, waited) = match start(binary, job, limits) {
        Err(error) => {
            let why = format!(
                "cannot start a worker of {}: {error}",
                binary.path.display()
            );
            (Err(Ended::failed(why)), None)
        }
        Ok(child) => finish(child, job, limits),
    };
    let died_of = waited.as_ref().and_then(|used| used.status.signal());
    Taken {
        reply,
        interrupted: died_of == Some(Signal::INT.as_raw()),
        ru_maxrss_bytes: waited.map(|used| used.rusage.maxrss),
        started_s,
        ended_s: unix_seconds(),
    }
}

/// To the millisecond.
fn unix_seconds() -> f64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0.0, |now| now.as_millis() as f64 / 1e3)
}

fn start(binary: &Binary, job: &Job, limits: &Limits) -> std::io::Result<Child> {
    let settings = &job.conduct.settings;
    let mut command = Command::new(&binary.path);
    command
        .args(["worker", "--kind", &job.kind.to_string()])
        .env_clear()
        .envs(worker_environment())
        .envs(&settings.variables)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    if let Some((_, group)) = &limits.memory {
        command.arg("--group").arg(group.processes());
    }
    with_thp(settings.thp, || command.spawn())
}

fn finish(
    mut child: Child,
    job: &Job,
    limits: &Limits,
) -> (Result<Box<DoneReply>, Ended>, Option<ResUse>) {
    let mut watchdog = Watchdog::start(&child, limits.time);
    // A worker that dies early breaks the pipe; what it died of is said below.
    // The job has the keys.
    let line = serde_json::to_vec(job).map(Zeroizing::new);
    if let (Some(mut stdin), Ok(line)) = (child.stdin.take(), line) {
        let _ = stdin.write_all(&line);
    }
    // Both pipes are read at once: neither may fill up while the other is waited for.
    let stderr = child.stderr.take();
    let complaints = std::thread::spawn(move || read(stderr));
    let answer = read(child.stdout.take());
    let complaints = complaints.join().unwrap_or_default();
    // Not every system's handle may be used once the child was waited for. Both pipes are closed: it is as good as gone.
    let watched_to_here = watchdog.take_if(|_| Handle::ENDS_WITH_WAITING);
    let killed_before = watched_to_here.is_some_and(Watchdog::stop);
    let waited = child.wait4();
    let killed = killed_before || watchdog.is_some_and(Watchdog::stop);
    let reply = match (&waited, serde_json::from_slice::<Reply>(&answer)) {
        _ if killed => Err(Ended {
            status: Status::DidNotFinish,
            why: format!(
                "did not finish in {} s: the worker was killed",
                limits.time.as_secs()
            ),
        }),
        (_, Ok(Reply::Failed { error })) => Err(Ended::failed(error)),
        (Ok(ResUse { status, .. }), Ok(Reply::Done(done))) if status.success() => Ok(done),
        (Err(error), _) => Err(Ended::failed(format!(
            "the worker could not be waited for: {error}"
        ))),
        (Ok(ResUse { status, .. }), _) => Err(match &limits.memory {
            Some((limit, group)) if group.has_killed() => Ended {
                status: Status::DidNotFit,
                why: format!("did not fit in {limit}: the kernel killed the worker"),
            },
            _ => {
                // Of another program's words nothing is repeated once it was told keys.
                let said = match job.keys {
                    Some(_) => String::new(),
                    None => last_line(&complaints),
                };
                Ended::failed(format!(
                    "the worker ended without an answer ({status}) at {} {said}",
                    job.file.display()
                ))
            }
        }),
    };
    (reply, waited.ok())
}

/// Kills a worker that takes too long, such as one whose file is on a disk that does not answer.
struct Watchdog {
    finished: Sender<()>,
    thread: JoinHandle<bool>,
}

impl Watchdog {
    /// Watches `child`; `None` where the system has no handles of processes.
    fn start(child: &Child, limit: Duration) -> Option<Self> {
        let process = Handle::of(child)?;
        let (finished, heard) = channel();
        let thread = std::thread::spawn(move || {
            heard.recv_timeout(limit) == Err(RecvTimeoutError::Timeout) && process.kill()
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
