//! Fetches, checks, decrypts and decompresses the body of a page that [`chunk`](super::chunk) has come to.

use std::sync::Arc;

use bytes::Bytes;
use parquet::basic::Compression;
use parquet::errors::{ParquetError, Result};

use super::chunk::{ChunkCursor, ExpectedValues, Pending, RawPage};
use super::counts;
use super::header::{self, Found, HEADER_MAX, Wanted, invalid};
use super::index::{Listing, contradicts};
use super::place::Place;
use crate::buffer::{Buffer, Home};
use crate::codec;
use crate::crypto::{ColumnCrypto, Module};
use crate::format::page_header::{PageHeader, PageKind};
use crate::source::ReadAt;

/// Bytes that a page's values are aligned to, where they are where they were expected. Allocators give large blocks at multiples
/// of 16 and more.
const ALIGNMENT: usize = 16;

/// How many bytes to leave in front of a page whose values begin `values_at` bytes behind its start.
fn lead(values_at: usize) -> usize {
    values_at.wrapping_neg() % ALIGNMENT
}

/// A body that was fetched together with its header.
struct Fetched {
    buffer: Buffer,
    /// Whether the buffer belongs to the owner of the page, and is the page where no step follows.
    is_page: bool,
}

/// Where a page ends up: whose the buffer is, and how many bytes are left in front of what it shows.
type Destination<'a> = (&'a Arc<Home>, usize);

impl<T: ReadAt> ChunkCursor<T> {
    /// Reads the page that the offset index lists: header and body in one request.
    pub(super) fn load_listed(
        &mut self,
        listing: &Listing,
        ordinal: usize,
        values_at: Option<ExpectedValues>,
    ) -> Result<RawPage> {
        let dictionary = listing.is_dictionary();
        self.place = Some(Place::new(dictionary, ordinal));
        let (start, len) = (listing.range.start, listing.len());
        let is_held = self.window.get(start, len).is_some();
        if !is_held && len <= self.bounds.page_limit(dictionary) {
            let reach = self.listed_reach(listing);
            if reach > listing.range.end {
                let len = usize::try_from(reach - start).unwrap_or(len);
                self.window.fill(&self.file, start, len, self.column)?;
            } else if let Some(whole) = self.shared(start, len) {
                return self.load_shared(listing, ordinal, &whole);
            } else {
                return self.load_whole(listing, ordinal, values_at);
            }
        }
        // The window holds the page. Or it may be over the limit: then its header is looked at first.
        let pending = self.read_header(start, dictionary, ordinal)?;
        self.check_listed(&pending, listing)?;
        let raw = self.load(&pending, values_at)?;
        self.check_rows(&raw)?;
        Ok(raw)
    }

    /// As [`load_listed`](Self::load_listed), for a page that is fetched on its own into the buffer of its next step.
    fn load_whole(
        &mut self,
        listing: &Listing,
        ordinal: usize,
        values_at: Option<ExpectedValues>,
    ) -> Result<RawPage> {
        let (start, len) = (listing.range.start, listing.len());
        let dictionary = listing.is_dictionary();
        // Whether another step follows is known for certain from the header alone: expect what the last page had.
        let is_page = self.owners.decrypt_into(self.crypto.is_some()).is_none()
            && (self.codec == Compression::UNCOMPRESSED || !self.last.is_compressed);
        let (home, lead) = match is_page {
            true => (self.owners.page(dictionary), lead(self.last.values_at)),
            false => (&self.owners.fetch, 0),
        };
        let mut buffer = home.take_empty(lead, len, self.column);
        self.file.read_into(&mut buffer, start, len)?;
        let wanted = Wanted {
            crypto: self.crypto.as_ref(),
            dictionary,
            ordinal,
            most: len.min(HEADER_MAX),
        };
        let Found::Header(header, header_len) = wanted.parse(buffer.as_mut_slice())? else {
            return Err(invalid(
                "it does not end where the offset index says that its page ends",
            ));
        };
        let pending = self.pending(header, header_len, start, ordinal)?;
        self.check_listed(&pending, listing)?;
        buffer.narrow(header_len..len);
        let raw = self.finish(&pending, values_at, Some(Fetched { buffer, is_page }))?;
        self.check_rows(&raw)?;
        Ok(raw)
    }

    /// As [`load_listed`](Self::load_listed), for a page that lies in memory as `whole`.
    fn load_shared(&mut self, listing: &Listing, ordinal: usize, whole: &Bytes) -> Result<RawPage> {
        let Found::Header(header, header_len) = header::plain(whole)? else {
            return Err(invalid(
                "it does not end where the offset index says that its page ends",
            ));
        };
        let pending = self.pending(header, header_len, listing.range.start, ordinal)?;
        self.check_listed(&pending, listing)?;
        self.bounds.check_sizes(&header, false)?;
        let raw = self.share(&pending, whole.slice(header_len..))?;
        self.check_rows(&raw)?;
        Ok(raw)
    }

    /// Checks a header against the offset index and the chunk.
    fn check_listed(&mut self, pending: &Pending, listing: &Listing) -> Result<()> {
        listing.check(&pending.header, pending.range(), self.is_flat())?;
        self.bounds.check_counts(&pending.header)?;
        self.bounds.pass(&pending.header);
        Ok(())
    }

    /// With an offset index every page begins with a row.
    fn check_rows(&self, raw: &RawPage) -> Result<()> {
        match counts::begins_a_row(&raw.header, self.descriptor(), &raw.bytes) {
            true => Ok(()),
            false => Err(contradicts(
                "the page begins with a row, and its first level that it",
            )),
        }
    }

    /// Reads, checks, decrypts and decompresses a page's body.
    pub(super) fn load(
        &mut self,
        pending: &Pending,
        values_at: Option<ExpectedValues>,
    ) -> Result<RawPage> {
        let header = &pending.header;
        self.place = Some(Place::of(header, pending.ordinal));
        let len = header.stored_size;
        if !self.is_compressed(header) && self.window.get(pending.body, len).is_none() {
            self.bounds.check_sizes(header, false)?;
            if let Some(bytes) = self.shared(pending.body, len) {
                return self.share(pending, bytes);
            }
        }
        self.finish(pending, values_at, None)
    }

    /// The bytes at `at` where they lie, if the source shares them and a page stored there needs nothing more.
    fn shared(&self, at: u64, len: usize) -> Option<Bytes> {
        match self.codec == Compression::UNCOMPRESSED && self.crypto.is_none() {
            true => self.file.share(at, len),
            false => None,
        }
    }

    /// A page that is used where it lies.
    fn share(&mut self, pending: &Pending, bytes: Bytes) -> Result<RawPage> {
        self.check_crc(&pending.header, &bytes)?;
        self.check_page(&pending.header, &bytes)?;
        Ok(RawPage {
            header: pending.header,
            bytes,
        })
    }

    fn is_compressed(&self, header: &PageHeader) -> bool {
        self.codec != Compression::UNCOMPRESSED
            && !matches!(
                header.kind,
                PageKind::DataV2 {
                    is_compressed: false,
                    ..
                }
            )
    }

    /// The page of a body that was `fetched`, or is still to be.
    fn finish(
        &mut self,
        pending: &Pending,
        values_at: Option<ExpectedValues>,
        fetched: Option<Fetched>,
    ) -> Result<RawPage> {
        let header = &pending.header;
        let is_compressed = self.is_compressed(header);
        self.bounds.check_sizes(header, is_compressed)?;
        let dictionary = header.is_dictionary();
        let values = values_at.map_or(0, |values_at| values_at(header, self.descriptor()));
        // The buffer that ends up as the page belongs to the page's owner, whichever step fills it.
        let last = (self.owners.page(dictionary), lead(values));
        let was_fetched = fetched.is_some();
        let mut plain = match is_compressed {
            true => self.decrypted(pending, None, fetched)?,
            false => self.decrypted(pending, Some(last), fetched)?,
        };
        if is_compressed {
            plain = self.decompressed(header, &plain, last)?;
        } else if was_fetched && values_at.is_some() {
            // Its header was not as long as the last one's.
            plain.align(values, ALIGNMENT);
        }
        self.check_page(header, plain.as_ref())?;
        if !dictionary {
            self.last.is_compressed = is_compressed;
            self.last.values_at = pending.header_len + values;
        }
        // A dictionary lives as long as its chunk is read, whoever holds it.
        let bytes = if dictionary {
            plain.into_bytes()
        } else {
            let (bytes, lease) = plain.share();
            self.lease = Some(lease);
            bytes
        };
        Ok(RawPage {
            header: *header,
            bytes,
        })
    }

    /// Checks what a page says of itself against its decompressed bytes.
    fn check_page(&self, header: &PageHeader, page: &[u8]) -> Result<()> {
        if header.levels_len() > page.len() {
            return Err(ParquetError::General(format!(
                "a page's levels take {} bytes by its header and the page has {}",
                header.levels_len(),
                page.len()
            )));
        }
        counts::check(header, self.descriptor(), page)
    }

    /// The body as it was before encryption. `last` is given when no buffer follows.
    fn decrypted(
        &self,
        pending: &Pending,
        last: Option<Destination<'_>>,
        fetched: Option<Fetched>,
    ) -> Result<Buffer> {
        let fetch = (&self.owners.fetch, 0);
        let Some(crypto) = &self.crypto else {
            return self.stored(pending, last.unwrap_or(fetch), last.is_some(), fetched);
        };
        let kind = Module::body(pending.header.is_dictionary());
        let Some(decrypt) = self.owners.decrypt_into(true) else {
            // What stands in front of the plaintext is as long as the alignment.
            let mut buffer =
                self.stored(pending, last.unwrap_or(fetch), last.is_some(), fetched)?;
            let plain = crypto.open_in_place(buffer.as_mut_slice(), kind, pending.ordinal)?;
            buffer.narrow(plain);
            return Ok(buffer);
        };
        let module = self.stored(pending, fetch, false, fetched)?;
        let len = ColumnCrypto::separate_len(pending.header.stored_size);
        let (home, lead) = last.unwrap_or((decrypt, 0));
        let mut buffer = home.take_empty(lead, len, self.column);
        crypto.open_separate(module.as_ref(), kind, pending.ordinal, &mut buffer)?;
        Ok(buffer)
    }

    /// The stored bytes of the body: those that were `fetched`, or in a buffer for `to`. `is_page`: that buffer will be the page.
    fn stored(
        &self,
        pending: &Pending,
        to: Destination<'_>,
        is_page: bool,
        fetched: Option<Fetched>,
    ) -> Result<Buffer> {
        let (home, lead) = to;
        let len = pending.header.stored_size;
        let buffer = match fetched {
            Some(fetched) if fetched.is_page || !is_page => fetched.buffer,
            Some(fetched) => {
                let mut buffer = home.take_empty(lead, len, self.column);
                buffer.copy_from(fetched.buffer.as_ref());
                buffer
            }
            None => {
                let mut buffer = home.take_empty(lead, len, self.column);
                match self.window.get(pending.body, len) {
                    Some(held) => buffer.copy_from(held),
                    None => self.file.read_into(&mut buffer, pending.body, len)?,
                }
                buffer
            }
        };
        self.check_crc(&pending.header, buffer.as_ref())?;
        Ok(buffer)
    }

    /// Checks the CRC-32 over the bytes as stored: of an encrypted page, the ciphertext module.
    fn check_crc(&self, header: &PageHeader, stored: &[u8]) -> Result<()> {
        let Some(expected) = header.crc.filter(|_| self.file.verify_checksums) else {
            return Ok(());
        };
        let found = crc32fast::hash(stored);
        if found == expected {
            return Ok(());
        }
        Err(ParquetError::General(format!(
            "a page's checksum is {found:08x} and its header says {expected:08x}: the page was damaged after it was written"
        )))
    }

    fn decompressed(
        &self,
        header: &PageHeader,
        stored: &Buffer,
        (home, lead): Destination<'_>,
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
        if codec::max_decompressed_len(self.codec, values).is_some_and(|max| values_len > max) {
            return Err(ParquetError::General(format!(
                "a page of {} stored bytes says that it decompresses to {} bytes, more than its codec can make of it",
                values.len(),
                header.uncompressed_size
            )));
        }

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
}
