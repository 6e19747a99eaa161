//! Anonymous memory straight from the kernel: tables that must not lie in the allocator they watch, and the memory that
//! planted cases plant.
//!
//! Every [`Table`] is entered in one list, so that whoever accounts for this process's memory can count them apart.

use std::io;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut, Range};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use super::system;

/// As many tables as there can be at once.
const MOST_TABLES: usize = 32;

/// Where the tables lie, as start and end; both are 0 in a free place.
static TABLES: [(AtomicUsize, AtomicUsize); MOST_TABLES] =
    [const { (AtomicUsize::new(0), AtomicUsize::new(0)) }; MOST_TABLES];

/// A type that can stand in memory of zeros, has no padding that matters and nothing to drop.
///
/// # Safety
///
/// A value of which every byte is zero is valid.
pub(crate) unsafe trait Zeroable: Copy {}

// SAFETY: zero is a number.
unsafe impl Zeroable for u8 {}
// SAFETY: zero is a number.
unsafe impl Zeroable for u64 {}

/// Anonymous private memory of the kernel's, zero at first.
pub(crate) struct Region {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: a region owns its memory alone, like a `Vec<u8>`.
unsafe impl Send for Region {}

impl Region {
    /// Maps `bytes`, which must not be 0. Nothing is resident before it is touched, and nothing is set aside for it.
    ///
    /// # Errors
    ///
    /// The kernel has no such space.
    pub(crate) fn new(bytes: usize) -> io::Result<Self> {
        // SAFETY: the kernel chooses the place, so nothing that is mapped changes.
        let start = unsafe {
            libc::mmap(
                ptr::null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { start, bytes })
    }

    /// Tells the kernel how this memory is to be treated; `advice` is one that leaves the contents valid bytes, such as
    /// `MADV_FREE`, `MADV_HUGEPAGE` or `MADV_NOHUGEPAGE`.
    ///
    /// # Errors
    ///
    /// The kernel or the system does not know the advice.
    pub(crate) fn advise(&mut self, advice: Advice) -> io::Result<()> {
        let advice = match advice {
            Advice::Free => Some(libc::MADV_FREE),
            Advice::HugePages => system::HUGE_PAGES,
            Advice::NoHugePages => system::NO_HUGE_PAGES,
        };
        let advice = advice.ok_or(io::ErrorKind::Unsupported)?;
        // SAFETY: this memory is a region's own, and no advice does more than zero it.
        let failed = unsafe { libc::madvise(self.start.as_ptr().cast(), self.bytes, advice) };
        if failed == 0 {
            Ok(())
        } else {
            Err(io::Error::last_os_error())
        }
    }

    /// The memory.
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: it is mapped readable and writable for as long as `self` is there, and borrowed by it alone.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.bytes) }
    }

    /// Where it lies.
    fn range(&self) -> Range<usize> {
        let start = self.start.as_ptr().addr();
        start..start + self.bytes
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: the memory was mapped by `new`, and nothing borrows it any more.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}

/// What [`Region::advise`] can say.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Advice {
    /// The contents may be dropped once memory is short.
    Free,
    /// Huge pages are welcome.
    HugePages,
    /// No huge pages.
    NoHugePages,
}

/// A slice in a region of its own that is known to [`tables`]. Without huge pages: it is to cost what is touched of it.
pub(crate) struct Table<T> {
    region: Region,
    length: usize,
    items: PhantomData<T>,
}

impl<T: Zeroable> Table<T> {
    /// `length` items of zeros; at least one.
    ///
    /// # Errors
    ///
    /// The kernel has no such space, or there are too many tables.
    pub(crate) fn new(length: usize) -> io::Result<Self> {
        let bytes = length.max(1).checked_mul(size_of::<T>());
        let bytes = bytes.and_then(|bytes| bytes.checked_next_multiple_of(4096));
        let mut region = Region::new(bytes.ok_or(io::ErrorKind::OutOfMemory)?)?;
        // A kernel without huge pages refuses, and gives none anyway.
        let _ = region.advise(Advice::NoHugePages);
        let Range { start, end } = region.range();
        let free = TABLES
            .iter()
            .find(|(place, _)| place.compare_exchange(0, start, Relaxed, Relaxed).is_ok());
        free.ok_or(io::ErrorKind::QuotaExceeded)?
            .1
            .store(end, Relaxed);
        Ok(Self {
            region,
            length,
            items: PhantomData,
        })
    }
}

impl<T: Zeroable> Deref for Table<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        let start = self.region.start.as_ptr().cast::<T>();
        // SAFETY: a page's start is aligned for any item; `length` items fit, zeros are valid ones, and they live as
        // long as the region does.
        unsafe { std::slice::from_raw_parts(start, self.length) }
    }
}

impl<T: Zeroable> DerefMut for Table<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        let start = self.region.start.as_ptr().cast::<T>();
        // SAFETY: as in `deref`, and `self` is borrowed alone.
        unsafe { std::slice::from_raw_parts_mut(start, self.length) }
    }
}

impl<T> Drop for Table<T> {
    fn drop(&mut self) {
        let start = self.region.range().start;
        if let Some((place, end)) = TABLES
            .iter()
            .find(|(place, _)| place.load(Relaxed) == start)
        {
            end.store(0, Relaxed);
            place.store(0, Relaxed);
        }
    }
}

/// Where all tables lie.
pub(crate) fn tables() -> impl Iterator<Item = Range<u64>> {
    TABLES
        .iter()
        .map(|(start, end)| start.load(Relaxed) as u64..end.load(Relaxed) as u64)
        .filter(|range| !range.is_empty())
}

/// A file in memory, mapped to be read.
pub(crate) struct MappedFile {
    start: NonNull<u8>,
    bytes: usize,
}

impl MappedFile {
    /// Maps all of `file`, privately.
    ///
    /// # Errors
    ///
    /// The file is empty or cannot be mapped.
    pub(crate) fn new(file: &std::fs::File) -> io::Result<Self> {
        use std::os::fd::AsRawFd as _;

        let bytes = usize::try_from(file.metadata()?.len()).map_err(io::Error::other)?;
        // SAFETY: the kernel chooses the place, so nothing that is mapped changes.
        let start = unsafe {
            libc::mmap(
                ptr::null_mut(),
                bytes,
                libc::PROT_READ,
                libc::MAP_PRIVATE,
                file.as_raw_fd(),
                0,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { start, bytes })
    }

    /// Reads a byte of each page, and returns their sum.
    pub(crate) fn touch(&self) -> u64 {
        let pages = (0..self.bytes).step_by(4096);
        let read = |offset| {
            // SAFETY: `offset` is within the mapping.
            let place = unsafe { self.start.add(offset) };
            // SAFETY: the page is mapped readable; another's change of the file is no more than another byte.
            u64::from(unsafe { place.read_volatile() })
        };
        pages.map(read).sum()
    }
}

impl Drop for MappedFile {
    fn drop(&mut self) {
        // SAFETY: the memory was mapped by `new`, and nothing borrows it any more.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_zero_and_known_while_it_lives() {
        let mut table = Table::<u64>::new(1000).unwrap();
        assert!(table.iter().all(|&item| item == 0));
        table[999] = 7;
        assert_eq!((table.len(), table[999]), (1000, 7));
        let start = table.as_ptr().addr() as u64;
        assert!(tables().any(|range| range == (start..start + 8192)));
        drop(table);
        assert!(!tables().any(|range| range.start == start && range.end == start + 8192));
    }

    #[test]
    fn an_absurd_table_is_an_error() {
        assert!(Table::<u64>::new(usize::MAX / 4).is_err());
    }
}
