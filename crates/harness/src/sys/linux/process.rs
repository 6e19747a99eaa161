//! Holding on to other processes: the parent of this one, and a child.

use std::io;
use std::os::fd::OwnedFd;
use std::process::Child;

use rustix::process::{
    Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal, set_parent_process_death_signal,
};

/// Has this process killed when its parent ends.
///
/// # Errors
///
/// The kernel refuses.
pub(crate) fn end_with_parent() -> io::Result<()> {
    Ok(set_parent_process_death_signal(Some(Signal::KILL))?)
}

/// A child, to be killed by another thread than the one that waits for it.
///
/// A handle and not a number: the number may be another process's once the child was waited for.
pub(crate) struct Handle(OwnedFd);

impl Handle {
    /// Whether it may only be used before the child was waited for.
    pub(crate) const ENDS_WITH_WAITING: bool = false;

    /// That of `child`; `None` where the system has no handles of processes (Linux before 5.3).
    pub(crate) fn of(child: &Child) -> Option<Self> {
        let handle = pidfd_open(Pid::from_child(child), PidfdFlags::empty());
        handle.ok().map(Self)
    }

    /// Kills the child, and says whether it was still there.
    pub(crate) fn kill(&self) -> bool {
        pidfd_send_signal(&self.0, Signal::KILL).is_ok()
    }
}
