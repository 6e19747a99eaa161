//! What encoders are tested against: pages of the parquet crate's writer, and plain slow decoders.

use std::sync::Arc;

use bytes::Bytes;
use parquet::basic::{Encoding, Repetition, Type as Physical};
use parquet::data_type::{
    ByteArray, ByteArrayType, DataType, FixedLenByteArrayType, Int32Type, Int64Type,
};
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterVersion};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::Type;

/// A value that the parquet crate's writer takes.
pub(super) trait Reference: Clone {
    type Type: DataType;
    const PHYSICAL: Physical;
    fn native(&self) -> <Self::Type as DataType>::T;
}

impl Reference for i32 {
    type Type = Int32Type;
    const PHYSICAL: Physical = Physical::INT32;
    fn native(&self) -> i32 {
        *self
    }
}

impl Reference for i64 {
    type Type = Int64Type;
    const PHYSICAL: Physical = Physical::INT64;
    fn native(&self) -> i64 {
        *self
    }
}

impl Reference for Vec<u8> {
    type Type = ByteArrayType;
    const PHYSICAL: Physical = Physical::BYTE_ARRAY;
    fn native(&self) -> ByteArray {
        self.clone().into()
    }
}

impl<const N: usize> Reference for [u8; N] {
    type Type = FixedLenByteArrayType;
    const PHYSICAL: Physical = Physical::FIXED_LEN_BYTE_ARRAY;
    fn native(&self) -> parquet::data_type::FixedLenByteArray {
        self.to_vec().into()
    }
}

/// The values of the one page that the parquet crate makes of `values`, which are not none.
pub(super) fn page<T: Reference>(values: &[T], encoding: Encoding) -> Bytes {
    let field = Type::primitive_type_builder("column", T::PHYSICAL)
        .with_repetition(Repetition::REQUIRED)
        .with_length(size_of::<T>() as i32)
        .build()
        .unwrap();
    let schema = Type::group_type_builder("schema")
        .with_fields(vec![Arc::new(field)])
        .build()
        .unwrap();
    let properties = WriterProperties::builder()
        .set_writer_version(WriterVersion::PARQUET_2_0)
        .set_dictionary_enabled(false)
        .set_statistics_enabled(EnabledStatistics::None)
        .set_encoding(encoding)
        .set_data_page_size_limit(usize::MAX)
        .set_data_page_row_count_limit(usize::MAX)
        .build();
    let mut file = Vec::new();
    let mut writer =
        SerializedFileWriter::new(&mut file, Arc::new(schema), Arc::new(properties)).unwrap();
    let mut group = writer.next_row_group().unwrap();
    let mut column = group.next_column().unwrap().unwrap();
    let native: Vec<_> = values.iter().map(Reference::native).collect();
    column
        .typed::<T::Type>()
        .write_batch(&native, None, None)
        .unwrap();
    column.close().unwrap();
    group.close().unwrap();
    writer.close().unwrap();
    only_page(file)
}

/// The body of the only page of the only column of `file`.
fn only_page(file: Vec<u8>) -> Bytes {
    let reader = SerializedFileReader::new(Bytes::from(file)).unwrap();
    let group = reader.get_row_group(0).unwrap();
    let mut pages = group.get_column_page_reader(0).unwrap();
    let page = pages.get_next_page().unwrap().unwrap();
    assert!(pages.get_next_page().unwrap().is_none());
    page.buffer().clone()
}

/// `count` integers of `width` bits, bit by bit.
pub(super) fn unpack(bytes: &[u8], width: u32, count: usize) -> Vec<u64> {
    let width = width as usize;
    let bit = |at: usize| u64::from(bytes[at / 8] >> (at % 8) & 1);
    (0..count)
        .map(|i| (0..width).fold(0, |value, k| value | bit(i * width + k) << k))
        .collect()
}

/// The first `count` values of RLE and bit-packed runs, which must end with what they need.
pub(super) fn decode_runs(mut bytes: &[u8], width: u32, count: usize) -> Vec<u64> {
    let mut values = Vec::new();
    while values.len() < count {
        let mut header = 0u64;
        for shift in (0..).step_by(7) {
            let (&byte, rest) = bytes.split_first().expect("a header");
            bytes = rest;
            header |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                break;
            }
        }
        assert!(header > 1, "an empty run");
        let run = (header >> 1) as usize;
        let (len, values_in_run) = if header & 1 == 1 {
            (run * width as usize, run * 8)
        } else {
            (width.div_ceil(8) as usize, run)
        };
        let (body, rest) = bytes.split_at(len);
        bytes = rest;
        if header & 1 == 1 {
            values.extend(unpack(body, width, values_in_run));
        } else {
            let value = body
                .iter()
                .rev()
                .fold(0, |value, &byte| value << 8 | u64::from(byte));
            values.extend(std::iter::repeat_n(value, values_in_run));
        }
    }
    assert!(bytes.is_empty(), "{} bytes after the last run", bytes.len());
    assert!(values[count..].iter().all(|&value| value == 0) && values.len() < count + 8);
    values.truncate(count);
    values
}
