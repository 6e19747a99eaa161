//! Counts that stand inside a page, held against what the page can hold.
//!
//! The parquet crate's decoders allocate by some numbers before they find that a page is too short for
//! them: the values of a dictionary, and the values that a delta-encoded page says it has. A page of a
//! few bytes could ask for gigabytes so.

use parquet::basic::{Encoding, Type};
use parquet::errors::{ParquetError, Result};
use parquet::schema::types::ColumnDescriptor;

use crate::format::page_header::{PageHeader, PageKind};
use crate::format::thrift::CompactReader;

/// Checks the counts of a decompressed page.
pub(crate) fn check(header: &PageHeader, column: &ColumnDescriptor, page: &[u8]) -> Result<()> {
    match header.kind {
        PageKind::Dictionary { num_values, .. } => dictionary(num_values, column, page),
        PageKind::DataV1 {
            num_values,
            encoding,
            rep_level_encoding,
            def_level_encoding,
        } if is_delta(encoding) => {
            let levels = [
                (column.max_rep_level(), rep_level_encoding),
                (column.max_def_level(), def_level_encoding),
            ];
            let mut values = page;
            for (max_level, encoding) in levels {
                if max_level == 0 {
                    continue;
                }
                // Bit-packed levels are so old that no writer of delta encodings made them.
                if encoding != Encoding::RLE {
                    return Ok(());
                }
                let Some(rest) = behind_levels(values) else {
                    return Ok(()); // The decoder says what is wrong.
                };
                values = rest;
            }
            delta(num_values, values)
        }
        PageKind::DataV2 {
            num_values,
            encoding,
            ..
        } if is_delta(encoding) => match page.get(header.levels_len()..) {
            Some(values) => delta(num_values, values),
            None => Ok(()),
        },
        _ => Ok(()),
    }
}

/// Whether a page's first value begins a row, as far as its levels are written in the way that is in use (RLE).
pub(crate) fn begins_a_row(header: &PageHeader, column: &ColumnDescriptor, page: &[u8]) -> bool {
    let max_level = column.max_rep_level();
    let levels = match header.kind {
        _ if max_level == 0 => return true,
        PageKind::DataV1 {
            rep_level_encoding: Encoding::RLE,
            ..
        } => page.get(4..),
        PageKind::DataV2 {
            rep_levels_byte_len,
            ..
        } => page.get(..rep_levels_byte_len as usize),
        _ => return true,
    };
    // A run is a varint, and then its value or packed values, the first in the lowest bits: in both the first level comes first.
    let mut reader = CompactReader::new(levels.unwrap_or_default());
    let Ok(run) = reader.varint() else {
        return true; // The decoder says what is wrong.
    };
    let first = levels.and_then(|levels| levels.get(reader.position()..));
    let bits = 16 - max_level.leading_zeros();
    let bytes = if run & 1 == 0 { bits.div_ceil(8) } else { 2 };
    let first = first.unwrap_or_default().iter().take(bytes as usize);
    let level = first
        .rev()
        .fold(0u32, |level, byte| level << 8 | u32::from(*byte));
    level & ((1 << bits) - 1) == 0
}

fn is_delta(encoding: Encoding) -> bool {
    matches!(
        encoding,
        Encoding::DELTA_BINARY_PACKED
            | Encoding::DELTA_LENGTH_BYTE_ARRAY
            | Encoding::DELTA_BYTE_ARRAY
    )
}

/// A dictionary is PLAIN: each value takes at least so many bits.
fn dictionary(num_values: u32, column: &ColumnDescriptor, page: &[u8]) -> Result<()> {
    let bits = match column.physical_type() {
        Type::BOOLEAN => 1,
        Type::INT32 | Type::FLOAT => 32,
        Type::INT64 | Type::DOUBLE => 64,
        Type::INT96 => 96,
        // A length of four bytes.
        Type::BYTE_ARRAY => 32,
        Type::FIXED_LEN_BYTE_ARRAY => 8 * u64::try_from(column.type_length()).unwrap_or(0),
    };
    let has = 8 * page.len() as u64;
    if u64::from(num_values).saturating_mul(bits) > has {
        return Err(ParquetError::General(format!(
            "a dictionary of {} bytes says that it has {num_values} values",
            page.len()
        )));
    }
    Ok(())
}

/// What follows levels in a v1 page: they are preceded by their length.
fn behind_levels(bytes: &[u8]) -> Option<&[u8]> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    rest.get(u32::from_le_bytes(*length) as usize..)
}

/// A delta header is: values in a block, miniblocks in a block, values, first value. The three byte-array
/// and integer encodings start with one.
fn delta(num_values: u32, values: &[u8]) -> Result<()> {
    let mut reader = CompactReader::new(values);
    let mut number = || reader.varint().ok();
    let (Some(_block), Some(_miniblocks), Some(count)) = (number(), number(), number()) else {
        return Ok(()); // Too short: the decoder says so. A page of nulls alone may have no header.
    };
    if count > u64::from(num_values) {
        return Err(ParquetError::General(format!(
            "a page of {num_values} values says in its delta encoding that it has {count}"
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use parquet::schema::types::{ColumnPath, Type as SchemaType};
    use std::sync::Arc;

    fn column(kind: Type, max_def_level: i16) -> ColumnDescriptor {
        let schema = SchemaType::primitive_type_builder("c", kind)
            .build()
            .unwrap();
        ColumnDescriptor::new(Arc::new(schema), max_def_level, 0, ColumnPath::from("c"))
    }

    fn header(kind: PageKind) -> PageHeader {
        PageHeader {
            stored_size: 0,
            uncompressed_size: 0,
            crc: None,
            kind,
        }
    }

    #[test]
    fn a_dictionary_holds_no_more_values_than_fit() {
        let check = |num_values, kind, page: &[u8]| {
            let dictionary = header(PageKind::Dictionary {
                num_values,
                encoding: Encoding::PLAIN,
                is_sorted: false,
            });
            check(&dictionary, &column(kind, 0), page).is_ok()
        };
        assert!(check(2, Type::INT32, &[0; 8]) && !check(3, Type::INT32, &[0; 8]));
        assert!(check(64, Type::BOOLEAN, &[0; 8]) && !check(65, Type::BOOLEAN, &[0; 8]));
        assert!(check(2, Type::BYTE_ARRAY, &[0; 8]) && !check(3, Type::BYTE_ARRAY, &[0; 8]));
        assert!(!check(u32::MAX, Type::INT64, &[0; 8]) && check(0, Type::INT64, &[]));
    }

    #[test]
    fn a_delta_page_has_no_more_values_than_its_header_says() {
        let v1 = header(PageKind::DataV1 {
            num_values: 10,
            encoding: Encoding::DELTA_BINARY_PACKED,
            def_level_encoding: Encoding::RLE,
            rep_level_encoding: Encoding::RLE,
        });
        // 128 values a block, 4 miniblocks, 10 and then 11 values.
        let (ten, eleven) = ([0x80, 1, 4, 10, 0], [0x80, 1, 4, 11, 0]);
        let required = column(Type::INT32, 0);
        assert!(check(&v1, &required, &ten).is_ok());
        assert!(check(&v1, &required, &eleven).is_err());
        assert!(check(&v1, &required, &[0x80]).is_ok());
        let optional = column(Type::INT32, 1);
        let levels = [2, 0, 0, 0, 20, 1];
        assert!(check(&v1, &optional, &[&levels[..], &ten].concat()).is_ok());
        assert!(check(&v1, &optional, &[&levels[..], &eleven].concat()).is_err());
        let v2 = header(PageKind::DataV2 {
            num_values: 10,
            num_nulls: 0,
            num_rows: 10,
            encoding: Encoding::DELTA_BYTE_ARRAY,
            def_levels_byte_len: 2,
            rep_levels_byte_len: 0,
            is_compressed: true,
        });
        assert!(check(&v2, &optional, &[&levels[4..], &ten].concat()).is_ok());
        assert!(check(&v2, &optional, &[&levels[4..], &eleven].concat()).is_err());
    }
}
