//! Walks the pages of one column chunk: header, then body, each byte read once, every length checked
//! against what the file can hold before anything is allocated for it.

use std::sync::Arc;

use bytes::Bytes;
use parquet::basic::Compression;
use parquet::column::page::{Page, PageMetadata};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::schema::types::ColumnDescriptor;

use super::counts;
use super::file::FileShared;
use super::owners::ColumnOwners;
use crate::buffer::{Buffer, Home, Lease};
use crate::codec;
use crate::crypto::{ColumnCrypto, FRAMING_LEN, LENGTH_LEN, Module};
use crate::format::page_header::{PageHeader, PageKind};
use crate::format::thrift::ThriftError;
use crate::source::ReadAt;

/// A header is first looked for in this many bytes; a data page's takes some 30, encrypted some 60.
const HEADER_WINDOW: usize = 256;
/// A longer header is looked for in a window that grows by this factor, up to the chunk's end.
const WINDOW_GROWTH: usize = 8;
/// No header is longer: one that says so is damaged, and is not followed through the whole chunk.
const HEADER_MAX: usize = 16 << 20;

/// A page whose header has been read and whose body has not.
#[derive(Clone)]
struct Pending {
    header: PageHeader,
    /// Where the body starts, bytes from the start of the file.
    body: u64,
    /// The page's number among the chunk's data pages.
    ordinal: usize,
}

/// A page's header and its bytes, decrypted and decompressed.
pub(crate) struct RawPage {
    pub(crate) header: PageHeader,
    pub(crate) bytes: Bytes,
}

/// Where a page's values begin, as far as its header lets one expect it: the page is placed so that they are aligned.
pub(crate) type ExpectedValues = fn(&PageHeader, &ColumnDescriptor) -> usize;

/// Bytes that a page's values are aligned to, where they are where they were expected. Allocators give large blocks at multiples
/// of 16 and more.
const ALIGNMENT: usize = 16;

/// A position among the pages of one column chunk.
pub(crate) struct ChunkCursor<T> {
    file: Arc<FileShared<T>>,
    owners: ColumnOwners,
    crypto: Option<ColumnCrypto>,
    codec: Compression,
    row_group: usize,
    column: usize,
    /// Decompressed size of the chunk by its metadata, bytes; `None` where that does not say.
    uncompressed_size: Option<u64>,
    /// Next byte to read, from the start of the file.
    at: u64,
    /// End of the chunk.
    end: u64,
    /// Data pages passed so far, read or skipped.
    data_pages: usize,
    /// Whether the next page is the dictionary page, which has modules of its own when encrypted.
    expect_dictionary: bool,
    peeked: Option<Pending>,
    skipped_dictionary: Option<Pending>,
    /// The page that was given last, until the next one is asked for.
    lease: Option<Lease>,
}

impl<T: ReadAt> ChunkCursor<T> {
    /// A cursor before the first page of leaf column `column` in row group `row_group`.
    pub(crate) fn try_new(
        file: Arc<FileShared<T>>,
        owners: ColumnOwners,
        row_group: usize,
        column: usize,
    ) -> Result<Self> {
        let chunk = file.metadata.row_group(row_group).column(column);
        let crypto = ColumnCrypto::for_chunk(file.crypto.as_ref(), chunk, row_group, column)
            .map_err(|e| located(e, chunk, row_group))?;
        let (at, end) = extent(chunk).map_err(|e| located(e, chunk, row_group))?;
        Ok(Self {
            codec: chunk.compression(),
            // DuckDB before 0.6 wrote 0.
            uncompressed_size: u64::try_from(chunk.uncompressed_size())
                .ok()
                .filter(|size| *size > 0),
            expect_dictionary: chunk.dictionary_page_offset().is_some(),
            owners,
            crypto,
            row_group,
            column,
            at,
            end,
            data_pages: 0,
            peeked: None,
            skipped_dictionary: None,
            lease: None,
            file,
        })
    }

    /// Whether no bytes of the chunk are left.
    pub(crate) fn is_exhausted(&self) -> bool {
        self.peeked.is_none() && self.at >= self.end
    }

    /// What a decoder may know of the next page; `None` at the end of the chunk.
    pub(crate) fn peek(&mut self) -> Result<Option<PageMetadata>> {
        self.locate(Self::fill_peeked)?;
        Ok(self
            .peeked
            .as_ref()
            .and_then(|pending| pending.header.metadata()))
    }

    /// Reads the next page; `None` at the end of the chunk. The page that was given before must not be needed any more.
    pub(crate) fn next_page(&mut self) -> Result<Option<Page>> {
        let raw = self.next_raw(|_, _| 0)?;
        Ok(raw.map(|raw| page(&raw.header, raw.bytes)))
    }

    /// As [`next_page`](Self::next_page), without the parquet crate's form; the page is placed so that its values are aligned if
    /// they begin where `values_at` says.
    pub(crate) fn next_raw(&mut self, values_at: ExpectedValues) -> Result<Option<RawPage>> {
        self.lease = None;
        self.locate(|cursor| {
            let Some(pending) = cursor.take_pending()? else {
                return Ok(None);
            };
            cursor.load(&pending, values_at).map(Some)
        })
    }

    /// The column's place in the schema, and its levels.
    pub(crate) fn descriptor(&self) -> &ColumnDescriptor {
        let row_group = self.file.metadata.row_group(self.row_group);
        row_group.column(self.column).column_descr()
    }

    /// The next page's header and where its body starts, and moves behind the page without reading
    /// its body; `None` at the end of the chunk.
    pub(crate) fn next_header(&mut self) -> Result<Option<(PageHeader, u64)>> {
        let pending = self.locate(Self::take_pending)?;
        Ok(pending.map(|pending| (pending.header, pending.body)))
    }

    /// Passes over the next page without reading its body. A dictionary page is remembered.
    pub(crate) fn skip_page(&mut self) -> Result<()> {
        self.locate(|cursor| {
            if let Some(pending) = cursor.take_pending()?
                && pending.header.is_dictionary()
            {
                cursor.skipped_dictionary = Some(pending);
            }
            Ok(())
        })
    }

    /// Reads a dictionary page that was skipped, if there is one.
    pub(crate) fn take_skipped_dictionary(&mut self) -> Result<Option<Page>> {
        let Some(pending) = self.skipped_dictionary.take() else {
            return Ok(None);
        };
        self.locate(|cursor| {
            let raw = cursor.load(&pending, |_, _| 0)?;
            Ok(Some(page(&raw.header, raw.bytes)))
        })
    }

    /// As [`take_skipped_dictionary`](Self::take_skipped_dictionary), without the parquet crate's form.
    pub(crate) fn take_skipped_raw_dictionary(&mut self) -> Result<Option<RawPage>> {
        let Some(pending) = self.skipped_dictionary.take() else {
            return Ok(None);
        };
        self.locate(|cursor| cursor.load(&pending, |_, _| 0).map(Some))
    }

    fn locate<R>(&mut self, f: impl FnOnce(&mut Self) -> Result<R>) -> Result<R> {
        f(self).map_err(|error| self.located(error))
    }

    /// Says where `error` happened, which was found in the page that was given last.
    pub(crate) fn located(&self, error: ParquetError) -> ParquetError {
        let row_group = self.file.metadata.row_group(self.row_group);
        located(error, row_group.column(self.column), self.row_group)
    }

    /// Makes `peeked` the next page that decoders see: index pages are passed over.
    fn fill_peeked(&mut self) -> Result<()> {
        while self.peeked.is_none() && self.at < self.end {
            let (header, header_len) = self.read_header()?;
            let body = self.at + header_len as u64;
            let remaining = self.bytes_from(body);
            if header.stored_size as u64 > remaining {
                return Err(ParquetError::EOF(format!(
                    "a page says that it takes {} bytes and {remaining} are left of its column chunk or of the file",
                    header.stored_size
                )));
            }
            if header.kind == PageKind::Index {
                self.at = body + header.stored_size as u64;
                continue;
            }
            self.peeked = Some(Pending {
                header,
                body,
                ordinal: self.data_pages,
            });
        }
        Ok(())
    }

    /// Takes the next page's header and moves behind its body.
    fn take_pending(&mut self) -> Result<Option<Pending>> {
        self.fill_peeked()?;
        let Some(pending) = self.peeked.take() else {
            return Ok(None);
        };
        self.at = pending.body + pending.header.stored_size as u64;
        if pending.header.is_dictionary() {
            self.expect_dictionary = false;
        } else {
            self.data_pages += 1;
        }
        Ok(Some(pending))
    }

    /// Bytes from `at` to the end of the chunk, or of the file where that comes first.
    fn bytes_from(&self, at: u64) -> u64 {
        self.end.min(self.file.len).saturating_sub(at)
    }

    /// Reads the header at `self.at`; also returns the bytes that it takes in the file.
    fn read_header(&self) -> Result<(PageHeader, usize)> {
        let remaining = usize::try_from(self.bytes_from(self.at)).unwrap_or(usize::MAX);
        if remaining == 0 {
            return Err(cut_short());
        }
        let mut small = [0u8; HEADER_WINDOW];
        let window = &mut small[..remaining.min(HEADER_WINDOW)];
        self.file.source.read_exact_at(window, self.at)?;
        if let Some(found) = self.parse_header(window)? {
            return Ok(found);
        }
        // Rare: a header with long statistics.
        let most = remaining.min(HEADER_MAX);
        let mut len = HEADER_WINDOW;
        loop {
            if len >= most {
                return Err(invalid_header(
                    "it does not end where it should at the latest",
                ));
            }
            len = len.saturating_mul(WINDOW_GROWTH).min(most);
            let mut window = vec![0u8; len];
            self.file.source.read_exact_at(&mut window, self.at)?;
            if let Some(found) = self.parse_header(&mut window)? {
                return Ok(found);
            }
        }
    }

    /// Parses (and decrypts, in place) a header at the start of `window`; `None` asks for more bytes.
    fn parse_header(&self, window: &mut [u8]) -> Result<Option<(PageHeader, usize)>> {
        let Some(crypto) = &self.crypto else {
            return match PageHeader::parse(window) {
                Ok(found) => Ok(Some(found)),
                Err(ThriftError::Eof) => Ok(None),
                Err(ThriftError::Invalid(why)) => Err(invalid_header(why)),
            };
        };
        let Some(length) = window.first_chunk::<LENGTH_LEN>() else {
            return Ok(None);
        };
        let module_len = LENGTH_LEN + u32::from_le_bytes(*length) as usize;
        let Some(module) = window.get_mut(..module_len) else {
            return Ok(None);
        };
        let kind = Module::header(self.expect_dictionary);
        let plain = crypto.open_in_place(module, kind, self.data_pages)?;
        match PageHeader::parse(&module[plain]) {
            Ok((header, _)) => Ok(Some((header, module_len))),
            Err(ThriftError::Eof) => Err(invalid_header("it ends too early")),
            Err(ThriftError::Invalid(why)) => Err(invalid_header(why)),
        }
    }

    /// Reads, checks, decrypts and decompresses a page's body.
    fn load(&mut self, pending: &Pending, values_at: ExpectedValues) -> Result<RawPage> {
        let header = &pending.header;
        let lead = values_at(header, self.descriptor()).wrapping_neg() % ALIGNMENT;
        let dictionary = header.is_dictionary();
        let last = if dictionary {
            &self.owners.dictionary
        } else {
            &self.owners.page
        };
        let is_compressed = self.codec != Compression::UNCOMPRESSED
            && !matches!(
                header.kind,
                PageKind::DataV2 {
                    is_compressed: false,
                    ..
                }
            );
        // The buffer that ends up as the page belongs to the page's owner, whichever step fills it.
        let mut plain = match is_compressed {
            true => self.decrypted(pending, None)?,
            false => self.decrypted(pending, Some((last, lead)))?,
        };
        if is_compressed {
            plain = self.decompressed(header, &plain, (last, lead))?;
        }
        if header.levels_len() > plain.as_ref().len() {
            return Err(ParquetError::General(format!(
                "a page's levels take {} bytes by its header and the page has {}",
                header.levels_len(),
                plain.as_ref().len()
            )));
        }
        counts::check(header, self.descriptor(), plain.as_ref())?;
        let (bytes, lease) = plain.share();
        // A dictionary lives as long as its chunk is read, whoever holds it.
        if !dictionary {
            self.lease = Some(lease);
        }
        Ok(RawPage {
            header: *header,
            bytes,
        })
    }

    /// The body as it was before encryption. `last` is given when no buffer follows: whose it is, and how many bytes are left in
    /// front of what it shows.
    fn decrypted(&self, pending: &Pending, last: Option<(&Arc<Home>, usize)>) -> Result<Buffer> {
        let owners = &self.owners;
        let stored_size = pending.header.stored_size;
        let fetch = (&owners.fetch, 0);
        let Some(crypto) = &self.crypto else {
            return self.fetched(pending, last.unwrap_or(fetch));
        };
        if stored_size < FRAMING_LEN {
            return Err(ParquetError::EOF(
                "an encrypted page is shorter than its framing".into(),
            ));
        }
        let kind = Module::body(pending.header.is_dictionary());
        let Some(decrypt) = &owners.decrypt else {
            // What stands in front of the plaintext is as long as the alignment.
            let mut buffer = self.fetched(pending, last.unwrap_or(fetch))?;
            let plain = crypto.open_in_place(buffer.as_mut_slice(), kind, pending.ordinal)?;
            buffer.narrow(plain);
            return Ok(buffer);
        };
        let module = self.fetched(pending, fetch)?;
        let len = ColumnCrypto::separate_len(stored_size);
        let (home, lead) = last.unwrap_or((decrypt, 0));
        let mut buffer = home.take_empty(lead, len, self.column);
        crypto.open_separate(module.as_ref(), kind, pending.ordinal, &mut buffer)?;
        Ok(buffer)
    }

    /// The stored bytes of the body, in a buffer of `home` behind `lead` bytes.
    fn fetched(&self, pending: &Pending, (home, lead): (&Arc<Home>, usize)) -> Result<Buffer> {
        let len = pending.header.stored_size;
        let mut buffer = home.take_empty(lead, len, self.column);
        buffer.read_from(&self.file.source, pending.body, len)?;
        if self.file.verify_checksums
            && let Some(expected) = pending.header.crc
        {
            // Over the bytes as stored: of an encrypted page, the ciphertext module.
            let found = crc32fast::hash(buffer.as_ref());
            if found != expected {
                return Err(ParquetError::General(format!(
                    "a page's checksum is {found:08x} and its header says {expected:08x}"
                )));
            }
        }
        Ok(buffer)
    }

    fn decompressed(
        &self,
        header: &PageHeader,
        stored: &Buffer,
        (home, lead): (&Arc<Home>, usize),
    ) -> Result<Buffer> {
        // The levels of a v2 page stand uncompressed in front of its values.
        let levels_len = header.levels_len();
        let (levels, values) = stored
            .as_ref()
            .split_at_checked(levels_len)
            .filter(|_| levels_len <= header.uncompressed_size)
            .ok_or_else(|| {
                ParquetError::General("a page's levels are longer than the page".into())
            })?;
        let values_len = header.uncompressed_size - levels_len;
        self.check_size(header.uncompressed_size, values, values_len)?;

        let mut buffer = home.take_behind(lead, header.uncompressed_size, self.column);
        let (levels_out, values_out) = buffer.as_mut_slice().split_at_mut(levels_len);
        levels_out.copy_from_slice(levels);
        // A page of nulls alone has no values, and some writers then store nothing to decompress.
        if values_len > 0 {
            let codec = self.codec;
            let contexts = &self.owners.codec;
            contexts.with(|context| context.decompress(codec, values, values_out))?;
        }
        Ok(buffer)
    }

    /// Refuses a decompressed size that the chunk's metadata or the codec rules out.
    fn check_size(&self, page_size: usize, values: &[u8], values_len: usize) -> Result<()> {
        let chunk_allows = self
            .uncompressed_size
            .is_none_or(|size| page_size as u64 <= size);
        let codec_allows =
            codec::max_decompressed_len(self.codec, values).is_none_or(|max| values_len <= max);
        if chunk_allows && codec_allows {
            return Ok(());
        }
        Err(ParquetError::General(format!(
            "a page of {} stored bytes says that it decompresses to {page_size} bytes, more than {}",
            values.len(),
            if chunk_allows {
                "its codec can make of it"
            } else {
                "its whole column chunk by the file's metadata"
            }
        )))
    }
}

/// Where a chunk's pages start and end by the file's metadata, which may be behind the file's end.
fn extent(chunk: &ColumnChunkMetaData) -> Result<(u64, u64)> {
    let start = chunk
        .dictionary_page_offset()
        .unwrap_or_else(|| chunk.data_page_offset());
    let (start, len) = u64::try_from(start)
        .ok()
        .zip(u64::try_from(chunk.compressed_size()).ok())
        .ok_or_else(|| ParquetError::General("the column chunk's place is negative".into()))?;
    Ok((start, start.saturating_add(len)))
}

fn cut_short() -> ParquetError {
    ParquetError::EOF("the file ends before its column chunk does: it was cut short".into())
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

fn invalid_header(why: &str) -> ParquetError {
    ParquetError::General(format!("a page header is invalid: {why}"))
}

/// Says in which column chunk an error happened.
fn located(error: ParquetError, chunk: &ColumnChunkMetaData, row_group: usize) -> ParquetError {
    let place = format!(
        "column '{}', row group {row_group}: ",
        chunk.column_path().string()
    );
    match error {
        ParquetError::General(text) => ParquetError::General(place + &text),
        ParquetError::EOF(text) => ParquetError::EOF(place + &text),
        ParquetError::NYI(text) => ParquetError::NYI(place + &text),
        other => ParquetError::General(format!("{place}{other}")),
    }
}
