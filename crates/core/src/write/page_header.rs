//! The header that is written before every page.
//!
//! Source: `PageHeader` in
//! <https://github.com/apache/parquet-format/blob/master/src/main/thrift/parquet.thrift>.

use parquet::basic::Encoding;
use parquet::errors::{ParquetError, Result};

use crate::format::compact_writer::Struct;

/// What is particular to one kind of page.
pub(super) enum Page<'a> {
    Dictionary {
        values: u32,
    },
    V1 {
        values: u32,
        encoding: Encoding,
        statistics: Option<&'a [u8]>,
    },
    V2 {
        values: u32,
        nulls: u32,
        encoding: Encoding,
        levels_len: usize,
        compressed: bool,
        statistics: Option<&'a [u8]>,
    },
}

/// Appends a page's header. Sizes are those of the page without its header, in bytes.
///
/// # Errors
/// The page is larger than the format has numbers for, 2 GiB.
pub(super) fn write(
    out: &mut Vec<u8>,
    page: &Page<'_>,
    uncompressed: usize,
    stored: usize,
) -> Result<()> {
    let size = |bytes: usize| {
        i32::try_from(bytes).map_err(|_| {
            ParquetError::General(format!(
                "a page of {bytes} bytes is too large for the format: values or dictionary_page_size_limit are above 2 GiB"
            ))
        })
    };
    let mut header = Struct::new(out);
    match page {
        Page::V1 { .. } => header.i32(1, 0),
        Page::Dictionary { .. } => header.i32(1, 2),
        Page::V2 { .. } => header.i32(1, 3),
    }
    header.i32(2, size(uncompressed)?);
    header.i32(3, size(stored)?);
    match *page {
        Page::V1 {
            values,
            encoding,
            statistics,
        } => {
            let mut data = header.nested(5);
            data.i32(1, values as i32);
            data.i32(2, encoding as i32);
            data.i32(3, Encoding::RLE as i32);
            data.i32(4, Encoding::RLE as i32);
            if let Some(statistics) = statistics {
                data.encoded(5, statistics);
            }
            data.end();
        }
        Page::Dictionary { values } => {
            let mut dictionary = header.nested(7);
            dictionary.i32(1, values as i32);
            dictionary.i32(2, Encoding::PLAIN as i32);
            dictionary.bool(3, false);
            dictionary.end();
        }
        Page::V2 {
            values,
            nulls,
            encoding,
            levels_len,
            compressed,
            statistics,
        } => {
            let mut data = header.nested(8);
            data.i32(1, values as i32);
            data.i32(2, nulls as i32);
            // A flat column has a row a value.
            data.i32(3, values as i32);
            data.i32(4, encoding as i32);
            data.i32(5, size(levels_len)?);
            data.i32(6, 0);
            data.bool(7, compressed);
            if let Some(statistics) = statistics {
                data.encoded(8, statistics);
            }
            data.end();
        }
    }
    header.end();
    Ok(())
}
