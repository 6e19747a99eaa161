//! Damaged files: an error or batches, never a panic, and no allocation that a lying length asks for.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use alloquet_core::{Purpose, ReadStrategy, ReaderBuilder};
use bytes::Bytes;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions};
use parquet::basic::Compression;
use parquet::file::properties::WriterVersion;
use proptest::prelude::*;

use crate::generated::{all_types, properties};
use crate::support::{load, strategies};

fn file(codec: Compression, version: WriterVersion, dictionary: bool) -> Vec<u8> {
    let batch = all_types().slice(0, 300);
    let properties = properties()
        .set_compression(codec)
        .set_writer_version(version)
        .set_dictionary_enabled(dictionary)
        .build();
    let mut file = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut file, batch.schema(), Some(properties)).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    file
}

/// Reads `bytes` with metadata from elsewhere, so that pages are reached whatever the footer says.
fn read(
    bytes: Bytes,
    metadata: ArrowReaderMetadata,
    strategy: ReadStrategy,
) -> Result<usize, String> {
    let reader = ReaderBuilder::new_with_metadata(bytes, metadata)
        .with_strategy(strategy)
        .build()
        .map_err(|e| e.to_string())?;
    let mut rows = 0;
    for batch in reader {
        rows += batch.map_err(|e| e.to_string())?.num_rows();
    }
    Ok(rows)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Any bytes changed anywhere in the pages.
    #[test]
    fn changed_bytes_never_panic(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        version in prop::bool::ANY,
        dictionary in prop::bool::ANY,
        codec in prop::sample::select(vec![
            Compression::UNCOMPRESSED,
            Compression::SNAPPY,
            Compression::ZSTD(Default::default()),
            Compression::LZ4_RAW,
        ]),
    ) {
        let version = if version { WriterVersion::PARQUET_1_0 } else { WriterVersion::PARQUET_2_0 };
        let mut bytes = file(codec, version, dictionary);
        let metadata = load(&Bytes::from(bytes.clone()));
        for (at, value) in changes {
            let len = bytes.len();
            bytes[at.index(len)] = value;
        }
        let bytes = Bytes::from(bytes);
        for strategy in ["retained", "temp-both", "pooled", "direct", "upstream"] {
            let strategy = strategy.parse().unwrap();
            let result = catch_unwind(AssertUnwindSafe(|| read(bytes.clone(), metadata.clone(), strategy)));
            prop_assert!(result.is_ok(), "{}", strategy);
            // And from the file's own footer, which may be changed too.
            let result = catch_unwind(AssertUnwindSafe(|| {
                ReaderBuilder::try_new(bytes.clone())
                    .and_then(|b| b.with_strategy(strategy).build())
                    .map(|reader| reader.map_while(Result::ok).count())
            }));
            prop_assert!(result.is_ok(), "{}", strategy);
        }
    }
}

#[test]
fn a_truncated_file_is_said_to_be() {
    let bytes = Bytes::from(file(Compression::SNAPPY, WriterVersion::PARQUET_1_0, false));
    let metadata = load(&bytes);
    for len in (0..bytes.len() - 20_000).step_by(997) {
        for strategy in ["retained", "temp-both", "pooled", "direct"] {
            let error = read(
                bytes.slice(..len),
                metadata.clone(),
                strategy.parse().unwrap(),
            )
            .unwrap_err();
            assert!(error.contains("column '"), "{len}: {error}");
        }
    }
}

#[test]
fn after_an_error_the_reader_is_fused() {
    let bytes = Bytes::from(file(Compression::SNAPPY, WriterVersion::PARQUET_1_0, false));
    let metadata = load(&bytes);
    let mut reader = ReaderBuilder::new_with_metadata(bytes.slice(..2_000), metadata)
        .build()
        .unwrap();
    assert!(reader.next().unwrap().is_err());
    assert!(reader.next().is_none());
}

/// A file of one column whose only page header says `uncompressed_size`.
fn lying(codec: Compression, uncompressed_size: u32) -> (Bytes, ArrowReaderMetadata) {
    let array: arrow_array::ArrayRef = Arc::new(arrow_array::Int32Array::from_iter_values(0..100));
    let batch = arrow_array::RecordBatch::try_from_iter([("i", array)]).unwrap();
    let properties = properties()
        .set_compression(codec)
        .set_dictionary_enabled(false)
        .set_statistics_enabled(parquet::file::properties::EnabledStatistics::None)
        .build();
    let mut file = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut file, batch.schema(), Some(properties)).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    let metadata = load(&Bytes::from(file.clone()));
    let (start, _) = metadata.metadata().row_group(0).column(0).byte_range();

    // The header: type (2 bytes), then field 2, the uncompressed size as a zigzag varint.
    let at = start as usize + 2;
    assert_eq!(file[at], 0x15);
    let old_len = file[at + 1..].iter().position(|b| b & 0x80 == 0).unwrap() + 1;
    let mut varint = Vec::new();
    let mut rest = u64::from(uncompressed_size) << 1;
    while rest >= 0x80 {
        varint.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    varint.push(rest as u8);
    assert_eq!(varint.len(), old_len);
    file.splice(at + 1..at + 1 + old_len, varint);
    (Bytes::from(file), metadata)
}

/// Bytes: twenty times the page, and a varint as long as the true size's, so that nothing moves.
const LIE: u32 = 8_191;

#[test]
fn a_lying_length_is_refused_before_it_is_allocated() {
    for codec in [
        Compression::SNAPPY,
        Compression::ZSTD(Default::default()),
        Compression::LZ4_RAW,
    ] {
        let (bytes, metadata) = lying(codec, LIE);
        for strategy in ["retained", "temp-both", "pooled", "direct"] {
            let reader = ReaderBuilder::new_with_metadata(bytes.clone(), metadata.clone())
                .with_strategy(strategy.parse().unwrap())
                .build()
                .unwrap();
            let ledger = reader.ledger();
            let error = reader
                .collect::<Result<Vec<_>, _>>()
                .unwrap_err()
                .to_string();
            assert!(error.contains("decompresses to 8191 bytes"), "{error}");
            assert_eq!(ledger.peak().bytes(Purpose::Page), 0, "{codec} {strategy}");
        }
    }
}

#[test]
fn a_chunk_whose_size_is_not_said_is_read() {
    // As DuckDB before 0.6 wrote: `total_uncompressed_size` is 0 in every chunk.
    let bytes = Bytes::from(file(Compression::SNAPPY, WriterVersion::PARQUET_1_0, true));
    let metadata = load(&bytes).metadata().as_ref().clone();
    let mut builder = metadata.into_builder();
    let row_groups = builder.take_row_groups().into_iter().map(|row_group| {
        let mut builder = row_group.into_builder();
        let columns = builder.take_columns().into_iter().map(|column| {
            let builder = column.into_builder().set_total_uncompressed_size(0);
            builder.build().unwrap()
        });
        let columns = columns.collect();
        builder.set_column_metadata(columns).build().unwrap()
    });
    let row_groups = row_groups.collect();
    let metadata = Arc::new(builder.set_row_groups(row_groups).build());
    let metadata = ArrowReaderMetadata::try_new(metadata, ArrowReaderOptions::new()).unwrap();
    for strategy in strategies() {
        assert_eq!(
            read(bytes.clone(), metadata.clone(), strategy),
            Ok(300),
            "{strategy}"
        );
    }
}
