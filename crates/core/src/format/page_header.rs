//! The header that stands before every page.
//!
//! Source: `PageHeader` in
//! <https://github.com/apache/parquet-format/blob/master/src/main/thrift/parquet.thrift>.
//! Page statistics are skipped: nothing here reads them.

use parquet::basic::{Encoding, PageType};
use parquet::column::page::PageMetadata;

use super::thrift::{CompactReader, Field, FieldType, ThriftError};

/// What is particular to one kind of page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PageKind {
    Dictionary {
        num_values: u32,
        encoding: Encoding,
        is_sorted: bool,
    },
    DataV1 {
        num_values: u32,
        encoding: Encoding,
        def_level_encoding: Encoding,
        rep_level_encoding: Encoding,
    },
    DataV2 {
        num_values: u32,
        num_nulls: u32,
        num_rows: u32,
        encoding: Encoding,
        def_levels_byte_len: u32,
        rep_levels_byte_len: u32,
        is_compressed: bool,
    },
    /// An index page, to be passed over.
    Index,
}

/// A page header; sizes are bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PageHeader {
    /// Size of the stored page: compressed, and of an encrypted file with the encryption's framing.
    pub(crate) stored_size: usize,
    /// Size of the page when decompressed.
    pub(crate) uncompressed_size: usize,
    /// CRC-32 of the stored bytes.
    pub(crate) crc: Option<u32>,
    pub(crate) kind: PageKind,
}

impl PageHeader {
    pub(crate) fn is_dictionary(&self) -> bool {
        matches!(self.kind, PageKind::Dictionary { .. })
    }

    /// How the page's values are encoded.
    pub(crate) fn encoding(&self) -> Encoding {
        match self.kind {
            PageKind::Dictionary { encoding, .. }
            | PageKind::DataV1 { encoding, .. }
            | PageKind::DataV2 { encoding, .. } => encoding,
            PageKind::Index => Encoding::PLAIN,
        }
    }

    /// Values in the page, nulls included; rows, where nothing repeats.
    pub(crate) fn num_values(&self) -> usize {
        match self.kind {
            PageKind::Dictionary { num_values, .. }
            | PageKind::DataV1 { num_values, .. }
            | PageKind::DataV2 { num_values, .. } => num_values as usize,
            PageKind::Index => 0,
        }
    }

    /// Length of the levels that a v2 page stores in front of its (compressed) values; 0 otherwise.
    pub(crate) fn levels_len(&self) -> usize {
        match self.kind {
            PageKind::DataV2 {
                def_levels_byte_len,
                rep_levels_byte_len,
                ..
            } => def_levels_byte_len as usize + rep_levels_byte_len as usize,
            _ => 0,
        }
    }

    /// What a decoder may know of the page without reading it; `None` for pages it never sees.
    pub(crate) fn metadata(&self) -> Option<PageMetadata> {
        let (num_rows, num_levels, is_dict) = match self.kind {
            PageKind::Dictionary { .. } => (None, None, true),
            PageKind::DataV1 { num_values, .. } => (None, Some(num_values as usize), false),
            PageKind::DataV2 {
                num_values,
                num_rows,
                ..
            } => (Some(num_rows as usize), Some(num_values as usize), false),
            PageKind::Index => return None,
        };
        Some(PageMetadata {
            num_rows,
            num_levels,
            is_dict,
        })
    }

    /// Parses a header at the start of `bytes`; also returns its length in bytes.
    pub(crate) fn parse(bytes: &[u8]) -> Result<(Self, usize), ThriftError> {
        let mut reader = CompactReader::new(bytes);
        let mut raw = RawHeader::default();
        reader.structure(|r, field| raw.read(r, field))?;
        Ok((raw.finish()?, reader.position()))
    }
}

/// The union of the header's nested structures, as read: which fields count depends on the type.
#[derive(Debug, Default)]
struct RawHeader {
    page_type: Option<i32>,
    uncompressed_size: Option<i32>,
    stored_size: Option<i32>,
    crc: Option<i32>,
    data: Option<RawPage>,
    dictionary: Option<RawPage>,
    data_v2: Option<RawPage>,
}

#[derive(Debug, Default, Clone, Copy)]
struct RawPage {
    /// Field number (1-based) → i32 value.
    ints: [Option<i32>; 8],
    /// The one boolean of the structure: `is_sorted` or `is_compressed`.
    flag: Option<bool>,
}

impl RawHeader {
    fn read(&mut self, r: &mut CompactReader<'_>, field: Field) -> Result<bool, ThriftError> {
        match (field.id, field.kind) {
            (1, FieldType::I32) => self.page_type = Some(r.i32()?),
            (2, FieldType::I32) => self.uncompressed_size = Some(r.i32()?),
            (3, FieldType::I32) => self.stored_size = Some(r.i32()?),
            (4, FieldType::I32) => self.crc = Some(r.i32()?),
            (5, FieldType::Struct) => self.data = Some(RawPage::read(r, NO_FLAG)?),
            (7, FieldType::Struct) => self.dictionary = Some(RawPage::read(r, IS_SORTED)?),
            (8, FieldType::Struct) => self.data_v2 = Some(RawPage::read(r, IS_COMPRESSED)?),
            (1..=4, _) => return Err(ThriftError::Invalid("a header field has the wrong type")),
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn finish(self) -> Result<PageHeader, ThriftError> {
        let kind = match self.page_type {
            Some(t) if t == PageType::DATA_PAGE as i32 => {
                let page = self.data.ok_or(MISSING)?;
                PageKind::DataV1 {
                    num_values: page.unsigned(1)?,
                    encoding: page.encoding(2)?,
                    def_level_encoding: page.encoding(3)?,
                    rep_level_encoding: page.encoding(4)?,
                }
            }
            Some(t) if t == PageType::INDEX_PAGE as i32 => PageKind::Index,
            Some(t) if t == PageType::DICTIONARY_PAGE as i32 => {
                let page = self.dictionary.ok_or(MISSING)?;
                PageKind::Dictionary {
                    num_values: page.unsigned(1)?,
                    encoding: page.encoding(2)?,
                    is_sorted: page.flag.unwrap_or(false),
                }
            }
            Some(t) if t == PageType::DATA_PAGE_V2 as i32 => {
                let page = self.data_v2.ok_or(MISSING)?;
                PageKind::DataV2 {
                    num_values: page.unsigned(1)?,
                    num_nulls: page.unsigned(2)?,
                    num_rows: page.unsigned(3)?,
                    encoding: page.encoding(4)?,
                    def_levels_byte_len: page.unsigned(5)?,
                    rep_levels_byte_len: page.unsigned(6)?,
                    // The format's default: a page without the flag is compressed.
                    is_compressed: page.flag.unwrap_or(true),
                }
            }
            Some(_) => return Err(ThriftError::Invalid("unknown page type")),
            None => return Err(MISSING),
        };
        Ok(PageHeader {
            stored_size: size(self.stored_size)?,
            uncompressed_size: size(self.uncompressed_size)?,
            crc: self.crc.map(|crc| crc as u32),
            kind,
        })
    }
}

/// Field numbers of the booleans; a v1 data page has none.
const NO_FLAG: i16 = 0;
const IS_SORTED: i16 = 3;
const IS_COMPRESSED: i16 = 7;

const MISSING: ThriftError = ThriftError::Invalid("a required header field is missing");

fn size(value: Option<i32>) -> Result<usize, ThriftError> {
    usize::try_from(value.ok_or(MISSING)?)
        .map_err(|_| ThriftError::Invalid("a page size is negative"))
}

impl RawPage {
    /// Reads a structure whose boolean is field `flag`.
    fn read(r: &mut CompactReader<'_>, flag: i16) -> Result<Self, ThriftError> {
        let mut page = Self::default();
        r.structure(|r, field| {
            match field.kind {
                FieldType::True if field.id == flag => page.flag = Some(true),
                FieldType::False if field.id == flag => page.flag = Some(false),
                FieldType::I32 => {
                    let value = r.i32()?;
                    if let Some(slot) = usize::try_from(field.id)
                        .ok()
                        .and_then(|id| page.ints.get_mut(id))
                    {
                        *slot = Some(value);
                    }
                }
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        Ok(page)
    }

    fn int(&self, id: usize) -> Result<i32, ThriftError> {
        self.ints.get(id).copied().flatten().ok_or(MISSING)
    }

    fn unsigned(&self, id: usize) -> Result<u32, ThriftError> {
        u32::try_from(self.int(id)?)
            .map_err(|_| ThriftError::Invalid("a count in the page header is negative"))
    }

    fn encoding(&self, id: usize) -> Result<Encoding, ThriftError> {
        let code = self.int(id)?;
        ENCODINGS
            .iter()
            .copied()
            .find(|encoding| *encoding as i32 == code)
            .ok_or(ThriftError::Invalid("unknown encoding"))
    }
}

#[expect(deprecated, reason = "files with BIT_PACKED levels are still read")]
const ENCODINGS: [Encoding; 10] = [
    Encoding::PLAIN,
    Encoding::PLAIN_DICTIONARY,
    Encoding::RLE,
    Encoding::BIT_PACKED,
    Encoding::DELTA_BINARY_PACKED,
    Encoding::DELTA_LENGTH_BYTE_ARRAY,
    Encoding::DELTA_BYTE_ARRAY,
    Encoding::RLE_DICTIONARY,
    Encoding::BYTE_STREAM_SPLIT,
    Encoding::ALP,
];

#[cfg(test)]
mod tests {
    use super::*;

    // type 0 (data), uncompressed 100, stored 60, data header { 25 values, PLAIN, RLE, RLE }.
    const V1: [u8; 19] = [
        0x15, 0x00, 0x15, 0xc8, 0x01, 0x15, 0x78, 0x2c, 0x15, 0x32, 0x15, 0x00, 0x15, 0x06, 0x15,
        0x06, 0x00, 0x00, 0xff,
    ];

    #[test]
    fn a_v1_header_is_read() {
        let (header, len) = PageHeader::parse(&V1).unwrap();
        assert_eq!(len, 18);
        assert_eq!((header.uncompressed_size, header.stored_size), (100, 60));
        assert_eq!(
            header.kind,
            PageKind::DataV1 {
                num_values: 25,
                encoding: Encoding::PLAIN,
                def_level_encoding: Encoding::RLE,
                rep_level_encoding: Encoding::RLE,
            }
        );
    }

    #[test]
    fn every_prefix_asks_for_more() {
        for len in 0..18 {
            assert_eq!(PageHeader::parse(&V1[..len]).unwrap_err(), ThriftError::Eof);
        }
    }

    #[test]
    fn a_negative_size_is_refused() {
        let mut bytes = V1;
        bytes[6] = 0x79;
        assert!(matches!(
            PageHeader::parse(&bytes),
            Err(ThriftError::Invalid("a page size is negative"))
        ));
    }
}
