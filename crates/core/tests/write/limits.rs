//! Limits of pages, dictionaries and row groups are kept.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use bytes::Bytes;
use parquet::basic::{Encoding, PageType};
use parquet::column::page::{Page, PageReader};
use parquet::file::properties::{WriterProperties, WriterVersion};
use parquet::file::reader::{FileReader, SerializedFileReader};
use proptest::prelude::*;

use crate::support::{Nulls, Random, STRATEGIES, assert_same, batch, read, write};

/// Every page of a file: leaf column, page, bytes before compression.
fn pages(file: &Bytes) -> Vec<(usize, Page)> {
    let reader = SerializedFileReader::new(file.clone()).unwrap();
    let mut pages = Vec::new();
    for group in 0..reader.num_row_groups() {
        let group = reader.get_row_group(group).unwrap();
        for column in 0..group.num_columns() {
            let mut reader: Box<dyn PageReader> = group.get_column_page_reader(column).unwrap();
            while let Some(page) = reader.get_next_page().unwrap() {
                pages.push((column, page));
            }
        }
    }
    pages
}

/// Bytes that no value of the tables has.
const LONGEST_VALUE: usize = 400;

fn assert_kept(file: &Bytes, bytes: usize, rows: u32, dictionary: usize, what: &str) {
    for (column, page) in pages(file) {
        let len = page.buffer().len();
        if page.page_type() == PageType::DICTIONARY_PAGE {
            assert!(
                len <= dictionary,
                "{what}: column {column}: a dictionary of {len} bytes"
            );
        } else {
            // A value that is larger than a page leaves its page to those that share its beginning.
            let shared = page.encoding() == Encoding::DELTA_BYTE_ARRAY && bytes < LONGEST_VALUE;
            let bytes = if shared { bytes + LONGEST_VALUE } else { bytes };
            assert!(
                len <= bytes || page.num_values() == 1,
                "{what}: column {column}: a page of {len} bytes with {} values",
                page.num_values()
            );
            assert!(
                page.num_values() <= rows,
                "{what}: column {column}: {} rows",
                page.num_values()
            );
        }
    }
}

#[test]
fn page_limits_are_kept_for_every_type() {
    let batches: Vec<_> = (0..2).map(|i| batch(3000, Nulls::Some, 2500, i)).collect();
    for version in [WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0] {
        for dictionary in [true, false] {
            let properties = WriterProperties::builder()
                .set_writer_version(version)
                .set_dictionary_enabled(dictionary)
                .set_data_page_size_limit(2000)
                .set_data_page_row_count_limit(1111)
                .set_dictionary_page_size_limit(5000)
                .build();
            for strategy in STRATEGIES {
                let file = write(&batches, &properties, strategy);
                assert_kept(
                    &file,
                    2000,
                    1111,
                    5000,
                    &format!("{version:?} {dictionary} {strategy}"),
                );
            }
        }
    }
}

/// 64 KiB values under a page limit of 16 KiB: a page each, and no more than a value in it; but with
/// DELTA_BYTE_ARRAY, values that share their beginnings stay together, or each would be stored in full.
#[test]
fn values_larger_than_a_page() {
    let values = |shared: bool| -> RecordBatch {
        let mut random = Random::new(5);
        let beginning: String = (0..65_536)
            .map(|_| char::from(b'a' + random.below(26) as u8))
            .collect();
        let column = StringArray::from_iter_values((0..20).map(|i| {
            if shared {
                format!("{beginning}{i}")
            } else {
                format!("{i}{beginning}")
            }
        }));
        RecordBatch::try_from_iter([("c", Arc::new(column) as ArrayRef)]).unwrap()
    };
    let properties = |encoding| {
        WriterProperties::builder()
            .set_dictionary_enabled(false)
            .set_encoding(encoding)
            .set_data_page_size_limit(16_384)
            .build()
    };
    for strategy in STRATEGIES {
        let batch = [values(false)];
        let file = write(&batch, &properties(Encoding::PLAIN), strategy);
        assert_eq!(pages(&file).len(), 20, "{strategy}");
        assert_same(&batch, &read(&file, true), strategy);
        let batch = [values(true)];
        let file = write(&batch, &properties(Encoding::DELTA_BYTE_ARRAY), strategy);
        assert!(file.len() < 2 * 65_536, "{strategy}: {} bytes", file.len());
        assert_same(&batch, &read(&file, true), strategy);
    }
}

/// Values that are not larger than a page, but whose sum is: what they share is not stored again for each.
#[test]
fn values_that_share_their_beginnings_stay_together() {
    let beginning = "b".repeat(10_000);
    let column = StringArray::from_iter_values((0..200).map(|i| format!("{beginning}{i:05}")));
    let batch = [RecordBatch::try_from_iter([("c", Arc::new(column) as ArrayRef)]).unwrap()];
    let properties = WriterProperties::builder()
        .set_dictionary_enabled(false)
        .set_encoding(Encoding::DELTA_BYTE_ARRAY)
        .set_data_page_size_limit(32_768)
        .set_write_batch_size(64)
        .build();
    for strategy in STRATEGIES {
        let file = write(&batch, &properties, strategy);
        assert_eq!(pages(&file).len(), 1, "{strategy}");
        assert_same(&batch, &read(&file, true), strategy);
        assert_kept(&file, 32_768, 200, 0, strategy);
    }
}

/// A pool does not grow with the number of pages.
#[test]
fn a_pool_holds_what_one_page_needs() {
    use alloquet_core::{Purpose, Writer};
    let column =
        StringArray::from_iter_values((0..400).map(|i| format!("{i}{}", "x".repeat(20_000))));
    let batch = RecordBatch::try_from_iter([("c", Arc::new(column) as ArrayRef)]).unwrap();
    let peak_of = |batches: usize| {
        let properties = WriterProperties::builder()
            .set_dictionary_enabled(false)
            .set_encoding(Encoding::DELTA_BYTE_ARRAY)
            .set_data_page_size_limit(100_000)
            .build();
        let mut writer = Writer::try_new(std::io::sink(), batch.schema(), Some(properties))
            .unwrap()
            .with_strategy("bounded".parse().unwrap())
            .unwrap();
        for _ in 0..batches {
            writer.write(&batch).unwrap();
        }
        let ledger = writer.ledger();
        writer.close().unwrap();
        ledger.peak().bytes(Purpose::Encoder)
    };
    let (one, ten) = (peak_of(1), peak_of(10));
    assert!(ten <= one + one / 10, "{one} {ten}");
}

#[test]
fn row_groups_end_at_their_bytes() {
    let batches: Vec<_> = (0..20)
        .map(|i| {
            let column = Int64Array::from_iter_values((0..1000).map(|v| v * 1_000_003 + i));
            RecordBatch::try_from_iter([("c", Arc::new(column) as ArrayRef)]).unwrap()
        })
        .collect();
    let properties = WriterProperties::builder()
        .set_dictionary_enabled(false)
        .set_max_row_group_bytes(Some(30_000))
        .build();
    for strategy in ["grow", "bounded"] {
        let file = write(&batches, &properties, strategy);
        assert_same(&batches, &read(&file, true), strategy);
        for group in crate::support::metadata(&file).row_groups() {
            assert!(
                group.compressed_size() <= 30_000,
                "{strategy}: {}",
                group.compressed_size()
            );
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// Whatever the limits are, what is written comes back, and the limits are kept.
    #[test]
    fn any_limits(
        rows in 1usize..800,
        distinct in 1u64..400,
        seed in 0u64..1000,
        page_bytes in 1usize..3000,
        page_rows in 1usize..500,
        dictionary in 1usize..3000,
        group_rows in 1usize..1000,
        batch_rows in 1usize..200,
        v2: bool,
        strategy in 0usize..STRATEGIES.len(),
        nulls in prop::sample::select(vec![Nulls::Required, Nulls::None, Nulls::Some, Nulls::All]),
    ) {
        let batches = [batch(rows, nulls, distinct, seed), batch(rows / 2 + 1, nulls, distinct, seed + 1)];
        let properties = WriterProperties::builder()
            .set_writer_version(if v2 { WriterVersion::PARQUET_2_0 } else { WriterVersion::PARQUET_1_0 })
            .set_data_page_size_limit(page_bytes)
            .set_data_page_row_count_limit(page_rows)
            .set_dictionary_page_size_limit(dictionary)
            .set_max_row_group_row_count(Some(group_rows))
            .set_write_batch_size(batch_rows)
            .build();
        let strategy = STRATEGIES[strategy];
        let file = write(&batches, &properties, strategy);
        assert_same(&batches, &read(&file, true), strategy);
        // A byte array of the table is 150 bytes at most, its levels and lengths with it some more.
        assert_kept(&file, page_bytes, page_rows as u32, dictionary, strategy);
    }
}
