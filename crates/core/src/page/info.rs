//! What a page's header tells of it, without reading the page.

use parquet::basic::{Encoding, PageType};

use crate::format::page_header::{PageHeader, PageKind};

/// A page of a file, as its header describes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct PageInfo {
    /// Row group, counted from 0.
    pub row_group: usize,
    /// Leaf column, counted from 0.
    pub column: usize,
    /// Dictionary page or data page of either version.
    pub page_type: PageType,
    /// Encoding of the values.
    pub encoding: Encoding,
    /// Values in the page, nulls included; rows, where nothing repeats.
    pub num_values: u32,
    /// Where the body starts, bytes from the start of the file.
    pub offset: u64,
    /// Bytes of the body as it lies in the file: compressed, and encrypted with its framing.
    pub stored_bytes: u64,
    /// Bytes of the body when decompressed.
    pub uncompressed_bytes: u64,
}

impl PageInfo {
    pub(crate) fn new(row_group: usize, column: usize, offset: u64, header: &PageHeader) -> Self {
        let (page_type, encoding, num_values) = match header.kind {
            PageKind::Dictionary {
                num_values,
                encoding,
                ..
            } => (PageType::DICTIONARY_PAGE, encoding, num_values),
            PageKind::DataV1 {
                num_values,
                encoding,
                ..
            } => (PageType::DATA_PAGE, encoding, num_values),
            PageKind::DataV2 {
                num_values,
                encoding,
                ..
            } => (PageType::DATA_PAGE_V2, encoding, num_values),
            // Never shown: they are passed over when headers are read.
            PageKind::Index => (PageType::INDEX_PAGE, Encoding::PLAIN, 0),
        };
        Self {
            row_group,
            column,
            page_type,
            encoding,
            num_values,
            offset,
            stored_bytes: header.stored_size as u64,
            uncompressed_bytes: header.uncompressed_size as u64,
        }
    }
}
