//! The sink, buffered and with a count of what went into it.

use std::io::{self, BufWriter, Write};

/// Bytes that are gathered before they go to the sink.
const BUFFER_BYTES: usize = 8 << 10;

/// A sink that takes nothing more once it has failed: buffers write again when they are dropped, and what failed for a
/// while, as a full disk does, would get the end of a file that misses its middle.
pub(super) struct Latch<W> {
    pub(super) sink: W,
    failed: bool,
}

impl<W> Latch<W> {
    pub(super) fn new(sink: W) -> Self {
        Self {
            sink,
            failed: false,
        }
    }
}

impl<W: Write> Latch<W> {
    fn guarded<T>(&mut self, work: impl FnOnce(&mut W) -> io::Result<T>) -> io::Result<T> {
        if self.failed {
            return Err(io::Error::other("the sink failed before"));
        }
        let result = work(&mut self.sink);
        let retried = |error: &io::Error| error.kind() == io::ErrorKind::Interrupted;
        self.failed = result.as_ref().is_err_and(|error| !retried(error));
        result
    }
}

impl<W: Write> Write for Latch<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.guarded(|sink| match sink.write(bytes)? {
            0 if !bytes.is_empty() => Err(io::ErrorKind::WriteZero.into()),
            written => Ok(written),
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        self.guarded(W::flush)
    }
}

/// A buffered sink that knows its position.
pub(super) struct Output<W: Write> {
    inner: BufWriter<Latch<W>>,
    position: u64,
}

impl<W: Write> Output<W> {
    pub(super) fn new(sink: W) -> Self {
        Self {
            inner: BufWriter::with_capacity(BUFFER_BYTES, Latch::new(sink)),
            position: 0,
        }
    }

    /// Bytes written so far.
    pub(super) fn position(&self) -> u64 {
        self.position
    }

    /// Bytes in the heap.
    pub(super) fn heap_bytes(&self) -> usize {
        self.inner.capacity()
    }

    /// The sink, with everything in it.
    ///
    /// # Errors
    /// Those of the sink.
    pub(super) fn into_inner(mut self) -> io::Result<W> {
        self.inner.flush()?;
        let latch = self.inner.into_inner();
        Ok(latch.map_err(io::IntoInnerError::into_error)?.sink)
    }

    /// The sink as it is: what is buffered is lost, so that a file that failed gets no more bytes.
    pub(super) fn abandon(self) {
        drop(self.inner.into_parts());
    }
}

impl<W: Write> Write for Output<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(bytes)?;
        self.position += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}
