//! Resident memory of this process, by `/proc/self/status`, `/proc/self/statm` and `/proc/self/clear_refs`.
//!
//! Nothing here allocates: a measurement must not show up in what it measures.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;

use crate::sys::memory::Resident;
use crate::sys::proc::{field, invalid, number, read_into};

/// What [`resident`] reads.
pub(crate) const RESIDENT_SOURCE: &str = "/proc/self/status";

/// What [`Statm`] reads.
pub(crate) const STATM_SOURCE: &str = "/proc/self/statm";

const CLEAR_REFS: &str = "/proc/self/clear_refs";

/// Reads the state now.
///
/// # Errors
///
/// `/proc` is not mounted, or its `status` has not the lines that Linux documents.
pub(crate) fn resident() -> io::Result<Resident> {
    // About 1.5 KiB long; the lines wanted stand before those that grow with the number of
    // CPUs.
    let mut buffer = [0_u8; 8192];
    parse(read_into(RESIDENT_SOURCE, &mut buffer)?)
}

fn parse(status: &[u8]) -> io::Result<Resident> {
    let required = |key| field(status, key).ok_or(invalid());
    Ok(Resident {
        peak_bytes: required(b"VmHWM:")? * 1024,
        rss_bytes: required(b"VmRSS:")? * 1024,
        anon_bytes: Some(required(b"RssAnon:")? * 1024),
        file_bytes: Some(required(b"RssFile:")? * 1024),
        thp_enabled: field(status, b"THP_enabled:").map(|enabled| enabled != 0),
    })
}

/// Resident bytes again and again, for little: the file stays open, and one number is read.
#[derive(Debug)]
pub(crate) struct Statm {
    file: File,
    page_bytes: u64,
}

impl Statm {
    /// Opens it.
    ///
    /// # Errors
    ///
    /// `/proc` is not mounted.
    pub(crate) fn open() -> io::Result<Self> {
        Ok(Self {
            file: File::open(STATM_SOURCE)?,
            page_bytes: rustix::param::page_size() as u64,
        })
    }

    /// Resident bytes now (`VmRSS`).
    ///
    /// # Errors
    ///
    /// It cannot be read, or has not the form that Linux documents.
    pub(crate) fn rss_bytes(&self) -> io::Result<u64> {
        let mut buffer = [0_u8; 256];
        let count = self.file.read_at(&mut buffer, 0)?;
        // Size, resident, shared, and so on, in pages.
        let resident = buffer[..count].split(|&byte| byte == b' ').nth(1);
        let pages = resident.and_then(number).ok_or(invalid())?;
        Ok(pages * self.page_bytes)
    }
}

/// Makes the resident size now the peak, so that `VmHWM` tells of what follows alone.
///
/// # Errors
///
/// The kernel refuses or does not have `clear_refs` (some containers and sandboxes). `VmHWM` then
/// still includes what came before.
pub(crate) fn reset_peak() -> io::Result<()> {
    OpenOptions::new()
        .write(true)
        .open(CLEAR_REFS)?
        .write_all(b"5")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_is_read_in_bytes() {
        let status = b"Name:\tVmRSS: 1\nVmHWM:\t    1776 kB\nVmRSS:\t 1500 kB\nRssAnon:\t 112 kB\nRssFile:\t1388 kB\n\
            THP_enabled:\t0\n";
        let expected = Resident {
            peak_bytes: 1776 * 1024,
            rss_bytes: 1500 * 1024,
            anon_bytes: Some(112 * 1024),
            file_bytes: Some(1388 * 1024),
            thp_enabled: Some(false),
        };
        assert_eq!(parse(status).unwrap(), expected);
    }

    #[test]
    fn a_status_without_the_lines_is_an_error() {
        assert!(parse(b"Name:\tcat\n").is_err());
        assert!(parse(b"VmHWM:\tmuch\n").is_err());
    }
}
