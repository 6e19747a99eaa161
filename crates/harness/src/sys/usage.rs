//! CPU time, page faults and disk reads of this process, by `getrusage`.

use std::time::Duration;

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeVal;

use super::system::BLOCK_BYTES;

/// Totals of this process since it started, all threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Usage {
    /// CPU time in user code.
    pub(crate) user: Duration,
    /// CPU time in the kernel.
    pub(crate) system: Duration,
    /// Page faults that needed no reading.
    pub(crate) minor_faults: u64,
    /// Page faults that waited for a device: a mapped file or swapped memory. Reading a file by system calls is none.
    pub(crate) major_faults: u64,
    /// Bytes that a block device was read for, by faults or system calls: what the page cache did not have. File
    /// systems without a block device, such as those of a network, count nothing. `None` where the system does not tell.
    pub(crate) disk_read_bytes: Option<u64>,
}

impl Usage {
    /// The totals now.
    ///
    /// # Errors
    ///
    /// Whatever `getrusage` fails with.
    pub(crate) fn now() -> nix::Result<Self> {
        let usage = getrusage(UsageWho::RUSAGE_SELF)?;
        Ok(Self {
            user: duration(usage.user_time()),
            system: duration(usage.system_time()),
            minor_faults: u64::try_from(usage.minor_page_faults()).unwrap_or(0),
            major_faults: u64::try_from(usage.major_page_faults()).unwrap_or(0),
            disk_read_bytes: BLOCK_BYTES
                .map(|bytes| u64::try_from(usage.block_reads()).unwrap_or(0) * bytes),
        })
    }

    /// What was used between `earlier` and this.
    pub(crate) fn since(&self, earlier: &Self) -> Self {
        Self {
            user: self.user.saturating_sub(earlier.user),
            system: self.system.saturating_sub(earlier.system),
            minor_faults: self.minor_faults.saturating_sub(earlier.minor_faults),
            major_faults: self.major_faults.saturating_sub(earlier.major_faults),
            disk_read_bytes: self
                .disk_read_bytes
                .zip(earlier.disk_read_bytes)
                .map(|(now, earlier)| now.saturating_sub(earlier)),
        }
    }
}

fn duration(time: TimeVal) -> Duration {
    let seconds = u64::try_from(time.tv_sec()).unwrap_or(0);
    let micros = u64::try_from(time.tv_usec()).unwrap_or(0);
    Duration::from_secs(seconds) + Duration::from_micros(micros)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn touching_memory_shows_as_faults() {
        let before = Usage::now().unwrap();
        // Not the allocator's, which may have memory that was touched before.
        let mut region = super::super::mapping::Region::new(64 << 20).unwrap();
        region.bytes_mut().fill(1);
        let used = Usage::now().unwrap().since(&before);
        assert!(used.minor_faults > 0, "{used:?}");
    }

    #[test]
    fn what_was_used_is_the_difference() {
        let now = Usage {
            disk_read_bytes: Some(8192),
            ..Usage::now().unwrap()
        };
        let later = Usage {
            disk_read_bytes: Some(8192 + 4096),
            major_faults: now.major_faults + 3,
            ..now
        };
        let used = later.since(&now);
        assert_eq!((used.disk_read_bytes, used.major_faults), (Some(4096), 3));
        assert_eq!((used.minor_faults, used.user), (0, Duration::ZERO));
    }
}
