//! The CPUs that this process runs on.

use std::fs;
use std::io;

use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Keeps every thread of this process, and those that they will start, on `cpus`.
///
/// # Errors
///
/// The system refuses, or gave another set than was asked for: a CPU that does not exist, or that this process may not
/// use.
pub(crate) fn pin(cpus: &[usize]) -> io::Result<()> {
    let mut wanted = CpuSet::new();
    for &cpu in cpus {
        if cpu >= CpuSet::MAX_CPU {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        wanted.set(cpu);
    }
    // An allocator may have threads of its own by now.
    for entry in fs::read_dir("/proc/self/task")? {
        let thread = entry?.file_name();
        let thread = thread.to_str().and_then(|name| name.parse().ok());
        let thread = thread.and_then(Pid::from_raw);
        sched_setaffinity(thread, &wanted)?;
    }
    // Of a set with CPUs that may not be used, the system silently takes the others.
    if sched_getaffinity(None)? == wanted {
        Ok(())
    } else {
        Err(io::ErrorKind::InvalidInput.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cpu_that_is_none_is_refused() {
        assert!(pin(&[CpuSet::MAX_CPU]).is_err());
        assert!(pin(&[CpuSet::MAX_CPU - 1]).is_err());
    }
}
