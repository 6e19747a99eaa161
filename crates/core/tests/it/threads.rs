//! Several threads: the same batches in the same order, the same bound on pages, and errors and early ends as with one.

use std::sync::Arc;

use alloquet_core::{Purpose, ReaderBuilder};
use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use bytes::Bytes;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::{RowSelection, RowSelector};
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;

use crate::generated::{all_types, properties};
use crate::support::strategies;

fn write(batch: &RecordBatch, properties: WriterProperties) -> Bytes {
    let mut file = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut file, batch.schema(), Some(properties)).unwrap();
    writer.write(batch).unwrap();
    writer.close().unwrap();
    file.into()
}

#[test]
fn batches_are_the_same_for_any_number() {
    let file = write(&all_types(), properties().build());
    let selection = RowSelection::from(vec![
        RowSelector::skip(390),
        RowSelector::select(700),
        RowSelector::skip(300),
        RowSelector::select(1),
    ]);
    for strategy in strategies() {
        for selection in [None, Some(selection.clone())] {
            let read = |threads| {
                let builder = ReaderBuilder::try_new(file.clone()).unwrap();
                let builder = builder
                    .with_strategy(strategy)
                    .with_batch_size(333)
                    .with_threads(threads);
                let reader = match &selection {
                    Some(selection) => builder.with_row_selection(selection.clone()),
                    None => builder,
                }
                .build()
                .unwrap();
                let ledger = reader.ledger();
                let batches: Vec<_> = reader.map(Result::unwrap).collect();
                (batches, ledger)
            };
            let (one, _) = read(1);
            for threads in [0, 2, 3, 100] {
                let (several, ledger) = read(threads);
                assert!(one == several, "{strategy} {threads}");
                drop(several);
                assert_eq!(ledger.live_bytes(), 0, "{strategy} {threads}");
            }
        }
    }
}

/// Large enough that no page is fetched together with the next.
const PAGE_ROWS: usize = 16_384;
const PAGE_BYTES: u64 = 8 * PAGE_ROWS as u64;

/// `columns` of integers without a pattern.
fn integers(columns: usize, rows: i64) -> Bytes {
    let column = |c: i64| -> ArrayRef {
        Arc::new(Int64Array::from_iter_values((0..rows).map(|i| {
            (i + 1).wrapping_mul((c + 3).wrapping_mul(0x9e37_79b9_7f4a_7c15_u64 as i64))
        })))
    };
    let batch =
        RecordBatch::try_from_iter((0..columns).map(|c| (format!("c{c}"), column(c as i64))));
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_dictionary_enabled(false)
        .set_data_page_row_count_limit(PAGE_ROWS)
        .set_write_batch_size(PAGE_ROWS);
    write(&batch.unwrap(), properties.build())
}

#[test]
fn pages_are_bounded_as_for_one_thread() {
    let file = integers(20, 4 * PAGE_ROWS as i64);
    for strategy in ["direct", "pooled", "retained", "temp-both"] {
        for threads in [1, 2, 5] {
            let reader = ReaderBuilder::try_new(file.clone())
                .unwrap()
                .with_strategy(strategy.parse().unwrap())
                .with_batch_size(PAGE_ROWS / 4)
                .with_threads(threads)
                .build()
                .unwrap();
            let ledger = reader.ledger();
            for batch in reader {
                batch.unwrap();
            }
            let peak = ledger.peak();
            let pages = peak.bytes(Purpose::Page) + peak.bytes(Purpose::Kept);
            // One a column, and what a pool has to spare: see `Home`.
            let most = (20 + 3 * threads as u64) * PAGE_BYTES;
            assert!(pages <= most, "{strategy} {threads}: {pages}");
            // A stored page for each thread that fetches one.
            let fetched = peak.bytes(Purpose::Fetch);
            assert!(
                fetched <= threads as u64 * PAGE_BYTES * 5 / 4,
                "{strategy} {threads}: {fetched}"
            );
        }
    }
}

#[test]
fn an_error_in_any_thread_ends_the_reader() {
    let file = integers(12, 2 * PAGE_ROWS as i64);
    let metadata = crate::support::load(&file);
    let mut damaged = file.to_vec();
    let (start, len) = metadata.metadata().row_group(0).column(7).byte_range();
    damaged[start as usize..(start + len) as usize].fill(0xff);
    let damaged = Bytes::from(damaged);
    for strategy in ["direct", "pooled"] {
        for threads in [1, 2, 4] {
            let reader = ReaderBuilder::new_with_metadata(damaged.clone(), metadata.clone())
                .with_strategy(strategy.parse().unwrap())
                .with_threads(threads)
                .build()
                .unwrap();
            let ledger = reader.ledger();
            let results: Vec<_> = reader.collect();
            assert_eq!(results.len(), 1, "{strategy} {threads}");
            let error = results[0].as_ref().unwrap_err().to_string();
            assert!(error.contains("column 'c7', row group 0"), "{error}");
            assert_eq!(ledger.live_bytes(), 0, "{strategy} {threads}");
        }
    }
}

#[test]
fn a_reader_that_is_dropped_early_ends_its_threads() {
    let file = integers(12, 2 * PAGE_ROWS as i64);
    for strategy in ["direct", "pooled"] {
        for batches in 0..3 {
            let mut reader = ReaderBuilder::try_new(file.clone())
                .unwrap()
                .with_strategy(strategy.parse().unwrap())
                .with_threads(3)
                .build()
                .unwrap();
            let ledger = reader.ledger();
            for _ in 0..batches {
                reader.next().unwrap().unwrap();
            }
            drop(reader);
            assert_eq!(ledger.live_bytes(), 0, "{strategy} {batches}");
        }
    }
}
