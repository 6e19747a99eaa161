//! The ledger on real reading: `retained` is one decryption and one page buffer per column, and what
//! is charged is released.

use std::sync::Arc;

use alloquet_core::{LedgerPeak, Purpose, ReaderBuilder};
use arrow_array::{ArrayRef, Float32Array, RecordBatch};
use bytes::Bytes;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ArrowReaderOptions;
use parquet::basic::Compression;
use parquet::encryption::decrypt::FileDecryptionProperties;
use parquet::encryption::encrypt::FileEncryptionProperties;
use parquet::file::properties::WriterProperties;

const KEY: &[u8] = b"0123456789012345";
/// Enough that a batch outweighs the fetched and decrypted pages that are live while a page is loaded.
const COLUMNS: usize = 40;
const PAGE_ROWS: usize = 4_096;
/// PLAIN float32 without levels.
const PAGE_BYTES: u64 = 4 * PAGE_ROWS as u64;
const BATCH_ROWS: usize = 1_024;

/// Required floats in four pages a column and row group, two row groups, as wide tables are.
fn file(encrypted: bool, codec: Compression) -> Bytes {
    let rows = 4 * PAGE_ROWS;
    let batch = RecordBatch::try_from_iter((0..COLUMNS).map(|c| {
        let values = (0..rows as u32).map(|i| f32::from_bits(i.wrapping_mul(2_654_435_761) >> 9));
        let array: ArrayRef = Arc::new(Float32Array::from_iter_values(values));
        (format!("c{c}"), array)
    }))
    .unwrap();
    let mut properties = WriterProperties::builder()
        .set_compression(codec)
        .set_dictionary_enabled(false)
        .set_data_page_row_count_limit(PAGE_ROWS)
        .set_write_batch_size(PAGE_ROWS);
    if encrypted {
        let encryption = FileEncryptionProperties::builder(KEY.to_vec())
            .build()
            .unwrap();
        properties = properties.with_file_encryption_properties(encryption);
    }
    let mut file = Vec::new();
    let mut writer =
        ArrowWriter::try_new(&mut file, batch.schema(), Some(properties.build())).unwrap();
    for _ in 0..2 {
        writer.write(&batch).unwrap();
        writer.flush().unwrap();
    }
    writer.close().unwrap();
    Bytes::from(file)
}

fn peak(file: &Bytes, strategy: &str) -> LedgerPeak {
    let reader = builder(file, strategy).build().unwrap();
    let ledger = reader.ledger();
    assert_eq!(
        reader.map(|b| b.unwrap().num_rows()).sum::<usize>(),
        8 * PAGE_ROWS
    );
    let peak = ledger.peak();
    assert_eq!(ledger.live_bytes(), 0, "dropping the reader releases all");
    peak
}

/// Page and decryption buffers that reading all of `file` allocates.
fn allocated(file: &Bytes, strategy: &str) -> (u64, u64) {
    let reader = builder(file, strategy).build().unwrap();
    let ledger = reader.ledger();
    assert!(reader.map(|batch| batch.unwrap().num_rows()).sum::<usize>() > 0);
    (
        ledger.allocated_buffers(Purpose::Page),
        ledger.allocated_buffers(Purpose::Decrypt),
    )
}

fn builder(file: &Bytes, strategy: &str) -> ReaderBuilder<Bytes> {
    let keys = FileDecryptionProperties::builder(KEY.to_vec())
        .build()
        .unwrap();
    let options = ArrowReaderOptions::new().with_file_decryption_properties(keys);
    ReaderBuilder::try_new_with_options(file.clone(), options)
        .unwrap()
        .with_strategy(strategy.parse().unwrap())
        .with_batch_size(BATCH_ROWS)
}

#[test]
fn owners_differ_in_how_often_they_allocate() {
    let file = file(true, Compression::SNAPPY);
    let (columns, pages) = (COLUMNS as u64, 8 * COLUMNS as u64);
    // Stored pages differ by some bytes: a column's decryption buffer may be replaced by a larger one.
    let (page, decrypt) = allocated(&file, "retained");
    assert_eq!(page, columns);
    assert!((columns..pages).contains(&decrypt), "{decrypt}");
    assert_eq!(allocated(&file, "temp-decrypt"), (columns, pages));
    assert_eq!(allocated(&file, "temp-both"), (pages, pages));
    // A pool of more than 16 buffers grows by two at once, of more than 32 by three.
    let (page, decrypt) = allocated(&file, "pooled");
    assert!((columns..=columns + 2).contains(&page), "{page}");
    assert_eq!(decrypt, 0);
}

#[test]
fn columns_with_a_dictionary_keep_their_buffers_too() {
    let rows = 8 * PAGE_ROWS as i32;
    let values = (0..rows).map(|i| i % 1_000);
    let array: ArrayRef = Arc::new(arrow_array::Int32Array::from_iter_values(values));
    let batch = RecordBatch::try_from_iter([("i", array)]).unwrap();
    let properties = WriterProperties::builder()
        .set_data_page_row_count_limit(PAGE_ROWS)
        .set_write_batch_size(PAGE_ROWS)
        .build();
    let mut file = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut file, batch.schema(), Some(properties)).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    let file = Bytes::from(file);
    // The decoder holds a page while it asks for the next one, so there are two.
    assert_eq!(allocated(&file, "retained").0, 2);
    assert_eq!(allocated(&file, "pooled").0, 2);
    assert_eq!(allocated(&file, "temp-both").0, 8);
}

#[test]
fn a_shared_codec_is_one_context() {
    let file = file(false, Compression::ZSTD(Default::default()));
    let codec = |strategy| peak(&file, strategy).bytes(Purpose::Codec);
    let one = codec("pooled");
    assert!(one > 50_000, "{one}");
    assert_eq!(codec("pooled,codec=per-column"), one * COLUMNS as u64);
}

#[test]
fn a_reader_that_is_dropped_early_owns_nothing_more() {
    let file = file(true, Compression::SNAPPY);
    for strategy in ["retained", "temp-both", "pooled", "upstream"] {
        let mut reader = builder(&file, strategy).build().unwrap();
        let ledger = reader.ledger();
        let batch = reader.next().unwrap().unwrap();
        assert!(ledger.live_bytes() > 0);
        drop(reader);
        assert_eq!(ledger.live_bytes(), 0, "{strategy}");
        assert_eq!(batch.num_rows(), BATCH_ROWS);
    }
}

#[test]
fn retained_is_one_decryption_and_one_page_buffer_per_column() {
    let file = file(true, Compression::SNAPPY);
    let retained = peak(&file, "retained");
    let temporary = peak(&file, "temp-decrypt");
    for column in 0..COLUMNS {
        assert_eq!(retained.column_bytes(column, Purpose::Page), PAGE_BYTES);
        let decrypted = retained.column_bytes(column, Purpose::Decrypt);
        assert!(
            decrypted > PAGE_BYTES / 2 && decrypted < PAGE_BYTES + PAGE_BYTES / 4,
            "{decrypted}"
        );
        assert_eq!(temporary.column_bytes(column, Purpose::Page), PAGE_BYTES);
    }
    assert_eq!(temporary.bytes(Purpose::Decrypt), 0);
    assert_eq!(
        retained.total_bytes() - temporary.total_bytes(),
        retained.bytes(Purpose::Decrypt)
    );
}

#[test]
fn every_strategy_holds_one_page_per_column_and_one_batch() {
    for encrypted in [false, true] {
        for codec in [Compression::SNAPPY, Compression::UNCOMPRESSED] {
            let file = file(encrypted, codec);
            for strategy in ["retained", "temp-decrypt", "temp-both", "pooled"] {
                let peak = peak(&file, strategy);
                let pages = peak.bytes(Purpose::Page);
                let exact = COLUMNS as u64 * PAGE_BYTES;
                // An encrypted page without a codec is decrypted where it lies, framing and all; a pool
                // rounds up by a 64th at most, and has two buffers to spare.
                let most = (exact + (COLUMNS as u64 + 2) * 32) * 65 / 64 + 2 * PAGE_BYTES;
                assert!(
                    (exact..=most).contains(&pages),
                    "{strategy} {codec} {encrypted}: {pages}"
                );
                let batch = (COLUMNS * BATCH_ROWS * 4) as u64;
                assert_eq!(peak.bytes(Purpose::Output), batch, "{strategy}");
            }
        }
    }
}

#[test]
fn pages_are_listed_as_the_buffers_hold_them() {
    let file = file(true, Compression::SNAPPY);
    let keys = FileDecryptionProperties::builder(KEY.to_vec())
        .build()
        .unwrap();
    let options = ArrowReaderOptions::new().with_file_decryption_properties(keys);
    let pages = ReaderBuilder::try_new_with_options(file.clone(), options)
        .unwrap()
        .pages()
        .unwrap();
    assert_eq!(pages.len(), 2 * 4 * COLUMNS);
    assert!(
        pages
            .iter()
            .all(|page| page.uncompressed_bytes == PAGE_BYTES)
    );
    assert!(
        pages
            .iter()
            .all(|page| page.num_values as usize == PAGE_ROWS)
    );
    let largest = |column| {
        let pages = pages.iter().filter(|page| page.column == column);
        pages.map(|page| page.stored_bytes).max().unwrap()
    };
    // The decryption buffer holds the stored page but its length and nonce.
    let peak = peak(&file, "retained");
    for column in 0..COLUMNS {
        let decrypted = peak.column_bytes(column, Purpose::Decrypt);
        assert_eq!(decrypted, largest(column) - 16);
    }
}

#[test]
fn pooled_holds_one_stored_page_besides() {
    let peak = peak(&file(true, Compression::SNAPPY), "pooled");
    let fetch = peak.bytes(Purpose::Fetch);
    assert!(
        fetch > PAGE_BYTES / 2 && fetch < PAGE_BYTES + PAGE_BYTES / 4,
        "{fetch}"
    );
    assert_eq!(peak.shared_bytes(Purpose::Fetch), fetch);
    assert_eq!(peak.bytes(Purpose::Decrypt), 0);
}
