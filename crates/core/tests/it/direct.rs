//! Direct decoding: which columns have it, what is shared with pages and what is written, and what arrays that are kept hold.

use std::sync::Arc;

use alloquet_core::{DecodePath, Ledger, Purpose, ReaderBuilder};
use arrow_array::{
    Array, ArrayRef, BooleanArray, FixedSizeBinaryArray, Float32Array, Int64Array, RecordBatch,
    StringViewArray,
};
use bytes::Bytes;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, Encoding};
use parquet::encryption::decrypt::FileDecryptionProperties;
use parquet::encryption::encrypt::FileEncryptionProperties;
use parquet::file::properties::{WriterProperties, WriterVersion};

use crate::generated::{all_types, properties};
use crate::support::options;

const KEY: &[u8] = b"0123456789012345";
const PAGE_ROWS: usize = 1_024;
const PAGES: usize = 8;
const ROWS: usize = PAGES * PAGE_ROWS;
/// Float, integer, fixed bytes; a boolean takes an eighth.
const ROW_BYTES: usize = 4 + 8 + 3;

/// Columns of every width whose PLAIN pages are arrays.
fn columns(optional: bool) -> RecordBatch {
    let ids = || 0..ROWS as i64;
    let rows = ids().map(|i| [i as u8, (i >> 8) as u8, 7]);
    let arrays: [(&str, ArrayRef); 4] = [
        (
            "f32",
            Arc::new(Float32Array::from_iter_values(ids().map(|i| i as f32))),
        ),
        ("i64", Arc::new(Int64Array::from_iter_values(ids()))),
        (
            "bool",
            Arc::new(BooleanArray::from_iter(ids().map(|i| Some(i % 3 == 0)))),
        ),
        (
            "bytes",
            Arc::new(FixedSizeBinaryArray::try_from_iter(rows).unwrap()),
        ),
    ];
    RecordBatch::try_from_iter_with_nullable(arrays.map(|(name, array)| (name, array, optional)))
        .unwrap()
}

fn plain_pages(codec: Compression, version: WriterVersion, encrypted: bool) -> WriterProperties {
    let properties = WriterProperties::builder()
        .set_compression(codec)
        .set_writer_version(version)
        .set_encoding(Encoding::PLAIN)
        .set_dictionary_enabled(false)
        .set_data_page_row_count_limit(PAGE_ROWS)
        .set_write_batch_size(PAGE_ROWS);
    match encrypted {
        true => {
            let keys = FileEncryptionProperties::builder(KEY.to_vec());
            properties.with_file_encryption_properties(keys.build().unwrap())
        }
        false => properties,
    }
    .build()
}

fn write(batch: &RecordBatch, properties: WriterProperties) -> Bytes {
    let mut file = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut file, batch.schema(), Some(properties)).unwrap();
    writer.write(batch).unwrap();
    writer.close().unwrap();
    file.into()
}

fn builder(file: &Bytes, strategy: &str, batch_size: usize) -> ReaderBuilder<Bytes> {
    let keys = FileDecryptionProperties::builder(KEY.to_vec());
    let options = options(Some(&keys.build().unwrap()));
    ReaderBuilder::try_new_with_options(file.clone(), options)
        .unwrap()
        .with_strategy(strategy.parse().unwrap())
        .with_batch_size(batch_size)
}

/// Reads all, checks it against `expected`, and returns the ledger.
fn read(file: &Bytes, strategy: &str, batch_size: usize, expected: &RecordBatch) -> Arc<Ledger> {
    let reader = builder(file, strategy, batch_size).build().unwrap();
    let ledger = reader.ledger();
    let mut row = 0;
    for batch in reader {
        let batch = batch.unwrap();
        for array in batch.columns() {
            array.to_data().validate_full().unwrap();
        }
        assert!(
            batch == expected.slice(row, batch.num_rows()),
            "{strategy}, rows from {row}"
        );
        row += batch.num_rows();
    }
    assert_eq!(row, expected.num_rows());
    assert_eq!(ledger.live_bytes(), 0);
    ledger
}

/// Every way in which a page of these can be stored.
fn files(batch: &RecordBatch) -> Vec<(String, Bytes)> {
    let mut files = Vec::new();
    for codec in [
        Compression::UNCOMPRESSED,
        Compression::SNAPPY,
        Compression::ZSTD(Default::default()),
    ] {
        for version in [WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0] {
            for encrypted in [false, true] {
                let file = write(batch, plain_pages(codec, version, encrypted));
                files.push((format!("{codec} {version:?} encrypted: {encrypted}"), file));
            }
        }
    }
    files
}

#[test]
fn batches_within_pages_are_slices_of_them() {
    for optional in [false, true] {
        let batch = columns(optional);
        for (what, file) in files(&batch) {
            for rows in [PAGE_ROWS, PAGE_ROWS / 4] {
                let ledger = read(&file, "direct", rows, &batch);
                let all = (ROWS * ROW_BYTES + ROWS / 8) as u64;
                let (shared, written) = (ledger.shared_value_bytes(), ledger.written_value_bytes());
                assert_eq!(shared + written, all, "{what}");
                // What is neither compressed nor encrypted is used where it lies in memory, aligned or not.
                if !what.starts_with("UNCOMPRESSED") || what.ends_with("true") {
                    assert_eq!(written, 0, "{what} {rows} {optional}");
                    assert_eq!(ledger.peak().bytes(Purpose::Output), 0, "{what}");
                }
            }
        }
    }
}

#[test]
fn only_batches_across_pages_are_written() {
    // Three of five batches lie in one page.
    let rows = 2 * PAGE_ROWS / 5;
    let across = (0..ROWS)
        .step_by(rows)
        .filter(|start| start / PAGE_ROWS != (start + rows - 1).min(ROWS - 1) / PAGE_ROWS)
        .map(|start| rows.min(ROWS - start))
        .sum::<usize>();
    assert!(across > 0 && across < ROWS / 2);
    for optional in [false, true] {
        let batch = columns(optional);
        for (what, file) in files(&batch) {
            let ledger = read(&file, "direct", rows, &batch);
            let (shared, written) = ledger.column_value_bytes(0);
            assert_eq!(shared + written, 4 * ROWS as u64, "{what}");
            // What is neither compressed nor encrypted is used where it lies in memory, aligned or not.
            if !what.starts_with("UNCOMPRESSED") || what.ends_with("true") {
                assert_eq!(written, 4 * across as u64, "{what}");
            }
        }
    }
}

#[test]
fn one_page_a_column_is_all_that_is_held() {
    let batch = columns(false).project(&[0, 1]).unwrap();
    for (what, file) in files(&batch) {
        let ledger = read(&file, "direct", PAGE_ROWS / 2, &batch);
        let peak = ledger.peak();
        let pages = peak.bytes(Purpose::Page) + peak.bytes(Purpose::Kept);
        // Framing of encrypted pages, and a pool's steps of a 64th.
        let most = PAGE_ROWS * 12 * 66 / 64 + 2 * 64;
        assert!(pages as usize <= most, "{what}: {pages}");
        let allocated = ledger.allocated_buffers(Purpose::Page);
        assert!(allocated <= 2, "{what}: {allocated}");
    }
}

#[test]
fn with_nulls_values_are_written_and_rows_without_one_are_shared() {
    let values = (0..ROWS as i64).map(|i| (i / 512 % 2 == 0 || i % 7 != 0).then_some(i));
    let array: ArrayRef = Arc::new(values.collect::<Int64Array>());
    let batch = RecordBatch::try_from_iter([("i64", array)]).unwrap();
    for (what, file) in files(&batch) {
        let ledger = read(&file, "direct", 512, &batch);
        let (shared, written) = ledger.column_value_bytes(0);
        assert_eq!(shared + written, 8 * ROWS as u64, "{what}");
        assert!(written >= 4 * ROWS as u64, "{what}: {written}");
    }
}

#[test]
fn a_row_that_is_kept_keeps_its_page_unless_arrays_own_what_they_are() {
    let batch = columns(false).project(&[1]).unwrap();
    let file = write(
        &batch,
        plain_pages(Compression::SNAPPY, WriterVersion::PARQUET_1_0, false),
    );
    let kept = |strategy: &str| {
        let mut reader = builder(&file, strategy, 100).build().unwrap();
        let ledger = reader.ledger();
        let ten = reader.next().unwrap().unwrap().slice(0, 10);
        // While the reader reads the page, the page is the reader's.
        assert_eq!(ledger.live(Purpose::Kept), 0);
        for batch in reader {
            batch.unwrap();
        }
        let live = ledger.live(Purpose::Kept);
        assert_eq!(ledger.live_bytes(), live);
        assert!(ten == batch.slice(0, 10));
        drop(ten);
        assert_eq!(ledger.live_bytes(), 0);
        live
    };
    assert_eq!(kept("direct"), 8 * PAGE_ROWS as u64);
    assert_eq!(kept("direct,arrays=owned"), 0);
    assert_eq!(kept("pooled"), 0);
}

#[test]
fn views_keep_their_page_unless_arrays_own_what_they_are() {
    let long = (0..ROWS).map(|i| Some(format!("a value too long to be inlined in a view, {i}")));
    let long: ArrayRef = Arc::new(long.collect::<StringViewArray>());
    let batch = RecordBatch::try_from_iter([("view", long)]).unwrap();
    let file = write(
        &batch,
        plain_pages(Compression::SNAPPY, WriterVersion::PARQUET_1_0, false),
    );
    let kept = |strategy: &str| {
        let mut reader = builder(&file, strategy, 100).build().unwrap();
        let ledger = reader.ledger();
        let first = reader.next().unwrap().unwrap();
        for batch in reader {
            batch.unwrap();
        }
        assert!(first == batch.slice(0, 100));
        ledger.live(Purpose::Kept)
    };
    for strategy in ["pooled", "direct"] {
        assert!(kept(strategy) > 40 * PAGE_ROWS as u64, "{strategy}");
        assert_eq!(kept(&format!("{strategy},arrays=owned")), 0, "{strategy}");
    }
}

#[test]
fn who_decodes_each_column_is_said() {
    let batch = all_types();
    let file = write(&batch, properties().build());
    let paths = |strategy: &str| {
        let reader = builder(&file, strategy, 100);
        let schema = reader.parquet_schema().clone();
        let reader = reader.build().unwrap();
        let path = |leaf| {
            let name = schema.column(leaf).path().string();
            (name, reader.decode_path(leaf).unwrap())
        };
        let leaves = 0..schema.num_columns();
        assert_eq!(reader.decode_path(leaves.end), None);
        leaves.map(path).collect::<Vec<_>>()
    };
    for (name, path) in paths("direct") {
        let direct = [
            "required",
            "bool",
            "i64",
            "u64",
            "f32",
            "f64",
            "date",
            "time",
            "timestamp",
        ];
        match path {
            DecodePath::Parquet { why } => {
                assert!(!direct.contains(&name.as_str()), "{name}: {why}");
                assert!(!why.is_empty());
            }
            _ => assert!(!name.contains('.'), "{name} is nested"),
        }
    }
    for strategy in ["pooled", "upstream"] {
        assert!(
            paths(strategy)
                .iter()
                .all(|(_, path)| matches!(path, DecodePath::Parquet { .. }))
        );
    }
}

#[test]
fn a_reader_that_has_ended_holds_no_page() {
    let all = all_types();
    for column in 0..all.num_columns() {
        let batch = all.project(&[column]).unwrap();
        let file = write(&batch, properties().build());
        for strategy in ["direct", "pooled"] {
            let mut reader = builder(&file, strategy, 1_000).build().unwrap();
            let ledger = reader.ledger();
            for batch in reader.by_ref() {
                batch.unwrap();
            }
            assert_eq!(
                ledger.live(Purpose::Kept),
                0,
                "{strategy} {:?}",
                batch.schema().field(0).name()
            );
            drop(reader);
        }
    }
}

#[test]
fn short_selections_of_flat_and_nested_columns_stay_together() {
    use parquet::arrow::arrow_reader::{RowSelection, RowSelector};
    let batch = all_types();
    let file = write(&batch, properties().build());
    let lengths = (0..600).map(|i| {
        if i % 2 == 0 {
            RowSelector::skip(1 + i % 3)
        } else {
            RowSelector::select(1 + i % 5)
        }
    });
    let selection = RowSelection::from(lengths.collect::<Vec<_>>());
    let read = |strategy: &str| {
        let reader = builder(&file, strategy, 7).with_row_selection(selection.clone());
        let batches = reader.build().unwrap().collect::<Result<Vec<_>, _>>();
        batches.unwrap()
    };
    assert!(read("direct") == read("upstream"));
}
