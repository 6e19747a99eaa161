//! What the kernel says of all mappings of this process together, by `/proc/self/smaps_rollup`.
//!
//! The kernel walks the page tables for it, which takes longer than a look at `status` and is exact. Nothing here
//! allocates.

use std::io;

use super::proc::{field, invalid, read_into};

const SMAPS_ROLLUP: &str = "/proc/self/smaps_rollup";

/// One reading, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SmapsRollup {
    /// Resident (`Rss`).
    pub(crate) rss_bytes: u64,
    /// Resident, with what is shared divided by its sharers (`Pss`).
    pub(crate) pss_bytes: u64,
    /// Written pages that no other process has (`Private_Dirty`).
    pub(crate) private_dirty_bytes: u64,
    /// The resident pages that the kernel takes back when it needs to (`LazyFree`).
    pub(crate) lazy_free_bytes: u64,
    /// The resident pages that are huge (`AnonHugePages`).
    pub(crate) anon_huge_bytes: u64,
}

impl SmapsRollup {
    /// Reads the state now.
    ///
    /// # Errors
    ///
    /// The kernel is older than 4.14 or built without it, `/proc` is not mounted, or it has not the lines that Linux
    /// documents.
    pub(crate) fn now() -> io::Result<Self> {
        // About 700 bytes long.
        let mut buffer = [0_u8; 4096];
        Self::parse(read_into(SMAPS_ROLLUP, &mut buffer)?)
    }

    fn parse(rollup: &[u8]) -> io::Result<Self> {
        let bytes = |key| Ok::<_, io::Error>(field(rollup, key).ok_or(invalid())? * 1024);
        Ok(Self {
            rss_bytes: bytes(b"Rss:")?,
            pss_bytes: bytes(b"Pss:")?,
            private_dirty_bytes: bytes(b"Private_Dirty:")?,
            lazy_free_bytes: bytes(b"LazyFree:")?,
            anon_huge_bytes: bytes(b"AnonHugePages:")?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reading_is_in_bytes() {
        let rollup = b"56295aa3e000-7ffe56427000 ---p 00000000 00:00 0    [rollup]\nRss:    1764 kB\n\
            Pss:     243 kB\nPss_Dirty:    116 kB\nPrivate_Clean:   36 kB\nPrivate_Dirty:   117 kB\n\
            LazyFree:    5 kB\nAnonHugePages:   2048 kB\n";
        let expected = SmapsRollup {
            rss_bytes: 1764 * 1024,
            pss_bytes: 243 * 1024,
            private_dirty_bytes: 117 * 1024,
            lazy_free_bytes: 5 * 1024,
            anon_huge_bytes: 2048 * 1024,
        };
        assert_eq!(SmapsRollup::parse(rollup).unwrap(), expected);
        assert!(SmapsRollup::parse(b"Rss:    1764 kB\n").is_err());
    }

    #[test]
    fn this_process_has_written_pages() {
        // Some sandboxes do not have it.
        if let Ok(rollup) = SmapsRollup::now() {
            assert!(rollup.private_dirty_bytes > 0);
            assert!(rollup.rss_bytes >= rollup.pss_bytes);
        }
    }
}
