//! What is written is read back equal.

use parquet::basic::{Compression, Encoding};
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterVersion};

use crate::support::{Nulls, STRATEGIES, assert_same, batch, read, write};

const VERSIONS: [WriterVersion; 2] = [WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0];
const NULLS: [Nulls; 4] = [Nulls::Required, Nulls::None, Nulls::Some, Nulls::All];

/// Every type × nulls × page version × strategy × dictionary that holds, falls back, or is off.
#[test]
fn every_type_comes_back() {
    for nulls in NULLS {
        let batches: Vec<_> = (0..3).map(|i| batch(700, nulls, 400, i)).collect();
        for version in VERSIONS {
            for dictionary in [None, Some(1 << 20), Some(900)] {
                let properties = WriterProperties::builder()
                    .set_writer_version(version)
                    .set_dictionary_enabled(dictionary.is_some())
                    .set_dictionary_page_size_limit(dictionary.unwrap_or(1))
                    .set_compression(Compression::SNAPPY)
                    .build();
                for strategy in STRATEGIES {
                    let what = format!("{nulls:?} {version:?} {dictionary:?} {strategy}");
                    let file = write(&batches, &properties, strategy);
                    assert_same(&batches, &read(&file, true), &what);
                }
            }
        }
    }
}

#[test]
fn every_codec_comes_back() {
    let batches = [batch(1500, Nulls::Some, 300, 5)];
    for codec in [
        Compression::UNCOMPRESSED,
        Compression::SNAPPY,
        Compression::GZIP(Default::default()),
        Compression::BROTLI(Default::default()),
        Compression::LZ4_RAW,
        Compression::LZ4,
        Compression::ZSTD(Default::default()),
    ] {
        for version in VERSIONS {
            let properties = WriterProperties::builder()
                .set_writer_version(version)
                .set_compression(codec)
                .build();
            for strategy in ["grow", "bounded", "pooled"] {
                let file = write(&batches, &properties, strategy);
                assert_same(
                    &batches,
                    &read(&file, true),
                    &format!("{codec} {version:?} {strategy}"),
                );
            }
        }
    }
}

#[test]
fn every_encoding_comes_back() {
    use Encoding::*;
    let batches: Vec<_> = (0..2).map(|i| batch(1000, Nulls::Some, 5000, i)).collect();
    for (encoding, names) in [
        (
            DELTA_BINARY_PACKED,
            &["i8", "i32", "u32", "i64", "u64", "ts_ns", "decimal64_8"][..],
        ),
        (
            DELTA_LENGTH_BYTE_ARRAY,
            &["utf8", "large_binary", "utf8_view", "dictionary"],
        ),
        (
            DELTA_BYTE_ARRAY,
            &["utf8", "binary_view", "fixed_7", "decimal128_16", "runs"],
        ),
        (
            BYTE_STREAM_SPLIT,
            &[
                "i32",
                "i64",
                "f32",
                "f64",
                "f16",
                "fixed_7",
                "decimal128_16",
            ],
        ),
        (RLE, &["bool"]),
        (PLAIN, &["bool", "i16", "utf8", "fixed_7"]),
    ] {
        let index = |name: &&str| batches[0].schema().index_of(name).unwrap();
        let columns: Vec<usize> = names.iter().map(index).collect();
        let batches: Vec<_> = batches
            .iter()
            .map(|b| b.project(&columns).unwrap())
            .collect();
        for version in VERSIONS {
            let properties = WriterProperties::builder()
                .set_writer_version(version)
                .set_dictionary_enabled(false)
                .set_encoding(encoding)
                .set_data_page_row_count_limit(300)
                .build();
            for strategy in ["eager", "exact", "pooled"] {
                let file = write(&batches, &properties, strategy);
                assert_same(
                    &batches,
                    &read(&file, true),
                    &format!("{encoding} {version:?} {strategy}"),
                );
            }
        }
    }
}

/// Small pages, many row groups, every level of statistics.
#[test]
fn small_pages_and_row_groups_come_back() {
    let batches: Vec<_> = (0..5).map(|i| batch(977, Nulls::Some, 250, i)).collect();
    for statistics in [
        EnabledStatistics::None,
        EnabledStatistics::Chunk,
        EnabledStatistics::Page,
    ] {
        for strategy in STRATEGIES {
            let properties = WriterProperties::builder()
                .set_writer_version(WriterVersion::PARQUET_2_0)
                .set_data_page_row_count_limit(100)
                .set_data_page_size_limit(1000)
                .set_dictionary_page_size_limit(2000)
                .set_max_row_group_row_count(Some(1234))
                .set_statistics_enabled(statistics)
                .set_write_page_header_statistics(true)
                .set_compression(Compression::ZSTD(Default::default()))
                .build();
            let file = write(&batches, &properties, strategy);
            assert_same(
                &batches,
                &read(&file, true),
                &format!("{statistics:?} {strategy}"),
            );
            let groups: Vec<i64> = crate::support::metadata(&file)
                .row_groups()
                .iter()
                .map(|group| group.num_rows())
                .collect();
            assert_eq!(groups, [1234, 1234, 1234, 1183], "{strategy}");
        }
    }
}

/// Arrays that begin in the middle of their buffers, and whose validity begins in the middle of a byte.
#[test]
fn slices_come_back() {
    for nulls in NULLS {
        let whole = batch(500, nulls, 300, 9);
        let slices: Vec<_> = [(3, 101), (104, 1), (105, 0), (7, 393)]
            .into_iter()
            .map(|(offset, rows)| whole.slice(offset, rows))
            .collect();
        for dictionary in [true, false] {
            let properties = WriterProperties::builder()
                .set_dictionary_enabled(dictionary)
                .set_data_page_row_count_limit(37)
                .set_max_row_group_row_count(Some(111))
                .build();
            for strategy in STRATEGIES {
                let file = write(&slices, &properties, strategy);
                assert_same(
                    &slices,
                    &read(&file, true),
                    &format!("{nulls:?} {dictionary} {strategy}"),
                );
            }
        }
    }
}

/// A dictionary may hold nulls in its values as well as in its keys.
#[test]
fn nulls_in_dictionary_values_come_back() {
    use arrow_array::types::Int8Type;
    use arrow_array::{ArrayRef, DictionaryArray, Int8Array, RecordBatch, StringArray};
    use std::sync::Arc;
    let keys = Int8Array::from(vec![Some(0), Some(1), None, Some(2), Some(1)]);
    let values: ArrayRef = Arc::new(StringArray::from(vec![Some("a"), None, Some("c")]));
    let column: ArrayRef = Arc::new(DictionaryArray::<Int8Type>::new(keys, values));
    let batch = RecordBatch::try_from_iter_with_nullable([("c", column, true)]).unwrap();
    let plain: ArrayRef = Arc::new(StringArray::from(vec![
        Some("a"),
        None,
        None,
        Some("c"),
        None,
    ]));
    for strategy in STRATEGIES {
        let file = write(
            std::slice::from_ref(&batch),
            &WriterProperties::default(),
            strategy,
        );
        let read = read(&file, true);
        let back = read[0].column(0);
        let back = arrow_array::cast::AsArray::as_any_dictionary(back.as_ref());
        let back = arrow_select::take::take(back.values(), back.keys(), None).unwrap();
        assert_eq!(&back, &plain, "{strategy}");
    }
}

#[test]
fn key_value_metadata_can_be_added() {
    use alloquet_core::Writer;
    use parquet::file::metadata::KeyValue;
    let batch = batch(10, Nulls::None, 5, 1);
    for strategy in STRATEGIES
        .into_iter()
        .chain(["upstream", "upstream-column-wise"])
    {
        let first = KeyValue::new("first".to_owned(), "1".to_owned());
        let second = KeyValue::new("second".to_owned(), None);
        let properties = WriterProperties::builder()
            .set_key_value_metadata(Some(vec![first.clone()]))
            .build();
        let mut writer = Writer::try_new(Vec::new(), batch.schema(), Some(properties))
            .unwrap()
            .with_strategy(strategy.parse().unwrap())
            .unwrap();
        writer.write(&batch).unwrap();
        writer.append_key_value_metadata(second.clone()).unwrap();
        let file = writer.into_inner().unwrap().into();
        let metadata = crate::support::metadata(&file);
        let pairs = metadata.file_metadata().key_value_metadata().unwrap();
        assert!(
            pairs.contains(&first) && pairs.contains(&second),
            "{strategy}: {pairs:?}"
        );
        assert_eq!(pairs.len(), 3, "{strategy}");
    }
}

/// Batches may hold the same values in another form than the schema names, in columns of this crate and in those that the
/// parquet crate writes.
#[test]
fn other_forms_of_the_same_values_come_back_as_the_schema_has_them() {
    use alloquet_core::Writer;
    use arrow_array::types::Int32Type;
    use arrow_array::{
        ArrayRef, DictionaryArray, LargeStringArray, RecordBatch, StringArray, StringViewArray,
    };
    use std::sync::Arc;
    let texts = || ["a", "bc", "a", ""];
    let plain: ArrayRef = Arc::new(StringArray::from_iter_values(texts()));
    let forms: [ArrayRef; 4] = [
        Arc::clone(&plain),
        Arc::new(LargeStringArray::from_iter_values(texts())),
        Arc::new(StringViewArray::from_iter_values(texts())),
        Arc::new(texts().into_iter().collect::<DictionaryArray<Int32Type>>()),
    ];
    let expected = RecordBatch::try_from_iter([("c", plain)]).unwrap();
    // LZ4 is left to the parquet crate.
    for codec in [Compression::SNAPPY, Compression::LZ4] {
        let properties = WriterProperties::builder().set_compression(codec).build();
        for strategy in STRATEGIES {
            let mut writer =
                Writer::try_new(Vec::new(), expected.schema(), Some(properties.clone()))
                    .unwrap()
                    .with_strategy(strategy.parse().unwrap())
                    .unwrap();
            for form in &forms {
                let batch = RecordBatch::try_from_iter([("c", Arc::clone(form))]).unwrap();
                writer.write(&batch).unwrap();
            }
            let file = writer.into_inner().unwrap().into();
            let expected = vec![expected.clone(); forms.len()];
            assert_same(
                &expected,
                &read(&file, true),
                &format!("{codec} {strategy}"),
            );
        }
    }
}
