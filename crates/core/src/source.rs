//! Where bytes come from: positioned reads that need no cursor, so that all columns can share one file.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::ops::Range;

use bytes::Bytes;
use parquet::errors::Result;
use parquet::file::reader::{ChunkReader, Length};

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

    /// The `len` bytes at `offset` without a copy, where the source holds them in memory and lets readers share them.
    ///
    /// Pages that are neither compressed nor encrypted are then read without a buffer; so for a file that is mapped into memory
    /// ([`SharedBytes`]).
    fn share_at(&self, offset: u64, len: usize) -> Option<Bytes> {
        let _ = (offset, len);
        None
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

    fn share_at(&self, offset: u64, len: usize) -> Option<Bytes> {
        (**self).share_at(offset, len)
    }
}

impl ReadAt for Bytes {
    fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        let range = range(self, offset, buf.len()).ok_or(ErrorKind::UnexpectedEof)?;
        buf.copy_from_slice(&self[range]);
        Ok(())
    }
}

/// Where the `len` bytes at `offset` of `bytes` lie; `None` where there are fewer.
fn range(bytes: &Bytes, offset: u64, len: usize) -> Option<Range<usize>> {
    let start = usize::try_from(offset).ok()?;
    let end = start.checked_add(len)?;
    (end <= bytes.len()).then_some(start..end)
}

/// A file in memory, or mapped into it ([`Bytes::from_owner`] of a mapping), whose pages are used where they lie.
///
/// A page that is neither compressed nor encrypted is then no buffer of the reader: whatever the strategy, it is a slice of these
/// bytes, and so may be arrays made of it, which keep all of the bytes alive. With [`Bytes`] itself as the source every page is
/// copied into a buffer of the strategy.
#[derive(Debug, Clone)]
pub struct SharedBytes(pub Bytes);

impl ReadAt for SharedBytes {
    fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        self.0.read_exact_at(buf, offset)
    }

    fn share_at(&self, offset: u64, len: usize) -> Option<Bytes> {
        Some(self.0.slice(range(&self.0, offset, len)?))
    }
}

impl Length for SharedBytes {
    fn len(&self) -> u64 {
        self.0.len() as u64
    }
}

impl ChunkReader for SharedBytes {
    type T = <Bytes as ChunkReader>::T;

    fn get_read(&self, start: u64) -> Result<Self::T> {
        self.0.get_read(start)
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        self.0.get_bytes(start, length)
    }
}

/// Any source that the parquet crate reads, as a source of this one: an object store's client, for example.
///
/// Each request becomes one call of [`ChunkReader::get_bytes`], whose bytes are copied into the buffer of the strategy.
#[derive(Debug, Clone)]
pub struct ChunkSource<R>(pub R);

impl<R: ChunkReader> ReadAt for ChunkSource<R> {
    fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        let bytes = self.bytes(buf.len(), offset)?;
        buf.copy_from_slice(&bytes);
        Ok(())
    }

    fn append_at(&self, buf: &mut Vec<u8>, len: usize, offset: u64) -> io::Result<()> {
        buf.extend_from_slice(&self.bytes(len, offset)?);
        Ok(())
    }
}

impl<R: ChunkReader> ChunkSource<R> {
    /// The `len` bytes at `offset`, never more or fewer.
    fn bytes(&self, len: usize, offset: u64) -> io::Result<Bytes> {
        let bytes = self.0.get_bytes(offset, len).map_err(io::Error::other)?;
        match bytes.len() == len {
            true => Ok(bytes),
            false => Err(ErrorKind::UnexpectedEof.into()),
        }
    }
}

impl<R: Length> Length for ChunkSource<R> {
    fn len(&self) -> u64 {
        self.0.len()
    }
}

impl<R: ChunkReader> ChunkReader for ChunkSource<R> {
    type T = R::T;

    fn get_read(&self, start: u64) -> Result<Self::T> {
        self.0.get_read(start)
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        self.0.get_bytes(start, length)
    }
}
