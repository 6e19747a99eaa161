//! Writes a dataset's Parquet file into any sink, with the parquet crate's own
//! column writers: column after column, so that one chunk is open at a time.

use std::io::Write;
use std::sync::Arc;

use parquet::file::writer::SerializedFileWriter;

use super::chunk::{Chunk, ChunkError};
use crate::dataset::Dataset;
use crate::progress::Progress;

/// Why a file was not finished.
#[derive(Debug)]
pub(crate) enum WriteError {
    Chunk(ChunkError),
    /// The definition's keys could not be resolved.
    Definition(crate::Error),
}

impl<E: Into<ChunkError>> From<E> for WriteError {
    fn from(error: E) -> Self {
        Self::Chunk(error.into())
    }
}

/// Writes the whole file and returns its length in bytes.
pub(crate) fn write<W: Write + Send>(
    dataset: &Dataset,
    sink: W,
    progress: &dyn Progress,
) -> Result<u64, WriteError> {
    let properties = dataset
        .writer_properties()
        .map_err(WriteError::Definition)?;
    let schema = dataset.parquet_schema().root_schema_ptr();
    let mut file = SerializedFileWriter::new(sink, schema, Arc::new(properties))?;
    for row_group in 0..dataset.layout().row_groups {
        let mut writer = file.next_row_group()?;
        for group in dataset.columns() {
            for column in group.column_names() {
                // Never `None`: the schema was made of the same columns.
                let Some(mut column_writer) = writer.next_column()? else {
                    break;
                };
                Chunk {
                    seed: dataset.seed(),
                    layout: dataset.layout(),
                    group,
                    column: &column,
                    row_group,
                    progress,
                }
                .write(&mut column_writer)?;
                column_writer.close()?;
            }
        }
        writer.close()?;
    }
    file.finish()?;
    Ok(file.bytes_written() as u64)
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    /// A disk with room for so many bytes.
    struct Disk(usize);

    impl Write for Disk {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if self.0 == 0 {
                return Err(io::ErrorKind::StorageFull.into());
            }
            let written = bytes.len().min(self.0);
            self.0 -= written;
            Ok(written)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn dataset() -> Dataset {
        Dataset::parse(
            "small",
            "description = ''\nseed = 1\n[file]\nrow_groups = 2\nrows_per_row_group = 5_000\npage_bytes = 4096\ncompression = 'none'\n[[columns]]\nname = 'f'\ntype = 'float32'\n",
        )
        .unwrap()
    }

    #[test]
    fn the_length_is_that_of_the_file() {
        let mut file = Vec::new();
        let length = write(&dataset(), &mut file, &()).unwrap();
        assert_eq!(length, file.len() as u64);
    }

    #[test]
    fn a_full_disk_is_an_error_wherever_it_fills() {
        let mut file = Vec::new();
        write(&dataset(), &mut file, &()).unwrap();
        for room in [0, 3, 10_000, file.len() / 2, file.len() - 1] {
            let error = write(&dataset(), Disk(room), &()).unwrap_err();
            let WriteError::Chunk(ChunkError::Parquet(error)) = error else {
                panic!("{error:?}");
            };
            let error = crate::Error::from_parquet_write("f.parquet".as_ref(), error);
            assert!(
                matches!(error, crate::Error::Write { .. }),
                "{room}: {error}"
            );
        }
    }
}
