//! Whether a process that is started is allowed transparent huge pages, and no other.

use std::io;
use std::sync::{Mutex, PoisonError};

use rustix::thread::{disable_transparent_huge_pages, transparent_huge_pages_are_disabled};

/// The flag is the process's: one process is started so at a time.
static SPAWNING: Mutex<()> = Mutex::new(());

/// Runs `spawn` with huge pages allowed in this process or not, as `allowed` says; `None`: as they are.
///
/// A process that `spawn` starts inherits the flag, across `exec` too; `THP_enabled` in its `/proc/self/status` says so
/// ([`crate::sys::machine::Thp::process_enabled`]). Afterwards the flag is here as it was. What other threads of this process
/// map meanwhile follows it; a process that another thread starts otherwise than by this function inherits it too.
///
/// # Errors
///
/// The kernel refuses, or `spawn` fails.
pub(crate) fn with_thp<T>(
    allowed: Option<bool>,
    spawn: impl FnOnce() -> io::Result<T>,
) -> io::Result<T> {
    let _one = SPAWNING.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(disabled) = allowed.map(|allowed| !allowed) else {
        return spawn();
    };
    let usual = transparent_huge_pages_are_disabled()?;
    disable_transparent_huge_pages(disabled)?;
    let spawned = spawn();
    disable_transparent_huge_pages(usual)?;
    spawned
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    fn enabled_of_child(allowed: Option<bool>) -> Option<bool> {
        let output = with_thp(allowed, || {
            Command::new("grep")
                .args(["THP_enabled", "/proc/self/status"])
                .output()
        });
        let text = String::from_utf8(output.unwrap().stdout).unwrap();
        let value = text.split_whitespace().nth(1)?;
        Some(value == "1")
    }

    /// The flag here, while nobody starts a process.
    fn disabled_here() -> bool {
        let _one = SPAWNING.lock().unwrap_or_else(PoisonError::into_inner);
        transparent_huge_pages_are_disabled().unwrap()
    }

    #[test]
    fn a_process_has_what_it_is_started_with_and_the_next_is_as_usual() {
        // A kernel before 5.0 does not say.
        let Some(usual) = enabled_of_child(None) else {
            return;
        };
        assert_eq!(enabled_of_child(Some(false)), Some(false));
        assert_eq!(enabled_of_child(Some(true)), Some(true));
        assert_eq!(enabled_of_child(None), Some(usual));
        assert_eq!(disabled_here(), !usual);
    }

    #[test]
    fn after_a_start_that_fails_the_flag_is_as_it_was() {
        let before = disabled_here();
        let failed = with_thp(Some(before), || Command::new("/nowhere").spawn());
        assert_eq!(failed.unwrap_err().kind(), io::ErrorKind::NotFound);
        assert_eq!(disabled_here(), before);
    }
}
