//! Takes one sample: starts a worker, hands it its job, waits for exactly that child.

use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use wait4::{ResUse, Wait4};

use super::binary::worker_environment;
use crate::measure::{DoneReply, Job, Reply};

/// What became of a worker.
pub(super) struct Taken {
    /// Its reply, or why there is none.
    pub(super) reply: Result<Box<DoneReply>, String>,
    /// Its peak RSS by `wait4`, bytes.
    pub(super) ru_maxrss_bytes: Option<u64>,
}

/// Takes the sample `job` with `binary`.
pub(super) fn take(binary: &Path, job: &Job) -> Taken {
    match start(binary, job) {
        Err(error) => Taken {
            reply: Err(format!(
                "cannot start a worker of {}: {error}",
                binary.display()
            )),
            ru_maxrss_bytes: None,
        },
        Ok(child) => finish(child, job),
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

fn finish(mut child: Child, job: &Job) -> Taken {
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
    let reply = match (&waited, serde_json::from_slice::<Reply>(&answer)) {
        (_, Ok(Reply::Failed { error })) => Err(error),
        (Ok(ResUse { status, .. }), Ok(Reply::Done(done))) if status.success() => Ok(done),
        (Err(error), _) => Err(format!("the worker could not be waited for: {error}")),
        (Ok(ResUse { status, .. }), _) => Err(format!(
            "the worker ended without an answer ({status}) {}",
            last_line(&complaints)
        )),
    };
    Taken {
        reply,
        ru_maxrss_bytes: waited.ok().map(|used| used.rusage.maxrss),
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
