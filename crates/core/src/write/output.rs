//! The sink, buffered and with a count of what went into it.

use std::io::{self, BufWriter, Write};

/// Bytes that are gathered before they go to the sink.
const BUFFER_BYTES: usize = 8 << 10;

/// A buffered sink that knows its position.
pub(super) struct Output<W: Write> {
    inner: BufWriter<W>,
    position: u64,
}

impl<W: Write> Output<W> {
    pub(super) fn new(sink: W) -> Self {
        Self {
            inner: BufWriter::with_capacity(BUFFER_BYTES, sink),
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
        self.inner
            .into_inner()
            .map_err(io::IntoInnerError::into_error)
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
