//! Where finished pages stay until their column chunk is complete: in memory, in a temporary file, or in
//! the file itself.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use parquet::errors::{ParquetError, Result};

use crate::source::ReadAt;

/// A page that waits, header included.
pub(super) enum Stored {
    Memory(Box<[u8]>),
    /// `len` bytes of the spill file.
    Spilled {
        offset: u64,
        len: u32,
    },
}

impl Stored {
    /// A copy in memory of a page in parts, as large as they are.
    pub(super) fn copy_of(parts: &[&[u8]]) -> Self {
        let mut page = Vec::with_capacity(parts.iter().map(|part| part.len()).sum());
        for part in parts {
            page.extend_from_slice(part);
        }
        Self::Memory(page.into_boxed_slice())
    }

    /// Bytes in the heap.
    pub(super) fn heap_bytes(&self) -> usize {
        match self {
            Self::Memory(page) => page.len(),
            Self::Spilled { .. } => 0,
        }
    }
}

/// Bytes that are copied from the spill file at once.
const COPY_BYTES: usize = 16 << 10;

/// A temporary file without a name that the pages of all columns of a row group go to. Nothing of it is left
/// behind, however the process ends.
pub(super) struct Spill {
    folder: PathBuf,
    file: Option<BufWriter<File>>,
    len: u64,
    copy: Vec<u8>,
}

impl Spill {
    pub(super) fn new(folder: &Path) -> Self {
        Self {
            folder: folder.to_owned(),
            file: None,
            len: 0,
            copy: Vec::new(),
        }
    }

    /// Appends a page.
    ///
    /// # Errors
    /// The folder takes no file, or its disk is full; the message names the folder.
    pub(super) fn store(&mut self, parts: &[&[u8]]) -> Result<Stored> {
        let file = match &mut self.file {
            Some(file) => file,
            none => {
                let file = tempfile::tempfile_in(&self.folder)
                    .map_err(|error| failed("make", &self.folder, &error))?;
                none.insert(BufWriter::new(file))
            }
        };
        let offset = self.len;
        for part in parts {
            file.write_all(part)
                .map_err(|error| failed("write to", &self.folder, &error))?;
            self.len += part.len() as u64;
        }
        let len = u32::try_from(self.len - offset)
            .map_err(|_| ParquetError::General("a page is larger than 4 GiB".into()))?;
        Ok(Stored::Spilled { offset, len })
    }

    /// Writes a page to `out`.
    ///
    /// # Errors
    /// Those of the temporary file and of `out`.
    pub(super) fn copy_to(&mut self, page: &Stored, out: &mut impl Write) -> Result<()> {
        let (mut offset, len) = match page {
            Stored::Memory(page) => return Ok(out.write_all(page)?),
            Stored::Spilled { offset, len } => (*offset, *len),
        };
        let Some(file) = &mut self.file else {
            return Err(ParquetError::General("no page was spilled".into()));
        };
        file.flush()
            .map_err(|error| failed("write to", &self.folder, &error))?;
        if self.copy.is_empty() {
            self.copy = vec![0; COPY_BYTES];
        }
        let mut left = len as usize;
        while left > 0 {
            let piece = left.min(COPY_BYTES);
            let (piece, at) = (&mut self.copy[..piece], offset);
            ReadAt::read_exact_at(file.get_ref(), piece, at)
                .map_err(|error| failed("read back from", &self.folder, &error))?;
            out.write_all(piece)?;
            left -= piece.len();
            offset += piece.len() as u64;
        }
        Ok(())
    }

    /// Forgets all pages; what the file takes on the disk is given back.
    ///
    /// # Errors
    /// Those of the temporary file.
    pub(super) fn clear(&mut self) -> Result<()> {
        if self.len > 0
            && let Some(mut file) = self.file.take()
        {
            let failed = |error| failed("empty", &self.folder, &error);
            file.flush().map_err(failed)?;
            file.get_ref().set_len(0).map_err(failed)?;
            io::Seek::rewind(file.get_mut()).map_err(failed)?;
            self.file = Some(file);
            self.len = 0;
        }
        Ok(())
    }

    /// Bytes in the heap.
    pub(super) fn heap_bytes(&self) -> usize {
        self.copy.capacity() + self.file.as_ref().map_or(0, BufWriter::capacity)
    }
}

fn failed(what: &str, folder: &Path, error: &io::Error) -> ParquetError {
    ParquetError::General(format!(
        "cannot {what} a temporary file in {}, where sink=spill keeps pages: {error}; with_spill_folder sets another folder",
        folder.display()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_spilled_comes_back_and_its_room_is_given_back() {
        let folder = tempfile::tempdir().unwrap();
        let mut spill = Spill::new(folder.path());
        for round in 0..2u8 {
            // Longer than what is copied at once, and shorter.
            let pages: Vec<Vec<u8>> = [3 * COPY_BYTES + 7, 0, 5]
                .map(|len| vec![round + len as u8; len])
                .into();
            let stored: Vec<Stored> = pages
                .iter()
                .map(|page| spill.store(&[&page[..page.len() / 2], &page[page.len() / 2..]]))
                .collect::<Result<_>>()
                .unwrap();
            for (page, stored) in pages.iter().zip(&stored).rev() {
                let mut out = b"before".to_vec();
                spill.copy_to(stored, &mut out).unwrap();
                assert_eq!(out[6..], page[..]);
                assert_eq!(stored.heap_bytes(), 0);
            }
            let on_disk = |spill: &Spill| {
                let file = spill.file.as_ref().unwrap();
                file.get_ref().metadata().unwrap().len()
            };
            assert_eq!(on_disk(&spill), (3 * COPY_BYTES + 12) as u64);
            spill.clear().unwrap();
            assert_eq!(on_disk(&spill), 0);
        }
        // It never had a name.
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
