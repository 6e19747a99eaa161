//! Bytes of the file that were read ahead: a header with what follows it, or several small pages at once.

use std::io;

use super::file::FileShared;
use crate::buffer::{Buffer, Home, Keep};
use crate::ledger::Purpose;
use crate::source::ReadAt;

/// A header is first looked for in this many bytes; a data page's takes some 30, encrypted some 60. A small page fits too.
pub(super) const HEADER_WINDOW: usize = 256;

/// What was read last, and where it lies in the file.
pub(super) struct Window {
    start: u64,
    /// Bytes of `small` that are in use, where there is no `large`.
    len: usize,
    small: [u8; HEADER_WINDOW],
    /// For more than fits in `small`; charged to [`Purpose::Fetch`].
    large: Option<Buffer>,
}

impl Window {
    pub(super) fn new() -> Self {
        Self {
            start: 0,
            len: 0,
            small: [0; HEADER_WINDOW],
            large: None,
        }
    }

    fn bytes(&self) -> &[u8] {
        match &self.large {
            Some(buffer) => buffer.as_ref(),
            None => &self.small[..self.len],
        }
    }

    fn offset(&self, at: u64) -> Option<usize> {
        usize::try_from(at.checked_sub(self.start)?).ok()
    }

    /// The `len` bytes at `at`, where all of them are held.
    pub(super) fn get(&self, at: u64, len: usize) -> Option<&[u8]> {
        let from = self.offset(at)?;
        self.bytes().get(from..from.checked_add(len)?)
    }

    /// What is held from `at` on.
    pub(super) fn behind(&mut self, at: u64) -> &mut [u8] {
        let from = self.offset(at);
        let bytes = match &mut self.large {
            Some(buffer) => buffer.as_mut_slice(),
            None => &mut self.small[..self.len],
        };
        from.and_then(|from| bytes.get_mut(from..))
            .unwrap_or_default()
    }

    /// Reads the `len` bytes at `at` in place of what is held.
    pub(super) fn fill<T: ReadAt>(
        &mut self,
        file: &FileShared<T>,
        at: u64,
        len: usize,
        column: usize,
    ) -> io::Result<()> {
        let large = self.large.take();
        (self.start, self.len) = (at, 0);
        if len <= HEADER_WINDOW {
            file.read(&mut self.small[..len], at)?;
            self.len = len;
            return Ok(());
        }
        let mut buffer = large
            .filter(|buffer| buffer.capacity() >= len)
            .unwrap_or_else(|| {
                // The home goes at once, so the buffer is freed when it is dropped.
                Home::new(Keep::Nothing, Purpose::Fetch, None, &file.ledger)
                    .take_empty(0, len, column)
            });
        file.read_into(&mut buffer, at, len)?;
        self.large = Some(buffer);
        Ok(())
    }

    /// Frees what was allocated.
    pub(super) fn free(&mut self) {
        if self.large.take().is_some() {
            self.len = 0;
        }
    }
}
