//! A page's header at the start of some bytes: plain, or a module of its own where the chunk is encrypted.

use parquet::errors::{ParquetError, Result};

use crate::crypto::{ColumnCrypto, FRAMING_LEN, LENGTH_LEN, Module};
use crate::format::page_header::PageHeader;
use crate::format::thrift::ThriftError;

/// No header is longer: one that says so is damaged, and is not followed through the whole chunk. Bytes.
pub(super) const HEADER_MAX: usize = 16 << 20;

/// What the bytes hold.
pub(super) enum Found {
    /// A header, and the bytes that it takes in the file.
    Header(PageHeader, usize),
    /// The start of one: of so many bytes, where that is known.
    Start(Option<usize>),
}

/// Which header is looked for.
#[derive(Clone, Copy)]
pub(super) struct Wanted<'a> {
    pub(super) crypto: Option<&'a ColumnCrypto>,
    /// Whether it is a dictionary page's, which has modules of its own when encrypted.
    pub(super) dictionary: bool,
    /// The page's number among the chunk's data pages.
    pub(super) ordinal: usize,
    /// The most that the header can take: what is left of the chunk, or of the file. Bytes.
    pub(super) most: usize,
}

impl Wanted<'_> {
    /// Parses the header at the start of `bytes`, decrypting it where it lies.
    pub(super) fn parse(&self, bytes: &mut [u8]) -> Result<Found> {
        let Some(crypto) = self.crypto else {
            return plain(bytes);
        };
        let Some(length) = bytes.first_chunk::<LENGTH_LEN>() else {
            return Ok(Found::Start(None));
        };
        // The length is not authenticated until the module is: hold it against the chunk first.
        let length = u32::from_le_bytes(*length) as usize;
        let len = length.saturating_add(LENGTH_LEN);
        if len < FRAMING_LEN || len > self.most.min(HEADER_MAX) {
            return Err(invalid(&format!(
                "its encrypted module says that it takes {len} bytes, and {} are left of its column chunk or of the file",
                self.most
            )));
        }
        let Some(module) = bytes.get_mut(..len) else {
            return Ok(Found::Start(Some(len)));
        };
        let kind = Module::header(self.dictionary);
        let at = crypto.open_in_place(module, kind, self.ordinal)?;
        match module.get(at).map(PageHeader::parse) {
            Some(Ok((header, _))) => Ok(Found::Header(header, len)),
            Some(Err(ThriftError::Invalid(why))) => Err(invalid(why)),
            None | Some(Err(ThriftError::Eof)) => Err(invalid("it ends too early")),
        }
    }
}

/// Parses a header that is not encrypted.
pub(super) fn plain(bytes: &[u8]) -> Result<Found> {
    match PageHeader::parse(bytes) {
        Ok((header, len)) => Ok(Found::Header(header, len)),
        Err(ThriftError::Eof) => Ok(Found::Start(None)),
        Err(ThriftError::Invalid(why)) => Err(invalid(why)),
    }
}

pub(super) fn invalid(why: &str) -> ParquetError {
    ParquetError::General(format!("a page header is invalid: {why}"))
}
