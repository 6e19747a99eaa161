//! Where bytes come from: positioned reads that need no cursor, so that all columns can share one file.

use std::fs::File;
use std::io::{self, ErrorKind};

use bytes::Bytes;

/// Reads at an offset without a cursor.
pub trait ReadAt: Send + Sync {
    /// Fills `buf` with the bytes at `offset` (bytes from the start).
    ///
    /// # Errors
    /// [`ErrorKind::UnexpectedEof`] when the source ends before `buf` is full; otherwise what the
    /// system said.
    fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()>;
}

#[cfg(unix)]
impl ReadAt for File {
    fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        std::os::unix::fs::FileExt::read_exact_at(self, buf, offset)
    }
}

impl<T: ReadAt + ?Sized> ReadAt for &T {
    fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        (**self).read_exact_at(buf, offset)
    }
}

impl ReadAt for Bytes {
    fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        let from = usize::try_from(offset)
            .ok()
            .and_then(|start| self.get(start..start.checked_add(buf.len())?))
            .ok_or(ErrorKind::UnexpectedEof)?;
        buf.copy_from_slice(from);
        Ok(())
    }
}
