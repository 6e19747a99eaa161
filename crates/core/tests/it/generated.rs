//! Files written here: every Arrow type that Parquet takes × page version × codec × dictionary, and
//! every way of reading a part of a file.

use std::path::Path;
use std::sync::Arc;

use alloquet_core::{ReadStrategy, ReaderBuilder};
use arrow_array::builder::{
    ListBuilder, MapBuilder, StringBuilder, StringDictionaryBuilder, UInt32Builder,
};
use arrow_array::types::Int32Type;
use arrow_array::{
    ArrayRef, BinaryArray, BooleanArray, Date32Array, Decimal128Array, FixedSizeBinaryArray,
    Float32Array, Float64Array, Int8Array, Int32Array, Int64Array, LargeStringArray, RecordBatch,
    StringArray, StringViewArray, StructArray, Time64NanosecondArray, TimestampMicrosecondArray,
    UInt64Array,
};
use arrow_schema::{DataType, Field};
use parquet::arrow::arrow_reader::{
    ArrowReaderOptions, ParquetRecordBatchReaderBuilder, RowSelection, RowSelector,
};
use parquet::arrow::{ArrowWriter, ProjectionMask};
use parquet::basic::{Compression, Encoding};
use parquet::file::properties::{WriterProperties, WriterVersion};

use crate::support::{metadata, options, stock, strategies, with_strategy};

const ROWS: i64 = 2_500;

/// A column of every shape, with nulls where the type has them.
pub(crate) fn all_types() -> RecordBatch {
    let ids = || 0..ROWS;
    let some = |i: i64| (i % 5 != 0).then_some(i);
    let text = |i: i64| some(i).map(|i| format!("value {}", i % 97));
    let texts = || ids().map(text);

    let mut dictionary = StringDictionaryBuilder::<Int32Type>::new();
    let mut list = ListBuilder::new(UInt32Builder::new());
    let mut map = MapBuilder::new(None, StringBuilder::new(), UInt32Builder::new());
    for i in ids() {
        dictionary.append_option(text(i));
        for item in 0..i % 4 {
            list.values().append_option((item != 2).then_some(i as u32));
        }
        list.append(i % 7 != 0);
        map.keys().append_value(format!("k{i}"));
        map.values().append_option(some(i).map(|i| i as u32));
        map.append(true).unwrap();
    }
    let inner: ArrayRef = Arc::new(ids().map(some).collect::<Int64Array>());
    let structure = StructArray::try_new(
        vec![Field::new("inner", DataType::Int64, true)].into(),
        vec![inner],
        Some(ids().map(|i| i % 3 != 0).collect::<Vec<_>>().into()),
    )
    .unwrap();

    let columns: Vec<(&str, ArrayRef)> = vec![
        (
            "required",
            Arc::new(Int32Array::from_iter_values(ids().map(|i| i as i32))),
        ),
        (
            "bool",
            Arc::new(
                ids()
                    .map(|i| some(i).map(|i| i % 2 == 0))
                    .collect::<BooleanArray>(),
            ),
        ),
        (
            "i8",
            Arc::new(
                ids()
                    .map(|i| some(i).map(|i| i as i8))
                    .collect::<Int8Array>(),
            ),
        ),
        ("i64", Arc::new(ids().map(some).collect::<Int64Array>())),
        (
            "u64",
            Arc::new(
                ids()
                    .map(|i| some(i).map(|i| u64::MAX - i as u64))
                    .collect::<UInt64Array>(),
            ),
        ),
        (
            "f32",
            Arc::new(
                ids()
                    .map(|i| some(i).map(|i| i as f32))
                    .collect::<Float32Array>(),
            ),
        ),
        (
            "f64",
            Arc::new(Float64Array::from_iter_values(
                ids().map(|i| i as f64 / 3.0),
            )),
        ),
        (
            "date",
            Arc::new(
                ids()
                    .map(|i| some(i).map(|i| i as i32))
                    .collect::<Date32Array>(),
            ),
        ),
        (
            "time",
            Arc::new(ids().map(some).collect::<Time64NanosecondArray>()),
        ),
        (
            "timestamp",
            Arc::new(
                ids()
                    .map(some)
                    .collect::<TimestampMicrosecondArray>()
                    .with_timezone("UTC"),
            ),
        ),
        (
            "decimal",
            Arc::new(
                ids()
                    .map(|i| some(i).map(i128::from))
                    .collect::<Decimal128Array>()
                    .with_precision_and_scale(20, 2)
                    .unwrap(),
            ),
        ),
        ("utf8", Arc::new(texts().collect::<StringArray>())),
        ("large", Arc::new(texts().collect::<LargeStringArray>())),
        ("view", Arc::new(texts().collect::<StringViewArray>())),
        (
            "binary",
            Arc::new(BinaryArray::from_iter(
                texts().map(|t| t.map(String::into_bytes)),
            )),
        ),
        (
            "fixed",
            Arc::new(
                FixedSizeBinaryArray::try_from_sparse_iter_with_size(
                    ids().map(|i| some(i).map(i64::to_be_bytes)),
                    8,
                )
                .unwrap(),
            ),
        ),
        ("dictionary", Arc::new(dictionary.finish())),
        ("list", Arc::new(list.finish())),
        ("map", Arc::new(map.finish())),
        ("struct", Arc::new(structure)),
    ];
    RecordBatch::try_from_iter_with_nullable(
        columns
            .into_iter()
            .map(|(name, array)| (name, array, name != "required" && name != "f64")),
    )
    .unwrap()
}

/// Small pages and two row groups, so that everything has a boundary to cross.
pub(crate) fn properties() -> parquet::file::properties::WriterPropertiesBuilder {
    WriterProperties::builder()
        .set_max_row_group_row_count(Some(1_500))
        .set_data_page_row_count_limit(200)
        .set_write_batch_size(50)
}

pub(crate) fn write(path: &Path, batch: &RecordBatch, properties: WriterProperties) {
    let file = std::fs::File::create(path).unwrap();
    let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(properties)).unwrap();
    writer.write(batch).unwrap();
    writer.close().unwrap();
}

fn compare(path: &Path, options: impl Fn() -> ArrowReaderOptions, what: &str) {
    for batch_size in [64, 1_000] {
        let expected = stock(path, options(), batch_size).unwrap().unwrap();
        assert_eq!(
            expected.iter().map(RecordBatch::num_rows).sum::<usize>() as i64,
            ROWS
        );
        for strategy in strategies() {
            let found = with_strategy(path, options(), batch_size, strategy).unwrap();
            assert!(expected == found, "{what} differs with {strategy}");
        }
    }
}

#[test]
fn every_type_codec_page_version_and_dictionary() {
    let folder = tempfile::tempdir().unwrap();
    let batch = all_types();
    for codec in [
        Compression::UNCOMPRESSED,
        Compression::SNAPPY,
        Compression::GZIP(Default::default()),
        Compression::BROTLI(Default::default()),
        Compression::LZ4,
        Compression::LZ4_RAW,
        Compression::ZSTD(Default::default()),
    ] {
        for version in [WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0] {
            for dictionary in [false, true] {
                let path = folder.path().join("file.parquet");
                let properties = properties()
                    .set_compression(codec)
                    .set_writer_version(version)
                    .set_dictionary_enabled(dictionary)
                    .build();
                write(&path, &batch, properties);
                compare(
                    &path,
                    || options(None),
                    &format!("{codec} {version:?} dictionary {dictionary}"),
                );
            }
        }
    }
}

#[test]
fn every_encoding_that_can_be_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file.parquet");
    let batch = all_types();
    let properties = properties()
        .set_dictionary_enabled(false)
        .set_writer_version(WriterVersion::PARQUET_2_0)
        .set_column_encoding("i64".into(), Encoding::DELTA_BINARY_PACKED)
        .set_column_encoding("utf8".into(), Encoding::DELTA_BYTE_ARRAY)
        .set_column_encoding("large".into(), Encoding::DELTA_LENGTH_BYTE_ARRAY)
        .set_column_encoding("f32".into(), Encoding::BYTE_STREAM_SPLIT)
        .set_column_encoding("bool".into(), Encoding::RLE)
        .build();
    write(&path, &batch, properties);
    compare(&path, || options(None), "encodings");
}

#[test]
fn parts_of_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file.parquet");
    let batch = all_types();
    for dictionary in [false, true] {
        write(
            &path,
            &batch,
            properties().set_dictionary_enabled(dictionary).build(),
        );
        let metadata = metadata(&path, options(None));
        let schema = metadata.parquet_schema();
        let selections = [
            None,
            Some(RowSelection::from(vec![
                RowSelector::skip(390),
                RowSelector::select(20),
                RowSelector::skip(300),
                RowSelector::select(1),
            ])),
            // Every third row: the parquet crate may read this as a mask.
            Some(RowSelection::from(
                (0..500)
                    .flat_map(|_| [RowSelector::skip(2), RowSelector::select(1)])
                    .collect::<Vec<_>>(),
            )),
            Some(RowSelection::from(vec![RowSelector::skip(1_500)])),
        ];
        let projections = [
            ProjectionMask::all(),
            ProjectionMask::leaves(schema, [0, 4, 11, 17]),
            ProjectionMask::columns(schema, ["struct", "utf8", "map"]),
            ProjectionMask::none(schema.num_columns()),
        ];
        for row_groups in [vec![0, 1], vec![1], vec![1, 0], vec![]] {
            for selection in &selections {
                // A selection may not be longer than what it selects from.
                if selection.is_some() && !row_groups.contains(&0) {
                    continue;
                }
                for projection in &projections {
                    let file = std::fs::File::open(&path).unwrap();
                    let mut builder =
                        ParquetRecordBatchReaderBuilder::new_with_metadata(file, metadata.clone())
                            .with_batch_size(333)
                            .with_projection(projection.clone())
                            .with_row_groups(row_groups.clone());
                    if let Some(selection) = selection {
                        builder = builder.with_row_selection(selection.clone());
                    }
                    let expected: Vec<_> = builder.build().unwrap().map(Result::unwrap).collect();
                    for strategy in strategies() {
                        let file = std::fs::File::open(&path).unwrap();
                        let mut builder = ReaderBuilder::new_with_metadata(file, metadata.clone())
                            .with_strategy(strategy)
                            .with_batch_size(333)
                            .with_projection(projection.clone())
                            .with_row_groups(row_groups.clone());
                        if let Some(selection) = selection {
                            builder = builder.with_row_selection(selection.clone());
                        }
                        let found: Vec<_> = builder.build().unwrap().map(Result::unwrap).collect();
                        assert!(
                            expected == found,
                            "{strategy}, {row_groups:?}, {projection:?}, {selection:?}"
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn views_outlive_the_pages_that_they_were_cut_from() {
    // Byte-view arrays keep pages alive: a buffer that they hold must be replaced, not overwritten.
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file.parquet");
    let long: StringViewArray = (0..ROWS)
        .map(|i| Some(format!("a value too long to be inlined in a view, {i}")))
        .collect();
    let batch = RecordBatch::try_from_iter([("view", Arc::new(long) as ArrayRef)]).unwrap();
    write(
        &path,
        &batch,
        properties().set_dictionary_enabled(false).build(),
    );
    for strategy in strategies() {
        // All batches are held until the end.
        let found = with_strategy(&path, options(None), 100, strategy).unwrap();
        let found = arrow_select::concat::concat_batches(&batch.schema(), &found).unwrap();
        assert!(found == batch, "{strategy}");
    }
}

#[test]
fn bytes_in_memory_are_a_source_too() {
    let batch = all_types();
    let mut file = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut file, batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    let reader = ReaderBuilder::try_new(bytes::Bytes::from(file))
        .unwrap()
        .with_batch_size(ROWS as usize)
        .build()
        .unwrap();
    let found: Vec<_> = reader.map(Result::unwrap).collect();
    assert!(found == [batch]);
}

#[test]
fn a_row_group_that_does_not_exist_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file.parquet");
    write(&path, &all_types(), properties().build());
    for strategy in ["pooled", "upstream"] {
        let error = ReaderBuilder::try_new(std::fs::File::open(&path).unwrap())
            .unwrap()
            .with_strategy(strategy.parse::<ReadStrategy>().unwrap())
            .with_row_groups(vec![0, 7])
            .build()
            .unwrap_err();
        assert!(error.to_string().contains("row group 7"), "{error}");
    }
}
