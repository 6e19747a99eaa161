//! What is known of single pages of this process: `/proc/self/pagemap`, and their contents by `/proc/self/mem`, which
//! cannot fault whatever another thread unmaps meanwhile.
//!
//! Neither needs a privilege, and nothing here allocates.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;

/// The size of the pages that are told apart.
pub(crate) const PAGE: u64 = 4096;

const PRESENT: u64 = 1 << 63;
const SWAPPED: u64 = 1 << 62;
/// Mapped by this process alone. The page of zeros that stands for memory only read is not.
const EXCLUSIVE: u64 = 1 << 56;

/// Tells where the pages of this process are.
pub(crate) struct Pagemap {
    file: File,
}

/// Where one page is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// Nowhere: it was never written to, or was given back.
    Nowhere,
    /// In memory, and counted in this process's resident size.
    Resident,
    /// Swapped out.
    Swapped,
}

impl Pagemap {
    /// Opens it.
    ///
    /// # Errors
    ///
    /// The kernel has none, or pages are not of 4 KiB.
    pub(crate) fn open() -> io::Result<Self> {
        if rustix::param::page_size() as u64 != PAGE {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let file = File::open("/proc/self/pagemap")?;
        Ok(Self { file })
    }

    /// Reads the entries of the pages from number `first` on.
    ///
    /// # Errors
    ///
    /// The file cannot be read.
    pub(crate) fn read(&self, first: u64, entries: &mut [u64]) -> io::Result<()> {
        const ENTRY: usize = size_of::<u64>();
        let mut bytes = [0_u8; 512 * ENTRY];
        let mut first = first;
        for entries in entries.chunks_mut(512) {
            let bytes = &mut bytes[..entries.len() * ENTRY];
            self.file.read_exact_at(bytes, first * ENTRY as u64)?;
            for (entry, bytes) in entries.iter_mut().zip(bytes.as_chunks::<ENTRY>().0) {
                *entry = u64::from_ne_bytes(*bytes);
            }
            first += entries.len() as u64;
        }
        Ok(())
    }
}

impl Place {
    /// What an entry of the pagemap says of an anonymous page.
    pub(crate) fn of(entry: u64) -> Self {
        if entry & (PRESENT | EXCLUSIVE) == PRESENT | EXCLUSIVE {
            Self::Resident
        } else if entry & SWAPPED != 0 {
            Self::Swapped
        } else {
            Self::Nowhere
        }
    }
}

/// Reads this process's memory by address.
pub(crate) struct Memory {
    file: File,
}

impl Memory {
    /// Opens it.
    ///
    /// # Errors
    ///
    /// The kernel forbids it.
    pub(crate) fn open() -> io::Result<Self> {
        let file = File::open("/proc/self/mem")?;
        Ok(Self { file })
    }

    /// Reads the bytes from `address` on.
    ///
    /// # Errors
    ///
    /// They are not mapped, or not all of them.
    pub(crate) fn read(&self, address: u64, bytes: &mut [u8]) -> io::Result<()> {
        self.file.read_exact_at(bytes, address)
    }
}

#[cfg(test)]
mod tests {
    use super::super::mapping::Table;
    use super::*;

    #[test]
    fn touched_pages_are_resident_and_read_ones_are_not() {
        let mut table = Table::<u64>::new(3 * 512).unwrap();
        table[512] = 7;
        let read = std::hint::black_box(table[1024]);
        let address = table.as_ptr().addr() as u64;
        let mut entries = [0; 3];
        Pagemap::open()
            .unwrap()
            .read(address / PAGE, &mut entries)
            .unwrap();
        let places = entries.map(Place::of);
        assert_eq!(
            (read, places),
            (0, [Place::Nowhere, Place::Resident, Place::Nowhere])
        );
        let mut bytes = [0; 8];
        let memory = Memory::open().unwrap();
        memory.read(address + PAGE, &mut bytes).unwrap();
        assert_eq!(u64::from_ne_bytes(bytes), 7);
        assert!(memory.read(8, &mut bytes).is_err());
    }

    #[test]
    fn entries_say_where_a_page_is() {
        assert_eq!(Place::of(0), Place::Nowhere);
        assert_eq!(Place::of(PRESENT), Place::Nowhere);
        assert_eq!(Place::of(PRESENT | EXCLUSIVE), Place::Resident);
        assert_eq!(Place::of(SWAPPED), Place::Swapped);
    }
}
