//! Requests to the source: how many a page takes, what is read ahead, what the offset index saves, and what an index that lies does.

use std::sync::Arc;

use alloquet_core::{ChunkSource, Ledger, Purpose, ReadAt, ReaderBuilder, SharedBytes};
use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use arrow_select::concat::concat_batches;
use bytes::Bytes;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, RowSelection, RowSelector,
};
use parquet::basic::Compression;
use parquet::file::metadata::page_index::PageIndexBuilder;
use parquet::file::metadata::{OffsetIndexBuilder, PageIndexPolicy};
use parquet::file::properties::WriterProperties;
use parquet::file::reader::ChunkReader;

/// Strategies that differ in where a page is fetched to.
/// Changes the pages of an offset index: where each starts, how long it is, and its first row.
type Lie = fn(&mut Vec<(i64, i32, i64)>);

const STRATEGIES: [&str; 5] = [
    "retained",
    "temp-both",
    "pooled",
    "direct",
    "direct,page=temporary",
];
const PAGES: usize = 24;

/// A column of required, distinct numbers in `PAGES` pages of `page_rows` rows.
fn file(page_rows: usize, codec: Compression) -> (Bytes, RecordBatch) {
    let values =
        (0..(PAGES * page_rows) as u64).map(|i| (i.wrapping_mul(0x9e37_79b9_7f4a_7c15)) as i64);
    let array: ArrayRef = Arc::new(Int64Array::from_iter_values(values));
    let batch = RecordBatch::try_from_iter([("a", array)]).unwrap();
    let properties = WriterProperties::builder()
        .set_compression(codec)
        .set_dictionary_enabled(false)
        .set_data_page_row_count_limit(page_rows)
        .set_write_batch_size(page_rows)
        .build();
    let mut file = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut file, batch.schema(), Some(properties)).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    (Bytes::from(file), batch)
}

fn metadata(file: &Bytes, index: bool) -> ArrowReaderMetadata {
    let policy = match index {
        true => PageIndexPolicy::Required,
        false => PageIndexPolicy::Skip,
    };
    let options = ArrowReaderOptions::new().with_page_index_policy(policy);
    ArrowReaderMetadata::load(file, options).unwrap()
}

/// The rows that are read, and the ledger; or the error.
fn read<T: ReadAt + ChunkReader + 'static>(
    source: T,
    metadata: &ArrowReaderMetadata,
    strategy: &str,
    selection: Option<Vec<RowSelector>>,
) -> Result<(RecordBatch, Arc<Ledger>), String> {
    let mut builder = ReaderBuilder::new_with_metadata(source, metadata.clone())
        .with_strategy(strategy.parse().unwrap())
        .with_batch_size(1_000);
    if let Some(selection) = selection {
        builder = builder.with_row_selection(RowSelection::from(selection));
    }
    let reader = builder.build().map_err(|e| e.to_string())?;
    let ledger = reader.ledger();
    let batches: Result<Vec<_>, _> = reader.collect();
    let batches = batches.map_err(|e| e.to_string())?;
    let rows = concat_batches(metadata.schema(), &batches).unwrap();
    Ok((rows, ledger))
}

#[test]
fn a_large_page_takes_two_requests_and_one_with_the_offset_index() {
    for codec in [Compression::UNCOMPRESSED, Compression::SNAPPY] {
        let (file, batch) = file(4_000, codec);
        for (index, requests) in [(false, 2), (true, 1)] {
            let metadata = metadata(&file, index);
            for strategy in STRATEGIES {
                let (rows, ledger) = read(file.clone(), &metadata, strategy, None).unwrap();
                assert!(rows == batch, "{strategy}");
                assert_eq!(
                    ledger.reads(),
                    (requests * PAGES) as u64,
                    "{strategy} {codec}"
                );
                assert!(ledger.read_bytes() < file.len() as u64 + 256 * PAGES as u64);
                assert_eq!(ledger.live_bytes(), 0);
            }
        }
    }
}

#[test]
fn pages_that_are_skipped_are_not_read_with_the_offset_index() {
    let (file, batch) = file(4_000, Compression::SNAPPY);
    let metadata = metadata(&file, true);
    // Of pages 3 and 9.
    let selection = vec![
        RowSelector::skip(3 * 4_000 + 10),
        RowSelector::select(100),
        RowSelector::skip(6 * 4_000),
        RowSelector::select(50),
        RowSelector::skip(14 * 4_000 + 3_840),
    ];
    for strategy in STRATEGIES {
        let (rows, ledger) =
            read(file.clone(), &metadata, strategy, Some(selection.clone())).unwrap();
        let parts = [batch.slice(12_010, 100), batch.slice(36_110, 50)];
        assert!(
            rows == concat_batches(&batch.schema(), &parts).unwrap(),
            "{strategy}"
        );
        assert_eq!(ledger.reads(), 2, "{strategy}");
    }
}

#[test]
fn small_pages_come_together_and_what_was_read_ahead_is_freed() {
    for index in [false, true] {
        let (file, batch) = file(400, Compression::UNCOMPRESSED);
        let metadata = metadata(&file, index);
        for strategy in STRATEGIES {
            let (rows, ledger) = read(file.clone(), &metadata, strategy, None).unwrap();
            assert!(rows == batch, "{strategy}");
            // 24 pages of some 3.2 KB are 77 KB: two windows of 64 KiB. Without the index the first page comes on its own, in two
            // requests, and so does the body of one that the first window cuts.
            assert!(
                ledger.reads() <= 5,
                "{strategy} {index}: {}",
                ledger.reads()
            );
            let ahead = ledger.peak().bytes(Purpose::Fetch);
            assert!(ahead <= 64 << 10, "{strategy} {index}: {ahead}");
            assert_eq!(ledger.live_bytes(), 0);
        }
    }
}

#[test]
fn a_page_that_fits_in_the_window_of_its_header_takes_one_request() {
    let (file, batch) = file(1, Compression::UNCOMPRESSED);
    let metadata = metadata(&file, false);
    for strategy in STRATEGIES {
        let (rows, ledger) = read(file.clone(), &metadata, strategy, None).unwrap();
        assert!(rows == batch, "{strategy}");
        assert_eq!(ledger.reads(), 1, "{strategy}");
    }
}

#[test]
fn values_are_as_aligned_with_the_offset_index_as_without() {
    let (file, batch) = file(4_000, Compression::UNCOMPRESSED);
    for index in [false, true] {
        let metadata = metadata(&file, index);
        let (_, ledger) = read(file.clone(), &metadata, "direct", None).unwrap();
        assert_eq!(
            ledger.shared_value_bytes(),
            8 * batch.num_rows() as u64,
            "{index}"
        );
    }
}

#[test]
fn other_sources_give_the_same_and_shared_bytes_need_no_page() {
    let (file, batch) = file(4_000, Compression::UNCOMPRESSED);
    for index in [false, true] {
        let metadata = metadata(&file, index);
        for strategy in STRATEGIES {
            let (rows, copied) =
                read(ChunkSource(file.clone()), &metadata, strategy, None).unwrap();
            assert!(rows == batch, "{strategy}");
            let (rows, shared) =
                read(SharedBytes(file.clone()), &metadata, strategy, None).unwrap();
            assert!(rows == batch, "{strategy}");
            assert!(copied.allocated_buffers(Purpose::Page) > 0);
            assert_eq!(
                shared.allocated_buffers(Purpose::Page),
                0,
                "{strategy} {index}"
            );
            assert_eq!(shared.reads(), copied.reads(), "{strategy} {index}");
        }
    }
    // Compressed pages are decompressed into pages from either.
    let (compressed, batch) = self::file(4_000, Compression::SNAPPY);
    let metadata = metadata(&compressed, true);
    let (rows, _) = read(SharedBytes(compressed), &metadata, "pooled", None).unwrap();
    assert!(rows == batch);
}

#[test]
fn a_source_that_ends_early_is_an_error() {
    let (file, _) = file(4_000, Compression::SNAPPY);
    for index in [false, true] {
        let metadata = metadata(&file, index);
        let cut = file.slice(..file.len() / 2);
        assert!(read(ChunkSource(cut.clone()), &metadata, "pooled", None).is_err());
        assert!(read(SharedBytes(cut), &metadata, "pooled", None).is_err());
    }
}

/// `file` with an offset index that says `pages`: offset, bytes and rows of each.
fn lying(file: &Bytes, change: impl Fn(&mut Vec<(i64, i32, i64)>)) -> ArrowReaderMetadata {
    let honest = metadata(file, true);
    let rows = honest.metadata().row_group(0).num_rows();
    let locations = honest
        .metadata()
        .page_index()
        .unwrap()
        .page_locations(0, 0)
        .unwrap();
    let ends = locations
        .iter()
        .skip(1)
        .map(|l| l.first_row_index)
        .chain([rows]);
    let mut pages = locations
        .iter()
        .zip(ends)
        .map(|(l, end)| (l.offset, l.compressed_page_size, end - l.first_row_index))
        .collect();
    change(&mut pages);
    let mut index = OffsetIndexBuilder::new();
    for (offset, bytes, rows) in pages {
        index.append_offset_and_size(offset, bytes);
        index.append_row_count(rows);
    }
    let mut builder = PageIndexBuilder::new(1, 1);
    builder.put_offset_index(index.build(), 0, 0);
    let metadata = honest.metadata().as_ref().clone().into_builder();
    let metadata = metadata
        .set_page_index(Some(Arc::new(builder.build())))
        .build();
    ArrowReaderMetadata::try_new(Arc::new(metadata), ArrowReaderOptions::new()).unwrap()
}

#[test]
fn an_index_that_does_not_cover_the_chunk_is_not_used() {
    let (file, batch) = file(4_000, Compression::SNAPPY);
    let lies: [Lie; 5] = [
        |pages| {
            pages.pop();
        },
        |pages| pages.swap(2, 3),
        |pages| pages[5].0 += 1,
        |pages| pages[5].1 = -1,
        |pages| pages[0].0 = i64::MAX,
    ];
    for (number, lie) in lies.iter().enumerate() {
        let metadata = lying(&file, lie);
        for strategy in STRATEGIES {
            let (rows, ledger) = read(file.clone(), &metadata, strategy, None).unwrap();
            assert!(rows == batch, "{strategy} {number}");
            assert_eq!(ledger.reads(), 2 * PAGES as u64, "{strategy} {number}");
        }
    }
}

#[test]
fn an_index_that_contradicts_a_page_is_an_error() {
    let (file, _) = file(4_000, Compression::SNAPPY);
    let lies: [(Lie, &str); 3] = [
        // The border between pages 4 and 5 is elsewhere.
        (
            |pages| {
                pages[4].1 += 8;
                pages[5].0 += 8;
                pages[5].1 -= 8;
            },
            "page 4",
        ),
        // A row belongs to the next page.
        (
            |pages| {
                pages[6].2 += 1;
                pages[7].2 -= 1;
            },
            "page 6",
        ),
        // What stands in front of the first page that is listed is no dictionary.
        (
            |pages| {
                pages.remove(0);
            },
            "dictionary page",
        ),
    ];
    for (lie, place) in lies {
        let metadata = lying(&file, lie);
        for strategy in STRATEGIES {
            let error = read(file.clone(), &metadata, strategy, None).unwrap_err();
            assert!(
                error.contains("the offset index contradicts"),
                "{strategy}: {error}"
            );
            let place = format!("column 'a', row group 0, {place}: ");
            assert!(error.contains(&place), "{strategy}: {error}");
        }
    }
}
