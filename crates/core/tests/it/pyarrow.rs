//! Files that pyarrow, from PyPI, wrote: each strategy gives what the stock reader gives, and what
//! pyarrow says it wrote. Where pyarrow cannot be had the tests say so and pass; in CI they fail.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use alloquet_core::{ReadStrategy, ReaderBuilder};
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, RecordBatch};
use base64::prelude::{BASE64_STANDARD, Engine};
use parquet::encryption::decrypt::{FileDecryptionProperties, KeyRetriever};
use parquet::errors::{ParquetError, Result};
use tempfile::TempDir;

use crate::python::run_script;
use crate::support::{options, stock, strategies, with_strategy};

/// A file, and what pyarrow says of it.
struct Written {
    path: PathBuf,
    rows: usize,
    /// Of the column `i64`.
    sum: i64,
    nulls: usize,
}

/// The files, written once for all tests; `None` where pyarrow cannot be had.
fn written() -> Option<&'static [Written]> {
    static FILES: OnceLock<Option<(TempDir, Vec<Written>)>> = OnceLock::new();
    FILES
        .get_or_init(write)
        .as_ref()
        .map(|(_folder, files)| &files[..])
}

fn write() -> Option<(TempDir, Vec<Written>)> {
    let folder = tempfile::tempdir().unwrap();
    let files = run_script("pyarrow_write.py", &[folder.path().as_os_str()])?;
    let files = files.lines().map(|line| {
        let [name, rows, sum, nulls] = line.split('\t').collect::<Vec<_>>()[..] else {
            panic!("pyarrow_write.py said {line}");
        };
        Written {
            path: folder.path().join(format!("{name}.parquet")),
            rows: rows.parse().unwrap(),
            sum: sum.parse().unwrap(),
            nulls: nulls.parse().unwrap(),
        }
    });
    let files: Vec<_> = files.collect();
    assert!(files.len() >= 20, "{} files", files.len());
    Some((folder, files))
}

/// The test KMS of `pyarrow_write.py`: what it wraps is the key in base64, inside JSON.
struct TestKms;

impl KeyRetriever for TestKms {
    fn retrieve_key(&self, key_metadata: &[u8]) -> Result<Vec<u8>> {
        let wrong =
            |why: String| ParquetError::General(format!("no key metadata of pyarrow: {why}"));
        let json: serde_json::Value =
            serde_json::from_slice(key_metadata).map_err(|e| wrong(e.to_string()))?;
        let wrapped = json["wrappedDEK"].as_str().unwrap_or_default();
        BASE64_STANDARD
            .decode(wrapped)
            .map_err(|e| wrong(e.to_string()))
    }
}

fn keys(file: &Written) -> Option<Arc<FileDecryptionProperties>> {
    let encrypted = file.path.to_string_lossy().contains(".encrypted.");
    encrypted.then(|| {
        FileDecryptionProperties::with_key_retriever(Arc::new(TestKms))
            .build()
            .unwrap()
    })
}

#[test]
fn each_strategy_reads_what_pyarrow_wrote() {
    let Some(files) = written() else { return };
    for file in files {
        let name = file.path.display();
        let keys = keys(file);
        for batch_size in [1_000, 65_536] {
            let expected = stock(&file.path, options(keys.as_ref()), batch_size)
                .unwrap()
                .unwrap();
            let column = expected.iter().map(|batch| {
                let column = batch["i64"].as_primitive::<Int64Type>();
                let sum: i64 = column.iter().flatten().sum();
                (batch.num_rows(), sum, column.null_count())
            });
            let found = column.fold((0, 0, 0), |a, b| (a.0 + b.0, a.1 + b.1, a.2 + b.2));
            assert_eq!(found, (file.rows, file.sum, file.nulls), "{name}");
            for strategy in strategies() {
                let found: Vec<RecordBatch> =
                    with_strategy(&file.path, options(keys.as_ref()), batch_size, strategy)
                        .unwrap();
                assert!(expected == found, "{name} differs with {strategy}");
            }
        }
    }
}

#[test]
fn its_checksums_hold_for_stored_pages() {
    let Some(files) = written() else { return };
    for file in files {
        let source = std::fs::File::open(&file.path).unwrap();
        let reader = ReaderBuilder::try_new_with_options(source, options(keys(file).as_ref()))
            .unwrap()
            .with_strategy(ReadStrategy::default())
            .with_page_checksum_verification(true)
            .build()
            .unwrap();
        let rows: usize = reader.map(|batch| batch.unwrap().num_rows()).sum();
        assert_eq!(rows, file.rows, "{}", file.path.display());
    }
}
