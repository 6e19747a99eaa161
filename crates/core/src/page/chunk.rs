//! Walks the pages of one column chunk: header, then body, every length checked against what the file can hold before anything is
//! allocated for it. How bodies are fetched and become pages is in [`load`](super::load).
//!
//! # Requests
//!
//! A page takes two requests at most: one for its header and what follows it, one for its body. With the file's offset index a page
//! takes one, and a page that is skipped none. Small pages are read several at once, as far as
//! [`ColumnOwners::read_ahead`] allows.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use parquet::basic::Compression;
use parquet::column::page::{Page, PageMetadata};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::schema::types::ColumnDescriptor;

use super::bounds::Bounds;
use super::file::FileShared;
use super::header::{Found, HEADER_MAX, Wanted, invalid};
use super::index::{Listed, Listing};
use super::owners::ColumnOwners;
use super::place::{Place, located};
use super::window::{HEADER_WINDOW, Window};
use crate::buffer::Lease;
use crate::crypto::ColumnCrypto;
use crate::format::page_header::{PageHeader, PageKind};
use crate::source::ReadAt;

/// A longer header than expected is looked for in a window that grows by this factor, up to the chunk's end.
const WINDOW_GROWTH: usize = 8;

/// Pages are read ahead where the last one took less than this part of the column's read-ahead: several then come at once, and what
/// is held for them is little beside the requests that it saves.
const SMALL_PAGE: usize = 8;
/// A chunk is read at once where it takes no more than this part of the column's read-ahead.
const SMALL_CHUNK: usize = 8;

/// A page whose header has been read and whose body has not.
#[derive(Clone)]
pub(super) struct Pending {
    pub(super) header: PageHeader,
    /// Bytes of the header in the file.
    pub(super) header_len: usize,
    /// Where the body starts, bytes from the start of the file.
    pub(super) body: u64,
    /// The page's number among the chunk's data pages.
    pub(super) ordinal: usize,
}

impl Pending {
    pub(super) fn range(&self) -> Range<u64> {
        self.body..self.body.saturating_add(self.header.stored_size as u64)
    }
}

/// A dictionary page that was passed over.
enum Skipped {
    Read(Pending),
    Listed(Listing),
}

/// A page's header and its bytes, decrypted and decompressed.
pub(crate) struct RawPage {
    pub(crate) header: PageHeader,
    pub(crate) bytes: Bytes,
}

/// Where a page's values begin, as far as its header lets one expect it: the page is placed so that they are aligned.
pub(crate) type ExpectedValues = fn(&PageHeader, &ColumnDescriptor) -> usize;

/// What the column's last page was like: the next one is expected to be so.
pub(super) struct Last {
    /// Bytes of header and body; 0 before the first page.
    pub(super) len: usize,
    pub(super) header_len: usize,
    /// Bytes from the start of the header to the values, the framing of an encrypted body apart.
    pub(super) values_at: usize,
    pub(super) is_compressed: bool,
    /// Whether it was passed over.
    was_skipped: bool,
}

/// A position among the pages of one column chunk.
pub(crate) struct ChunkCursor<T> {
    pub(super) file: Arc<FileShared<T>>,
    pub(super) owners: ColumnOwners,
    pub(super) crypto: Option<ColumnCrypto>,
    pub(super) codec: Compression,
    pub(super) row_group: usize,
    pub(super) column: usize,
    pub(super) bounds: Bounds,
    /// Next byte to read, from the start of the file.
    at: u64,
    /// The chunk's pages, which may end behind the file's end.
    chunk: Range<u64>,
    /// The pages by the file's offset index, where that was loaded and fits the chunk.
    listed: Option<Listed>,
    /// Data pages passed so far, read or skipped.
    data_pages: usize,
    /// Whether the next page is the dictionary page, which has modules of its own when encrypted.
    expect_dictionary: bool,
    peeked: Option<Pending>,
    skipped_dictionary: Option<Skipped>,
    pub(super) window: Window,
    pub(super) last: Last,
    /// What is being read, for errors.
    pub(super) place: Option<Place>,
    /// The page that was given last.
    given: Option<Place>,
    /// The page that was given last, until the next one is asked for.
    pub(super) lease: Option<Lease>,
}

impl<T: ReadAt> ChunkCursor<T> {
    /// A cursor before the first page of leaf column `column` in row group `row_group`.
    pub(crate) fn try_new(
        file: Arc<FileShared<T>>,
        owners: ColumnOwners,
        row_group: usize,
        column: usize,
    ) -> Result<Self> {
        let group = file.metadata.row_group(row_group);
        let chunk = group.column(column);
        let crypto = ColumnCrypto::for_chunk(file.crypto.as_ref(), chunk, row_group, column)
            .map_err(|e| located(e, chunk, row_group, None))?;
        let extent = extent(chunk).map_err(|e| located(e, chunk, row_group, None))?;
        let listed = match extent.end <= file.len {
            true => Listed::new(&file.metadata, row_group, column, extent.clone()),
            false => None,
        };
        Ok(Self {
            codec: chunk.compression(),
            bounds: Bounds::new(file.limits, group, chunk, crypto.is_some()),
            expect_dictionary: chunk.dictionary_page_offset().is_some(),
            owners,
            crypto,
            row_group,
            column,
            at: extent.start,
            chunk: extent,
            listed,
            data_pages: 0,
            peeked: None,
            skipped_dictionary: None,
            window: Window::new(),
            last: Last {
                len: 0,
                header_len: 0,
                values_at: 0,
                is_compressed: chunk.compression() != Compression::UNCOMPRESSED,
                was_skipped: false,
            },
            place: None,
            given: None,
            lease: None,
            file,
        })
    }

    /// Whether no bytes of the chunk are left.
    pub(crate) fn is_exhausted(&self) -> bool {
        self.peeked.is_none() && self.at >= self.chunk.end
    }

    /// What a decoder may know of the next page; `None` at the end of the chunk. With the offset index nothing is read for it.
    pub(crate) fn peek(&mut self) -> Result<Option<PageMetadata>> {
        if let Some(listing) = self.listing() {
            return Ok(Some(PageMetadata {
                num_rows: listing.rows,
                num_levels: listing.rows.filter(|_| self.is_flat()),
                is_dict: listing.is_dictionary(),
            }));
        }
        self.locate(Self::fill_peeked)?;
        Ok(self
            .peeked
            .as_ref()
            .and_then(|pending| pending.header.metadata()))
    }

    /// Reads the next page; `None` at the end of the chunk. The page that was given before must not be needed any more.
    pub(crate) fn next_page(&mut self) -> Result<Option<Page>> {
        let raw = self.next(None)?;
        Ok(raw.map(|raw| page(&raw.header, raw.bytes)))
    }

    /// As [`next_page`](Self::next_page), without the parquet crate's form; the page is placed so that its values are aligned if
    /// they begin where `values_at` says.
    pub(crate) fn next_raw(&mut self, values_at: ExpectedValues) -> Result<Option<RawPage>> {
        self.next(Some(values_at))
    }

    fn next(&mut self, values_at: Option<ExpectedValues>) -> Result<Option<RawPage>> {
        self.lease = None;
        self.locate(|cursor| {
            let raw = match cursor.listing() {
                Some(listing) => {
                    let ordinal = cursor.data_pages;
                    cursor.pass_listed(&listing);
                    cursor.load_listed(&listing, ordinal, values_at)?
                }
                None => {
                    let Some(pending) = cursor.take_pending()? else {
                        return Ok(None);
                    };
                    cursor.load(&pending, values_at)?
                }
            };
            cursor.last.was_skipped = false;
            cursor.given = cursor.place;
            if cursor.is_exhausted() {
                cursor.window.free();
            }
            Ok(Some(raw))
        })
    }

    /// The column's place in the schema, and its levels.
    pub(crate) fn descriptor(&self) -> &ColumnDescriptor {
        self.chunk_metadata().column_descr()
    }

    /// Whether nothing repeats: a level is then a row.
    pub(super) fn is_flat(&self) -> bool {
        self.descriptor().max_rep_level() == 0
    }

    fn chunk_metadata(&self) -> &ColumnChunkMetaData {
        let row_group = self.file.metadata.row_group(self.row_group);
        row_group.column(self.column)
    }

    /// The next page's header and where its body starts, and moves behind the page without reading
    /// its body; `None` at the end of the chunk. The offset index is not used: headers are what is asked for.
    pub(crate) fn next_header(&mut self) -> Result<Option<(PageHeader, u64)>> {
        self.listed = None;
        let pending = self.locate(Self::take_pending)?;
        Ok(pending.map(|pending| (pending.header, pending.body)))
    }

    /// Passes over the next page without reading its body, and with the offset index without reading anything. A dictionary page is
    /// remembered.
    pub(crate) fn skip_page(&mut self) -> Result<()> {
        self.last.was_skipped = true;
        if let Some(listing) = self.listing() {
            self.pass_listed(&listing);
            if listing.is_dictionary() {
                self.skipped_dictionary = Some(Skipped::Listed(listing));
            }
            return Ok(());
        }
        self.locate(|cursor| {
            if let Some(pending) = cursor.take_pending()?
                && pending.header.is_dictionary()
            {
                cursor.skipped_dictionary = Some(Skipped::Read(pending));
            }
            Ok(())
        })
    }

    /// Reads a dictionary page that was skipped, if there is one.
    pub(crate) fn take_skipped_dictionary(&mut self) -> Result<Option<Page>> {
        let raw = self.take_skipped_raw_dictionary()?;
        Ok(raw.map(|raw| page(&raw.header, raw.bytes)))
    }

    /// As [`take_skipped_dictionary`](Self::take_skipped_dictionary), without the parquet crate's form.
    pub(crate) fn take_skipped_raw_dictionary(&mut self) -> Result<Option<RawPage>> {
        let Some(skipped) = self.skipped_dictionary.take() else {
            return Ok(None);
        };
        self.locate(|cursor| {
            let raw = match &skipped {
                Skipped::Read(pending) => cursor.load(pending, None),
                Skipped::Listed(listing) => cursor.load_listed(listing, 0, None),
            };
            raw.map(Some)
        })
    }

    fn locate<R>(&mut self, f: impl FnOnce(&mut Self) -> Result<R>) -> Result<R> {
        f(self).map_err(|e| located(e, self.chunk_metadata(), self.row_group, self.place))
    }

    /// Says where `error` happened, which was found in the page that was given last.
    pub(crate) fn located(&self, error: ParquetError) -> ParquetError {
        located(error, self.chunk_metadata(), self.row_group, self.given)
    }

    /// The next page by the offset index; `None` without one, and at the end of the chunk.
    fn listing(&self) -> Option<Listing> {
        let listed = self.listed.as_ref()?;
        listed.peek(&self.file.metadata, self.row_group, self.column)
    }

    /// Moves behind a page that the offset index lists.
    fn pass_listed(&mut self, listing: &Listing) {
        if let Some(listed) = &mut self.listed {
            listed.pass();
        }
        self.at = listing.range.end;
        if listing.is_dictionary() {
            self.expect_dictionary = false;
        } else {
            self.data_pages += 1;
        }
    }

    /// Where read-ahead from `listing` on, which was just passed, may end: behind the last whole page that fits.
    pub(super) fn listed_reach(&self, listing: &Listing) -> u64 {
        let ahead = self.owners.read_ahead();
        let is_small =
            self.fits(ahead) || (listing.len() < ahead / SMALL_PAGE && !self.last.was_skipped);
        match &self.listed {
            Some(listed) if is_small => listed.reach(
                &self.file.metadata,
                self.row_group,
                self.column,
                listing.range.start,
                ahead,
            ),
            _ => listing.range.end,
        }
    }

    /// Whether the whole chunk is small beside a read-ahead of `ahead` bytes.
    fn fits(&self, ahead: usize) -> bool {
        self.chunk.end - self.chunk.start <= (ahead / SMALL_CHUNK) as u64
    }

    /// Makes `peeked` the next page that decoders see: index pages are passed over.
    fn fill_peeked(&mut self) -> Result<()> {
        while self.peeked.is_none() && self.at < self.chunk.end {
            let ordinal = self.data_pages;
            let pending = self.read_header(self.at, self.expect_dictionary, ordinal)?;
            self.place = Some(Place::of(&pending.header, ordinal));
            if pending.header.kind == PageKind::Index {
                self.at = pending.range().end;
                continue;
            }
            self.bounds.check_counts(&pending.header)?;
            self.peeked = Some(pending);
        }
        Ok(())
    }

    /// Takes the next page's header and moves behind its body.
    fn take_pending(&mut self) -> Result<Option<Pending>> {
        self.fill_peeked()?;
        let Some(pending) = self.peeked.take() else {
            return Ok(None);
        };
        self.bounds.pass(&pending.header);
        self.at = pending.range().end;
        self.last.header_len = pending.header_len;
        self.last.len = pending.header_len + pending.header.stored_size;
        if pending.header.is_dictionary() {
            self.expect_dictionary = false;
        } else {
            self.data_pages += 1;
        }
        Ok(Some(pending))
    }

    /// Bytes from `at` to the end of the chunk, or of the file where that comes first.
    pub(super) fn bytes_from(&self, at: u64) -> u64 {
        self.chunk.end.min(self.file.len).saturating_sub(at)
    }

    /// Reads the header at `at`, which is a dictionary page's when encrypted if `dictionary`; checks that the body has room.
    pub(super) fn read_header(
        &mut self,
        at: u64,
        dictionary: bool,
        ordinal: usize,
    ) -> Result<Pending> {
        self.place = Some(Place::new(dictionary, ordinal));
        let most = usize::try_from(self.bytes_from(at)).unwrap_or(usize::MAX);
        if most == 0 {
            return Err(ParquetError::EOF(
                "the file ends before its column chunk does: it was cut short".into(),
            ));
        }
        // What is held already was read ahead, and stays.
        let first = match self.window.behind(at).is_empty() {
            true => self.window_len().min(most),
            false => HEADER_WINDOW.min(most),
        };
        let wanted = Wanted {
            crypto: self.crypto.as_ref(),
            dictionary,
            ordinal,
            most,
        };
        loop {
            let held = self.window.behind(at);
            let held_len = held.len();
            let needed = match held_len {
                0 => first,
                _ => match wanted.parse(held)? {
                    Found::Header(header, header_len) => {
                        return self.pending(header, header_len, at, ordinal);
                    }
                    Found::Start(len) => {
                        let most = most.min(HEADER_MAX);
                        if held_len >= most {
                            return Err(invalid("it does not end where it should at the latest"));
                        }
                        len.unwrap_or(held_len.saturating_mul(WINDOW_GROWTH))
                            .max(first)
                            .min(most)
                    }
                },
            };
            self.window.fill(&self.file, at, needed, self.column)?;
        }
    }

    /// The page whose header was found at `at`, if the chunk has room for its body.
    pub(super) fn pending(
        &self,
        header: PageHeader,
        header_len: usize,
        at: u64,
        ordinal: usize,
    ) -> Result<Pending> {
        let body = at + header_len as u64;
        let remaining = self.bytes_from(body);
        if header.stored_size as u64 > remaining {
            return Err(ParquetError::EOF(format!(
                "a page says that it takes {} bytes and {remaining} are left of its column chunk or of the file",
                header.stored_size
            )));
        }
        Ok(Pending {
            header,
            header_len,
            body,
            ordinal,
        })
    }

    /// How many bytes to ask for where a header is expected.
    fn window_len(&mut self) -> usize {
        let ahead = self.owners.read_ahead();
        let len = self.last.header_len.next_multiple_of(HEADER_WINDOW);
        let is_small =
            self.fits(ahead) || (self.last.len > 0 && self.last.len < ahead / SMALL_PAGE);
        if is_small {
            return ahead.max(len).max(HEADER_WINDOW);
        }
        self.window.free();
        len.max(HEADER_WINDOW)
    }
}

/// Where a chunk's pages lie by the file's metadata, which may be behind the file's end.
fn extent(chunk: &ColumnChunkMetaData) -> Result<Range<u64>> {
    let start = chunk
        .dictionary_page_offset()
        .unwrap_or_else(|| chunk.data_page_offset());
    let (start, len) = u64::try_from(start)
        .ok()
        .zip(u64::try_from(chunk.compressed_size()).ok())
        .ok_or_else(|| ParquetError::General("the column chunk's place is negative".into()))?;
    Ok(start..start.saturating_add(len))
}

/// The parquet crate's form of a page.
fn page(header: &PageHeader, buf: Bytes) -> Page {
    match header.kind {
        PageKind::Dictionary {
            num_values,
            encoding,
            is_sorted,
        } => Page::DictionaryPage {
            buf,
            num_values,
            encoding,
            is_sorted,
        },
        PageKind::DataV2 {
            num_values,
            num_nulls,
            num_rows,
            encoding,
            def_levels_byte_len,
            rep_levels_byte_len,
            is_compressed,
        } => Page::DataPageV2 {
            buf,
            num_values,
            encoding,
            num_nulls,
            num_rows,
            def_levels_byte_len,
            rep_levels_byte_len,
            is_compressed,
            statistics: None,
        },
        PageKind::DataV1 {
            num_values,
            encoding,
            def_level_encoding,
            rep_level_encoding,
        } => Page::DataPage {
            buf,
            num_values,
            encoding,
            def_level_encoding,
            rep_level_encoding,
            statistics: None,
        },
        PageKind::Index => unreachable!("index pages are passed over when headers are read"),
    }
}
