//! What the tests share: reading with a strategy, reading with the control, real files.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use alloquet_core::strategy::READ_PRESETS;
use alloquet_core::{ReadStrategy, ReaderBuilder};
use arrow_array::RecordBatch;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder,
};
use parquet::encryption::decrypt::FileDecryptionProperties;

/// Batches, or the first error's text.
pub(crate) type Batches = Result<Vec<RecordBatch>, String>;

/// The presets, and combinations that no preset covers.
pub(crate) fn strategies() -> Vec<ReadStrategy> {
    let combinations = [
        "temp-both,codec=shared",
        "pooled,decrypt=temporary",
        "pooled,fetch=retained,decrypt=retained",
        "retained,fetch=shared,decrypt=in-place",
        "fetch=temporary,decrypt=in-place,page=pooled,codec=per-column,decode=parquet,arrays=shared",
        "pooled,arrays=owned",
        "direct,arrays=owned",
        "direct,page=temporary,decrypt=temporary",
        "retained,decode=direct",
    ];
    READ_PRESETS
        .iter()
        .chain(&combinations)
        .map(|text| text.parse().unwrap())
        .collect()
}

pub(crate) fn options(keys: Option<&Arc<FileDecryptionProperties>>) -> ArrowReaderOptions {
    match keys {
        Some(keys) => ArrowReaderOptions::new().with_file_decryption_properties(Arc::clone(keys)),
        None => ArrowReaderOptions::new(),
    }
}

/// What the stock reader gives, `None` where it panics.
pub(crate) fn stock(
    path: &Path,
    options: ArrowReaderOptions,
    batch_size: usize,
) -> Option<Batches> {
    let read = || -> Batches {
        let file = File::open(path).map_err(|e| e.to_string())?;
        let reader = ParquetRecordBatchReaderBuilder::try_new_with_options(file, options)
            .map_err(|e| e.to_string())?
            .with_batch_size(batch_size)
            .build()
            .map_err(|e| e.to_string())?;
        reader.map(|b| b.map_err(|e| e.to_string())).collect()
    };
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(read)).ok()
}

pub(crate) fn with_strategy(
    path: &Path,
    options: ArrowReaderOptions,
    batch_size: usize,
    strategy: ReadStrategy,
) -> Batches {
    let file = File::open(path).map_err(|e| e.to_string())?;
    let reader = ReaderBuilder::try_new_with_options(file, options)
        .map_err(|e| e.to_string())?
        .with_strategy(strategy)
        .with_batch_size(batch_size)
        .build()
        .map_err(|e| e.to_string())?;
    reader.map(|b| b.map_err(|e| e.to_string())).collect()
}

/// Metadata, for builders that take it.
pub(crate) fn metadata(path: &Path, options: ArrowReaderOptions) -> ArrowReaderMetadata {
    ArrowReaderMetadata::load(&File::open(path).unwrap(), options).unwrap()
}

/// The folder of real files that `PARQUET_TEST_DATA` names, absolute or relative to the workspace.
/// Without it a test says that it is skipped; in CI that is a failure.
pub(crate) fn test_data() -> Option<PathBuf> {
    let Some(folder) = std::env::var_os("PARQUET_TEST_DATA") else {
        assert!(
            std::env::var_os("CI").is_none(),
            "PARQUET_TEST_DATA must name the data folder of apache/parquet-testing in CI"
        );
        eprintln!(
            "skipped: set PARQUET_TEST_DATA to the data folder of apache/parquet-testing to run this test"
        );
        return None;
    };
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folder = workspace.join(folder);
    assert!(
        folder.is_dir(),
        "PARQUET_TEST_DATA names {}, which is no folder",
        folder.display()
    );
    Some(folder)
}

/// Files below `folder` with a name that `wanted` takes, sorted.
pub(crate) fn files(folder: &Path, wanted: fn(&str) -> bool) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if wanted(&path.file_name().unwrap().to_string_lossy()) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// Metadata of a file in memory, for builders that take it.
pub(crate) fn load(bytes: &bytes::Bytes) -> ArrowReaderMetadata {
    ArrowReaderMetadata::load(bytes, ArrowReaderOptions::new()).unwrap()
}
