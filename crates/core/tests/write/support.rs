//! Tables of every type that a flat column can have, and ways to write and read them.

use std::sync::Arc;

use alloquet_core::{WriteStrategy, Writer};
use arrow_array::builder::{
    BinaryViewBuilder, FixedSizeBinaryBuilder, StringDictionaryBuilder, StringRunBuilder,
    StringViewBuilder,
};
use arrow_array::types::*;
use arrow_array::*;
use arrow_buffer::{IntervalDayTime, i256};
use bytes::Bytes;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::{ArrowReaderOptions, ParquetRecordBatchReaderBuilder};
use parquet::file::metadata::{PageIndexPolicy, ParquetMetaData, ParquetMetaDataReader};
use parquet::file::properties::WriterProperties;

/// The strategies that tests go through: every preset of this crate, and combinations of parts.
pub(crate) const STRATEGIES: [&str; 10] = [
    "eager",
    "grow",
    "exact",
    "bounded",
    "pooled",
    "grow,sink=spill",
    "exact,order=column-wise",
    "pooled,sink=chunk",
    "pooled,sink=spill,codec=per-column",
    "encode=pooled,fallback=eager,order=interleaved,sink=chunk,codec=shared",
];

/// A simple generator of numbers.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 8
    }

    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }
}

/// How a column's nulls lie.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Nulls {
    /// The column is not nullable.
    Required,
    None,
    Some,
    All,
}

/// A batch of `rows` rows with a column of every flat type. `distinct` bounds how many values a column
/// has.
pub(crate) fn batch(rows: usize, nulls: Nulls, distinct: u64, seed: u64) -> RecordBatch {
    let mut random = Random::new(seed);
    let mut value = move || {
        let v = random.below(distinct);
        // Spread out, negative ones too.
        (v.wrapping_mul(0x9e37_79b9_7f4a_7c15)) as i64 >> (v % 40)
    };
    let mut pick = Random::new(seed + 1);
    let mut present = move || match nulls {
        Nulls::Required | Nulls::None => true,
        Nulls::Some => pick.below(10) >= 3,
        Nulls::All => false,
    };
    let values: Vec<Option<i64>> = (0..rows).map(|_| present().then(&mut value)).collect();
    let ints = || values.iter().copied();
    let text = |v: i64| match v.unsigned_abs() % 5 {
        0 => String::new(),
        1 => format!("common prefix {}", v % 1000),
        2 => format!("{v}"),
        3 => "häufig ü 🦀 ".repeat((v.unsigned_abs() % 12) as usize),
        _ => format!("a long common prefix that is shared by many {v:020}"),
    };
    let texts: Vec<Option<String>> = ints().map(|v| v.map(text)).collect();
    let strs = || texts.iter().map(Option::as_deref);
    let bytes = || strs().map(|t| t.map(str::as_bytes));

    let mut columns: Vec<(String, ArrayRef)> = Vec::new();
    let mut add = |name: &str, array: ArrayRef| columns.push((name.to_owned(), array));

    add(
        "bool",
        Arc::new(
            ints()
                .map(|v| v.map(|v| v % 3 == 0))
                .collect::<BooleanArray>(),
        ),
    );
    macro_rules! primitive {
        ($($name:literal $type:ty, $map:expr;)*) => {$(
            let map: fn(i64) -> <$type as ArrowPrimitiveType>::Native = $map;
            add($name, Arc::new(ints().map(|v| v.map(map)).collect::<PrimitiveArray<$type>>()));
        )*};
    }
    primitive! {
        "i8" Int8Type, |v| v as i8;
        "i16" Int16Type, |v| v as i16;
        "i32" Int32Type, |v| v as i32;
        "i64" Int64Type, |v| v;
        "u8" UInt8Type, |v| v as u8;
        "u16" UInt16Type, |v| v as u16;
        "u32" UInt32Type, |v| v as u32;
        "u64" UInt64Type, |v| v as u64;
        "f16" Float16Type, |v| half::f16::from_bits(v as u16);
        "f32" Float32Type, |v| if v % 7 == 0 { f32::NAN } else { v as f32 / 3.0 };
        "f64" Float64Type, |v| if v % 11 == 0 { -0.0 } else { v as f64 / 7.0 };
        "date32" Date32Type, |v| (v % 100_000) as i32;
        "date64" Date64Type, |v| (v % 100_000) * 86_400_000;
        "time32_s" Time32SecondType, |v| (v.unsigned_abs() % 86_400) as i32;
        "time32_ms" Time32MillisecondType, |v| (v.unsigned_abs() % 86_400_000) as i32;
        "time64_us" Time64MicrosecondType, |v| (v.unsigned_abs() % 86_400_000_000) as i64;
        "time64_ns" Time64NanosecondType, |v| (v.unsigned_abs() % 86_400_000_000_000) as i64;
        "ts_s" TimestampSecondType, |v| v >> 8;
        "ts_ms" TimestampMillisecondType, |v| v >> 8;
        "ts_us" TimestampMicrosecondType, |v| v >> 8;
        "ts_ns" TimestampNanosecondType, |v| v;
        "duration_ms" DurationMillisecondType, |v| v;
        "interval_ym" IntervalYearMonthType, |v| v as i32;
        "interval_dt" IntervalDayTimeType, |v| IntervalDayTime::new(v as i32, (v >> 32) as i32);
    }
    macro_rules! decimal {
        ($($name:literal $type:ty, $precision:literal, $map:expr;)*) => {$(
            let map: fn(i64) -> <$type as ArrowPrimitiveType>::Native = $map;
            let array: PrimitiveArray<$type> = ints().map(|v| v.map(map)).collect();
            add($name, Arc::new(array.with_precision_and_scale($precision, 2).unwrap()));
        )*};
    }
    decimal! {
        "decimal32" Decimal32Type, 8, |v| (v % 100_000_000) as i32;
        "decimal64_4" Decimal64Type, 8, |v| v % 100_000_000;
        "decimal64_8" Decimal64Type, 16, |v| v % 10_000_000_000_000_000;
        "decimal128_4" Decimal128Type, 8, |v| i128::from(v % 100_000_000);
        "decimal128_8" Decimal128Type, 16, |v| i128::from(v % 10_000_000_000_000_000);
        "decimal128_16" Decimal128Type, 38, |v| i128::from(v) * 1_000_000_007;
        "decimal256_32" Decimal256Type, 70, |v| i256::from(v) * i256::from(v);
    }
    add("utf8", Arc::new(strs().collect::<StringArray>()));
    add("large_utf8", Arc::new(strs().collect::<LargeStringArray>()));
    add("binary", Arc::new(bytes().collect::<BinaryArray>()));
    add(
        "large_binary",
        Arc::new(bytes().collect::<LargeBinaryArray>()),
    );
    let mut view = StringViewBuilder::new();
    strs().for_each(|t| view.append_option(t));
    add("utf8_view", Arc::new(view.finish()));
    let mut view = BinaryViewBuilder::new();
    bytes().for_each(|t| view.append_option(t));
    add("binary_view", Arc::new(view.finish()));
    let mut fixed = FixedSizeBinaryBuilder::new(7);
    for v in ints() {
        match v {
            Some(v) => fixed.append_value(&v.to_le_bytes()[..7]).unwrap(),
            None => fixed.append_null(),
        }
    }
    add("fixed_7", Arc::new(fixed.finish()));
    let mut dictionary = StringDictionaryBuilder::<Int32Type>::new();
    strs().for_each(|t| dictionary.append_option(t));
    add("dictionary", Arc::new(dictionary.finish()));
    let mut runs = StringRunBuilder::<Int32Type>::new();
    strs().for_each(|t| runs.append_option(t));
    add("runs", Arc::new(runs.finish()));
    if nulls != Nulls::Required {
        add("null", Arc::new(NullArray::new(rows)));
    }
    let columns = columns
        .into_iter()
        .map(|(name, array)| (name, array, nulls != Nulls::Required));
    RecordBatch::try_from_iter_with_nullable(columns).unwrap()
}

/// Writes batches with a strategy.
pub(crate) fn write(
    batches: &[RecordBatch],
    properties: &WriterProperties,
    strategy: &str,
) -> Bytes {
    let mut file = Vec::new();
    let strategy: WriteStrategy = strategy.parse().unwrap();
    let mut writer = Writer::try_new(&mut file, batches[0].schema(), Some(properties.clone()))
        .unwrap()
        .with_strategy(strategy)
        .unwrap();
    for batch in batches {
        writer.write(batch).unwrap();
    }
    let written = writer.close().unwrap();
    assert_eq!(written.bytes_written(), file.len() as u64);
    let rows: usize = batches.iter().map(RecordBatch::num_rows).sum();
    assert_eq!(written.num_rows(), rows as u64);
    file.into()
}

/// Writes batches with the parquet crate.
pub(crate) fn write_upstream(batches: &[RecordBatch], properties: &WriterProperties) -> Bytes {
    let mut file = Vec::new();
    let mut writer =
        ArrowWriter::try_new(&mut file, batches[0].schema(), Some(properties.clone())).unwrap();
    for batch in batches {
        writer.write(batch).unwrap();
    }
    writer.close().unwrap();
    file.into()
}

/// Reads a file with the parquet crate, page index required where the file is to have one.
pub(crate) fn read(file: &Bytes, page_index: bool) -> Vec<RecordBatch> {
    let policy = if page_index {
        PageIndexPolicy::Required
    } else {
        PageIndexPolicy::Skip
    };
    let options = ArrowReaderOptions::new().with_page_index_policy(policy);
    ParquetRecordBatchReaderBuilder::try_new_with_options(file.clone(), options)
        .unwrap()
        .with_batch_size(1 << 20)
        .build()
        .unwrap()
        .map(Result::unwrap)
        .collect()
}

/// A file's metadata with all that is in it.
pub(crate) fn metadata(file: &Bytes) -> ParquetMetaData {
    ParquetMetaDataReader::new()
        .with_page_index_policy(PageIndexPolicy::Optional)
        .parse_and_finish(file)
        .unwrap()
}

/// Whether batches hold the same rows, however they are cut.
pub(crate) fn assert_same(written: &[RecordBatch], read: &[RecordBatch], what: &str) {
    let schema = written[0].schema();
    let written = arrow_select::concat::concat_batches(&schema, written).unwrap();
    let read = arrow_select::concat::concat_batches(&read[0].schema(), read).unwrap();
    assert_eq!(written.num_rows(), read.num_rows(), "{what}");
    for (i, field) in schema.fields().iter().enumerate() {
        let name = field.name();
        let mut expected = written.column(i).clone();
        // The parquet crate reads runs back as what they are runs of.
        if let Some(runs) = expected.as_any().downcast_ref::<RunArray<Int32Type>>() {
            let indices: UInt64Array = (0..runs.len())
                .map(|row| runs.get_physical_index(row) as u64)
                .collect();
            expected = arrow_select::take::take(runs.values(), &indices, None).unwrap();
        }
        let got = read.column(i);
        assert_eq!(got.data_type(), expected.data_type(), "{what}: {name}");
        let data = got.to_data();
        data.validate_full().unwrap();
        assert!(
            expected.to_data() == data,
            "{what}: {name} differs:\n{expected:?}\n{got:?}",
        );
    }
}
