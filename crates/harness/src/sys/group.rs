//! A control group that holds one process to a limit of memory, versions 1 and 2.
//!
//! It lies below the group of this process. Where the system allows none, a limit can only be compared with afterwards.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use super::cgroup::memory_folders;

/// A group of its own for one process; removed when dropped, which needs the process to be gone.
#[derive(Debug)]
pub(crate) struct MemoryGroup {
    folder: PathBuf,
    version: Version,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    V1,
    V2,
}

impl MemoryGroup {
    /// A group whose processes have `bytes` of memory, page cache included, and no swap.
    ///
    /// # Errors
    ///
    /// There are no groups of memory, or this process may make none.
    pub(crate) fn new(bytes: u64) -> io::Result<Self> {
        static MADE: AtomicU64 = AtomicU64::new(0);
        let (parent, version) = parent()?;
        remove_abandoned(&parent);
        let folder = loop {
            let number = MADE.fetch_add(1, Ordering::Relaxed);
            let folder = parent.join(format!("{PREFIX}{}-{number}", std::process::id()));
            match fs::create_dir(&folder) {
                Ok(()) => break folder,
                // Of an earlier process of that number.
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        };
        // From here on its drop removes the folder.
        let group = Self { folder, version };
        group.limit(&parent, bytes)?;
        Ok(group)
    }

    fn limit(&self, parent: &Path, bytes: u64) -> io::Result<()> {
        let text = bytes.to_string();
        let write = |file: &str, text: &str| fs::write(self.folder.join(file), text);
        match self.version {
            Version::V1 => {
                write("memory.limit_in_bytes", &text)?;
                // Only where the kernel accounts for swap.
                optional(write("memory.memsw.limit_in_bytes", &text))
            }
            Version::V2 => {
                if !self.folder.join("memory.max").exists() {
                    fs::write(parent.join("cgroup.subtree_control"), "+memory")?;
                }
                write("memory.max", &text)?;
                optional(write("memory.swap.max", "0"))
            }
        }
    }

    /// What it is, as in the CSV.
    pub(crate) fn name(&self) -> &'static str {
        match self.version {
            Version::V1 => "cgroup-v1",
            Version::V2 => "cgroup-v2",
        }
    }

    /// The file that a process writes itself to, to be in it.
    pub(crate) fn processes(&self) -> PathBuf {
        self.folder.join("cgroup.procs")
    }

    /// Whether the kernel has killed a process of it for want of memory.
    pub(crate) fn has_killed(&self) -> bool {
        let file = match self.version {
            Version::V1 => "memory.oom_control",
            Version::V2 => "memory.events",
        };
        fs::read_to_string(self.folder.join(file)).is_ok_and(|text| kills(&text) > 0)
    }
}

impl Drop for MemoryGroup {
    fn drop(&mut self) {
        // A group that cannot be removed is empty and costs nothing.
        let _ = fs::remove_dir(&self.folder);
    }
}

/// With what the name of a group of this program begins; the number of its process follows.
const PREFIX: &str = "alloquet-";

/// Removes the groups of processes that were killed before they could.
fn remove_abandoned(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let owner = name.to_str().and_then(|name| {
            let (owner, _) = name.strip_prefix(PREFIX)?.split_once('-')?;
            owner.parse::<u32>().ok()
        });
        let is_gone = |owner: u32| !Path::new(&format!("/proc/{owner}")).exists();
        if owner.is_some_and(is_gone) {
            // One that still has a process in it stays.
            let _ = fs::remove_dir(entry.path());
        }
    }
}

/// A file that not every kernel has may be missing.
fn optional(written: io::Result<()>) -> io::Result<()> {
    match written {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        written => written,
    }
}

/// The folder of this process's own group of memory.
fn parent() -> io::Result<(PathBuf, Version)> {
    let (v1, v2) = memory_folders();
    let has = |folders: &[PathBuf], file: &str| {
        let folder = folders.first().filter(|folder| folder.join(file).exists());
        folder.cloned()
    };
    has(&v1, "memory.limit_in_bytes")
        .map(|folder| (folder, Version::V1))
        .or_else(|| has(&v2, "cgroup.procs").map(|folder| (folder, Version::V2)))
        .ok_or_else(|| {
            io::Error::new(
                ErrorKind::Unsupported,
                "there are no control groups of memory",
            )
        })
}

/// The number after `oom_kill` at the start of a line.
fn kills(text: &str) -> u64 {
    let mut lines = text.lines();
    lines
        .find_map(|line| line.strip_prefix("oom_kill ")?.trim().parse().ok())
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kills_are_those_of_processes() {
        assert_eq!(kills("low 0\noom 3\noom_kill 2\noom_group_kill 5\n"), 2);
        assert_eq!(kills("oom_kill_disable 1\nunder_oom 0\noom_kill 1\n"), 1);
        assert_eq!(kills("oom_kill_disable 1\n"), 0);
    }

    #[test]
    fn a_group_goes_when_it_is_dropped() {
        // Where none can be made, that is what the caller is told.
        if let Ok(group) = MemoryGroup::new(64 << 20) {
            let folder = group.folder.clone();
            assert!(folder.exists());
            assert!(!group.has_killed());
            drop(group);
            assert!(!folder.exists());
        }
    }
}
