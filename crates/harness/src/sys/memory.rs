//! Resident memory of this process, by `/proc/self/status`, `/proc/self/statm` and `/proc/self/clear_refs`.
//!
//! Nothing here allocates: a measurement must not show up in what it measures.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::FileExt;

const STATUS: &str = "/proc/self/status";
const STATM: &str = "/proc/self/statm";
const CLEAR_REFS: &str = "/proc/self/clear_refs";

/// One reading of `/proc/self/status`, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Resident {
    /// The most that was ever resident, or was since [`reset_peak`] (`VmHWM`).
    pub(crate) peak_bytes: u64,
    /// Resident now (`VmRSS`).
    pub(crate) rss_bytes: u64,
    /// The part of it that no file backs: heap, stacks (`RssAnon`).
    pub(crate) anon_bytes: u64,
    /// The part of it that is pages of files: the binary, its libraries, mapped files (`RssFile`).
    pub(crate) file_bytes: u64,
    /// Whether transparent huge pages are allowed to this process (`THP_enabled`); older kernels do
    /// not say.
    pub(crate) thp_enabled: Option<bool>,
}

impl Resident {
    /// Reads the state now.
    ///
    /// # Errors
    ///
    /// `/proc` is not mounted, or its `status` has not the lines that Linux documents.
    pub(crate) fn now() -> io::Result<Self> {
        // About 1.5 KiB long; the lines wanted stand before those that grow with the number of
        // CPUs.
        let mut buffer = [0_u8; 8192];
        Self::parse(read_into(STATUS, &mut buffer)?)
    }

    fn parse(status: &[u8]) -> io::Result<Self> {
        let required = |key| field(status, key).ok_or(invalid());
        Ok(Self {
            peak_bytes: required(b"VmHWM:")? * 1024,
            rss_bytes: required(b"VmRSS:")? * 1024,
            anon_bytes: required(b"RssAnon:")? * 1024,
            file_bytes: required(b"RssFile:")? * 1024,
            thp_enabled: field(status, b"THP_enabled:").map(|enabled| enabled != 0),
        })
    }
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
            file: File::open(STATM)?,
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

/// Reads as much of a file as `buffer` holds.
pub(super) fn read_into<'a>(path: &str, buffer: &'a mut [u8]) -> io::Result<&'a [u8]> {
    let mut file = File::open(path)?;
    let mut filled = 0;
    while filled < buffer.len() {
        match file.read(&mut buffer[filled..])? {
            0 => break,
            count => filled += count,
        }
    }
    Ok(&buffer[..filled])
}

/// What is wrong with a file that is not what Linux documents; needs no memory.
pub(super) fn invalid() -> io::Error {
    io::ErrorKind::InvalidData.into()
}

/// The number that follows `key` at the start of a line.
pub(super) fn field(status: &[u8], key: &[u8]) -> Option<u64> {
    let line = status
        .split(|&byte| byte == b'\n')
        .find_map(|line| line.strip_prefix(key))?;
    number(line)
}

/// The first number in `text`.
fn number(text: &[u8]) -> Option<u64> {
    let mut digits = text
        .iter()
        .skip_while(|byte| !byte.is_ascii_digit())
        .take_while(|byte| byte.is_ascii_digit());
    let first = u64::from(*digits.next()? - b'0');
    digits.try_fold(first, |number, digit| {
        number.checked_mul(10)?.checked_add(u64::from(digit - b'0'))
    })
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
            anon_bytes: 112 * 1024,
            file_bytes: 1388 * 1024,
            thp_enabled: Some(false),
        };
        assert_eq!(Resident::parse(status).unwrap(), expected);
    }

    #[test]
    fn a_status_without_the_lines_is_an_error() {
        assert!(Resident::parse(b"Name:\tcat\n").is_err());
        assert!(Resident::parse(b"VmHWM:\tmuch\n").is_err());
    }

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
