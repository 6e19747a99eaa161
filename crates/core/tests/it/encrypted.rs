//! Encryption: each way to encrypt a file, read with each strategy; keys that do not fit.

use std::collections::HashMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use alloquet_core::{ReadStrategy, ReaderBuilder};
use arrow_select::concat::concat_batches;
use parquet::arrow::arrow_reader::{RowSelection, RowSelector};
use parquet::basic::Compression;
use parquet::encryption::decrypt::{FileDecryptionProperties, KeyRetriever};
use parquet::encryption::encrypt::FileEncryptionProperties;
use parquet::errors::{ParquetError, Result};
use parquet::file::properties::WriterVersion;
use tempfile::TempDir;

use crate::generated::{all_types, properties, write};
use crate::support::{metadata, options, stock, strategies, with_strategy};

const FOOTER_KEY: &[u8] = b"0123456789012345";
const COLUMN_KEY: &[u8] = b"abcdefghijklmnopabcdefghijklmnop";

type Keys = Arc<FileDecryptionProperties>;

/// A file encrypted so, and the stock reader's batches compared with every strategy's.
fn round_trip(encryption: Arc<FileEncryptionProperties>, keys: &Keys) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file.parquet");
    let properties = properties()
        .set_compression(Compression::SNAPPY)
        .with_file_encryption_properties(encryption)
        .build();
    write(&path, &all_types(), properties);
    let expected = stock(&path, options(Some(keys)), 100).unwrap().unwrap();
    for strategy in strategies() {
        let found = with_strategy(&path, options(Some(keys)), 100, strategy).unwrap();
        assert!(expected == found, "{strategy}");
    }
    (folder, path)
}

fn footer_key() -> Keys {
    FileDecryptionProperties::builder(FOOTER_KEY.to_vec())
        .build()
        .unwrap()
}

fn uniform() -> (TempDir, PathBuf) {
    let encryption = FileEncryptionProperties::builder(FOOTER_KEY.to_vec());
    round_trip(encryption.build().unwrap(), &footer_key())
}

#[test]
fn one_key_for_all() {
    uniform();
}

#[test]
fn either_page_version_every_codec_and_parts_of_the_file() {
    let batch = all_types();
    for version in [WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0] {
        for codec in [
            Compression::UNCOMPRESSED,
            Compression::ZSTD(Default::default()),
            Compression::LZ4_RAW,
        ] {
            for dictionary in [false, true] {
                let folder = tempfile::tempdir().unwrap();
                let path = folder.path().join("file.parquet");
                let encryption = FileEncryptionProperties::builder(FOOTER_KEY.to_vec());
                let properties = properties()
                    .set_compression(codec)
                    .set_writer_version(version)
                    .set_dictionary_enabled(dictionary)
                    .with_file_encryption_properties(encryption.build().unwrap())
                    .build();
                write(&path, &batch, properties);
                let keys = footer_key();
                let expected = stock(&path, options(Some(&keys)), 100).unwrap().unwrap();
                let whole = concat_batches(&batch.schema(), &expected).unwrap();
                for strategy in strategies() {
                    let found = with_strategy(&path, options(Some(&keys)), 100, strategy).unwrap();
                    assert!(
                        expected == found,
                        "{strategy} {codec} {version:?} {dictionary}"
                    );
                    // Skipped pages count in the ordinals that pages are encrypted with.
                    let selection = RowSelection::from(vec![
                        RowSelector::skip(790),
                        RowSelector::select(20),
                        RowSelector::skip(900),
                        RowSelector::select(30),
                    ]);
                    let file = File::open(&path).unwrap();
                    let reader = ReaderBuilder::try_new_with_options(file, options(Some(&keys)))
                        .unwrap()
                        .with_strategy(strategy)
                        .with_row_selection(selection)
                        .build()
                        .unwrap();
                    let found: Vec<_> = reader.map(|batch| batch.unwrap()).collect();
                    let found = concat_batches(&batch.schema(), &found).unwrap();
                    let parts = [whole.slice(790, 20), whole.slice(1_710, 30)];
                    let parts = concat_batches(&batch.schema(), &parts).unwrap();
                    assert!(
                        found == parts,
                        "{strategy} {codec} {version:?} {dictionary}"
                    );
                }
            }
        }
    }
}

#[test]
fn a_key_of_256_bits() {
    let encryption = FileEncryptionProperties::builder(COLUMN_KEY.to_vec());
    let keys = FileDecryptionProperties::builder(COLUMN_KEY.to_vec());
    round_trip(encryption.build().unwrap(), &keys.build().unwrap());
}

fn column_keys(plaintext_footer: bool) -> (TempDir, PathBuf, Keys) {
    let encryption = FileEncryptionProperties::builder(FOOTER_KEY.to_vec())
        .with_plaintext_footer(plaintext_footer)
        .with_column_key("utf8", COLUMN_KEY.to_vec())
        .with_column_key("list.list.item", FOOTER_KEY.to_vec());
    let keys = FileDecryptionProperties::builder(FOOTER_KEY.to_vec())
        .with_column_key("utf8", COLUMN_KEY.to_vec())
        .with_column_key("list.list.item", FOOTER_KEY.to_vec())
        .build()
        .unwrap();
    let (folder, path) = round_trip(encryption.build().unwrap(), &keys);
    (folder, path, keys)
}

#[test]
fn keys_of_columns_and_plain_columns() {
    column_keys(false);
}

#[test]
fn a_plaintext_footer() {
    column_keys(true);
}

#[test]
fn an_aad_prefix_that_the_file_stores_or_does_not() {
    for stored in [true, false] {
        let encryption = FileEncryptionProperties::builder(FOOTER_KEY.to_vec())
            .with_aad_prefix(b"prefix".to_vec())
            .with_aad_prefix_storage(stored)
            .build()
            .unwrap();
        let keys = FileDecryptionProperties::builder(FOOTER_KEY.to_vec())
            .with_aad_prefix(b"prefix".to_vec())
            .build()
            .unwrap();
        let (_folder, path) = round_trip(encryption, &keys);
        for strategy in strategies() {
            let found = with_strategy(&path, options(Some(&footer_key())), 100, strategy);
            assert_eq!(found.is_ok(), stored, "{strategy}");
        }
    }
}

/// Keys by the metadata that names them, and how often it was asked.
struct Kms(HashMap<&'static [u8], &'static [u8]>, AtomicUsize);

impl KeyRetriever for Kms {
    fn retrieve_key(&self, key_metadata: &[u8]) -> Result<Vec<u8>> {
        self.1.fetch_add(1, Ordering::Relaxed);
        self.0
            .get(key_metadata)
            .map(|key| key.to_vec())
            .ok_or_else(|| ParquetError::General("no such key".into()))
    }
}

#[test]
fn a_key_retriever() {
    let kms = Kms(
        HashMap::from([(&b"footer"[..], FOOTER_KEY), (&b"column"[..], COLUMN_KEY)]),
        AtomicUsize::new(0),
    );
    let kms = Arc::new(kms);
    let retriever: Arc<dyn KeyRetriever> = Arc::<Kms>::clone(&kms);
    let keys = FileDecryptionProperties::with_key_retriever(retriever)
        .build()
        .unwrap();
    for plaintext_footer in [false, true] {
        let encryption = FileEncryptionProperties::builder(FOOTER_KEY.to_vec())
            .with_footer_key_metadata(b"footer".to_vec())
            .with_plaintext_footer(plaintext_footer)
            .with_column_key_and_metadata("utf8", COLUMN_KEY.to_vec(), b"column".to_vec())
            .build()
            .unwrap();
        let (_folder, path) = round_trip(encryption, &keys);
        // A service is asked once for each key by the metadata's reader and once by ours, however many
        // chunks there are.
        kms.1.store(0, Ordering::Relaxed);
        let pooled = ReadStrategy::default();
        with_strategy(&path, options(Some(&keys)), 100, pooled).unwrap();
        let asked = kms.1.load(Ordering::Relaxed);
        // The parquet crate asks for a column's key for each of its two row groups.
        assert!(asked <= 2 + 3, "{asked}");
    }
}

/// The error of reading `path` with metadata that was read with `good` keys and pages with `bad` ones.
fn page_error(path: &Path, good: &Keys, bad: Option<Keys>, strategy: ReadStrategy) -> String {
    let mut builder = ReaderBuilder::new_with_metadata(
        File::open(path).unwrap(),
        metadata(path, options(Some(good))),
    )
    .with_strategy(strategy);
    if let Some(bad) = bad {
        builder = builder.with_file_decryption_properties(bad);
    }
    match builder.build() {
        Err(error) => error.to_string(),
        Ok(reader) => {
            let batches: std::result::Result<Vec<_>, _> = reader.collect();
            batches.unwrap_err().to_string()
        }
    }
}

#[test]
fn wrong_or_missing_keys_are_named_and_never_shown() {
    let (_folder, path) = uniform();
    let wrong = FileDecryptionProperties::builder(b"5432109876543210".to_vec())
        .build()
        .unwrap();
    let odd = FileDecryptionProperties::builder(b"short secret".to_vec())
        .build()
        .unwrap();
    for strategy in strategies() {
        for keys in [&wrong, &odd] {
            let error = with_strategy(&path, options(Some(keys)), 100, strategy).unwrap_err();
            assert!(error.to_lowercase().contains("key"), "{error}");
            assert!(!error.contains("5432109876543210") && !error.contains("short secret"));
        }
        assert!(with_strategy(&path, options(None), 100, strategy).is_err());
        if strategy == ReadStrategy::Upstream {
            continue;
        }
        let error = page_error(&path, &footer_key(), Some(Arc::clone(&wrong)), strategy);
        assert!(error.contains("the key or AAD prefix is wrong"), "{error}");
        // Columns of numbers, which is decoded here, may come first.
        assert!(
            error.contains("column '") && error.contains("', row group 0, dictionary page"),
            "{error}"
        );
        let error = page_error(&path, &footer_key(), None, strategy);
        assert!(error.contains("no keys were given"), "{error}");
    }
}

#[test]
fn a_column_without_its_key_can_be_left_out() {
    let (_folder, path, keys) = column_keys(true);
    let only_footer = footer_key();
    for strategy in strategies() {
        if strategy == ReadStrategy::Upstream {
            continue;
        }
        let error = page_error(&path, &keys, Some(Arc::clone(&only_footer)), strategy);
        assert!(error.contains("utf8") || error.contains("item"), "{error}");
        let metadata = metadata(&path, options(Some(&keys)));
        let mask = parquet::arrow::ProjectionMask::columns(metadata.parquet_schema(), ["i64"]);
        let reader = ReaderBuilder::new_with_metadata(File::open(&path).unwrap(), metadata)
            .with_strategy(strategy)
            .with_projection(mask)
            .with_file_decryption_properties(Arc::clone(&only_footer))
            .build()
            .unwrap();
        assert!(reader.map(|b| b.unwrap().num_rows()).sum::<usize>() > 0);
    }
}

#[test]
fn pages_cannot_be_exchanged() {
    // Two pages of one column, equal in length: exchanging them must not go unnoticed.
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file.parquet");
    let array: arrow_array::ArrayRef = Arc::new(arrow_array::Int32Array::from_iter_values(0..400));
    let batch = arrow_array::RecordBatch::try_from_iter([("i", array)]).unwrap();
    let encryption = FileEncryptionProperties::builder(FOOTER_KEY.to_vec())
        .build()
        .unwrap();
    let properties = properties()
        .set_dictionary_enabled(false)
        .set_statistics_enabled(parquet::file::properties::EnabledStatistics::None)
        .with_file_encryption_properties(encryption)
        .build();
    write(&path, &batch, properties);
    let metadata = metadata(&path, options(Some(&footer_key())));
    let (start, len) = metadata.metadata().row_group(0).column(0).byte_range();
    let mut bytes = std::fs::read(&path).unwrap();
    let half = len as usize / 2;
    let (left, right) = bytes[start as usize..][..2 * half].split_at_mut(half);
    left.swap_with_slice(right);
    std::fs::write(&path, bytes).unwrap();
    for strategy in strategies() {
        let found = with_strategy(&path, options(Some(&footer_key())), 100, strategy);
        assert!(found.is_err(), "{strategy}");
    }
}
