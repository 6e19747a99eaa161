//! Walks the page headers of a finished file, to say how large its pages are.
//!
//! Only headers are read, and decrypted where they are encrypted. The sizes are
//! then held against what the column chunk's metadata says in sum, so a header
//! that was misread cannot go unnoticed.

mod footer;
mod header;
mod thrift;

use std::fs::File;
use std::io;
use std::path::Path;

use parquet::file::metadata::{
    ColumnChunkMetaData, PageIndexPolicy, ParquetMetaData, ParquetMetaDataReader,
};
use parquet::file::reader::{ChunkReader, Length};

use crate::error::{Error, Result};
use crate::keys::KeySet;
use crate::report::{ColumnPages, FileReport, PageSizes, Spread};
use header::{Decryptor, FRAMING, Header, header_aad};

/// Enough for any header that the parquet crate writes without page statistics in it.
const HEADER_WINDOW: usize = 4 << 10;

/// Reads the file at `path` and says what it is made of.
pub(crate) fn walk(path: &Path, keys: Option<&KeySet>) -> Result<FileReport> {
    let unreadable = |source: io::Error| Error::ReadBack {
        path: path.to_owned(),
        source,
    };
    let mut file = File::open(path).map_err(unreadable)?;
    let metadata = metadata(&file, keys).map_err(|source| Error::Parquet {
        path: path.to_owned(),
        source,
    })?;
    let file_aad = match keys {
        Some(keys) => footer::file_aad(&mut file, keys.aad_prefix()).map_err(unreadable)?,
        None => Vec::new(),
    };
    let walk = Walk {
        path,
        file: &file,
        metadata: &metadata,
        keys,
        file_aad,
    };
    walk.report().map(|report| FileReport {
        file_bytes: file.len(),
        ..report
    })
}

fn metadata(
    file: &File,
    keys: Option<&KeySet>,
) -> Result<ParquetMetaData, parquet::errors::ParquetError> {
    let mut reader =
        ParquetMetaDataReader::new().with_offset_index_policy(PageIndexPolicy::Required);
    if let Some(keys) = keys {
        reader = reader.with_decryption_properties(Some(keys.decryption_properties()?));
    }
    reader.parse_and_finish(file)
}

struct Walk<'a> {
    path: &'a Path,
    file: &'a File,
    metadata: &'a ParquetMetaData,
    keys: Option<&'a KeySet>,
    file_aad: Vec<u8>,
}

/// Sizes of many pages, to be summed up.
#[derive(Default)]
struct Sizes {
    rows: Vec<u64>,
    page_bytes: Vec<u64>,
    stored_bytes: Vec<u64>,
}

impl Sizes {
    fn add(&mut self, header: &Header, rows: u64) {
        self.rows.push(rows);
        self.page_bytes.push(header.page_bytes);
        self.stored_bytes.push(header.stored_bytes);
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

/// A place in the file.
#[derive(Clone, Copy)]
struct Place {
    row_group: usize,
    column: usize,
}

impl Walk<'_> {
    fn report(&self) -> Result<FileReport> {
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
        for row_group in 0..self.metadata.num_row_groups() {
            for (column, largest) in column_pages.iter_mut().enumerate() {
                let place = Place { row_group, column };
                self.chunk(place, largest, &mut data, &mut dictionaries)?;
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
            file_bytes: 0,
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
        largest: &mut ColumnPages,
        data: &mut Sizes,
        dictionaries: &mut Sizes,
    ) -> Result<()> {
        let row_group = self.metadata.row_group(place.row_group);
        let chunk = row_group.column(place.column);
        let decryptor = self.decryptor(chunk, place)?;
        let mut stored_sum = 0;
        let mut plain_sum = 0;
        let mut header_at = |offset: i64, page: Option<usize>| {
            let header = self.header(place, offset, page, decryptor.as_ref())?;
            stored_sum += header.header_bytes as u64 + header.stored_bytes;
            plain_sum += header.header_bytes as u64 + header.page_bytes;
            Ok::<_, Error>(header)
        };

        if let Some(offset) = chunk.dictionary_page_offset() {
            let header = header_at(offset, None)?;
            dictionaries.add(&header, header.values);
            largest.dictionary_bytes = largest.dictionary_bytes.max(header.page_bytes);
            largest.stored_dictionary_bytes =
                largest.stored_dictionary_bytes.max(header.stored_bytes);
        }
        let pages = self
            .metadata
            .page_index()
            .and_then(|index| index.page_locations(place.row_group, place.column))
            .ok_or_else(|| self.odd(place, "the offset index is missing"))?;
        for (number, page) in pages.iter().enumerate() {
            let next_row = pages
                .get(number + 1)
                .map_or(row_group.num_rows(), |next| next.first_row_index);
            let rows = u64::try_from(next_row - page.first_row_index)
                .map_err(|_| self.odd(place, "the offset index has its rows out of order"))?;
            let header = header_at(page.offset, Some(number))?;
            data.add(&header, rows);
            largest.largest_page_bytes = largest.largest_page_bytes.max(header.page_bytes);
            largest.largest_stored_page_bytes =
                largest.largest_stored_page_bytes.max(header.stored_bytes);
        }

        let (stored, plain) = (chunk.compressed_size(), chunk.uncompressed_size());
        if u64::try_from(stored) != Ok(stored_sum) || u64::try_from(plain) != Ok(plain_sum) {
            return Err(self.odd(
                place,
                format!("its pages have {stored_sum} bytes ({plain_sum} decompressed), its metadata says {stored} ({plain})"),
            ));
        }
        Ok(())
    }

    fn decryptor(&self, chunk: &ColumnChunkMetaData, place: Place) -> Result<Option<Decryptor>> {
        match (chunk.crypto_metadata(), self.keys) {
            (None, _) => Ok(None),
            (Some(_), Some(keys)) => {
                let key = keys.key_of_column(&chunk.column_path().string());
                Decryptor::new(key)
                    .map(Some)
                    .ok_or_else(|| self.odd(place, "its key cannot be used"))
            }
            (Some(_), None) => Err(self.odd(place, "it is encrypted, and there are no keys")),
        }
    }

    fn header(
        &self,
        place: Place,
        offset: i64,
        page: Option<usize>,
        decryptor: Option<&Decryptor>,
    ) -> Result<Header> {
        let unreadable = |source| Error::Parquet {
            path: self.path.to_owned(),
            source,
        };
        let start =
            u64::try_from(offset).map_err(|_| self.odd(place, "a page lies before the file"))?;
        let length = HEADER_WINDOW.min(self.file.len().saturating_sub(start) as usize);
        let bytes = self.file.get_bytes(start, length).map_err(unreadable)?;
        let header = match decryptor {
            None => Header::read(&bytes),
            Some(decryptor) => header_aad(&self.file_aad, place.row_group, place.column, page)
                .and_then(|aad| Header::decrypt(&bytes, decryptor, &aad)),
        };
        header
            .filter(|header| decryptor.is_none() || header.stored_bytes >= FRAMING as u64)
            .ok_or_else(|| {
                self.odd(
                    place,
                    format!("the page at byte {start} has no readable header"),
                )
            })
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
