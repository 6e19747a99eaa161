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

    /// Appends the `len` bytes at `offset` to `buf`, which has the capacity for them.
    ///
    /// A source that can fill memory without zeroing it first should do so here.
    ///
    /// # Errors
    /// As [`read_exact_at`](Self::read_exact_at); what `buf` then holds is not said.
    fn append_at(&self, buf: &mut Vec<u8>, len: usize, offset: u64) -> io::Result<()> {
        let start = buf.len();
        buf.resize(start + len, 0);
        self.read_exact_at(&mut buf[start..], offset)
    }
}

#[cfg(unix)]
impl ReadAt for File {
    fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        std::os::unix::fs::FileExt::read_exact_at(self, buf, offset)
    }

    fn append_at(&self, buf: &mut Vec<u8>, len: usize, offset: u64) -> io::Result<()> {
        let end = buf.len() + len;
        let start = buf.len() as u64;
        // Far more room than is wanted: reading into it would read what nobody asked for.
        if buf.capacity() > end + len / 8 {
            buf.resize(end, 0);
            return ReadAt::read_exact_at(self, &mut buf[start as usize..], offset);
        }
        while buf.len() < end {
            let at = offset + (buf.len() as u64 - start);
            match rustix::io::pread(self, rustix::buffer::spare_capacity(buf), at) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        buf.truncate(end);
        Ok(())
    }
}

impl<T: ReadAt + ?Sized> ReadAt for &T {
    fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        (**self).read_exact_at(buf, offset)
    }

    fn append_at(&self, buf: &mut Vec<u8>, len: usize, offset: u64) -> io::Result<()> {
        (**self).append_at(buf, len, offset)
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
