//! Resident memory of this process.
//!
//! Nothing here allocates: a measurement must not show up in what it measures.

use std::io;

pub(crate) use super::system::memory::{RESIDENT_SOURCE, STATM_SOURCE, Statm, reset_peak};

/// One reading, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Resident {
    /// The most that was ever resident, or was since [`reset_peak`] (`VmHWM`).
    pub(crate) peak_bytes: u64,
    /// Resident now (`VmRSS`).
    pub(crate) rss_bytes: u64,
    /// The part of it that no file backs: heap, stacks (`RssAnon`); `None` where the system does not tell.
    pub(crate) anon_bytes: Option<u64>,
    /// The part of it that is pages of files: the binary, its libraries, mapped files (`RssFile`); `None` where the
    /// system does not tell.
    pub(crate) file_bytes: Option<u64>,
    /// Whether transparent huge pages are allowed to this process (`THP_enabled`); older kernels and
    /// other systems do not say.
    pub(crate) thp_enabled: Option<bool>,
}

impl Resident {
    /// Reads the state now.
    ///
    /// # Errors
    ///
    /// The system does not tell; on Linux, `/proc` is not mounted, or its `status` has not the lines that Linux documents.
    pub(crate) fn now() -> io::Result<Self> {
        super::system::memory::resident()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_resident() {
        let resident = Resident::now().unwrap();
        assert!(resident.rss_bytes > 0);
        assert!(resident.peak_bytes >= resident.rss_bytes);
    }

    #[test]
    fn both_files_tell_the_same() {
        const BYTES: usize = 256 << 20;
        let statm = Statm::open().unwrap();
        let before = statm.rss_bytes().unwrap();
        let held = std::hint::black_box(vec![1_u8; BYTES]);
        // Other tests allocate meanwhile.
        let (by_statm, by_status) = (statm.rss_bytes().unwrap(), Resident::now().unwrap());
        assert!(by_statm.abs_diff(by_status.rss_bytes) < BYTES as u64 / 4);
        assert!(by_statm > before + BYTES as u64 / 2, "{before} {by_statm}");
        drop(held);
    }

    // Other allocators may keep what is freed.
    #[cfg(not(any(feature = "jemalloc", feature = "mimalloc", feature = "snmalloc")))]
    #[test]
    fn a_reset_forgets_the_peak() {
        const BYTES: usize = 1 << 30;
        drop(std::hint::black_box(vec![1_u8; BYTES]));
        let before = Resident::now().unwrap();
        assert!(before.peak_bytes >= BYTES as u64);
        // A kernel or sandbox that refuses is flagged in the sample, so it is no failure here.
        if reset_peak().is_ok() {
            let after = Resident::now().unwrap();
            // Other tests hold some hundred MiB meanwhile.
            assert!(after.peak_bytes < before.peak_bytes / 4 * 3, "{after:?}");
        }
    }
}
