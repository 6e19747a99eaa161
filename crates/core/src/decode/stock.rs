//! Pages that the parquet crate wrote, decoded here and by its own reader.

use std::sync::Arc;

use arrow_array::builder::{BooleanBuilder, FixedSizeBinaryBuilder};
use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Int32Type, Int64Type};
use arrow_array::{
    Array, ArrayRef, BooleanArray, FixedSizeBinaryArray, Float32Array, Int32Array, Int64Array,
    RecordBatch,
};
use arrow_buffer::{BooleanBufferBuilder, Buffer, ScalarBuffer};
use arrow_schema::{DataType, Field, Schema};
use bytes::Bytes;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::basic::Encoding;
use parquet::column::page::Page;
use parquet::file::properties::{WriterProperties, WriterVersion};
use parquet::file::reader::{FileReader, SerializedFileReader};
use proptest::prelude::*;

use super::levels::Levels;
use super::validity::Validity;
use super::values::bits::Bits;
use super::values::delta::Delta;
use super::values::dictionary::Dictionary;
use super::values::fixed::{FixedDictionary, FixedPlain, FixedSplit};
use super::values::plain::Plain;
use super::values::split::Split;
use super::values::spread::{spread, spread_bits, spread_rows};
use super::values::{Native, Values};

/// How a file is written.
#[derive(Debug, Clone, Copy)]
struct Layout {
    version: WriterVersion,
    nullable: bool,
    /// `None` for a dictionary.
    encoding: Option<Encoding>,
}

/// One data page: its levels, and the bytes of its values.
struct DataPage {
    rows: usize,
    levels: Option<Levels>,
    encoding: Encoding,
    values: Bytes,
}

impl DataPage {
    /// Reads and skips `steps`, again and again, until all rows were: `read` gets how many values and how many rows.
    fn walk(
        &mut self,
        steps: &[(usize, bool)],
        validity: &mut Validity,
        mut step: impl FnMut(bool, usize, usize, &Validity),
    ) {
        let mut at = 0;
        for &(rows, skip) in steps.iter().cycle() {
            let rows = rows.min(self.rows - at);
            if rows == 0 {
                break;
            }
            let valid = match (&mut self.levels, skip) {
                (Some(levels), true) => levels.skip(rows).unwrap(),
                (Some(levels), false) => levels.read(rows, validity).unwrap(),
                (None, true) => rows,
                (None, false) => {
                    validity.append_valid(rows);
                    rows
                }
            };
            step(skip, valid, rows, validity);
            at += rows;
        }
    }
}

/// The dictionary page and the data pages of the only column of `file`.
fn pages(file: &Bytes, nullable: bool) -> (Option<(Bytes, usize)>, Vec<DataPage>) {
    let reader = SerializedFileReader::new(file.clone()).unwrap();
    let group = reader.get_row_group(0).unwrap();
    let mut dictionary = None;
    let mut data = Vec::new();
    for page in group.get_column_page_reader(0).unwrap() {
        match page.unwrap() {
            Page::DictionaryPage {
                buf, num_values, ..
            } => {
                dictionary = Some((buf, num_values as usize));
            }
            Page::DataPage {
                buf,
                num_values,
                encoding,
                def_level_encoding,
                ..
            } => {
                let rows = num_values as usize;
                let levels = nullable.then(|| Levels::v1(&buf, rows, def_level_encoding).unwrap());
                let (levels, start) = levels.map_or((None, 0), |(levels, at)| (Some(levels), at));
                let values = buf.slice(start..);
                data.push(DataPage {
                    rows,
                    levels,
                    encoding,
                    values,
                });
            }
            Page::DataPageV2 {
                buf,
                num_values,
                num_nulls,
                encoding,
                def_levels_byte_len,
                ..
            } => {
                let rows = num_values as usize;
                let len = def_levels_byte_len as usize;
                let levels = nullable.then(|| Levels::v2(buf.slice(..len), rows).unwrap());
                if let Some(levels) = &levels {
                    assert_eq!(levels.has_nulls(), num_nulls > 0);
                }
                let values = buf.slice(len..);
                data.push(DataPage {
                    rows,
                    levels,
                    encoding,
                    values,
                });
            }
        }
    }
    (dictionary, data)
}

fn numbers<T: Native>(page: &DataPage, dictionary: &Option<(Bytes, usize)>) -> Box<dyn Values<T>> {
    let bytes = page.values.clone();
    match page.encoding {
        Encoding::PLAIN => Box::new(Plain::<T>::new(bytes)),
        Encoding::RLE_DICTIONARY => {
            let (page, count) = dictionary.clone().unwrap();
            let mut values = Vec::new();
            Plain::new(page).read(count, &mut values).unwrap();
            Box::new(Dictionary::try_new(bytes, values.into()).unwrap())
        }
        Encoding::DELTA_BINARY_PACKED => Box::new(Delta::<T>::try_new(bytes).unwrap()),
        Encoding::BYTE_STREAM_SPLIT => Box::new(Split::<T>::try_new(bytes).unwrap()),
        other => panic!("numbers are not encoded as {other}"),
    }
}

fn fixed(
    page: &DataPage,
    dictionary: &Option<(Bytes, usize)>,
    width: usize,
) -> Box<dyn Values<u8>> {
    let bytes = page.values.clone();
    match page.encoding {
        Encoding::PLAIN => Box::new(FixedPlain::new(bytes, width)),
        Encoding::RLE_DICTIONARY => {
            let (page, count) = dictionary.clone().unwrap();
            assert_eq!(page.len(), count * width);
            Box::new(FixedDictionary::try_new(bytes, page[..].into(), width).unwrap())
        }
        Encoding::BYTE_STREAM_SPLIT => Box::new(FixedSplit::try_new(bytes, width).unwrap()),
        other => panic!("rows are not encoded as {other}"),
    }
}

/// The rows of the file that `steps` read, decoded here.
fn decode(file: &Bytes, data_type: &DataType, nullable: bool, steps: &[(usize, bool)]) -> ArrayRef {
    let (dictionary, pages) = pages(file, nullable);
    let mut validity = Validity::new(0);
    macro_rules! decode_numbers {
        ($bits:ty, $native:ty, $array:ty) => {{
            let mut out: Vec<$bits> = Vec::new();
            for mut page in pages {
                let mut values = numbers::<$bits>(&page, &dictionary);
                page.walk(steps, &mut validity, |skip, valid, rows, validity| {
                    if skip {
                        values.skip(valid).unwrap();
                    } else {
                        let start = out.len();
                        values.read(valid, &mut out).unwrap();
                        spread(&mut out, start, validity, rows);
                    }
                });
                assert!(values.skip(8).is_err());
            }
            let out = ScalarBuffer::<$native>::from(Buffer::from_vec(out));
            Arc::new(<$array>::new(out, validity.finish()))
        }};
    }
    match data_type {
        DataType::Int32 => decode_numbers!(u32, i32, Int32Array),
        DataType::Float32 => decode_numbers!(u32, f32, Float32Array),
        DataType::Int64 => decode_numbers!(u64, i64, Int64Array),
        DataType::FixedSizeBinary(size) => {
            let width = *size as usize;
            let mut out = Vec::new();
            for mut page in pages {
                let mut values = fixed(&page, &dictionary, width);
                page.walk(steps, &mut validity, |skip, valid, rows, validity| {
                    if skip {
                        values.skip(valid).unwrap();
                    } else {
                        let start = out.len();
                        values.read(valid, &mut out).unwrap();
                        spread_rows(&mut out, start, width, validity, rows);
                    }
                });
            }
            Arc::new(FixedSizeBinaryArray::new(
                *size,
                out.into(),
                validity.finish(),
            ))
        }
        DataType::Boolean => {
            let mut out = BooleanBufferBuilder::new(0);
            for mut page in pages {
                let mut values = match page.encoding {
                    Encoding::PLAIN => Bits::plain(page.values.clone()),
                    _ => Bits::rle(page.values.clone()).unwrap(),
                };
                page.walk(steps, &mut validity, |skip, valid, rows, validity| {
                    if skip {
                        values.skip(valid).unwrap();
                    } else {
                        let start = out.len();
                        values.read(valid, &mut out).unwrap();
                        spread_bits(&mut out, start, validity, rows);
                    }
                });
            }
            Arc::new(BooleanArray::new(out.finish(), validity.finish()))
        }
        other => panic!("{other} is not decoded here"),
    }
}

/// Writes `array` in pages of some 500 rows, and compares what the two readers make of it.
fn check(array: &ArrayRef, layout: Layout, steps: &[(usize, bool)]) {
    let field = Field::new("column", array.data_type().clone(), layout.nullable);
    let schema = Arc::new(Schema::new(vec![field]));
    let batch = RecordBatch::try_new(Arc::clone(&schema), vec![Arc::clone(array)]).unwrap();
    let mut properties = WriterProperties::builder()
        .set_writer_version(layout.version)
        .set_dictionary_enabled(layout.encoding.is_none())
        .set_data_page_row_count_limit(500)
        .set_write_batch_size(100);
    if let Some(encoding) = layout.encoding {
        properties = properties.set_encoding(encoding);
    }
    let mut file = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut file, schema, Some(properties.build())).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    let file = Bytes::from(file);

    let builder = ParquetRecordBatchReaderBuilder::try_new(file.clone()).unwrap();
    let mut stock = builder.with_batch_size(array.len()).build().unwrap();
    let stock = stock
        .next()
        .map(|batch| Arc::clone(batch.unwrap().column(0)));
    let stock = stock.unwrap_or_else(|| array.slice(0, 0));
    let all = decode(&file, array.data_type(), layout.nullable, &[(170, false)]);
    assert_eq!(&all, &stock, "{layout:?}");

    // Of pages of 500 rows, what the steps do not skip.
    let mut kept = BooleanBufferBuilder::new(array.len());
    let (_, pages) = pages(&file, layout.nullable);
    for page in pages {
        let end = kept.len() + page.rows;
        for &(rows, skip) in steps.iter().cycle() {
            kept.append_n(rows.min(end - kept.len()), !skip);
            if kept.len() == end {
                break;
            }
        }
    }
    let kept = BooleanArray::new(kept.finish(), None);
    let expected = arrow_select::filter::filter(&stock, &kept).unwrap();
    let some = decode(&file, array.data_type(), layout.nullable, steps);
    assert_eq!(&some, &expected, "{layout:?}");
}

/// Checks `array` in all layouts with `encodings` and a dictionary.
fn check_all(array: &ArrayRef, encodings: &[Encoding], steps: &[(usize, bool)]) {
    let nullable: &[bool] = if array.null_count() > 0 {
        &[true]
    } else {
        &[true, false]
    };
    for version in [WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0] {
        for &nullable in nullable {
            for encoding in encodings.iter().copied().map(Some).chain([None]) {
                check(
                    array,
                    Layout {
                        version,
                        nullable,
                        encoding,
                    },
                    steps,
                );
            }
        }
    }
}

/// A column: for each row a number, or none. Some are without nulls, some of few values, some of runs.
fn column() -> impl Strategy<Value = Vec<Option<i64>>> {
    let piece = (any::<i64>(), 0..64u32, 1..400usize, 0..4u8, 0..4u8);
    let pieces = prop::collection::vec(piece, 1..8);
    (pieces, any::<bool>()).prop_map(|(pieces, nulls)| {
        let rows = pieces.iter().flat_map(|&(seed, shift, count, kind, null)| {
            (0..count as i64).map(move |i| {
                let noise =
                    seed.wrapping_mul(i.wrapping_mul(0x9e37_79b9_7f4a_7c15_u64.cast_signed()) | 1);
                let value = match kind {
                    0 => seed >> shift,
                    1 => seed.wrapping_add(i),
                    _ => noise >> shift,
                };
                let is_null = match null {
                    0 => false,
                    1 => noise & 0xf00 == 0,
                    2 => noise & 0x100 == 0,
                    _ => true,
                };
                (!(nulls && is_null)).then_some(value)
            })
        });
        rows.collect()
    })
}

fn steps() -> impl Strategy<Value = Vec<(usize, bool)>> {
    let some = prop::collection::vec((1..300usize, any::<bool>()), 0..6);
    some.prop_map(|steps| [&steps[..], &[(9, false)]].concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn numbers_are_what_the_stock_reader_reads(column in column(), steps in steps()) {
        let wide: ArrayRef = Arc::new(Int64Array::from(column));
        let wide_values = wide.as_primitive::<Int64Type>();
        let narrow: ArrayRef = Arc::new(wide_values.unary::<_, Int32Type>(|value| value as i32));
        let float: ArrayRef = Arc::new(wide_values.unary::<_, Float32Type>(|value| value as f32));
        let integers = [Encoding::PLAIN, Encoding::DELTA_BINARY_PACKED, Encoding::BYTE_STREAM_SPLIT];
        check_all(&wide, &integers, &steps);
        check_all(&narrow, &integers, &steps);
        check_all(&float, &[Encoding::PLAIN, Encoding::BYTE_STREAM_SPLIT], &steps);
    }

    #[test]
    fn booleans_and_rows_are_what_the_stock_reader_reads(column in column(), steps in steps()) {
        let mut bits = BooleanBuilder::new();
        let widths = [2, 5, 16];
        let mut rows = widths.map(FixedSizeBinaryBuilder::new);
        for value in &column {
            bits.append_option(value.map(|value| value & 1 == 1));
            for (rows, width) in rows.iter_mut().zip(widths) {
                match value {
                    Some(value) => {
                        let bytes = i128::from(*value).to_be_bytes();
                        rows.append_value(&bytes[16 - width as usize..]).unwrap();
                    }
                    None => rows.append_null(),
                }
            }
        }
        let bits: ArrayRef = Arc::new(bits.finish());
        check_all(&bits, &[Encoding::PLAIN, Encoding::RLE], &steps);
        for mut rows in rows {
            let rows: ArrayRef = Arc::new(rows.finish());
            let encodings = [Encoding::PLAIN, Encoding::BYTE_STREAM_SPLIT];
            check_all(&rows, &encodings, &steps);
        }
    }
}
