//! Holding on to other processes: the parent of this one, and a child.

use std::io;
use std::process::Child;

use rustix::process::{Pid, Signal, kill_process};

/// Does nothing: macOS has no way to ask for it. A worker whose parent is gone finds at its end that nobody reads its
/// answer, and ends then.
///
/// # Errors
///
/// None.
pub(crate) fn end_with_parent() -> io::Result<()> {
    Ok(())
}

/// A child, to be killed by another thread than the one that waits for it.
///
/// A number: it is the child's until that was waited for.
pub(crate) struct Handle(Pid);

impl Handle {
    /// Whether it may only be used before the child was waited for.
    pub(crate) const ENDS_WITH_WAITING: bool = true;

    /// That of `child`, which was not waited for.
    pub(crate) fn of(child: &Child) -> Option<Self> {
        Some(Self(Pid::from_child(child)))
    }

    /// Kills the child, and says whether it was still there.
    pub(crate) fn kill(&self) -> bool {
        kill_process(self.0, Signal::KILL).is_ok()
    }
}
