//! Says how large the pages of a finished file are, from its page headers.
//!
//! The headers are read (and decrypted) by `alloquet-core`, which sees to it that the pages of a
//! column chunk fill it to the byte. Here they are held against what the parquet crate wrote of
//! them elsewhere: the offset index and the chunk's metadata. So a header that was misread cannot
//! go unnoticed, nor can a file that was damaged. Page bodies are not read.

use std::fs::File;
use std::path::Path;

use alloquet_core::{PageInfo, ReaderBuilder};
use parquet::arrow::arrow_reader::ArrowReaderOptions;
use parquet::basic::PageType;
use parquet::errors::ParquetError;
use parquet::file::metadata::{PageIndexPolicy, ParquetMetaData};

use crate::error::{Error, Result};
use crate::keys::KeySet;
use crate::report::{ColumnPages, FileReport, PageSizes, Spread};

/// Bytes that encryption adds to a page: length, nonce and tag.
const FRAMING: u64 = 4 + 12 + 16;

/// Reads the page headers of the file at `path` and says what it is made of.
pub(crate) fn walk(path: &Path, keys: Option<&KeySet>) -> Result<FileReport> {
    let unreadable = |source| Error::ReadBack {
        path: path.to_owned(),
        source,
    };
    let file = File::open(path).map_err(unreadable)?;
    let file_bytes = file.metadata().map_err(unreadable)?.len();
    let invalid = |source| Error::Parquet {
        path: path.to_owned(),
        source,
    };
    let builder = builder(file, keys).map_err(invalid)?;
    let pages = builder.pages().map_err(invalid)?;
    let walk = Walk {
        path,
        metadata: builder.metadata(),
    };
    walk.report(file_bytes, &pages)
}

fn builder(file: File, keys: Option<&KeySet>) -> Result<ReaderBuilder<File>, ParquetError> {
    let mut options = ArrowReaderOptions::new().with_offset_index_policy(PageIndexPolicy::Required);
    if let Some(keys) = keys {
        options = options.with_file_decryption_properties(keys.decryption_properties()?);
    }
    ReaderBuilder::try_new_with_options(file, options)
}

struct Walk<'a> {
    path: &'a Path,
    metadata: &'a ParquetMetaData,
}

/// Sizes of many pages, to be summed up.
#[derive(Default)]
struct Sizes {
    rows: Vec<u64>,
    page_bytes: Vec<u64>,
    stored_bytes: Vec<u64>,
}

impl Sizes {
    fn add(&mut self, page: &PageInfo, rows: u64) {
        self.rows.push(rows);
        self.page_bytes.push(page.uncompressed_bytes);
        self.stored_bytes.push(page.stored_bytes);
    }

    fn spread(self) -> Option<PageSizes> {
        Some(PageSizes {
            count: self.rows.len() as u64,
            rows: Spread::of(self.rows)?,
            page_bytes: Spread::of(self.page_bytes)?,
            stored_bytes: Spread::of(self.stored_bytes)?,
        })
    }
}

/// A column chunk.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Place {
    row_group: usize,
    column: usize,
}

impl Place {
    fn of(page: &PageInfo) -> Self {
        Self {
            row_group: page.row_group,
            column: page.column,
        }
    }
}

impl Walk<'_> {
    /// `pages` are the file's, in the order of its chunks.
    fn report(&self, file_bytes: u64, pages: &[PageInfo]) -> Result<FileReport> {
        let schema = self.metadata.file_metadata().schema_descr();
        let mut column_pages: Vec<ColumnPages> = schema
            .columns()
            .iter()
            .map(|column| ColumnPages {
                column: column.path().string(),
                largest_page_bytes: 0,
                largest_stored_page_bytes: 0,
                dictionary_bytes: 0,
                stored_dictionary_bytes: 0,
            })
            .collect();
        let (mut data, mut dictionaries) = (Sizes::default(), Sizes::default());
        let mut rest = pages;
        for row_group in 0..self.metadata.num_row_groups() {
            for (column, largest) in column_pages.iter_mut().enumerate() {
                let place = Place { row_group, column };
                let count = rest
                    .iter()
                    .take_while(|page| Place::of(page) == place)
                    .count();
                let (chunk, behind) = rest.split_at(count);
                rest = behind;
                self.chunk(place, chunk, largest, &mut data, &mut dictionaries)?;
            }
        }
        let none = Spread {
            min: 0,
            median: 0,
            max: 0,
        };
        Ok(FileReport {
            rows: u64::try_from(self.metadata.file_metadata().num_rows()).unwrap_or_default(),
            columns: column_pages.len(),
            row_groups: self.metadata.num_row_groups(),
            file_bytes,
            data_pages: data.spread().unwrap_or(PageSizes {
                count: 0,
                rows: none,
                page_bytes: none,
                stored_bytes: none,
            }),
            dictionary_pages: dictionaries.spread(),
            column_pages,
        })
    }

    fn chunk(
        &self,
        place: Place,
        pages: &[PageInfo],
        largest: &mut ColumnPages,
        data: &mut Sizes,
        dictionaries: &mut Sizes,
    ) -> Result<()> {
        let chunk = self
            .metadata
            .row_group(place.row_group)
            .column(place.column);
        let least = if chunk.crypto_metadata().is_some() {
            FRAMING
        } else {
            0
        };
        let mut rows = self.rows_of_pages(place)?.into_iter();
        // Not negative, which would panic: core has walked it.
        let (start, stored) = chunk.byte_range();
        let mut header_at = start;
        let mut plain_sum = 0;
        for page in pages {
            if page.stored_bytes < least {
                return Err(self.odd(
                    place,
                    format!(
                        "the page at byte {} is encrypted and has {} bytes",
                        page.offset, page.stored_bytes
                    ),
                ));
            }
            if page.page_type == PageType::DICTIONARY_PAGE {
                dictionaries.add(page, u64::from(page.num_values));
                largest.dictionary_bytes = largest.dictionary_bytes.max(page.uncompressed_bytes);
                largest.stored_dictionary_bytes =
                    largest.stored_dictionary_bytes.max(page.stored_bytes);
            } else {
                // The offset index has a page's header for its start.
                let rows = rows
                    .next()
                    .filter(|indexed| indexed.start == header_at)
                    .ok_or_else(|| {
                        self.odd(
                            place,
                            format!("the offset index does not have the page at byte {header_at}"),
                        )
                    })?;
                data.add(page, rows.count);
                largest.largest_page_bytes =
                    largest.largest_page_bytes.max(page.uncompressed_bytes);
                largest.largest_stored_page_bytes =
                    largest.largest_stored_page_bytes.max(page.stored_bytes);
            }
            plain_sum += page.offset - header_at + page.uncompressed_bytes;
            header_at = page.offset + page.stored_bytes;
        }
        if rows.next().is_some() {
            return Err(self.odd(place, "the offset index has more pages than there are"));
        }

        let stored_sum = header_at - start;
        let plain = chunk.uncompressed_size();
        if stored != stored_sum || u64::try_from(plain) != Ok(plain_sum) {
            return Err(self.odd(
                place,
                format!("its pages have {stored_sum} bytes ({plain_sum} decompressed), its metadata says {stored} ({plain})"),
            ));
        }
        Ok(())
    }

    /// The rows of each data page by the offset index: a header counts values, which are not rows
    /// where something repeats.
    fn rows_of_pages(&self, place: Place) -> Result<Vec<PageRows>> {
        let pages = self
            .metadata
            .page_index()
            .and_then(|index| index.page_locations(place.row_group, place.column))
            .ok_or_else(|| self.odd(place, "the offset index is missing"))?;
        let end = self.metadata.row_group(place.row_group).num_rows();
        let next_rows = pages.iter().skip(1).map(|page| page.first_row_index);
        pages
            .iter()
            .zip(next_rows.chain([end]))
            .map(|(page, next_row)| {
                let count = next_row
                    .checked_sub(page.first_row_index)
                    .and_then(|count| u64::try_from(count).ok())
                    .ok_or_else(|| self.odd(place, "the offset index has its rows out of order"))?;
                let start = u64::try_from(page.offset)
                    .map_err(|_| self.odd(place, "a page lies before the file"))?;
                Ok(PageRows { start, count })
            })
            .collect()
    }

    fn odd(&self, place: Place, message: impl Into<String>) -> Error {
        Error::Pages {
            path: self.path.to_owned(),
            row_group: place.row_group,
            column: place.column,
            message: message.into(),
        }
    }
}

/// A data page by the offset index.
struct PageRows {
    /// Where its header starts, bytes from the start of the file.
    start: u64,
    count: u64,
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::dataset::Dataset;
    use crate::generate::generate;

    #[test]
    fn a_header_that_the_metadata_contradicts_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let dataset = Dataset::parse(
            "small",
            "description = ''\nseed = 1\n[file]\nrow_groups = 1\nrows_per_row_group = 5_000\npage_bytes = 4096\ncompression = 'none'\n[[columns]]\nname = 'f'\ntype = 'float32'\n",
        )
        .unwrap();
        let path = generate(&dataset, folder.path(), &()).unwrap().path;
        let mut bytes = fs::read(&path).unwrap();
        // Behind the magic: the field of the type, and that of the decompressed size.
        assert_eq!(bytes[4..7], [0x15, 0, 0x15]);
        bytes[7] ^= 2;
        fs::write(&path, bytes).unwrap();
        let error = walk(&path, None).unwrap_err();
        assert!(
            matches!(
                error,
                Error::Pages {
                    row_group: 0,
                    column: 0,
                    ..
                }
            ),
            "{error}"
        );
        assert!(error.to_string().contains("decompressed"), "{error}");
    }
}
