//! Limits and counts: what a file may ask for, refused before anything is allocated, with what to do about it.

use std::sync::Arc;

use alloquet_core::{Limits, Purpose, ReaderBuilder};
use arrow_array::{ArrayRef, Int32Array, RecordBatch, StringArray};
use bytes::Bytes;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions};
use parquet::basic::{Compression, PageType};
use parquet::encryption::decrypt::FileDecryptionProperties;
use parquet::encryption::encrypt::FileEncryptionProperties;
use parquet::file::properties::{EnabledStatistics, WriterProperties};

const STRATEGIES: [&str; 4] = ["retained", "temp-both", "pooled", "direct"];
const KEY: &[u8] = b"0123456789012345";
const ROWS: i32 = 10_000;

/// Column `a` with a dictionary of long strings, column `b` of pages without one; all compress well.
fn file(encrypted: bool) -> Bytes {
    let texts = (0..ROWS).map(|i| format!("{:0>400}", i % 50));
    let a: ArrayRef = Arc::new(StringArray::from_iter_values(texts));
    let b: ArrayRef = Arc::new(Int32Array::from_iter_values((0..ROWS).map(|i| i / 100)));
    let batch = RecordBatch::try_from_iter([("a", a), ("b", b)]).unwrap();
    let mut properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_statistics_enabled(EnabledStatistics::None)
        .set_data_page_row_count_limit(2_500)
        .set_write_batch_size(2_500)
        .set_column_dictionary_enabled("b".into(), false);
    if encrypted {
        let encryption = FileEncryptionProperties::builder(KEY.to_vec());
        properties = properties.with_file_encryption_properties(encryption.build().unwrap());
    }
    let mut file = Vec::new();
    let mut writer =
        ArrowWriter::try_new(&mut file, batch.schema(), Some(properties.build())).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    Bytes::from(file)
}

fn options(encrypted: bool) -> ArrowReaderOptions {
    let options = ArrowReaderOptions::new();
    match encrypted {
        true => options.with_file_decryption_properties(
            FileDecryptionProperties::builder(KEY.to_vec())
                .build()
                .unwrap(),
        ),
        false => options,
    }
}

fn builder(file: &Bytes, encrypted: bool) -> ReaderBuilder<Bytes> {
    ReaderBuilder::try_new_with_options(file.clone(), options(encrypted)).unwrap()
}

/// Rows read, or the error; and what was allocated for pages.
fn read(builder: ReaderBuilder<Bytes>, strategy: &str) -> (Result<usize, String>, u64) {
    let reader = builder
        .with_strategy(strategy.parse().unwrap())
        .build()
        .unwrap();
    let ledger = reader.ledger();
    let rows = reader
        .map(|batch| batch.map(|b| b.num_rows()).map_err(|e| e.to_string()))
        .sum();
    let peak = ledger.peak();
    (
        rows,
        peak.bytes(Purpose::Page) + peak.bytes(Purpose::Dictionary),
    )
}

fn limits(set: impl FnOnce(&mut Limits)) -> Limits {
    let mut limits = Limits::default();
    set(&mut limits);
    limits
}

/// The most that pages of a kind take when decompressed.
fn largest(file: &Bytes, encrypted: bool, dictionary: bool) -> usize {
    let pages = builder(file, encrypted).pages().unwrap();
    let of_kind = pages
        .iter()
        .filter(|page| (page.page_type == PageType::DICTIONARY_PAGE) == dictionary);
    let largest = of_kind.map(|page| page.uncompressed_bytes).max();
    usize::try_from(largest.unwrap()).unwrap()
}

#[test]
fn each_limit_is_held_and_says_what_to_do() {
    for encrypted in [false, true] {
        let file = file(encrypted);
        let (dictionary, page) = (
            largest(&file, encrypted, true),
            largest(&file, encrypted, false),
        );
        for strategy in STRATEGIES {
            for (fitting, tight, place, name) in [
                (
                    limits(|l| l.max_dictionary_bytes = dictionary),
                    limits(|l| l.max_dictionary_bytes = dictionary - 1),
                    "column 'a', row group 0, dictionary page: ",
                    "Limits::max_dictionary_bytes",
                ),
                (
                    limits(|l| l.max_page_bytes = page),
                    limits(|l| l.max_page_bytes = page - 1),
                    "column 'b', row group 0, page 0: ",
                    "Limits::max_page_bytes",
                ),
            ] {
                let (rows, _) = read(builder(&file, encrypted).with_limits(fitting), strategy);
                assert_eq!(rows, Ok(ROWS as usize), "{strategy}");
                let (rows, _) = read(builder(&file, encrypted).with_limits(tight), strategy);
                let error = rows.unwrap_err();
                assert!(
                    error.contains(place) && error.contains(name) && error.contains("raise it"),
                    "{strategy}: {error}"
                );
            }
        }
    }
}

#[test]
fn a_ratio_is_held_before_anything_is_allocated() {
    let file = file(false);
    for strategy in STRATEGIES {
        let strict = limits(|l| l.max_ratio = Some(2));
        let (rows, allocated) = read(builder(&file, false).with_limits(strict), strategy);
        let error = rows.unwrap_err();
        assert!(error.contains("Limits::max_ratio"), "{strategy}: {error}");
        assert!(error.contains("(2 for one)"), "{strategy}: {error}");
        assert_eq!(allocated, 0, "{strategy}");
        let loose = limits(|l| l.max_ratio = Some(1_000));
        let (rows, _) = read(builder(&file, false).with_limits(loose), strategy);
        assert_eq!(rows, Ok(ROWS as usize), "{strategy}");
    }
}

#[test]
fn pages_are_listed_whatever_the_limits() {
    let file = file(false);
    let tiny = limits(|l| {
        l.max_page_bytes = 1;
        l.max_dictionary_bytes = 1;
        l.max_ratio = Some(1);
    });
    let all = builder(&file, false).pages().unwrap();
    assert_eq!(
        builder(&file, false).with_limits(tiny).pages().unwrap(),
        all
    );
    assert_eq!(all.len(), 1 + 4 + 4);
}

#[test]
fn pages_have_no_more_values_than_their_chunk() {
    let file = file(false);
    let metadata = ArrowReaderMetadata::load(&file, options(false)).unwrap();
    let mut metadata = metadata.metadata().as_ref().clone().into_builder();
    let row_groups = metadata.take_row_groups().into_iter().map(|row_group| {
        let mut builder = row_group.into_builder();
        let columns = builder.take_columns().into_iter();
        let columns = columns.map(|column| {
            let values = column.num_values() - 1;
            column
                .into_builder()
                .set_num_values(values)
                .build()
                .unwrap()
        });
        let columns = columns.collect();
        builder.set_column_metadata(columns).build().unwrap()
    });
    let row_groups = row_groups.collect();
    let metadata = Arc::new(metadata.set_row_groups(row_groups).build());
    let metadata = ArrowReaderMetadata::try_new(metadata, options(false)).unwrap();
    for strategy in STRATEGIES {
        let builder = ReaderBuilder::new_with_metadata(file.clone(), metadata.clone());
        let error = read(builder, strategy).0.unwrap_err();
        // The last of four pages is the one that has a value too many.
        assert!(
            error.contains("row group 0, page 3: "),
            "{strategy}: {error}"
        );
        assert!(
            error.contains("says that it has 2500 values") && error.contains("2499 are left"),
            "{strategy}: {error}"
        );
    }
}

#[test]
fn the_length_of_an_encrypted_module_is_held_against_the_chunk() {
    let file = file(true);
    let metadata = ArrowReaderMetadata::load(&file, options(true)).unwrap();
    let (start, _) = metadata.metadata().row_group(0).column(1).byte_range();
    for length in [0u32, 27, 1 << 30, u32::MAX] {
        let mut bytes = file.to_vec();
        bytes[start as usize..][..4].copy_from_slice(&length.to_le_bytes());
        for strategy in STRATEGIES {
            let builder =
                ReaderBuilder::try_new_with_options(Bytes::from(bytes.clone()), options(true));
            let error = read(builder.unwrap(), strategy).0.unwrap_err();
            assert!(
                error.contains("column 'b', row group 0, page 0: a page header is invalid"),
                "{strategy} {length}: {error}"
            );
            assert!(error.contains("encrypted module"), "{strategy}: {error}");
        }
    }
}
