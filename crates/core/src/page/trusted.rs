//! Lengths inside a page that the parquet crate's decoders take on trust, held against the page before they see it.
//!
//! Two of them make that crate reserve more memory than there is, which ends the process and cannot be caught, and one makes
//! it loop for ever:
//!
//! * A PLAIN page of byte arrays is skipped by its lengths without a look at where it ends, and the bytes that are then
//!   left, a negative number, are reserved.
//! * A DELTA_BYTE_ARRAY page has two sequences of lengths. Of either, as many values are reserved as its header says. The first
//!   header is looked at in [`counts`](super::counts); here the second.
//! * Rows of a column whose values repeat are skipped until their page's values are used up, which they never are where it has
//!   fewer repetition levels than values.
//!
//! Source of the layouts: <https://github.com/apache/parquet-format/blob/master/Encodings.md>.

use parquet::basic::{Encoding, Type};
use parquet::column::page::Page;
use parquet::errors::{ParquetError, Result};
use parquet::schema::types::ColumnDescriptor;

use crate::format::thrift::{CompactReader, ThriftError};

/// Checks a decompressed data page; `skips` says whether rows will be passed over.
pub(super) fn check(page: &Page, column: &ColumnDescriptor, skips: bool) -> Result<()> {
    let checked = match page.encoding() {
        _ if !page.is_data_page() => Ok(()),
        Encoding::PLAIN if skips && column.physical_type() == Type::BYTE_ARRAY => {
            // Where the levels do not fit their page, the decoder says so.
            values(page, column).map_or(Ok(()), plain)
        }
        Encoding::DELTA_BYTE_ARRAY => values(page, column).map_or(Ok(()), delta_byte_array),
        _ => Ok(()),
    };
    let checked = match skips && column.max_rep_level() > 0 {
        true => checked.and_then(|()| repetition_levels(page, column.max_rep_level())),
        false => checked,
    };
    checked.map_err(|error| {
        ParquetError::General(format!("column '{}': {error}", column.path().string()))
    })
}

/// Refuses a page with fewer repetition levels than values.
fn repetition_levels(page: &Page, max_level: i16) -> Result<()> {
    let levels = match page {
        Page::DataPage {
            buf,
            rep_level_encoding: Encoding::RLE,
            ..
        } => buf
            .split_first_chunk::<4>()
            .and_then(|(length, rest)| rest.get(..u32::from_le_bytes(*length) as usize)),
        Page::DataPageV2 {
            buf,
            rep_levels_byte_len,
            ..
        } => buf.get(..*rep_levels_byte_len as usize),
        // Packed levels of old files: the decoder reads them as long as there are bytes.
        Page::DataPage { buf, .. } => {
            let has = 8 * buf.len() as u64 / bits(max_level);
            return enough(has, page.num_values());
        }
        Page::DictionaryPage { .. } => return Ok(()),
    };
    enough(
        hybrid_len(levels.unwrap_or_default(), bits(max_level)),
        page.num_values(),
    )
}

fn enough(has: u64, num_values: u32) -> Result<()> {
    if has < u64::from(num_values) {
        return Err(ParquetError::General(format!(
            "a page of {num_values} values has {has} repetition levels"
        )));
    }
    Ok(())
}

/// Bits of a level.
fn bits(max_level: i16) -> u64 {
    u64::from(16 - max_level.leading_zeros()).max(1)
}

/// How many numbers of `width` bits the RLE / bit-packing hybrid in `bytes` has.
fn hybrid_len(bytes: &[u8], width: u64) -> u64 {
    let mut reader = CompactReader::new(bytes);
    let mut len = 0u64;
    while let Ok(run) = reader.varint() {
        if run & 1 == 0 {
            if reader.bytes(width.div_ceil(8)).is_err() {
                break;
            }
            len = len.saturating_add(run >> 1);
        } else {
            // Groups of eight; some writers cut the last one short.
            let packed = (run >> 1).saturating_mul(width);
            let left = (bytes.len() - reader.position()) as u64;
            len = len.saturating_add(packed.min(left).saturating_mul(8) / width);
            if reader.bytes(packed).is_err() {
                break;
            }
        }
    }
    len
}

/// What follows the levels of a data page.
fn values<'a>(page: &'a Page, column: &ColumnDescriptor) -> Option<&'a [u8]> {
    match page {
        Page::DataPage {
            buf,
            num_values,
            rep_level_encoding,
            def_level_encoding,
            ..
        } => {
            let levels = [
                (column.max_rep_level(), rep_level_encoding),
                (column.max_def_level(), def_level_encoding),
            ];
            let mut rest: &[u8] = buf;
            for (max_level, encoding) in levels {
                rest = behind_levels(rest, max_level, *encoding, *num_values)?;
            }
            Some(rest)
        }
        Page::DataPageV2 {
            buf,
            def_levels_byte_len,
            rep_levels_byte_len,
            ..
        } => buf.get(*def_levels_byte_len as usize + *rep_levels_byte_len as usize..),
        Page::DictionaryPage { .. } => None,
    }
}

fn behind_levels(bytes: &[u8], max_level: i16, encoding: Encoding, count: u32) -> Option<&[u8]> {
    match (max_level, encoding) {
        (0, _) => Some(bytes),
        (_, Encoding::RLE) => {
            let (length, rest) = bytes.split_first_chunk::<4>()?;
            rest.get(u32::from_le_bytes(*length) as usize..)
        }
        // The levels of old files: packed, and nothing in front of them.
        _ => {
            let bits = bits(max_level) * u64::from(count);
            bytes.get(usize::try_from(bits.div_ceil(8)).ok()?..)
        }
    }
}

/// Each value is its length (4 bytes, little-endian) and its bytes.
fn plain(values: &[u8]) -> Result<()> {
    let mut rest = values;
    while !rest.is_empty() {
        rest = rest
            .split_first_chunk::<4>()
            .and_then(|(length, rest)| rest.get(u32::from_le_bytes(*length) as usize..))
            .ok_or_else(|| {
                ParquetError::EOF("a byte array is longer than what is left of its page".into())
            })?;
    }
    Ok(())
}

/// The lengths of the prefixes, then those of the suffixes, then the suffixes.
fn delta_byte_array(values: &[u8]) -> Result<()> {
    let damaged = |_| ParquetError::EOF("the prefix lengths of a page end too early".into());
    let Some((prefixes, suffixes)) = sequence(values).map_err(damaged)? else {
        return Ok(()); // A page of nulls alone may have nothing.
    };
    let mut header = CompactReader::new(suffixes);
    let mut number = || header.varint().ok();
    let (Some(_block), Some(_miniblocks), Some(count)) = (number(), number(), number()) else {
        return Ok(()); // Too short: the decoder says so.
    };
    if count != prefixes {
        return Err(ParquetError::General(format!(
            "a page has {prefixes} lengths of prefixes and says that it has {count} of suffixes"
        )));
    }
    Ok(())
}

/// Passes over a sequence in DELTA_BINARY_PACKED: how many values it has, and what follows it.
fn sequence(bytes: &[u8]) -> std::result::Result<Option<(u64, &[u8])>, ThriftError> {
    if bytes.is_empty() {
        return Ok(None);
    }
    let mut reader = CompactReader::new(bytes);
    let (block, miniblocks, count) = (reader.varint()?, reader.varint()?, reader.varint()?);
    let _first = reader.varint()?;
    let per_miniblock = block.checked_div(miniblocks).unwrap_or(0);
    let mut left = count.saturating_sub(1);
    if left > 0 && per_miniblock == 0 {
        return Err(ThriftError::Invalid("a miniblock has no values"));
    }
    while left > 0 {
        let _least = reader.varint()?;
        let widths = reader.bytes(miniblocks)?;
        for width in widths {
            if left == 0 {
                break; // A miniblock without values has a width and no bytes.
            }
            let bits = u64::from(*width).saturating_mul(per_miniblock);
            reader.bytes(bits.div_ceil(8))?;
            left -= left.min(per_miniblock);
        }
    }
    Ok(Some((
        count,
        bytes.get(reader.position()..).unwrap_or_default(),
    )))
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::{ArrayRef, Int32Array, RecordBatch, StringArray};
    use bytes::Bytes;
    use parquet::arrow::ArrowWriter;
    use parquet::file::properties::WriterProperties;
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::schema::types::{ColumnPath, Type as SchemaType};
    use std::sync::Arc;

    fn column(max_def_level: i16, max_rep_level: i16) -> ColumnDescriptor {
        let schema = SchemaType::primitive_type_builder("c", Type::BYTE_ARRAY)
            .build()
            .unwrap();
        let path = ColumnPath::from("c");
        ColumnDescriptor::new(Arc::new(schema), max_def_level, max_rep_level, path)
    }

    fn v1(values: &[u8], encoding: Encoding, levels: Encoding) -> Page {
        Page::DataPage {
            buf: Bytes::copy_from_slice(values),
            num_values: 10,
            encoding,
            def_level_encoding: levels,
            rep_level_encoding: levels,
            statistics: None,
        }
    }

    /// The values of the only page of a column in a file that the parquet crate wrote.
    fn encoded(column: ArrayRef, encoding: Encoding) -> Bytes {
        let batch = RecordBatch::try_from_iter([("c", column)]).unwrap();
        let properties = WriterProperties::builder()
            .set_dictionary_enabled(false)
            .set_encoding(encoding)
            .build();
        let mut file = Vec::new();
        let mut writer = ArrowWriter::try_new(&mut file, batch.schema(), Some(properties)).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
        let reader = SerializedFileReader::new(Bytes::from(file)).unwrap();
        let group = reader.get_row_group(0).unwrap();
        let mut pages = group.get_column_page_reader(0).unwrap();
        pages.get_next_page().unwrap().unwrap().buffer().clone()
    }

    #[test]
    fn a_sequence_ends_where_the_next_begins() {
        for count in [1, 2, 32, 33, 128, 129, 130, 1_000] {
            let values: Vec<i32> = (0..count).map(|i| i * i % 77 * (i % 5)).collect();
            let values: ArrayRef = Arc::new(Int32Array::from(values));
            let mut bytes = encoded(values, Encoding::DELTA_BINARY_PACKED).to_vec();
            bytes.extend(b"what follows");
            let (found, rest) = sequence(&bytes).unwrap().unwrap();
            assert_eq!((found, rest), (count as u64, &b"what follows"[..]));
        }
        assert!(sequence(&[0x80, 1, 0, 5, 0]).is_err());
        assert!(sequence(&[0x80, 1, 4, 200, 1, 0, 0, 1, 1, 1, 1]).is_err());
    }

    #[test]
    fn lengths_of_suffixes_are_as_many_as_those_of_prefixes() {
        let texts = StringArray::from_iter_values((0..300).map(|i| format!("text {}", i / 7)));
        let mut bytes = encoded(Arc::new(texts), Encoding::DELTA_BYTE_ARRAY).to_vec();
        let column = column(0, 0);
        let checked = |bytes: &[u8]| {
            let page = v1(bytes, Encoding::DELTA_BYTE_ARRAY, Encoding::RLE);
            check(&page, &column, false)
        };
        assert!(checked(&bytes).is_ok());
        let (_, suffixes) = sequence(&bytes).unwrap().unwrap();
        // Block and miniblocks take three bytes in front of the count.
        let at = bytes.len() - suffixes.len() + 3;
        bytes[at + 1] = 0x7f;
        let error = checked(&bytes).unwrap_err().to_string();
        assert!(error.contains("300 lengths of prefixes"), "{error}");
        assert!(checked(&bytes[..20]).is_err());
        assert!(checked(&[]).is_ok());
    }

    #[test]
    fn plain_byte_arrays_end_with_their_page() {
        let values = [2, 0, 0, 0, b'a', b'b', 0, 0, 0, 0, 1, 0, 0, 0, b'c'];
        let checked = |bytes: &[u8], skips| {
            check(
                &v1(bytes, Encoding::PLAIN, Encoding::RLE),
                &column(0, 0),
                skips,
            )
            .is_ok()
        };
        assert!(checked(&values, true) && checked(&[], true));
        assert!(!checked(&values[..14], true) && !checked(&values[..13], true));
        assert!(checked(&values[..13], false));
    }

    #[test]
    fn a_page_that_is_skipped_has_a_repetition_level_for_each_value() {
        // One bit: a run of 10 zeros; a group of eight and one cut short.
        for (levels, len) in [
            (&[20, 0][..], 10),
            (&[3, 0xaa], 8),
            (&[5, 0xaa], 8),
            (&[20, 0, 3, 0xaa], 18),
            (&[20], 0),
            (&[], 0),
        ] {
            assert_eq!(hybrid_len(levels, 1), len, "{levels:?}");
            let mut page = (levels.len() as u32).to_le_bytes().to_vec();
            page.extend(levels);
            page.extend([0; 9]);
            let page = v1(&page, Encoding::RLE, Encoding::RLE);
            assert_eq!(check(&page, &column(1, 1), true).is_ok(), len >= 10);
            assert!(check(&page, &column(1, 1), false).is_ok());
            assert!(check(&page, &column(1, 0), true).is_ok());
        }
    }

    #[test]
    fn levels_are_passed_over() {
        let values = [1, 0, 0, 0, b'a'];
        let damaged = [2, 0, 0, 0, b'a'];
        for (column, levels, encoding) in [
            (column(1, 0), &[2, 0, 0, 0, 20, 1][..], Encoding::RLE),
            (
                column(1, 1),
                &[2, 0, 0, 0, 20, 0, 1, 0, 0, 0, 9],
                Encoding::RLE,
            ),
            // Ten levels of two bits.
            #[expect(deprecated, reason = "old files are still read")]
            (column(3, 0), &[0, 0, 0], Encoding::BIT_PACKED),
        ] {
            for (values, is_ok) in [(values, true), (damaged, false)] {
                let page = v1(&[levels, &values].concat(), Encoding::PLAIN, encoding);
                assert_eq!(check(&page, &column, true).is_ok(), is_ok, "{levels:?}");
            }
        }
        let v2 = Page::DataPageV2 {
            buf: Bytes::copy_from_slice(&[&[20, 1][..], &damaged].concat()),
            num_values: 10,
            encoding: Encoding::PLAIN,
            num_nulls: 9,
            num_rows: 10,
            def_levels_byte_len: 2,
            rep_levels_byte_len: 0,
            is_compressed: false,
            statistics: None,
        };
        assert!(check(&v2, &column(1, 0), true).is_err());
    }
}
