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
