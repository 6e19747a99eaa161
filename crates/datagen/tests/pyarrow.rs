//! pyarrow, from PyPI, opens generated files and sees the values that we see.
//!
//! What it read it writes out again, and that is compared with the file itself.
//! Without Python, pip or a network these tests say so and pass, unless `CI` is
//! set: there they fail.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

use alloquet_datagen::{Dataset, Scale, generate};
use arrow_array::RecordBatch;
use parquet::arrow::arrow_reader::{ArrowReaderOptions, ParquetRecordBatchReaderBuilder};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The interpreter, or `None` (and a message) where it cannot be had.
fn python() -> Option<String> {
    let output = Command::new("bash")
        .arg(root().join("scripts/python-env.sh"))
        .output();
    let problem = match output {
        Ok(output) if output.status.success() => {
            return Some(String::from_utf8(output.stdout).unwrap().trim().to_owned());
        }
        Ok(output) => String::from_utf8_lossy(&output.stderr).into_owned(),
        Err(error) => format!("bash: {error}"),
    };
    assert!(
        std::env::var_os("CI").is_none(),
        "CI must have pyarrow: {problem}"
    );
    eprintln!("SKIPPED, pyarrow cannot be had: {problem}");
    None
}

fn project(name: &str, scale: &Scale) -> Dataset {
    let path = root()
        .join("bench-data/datasets")
        .join(format!("{name}.toml"));
    Dataset::load(&path).unwrap().scaled(scale).unwrap()
}

fn read(path: &Path, dataset: Option<&Dataset>) -> Vec<RecordBatch> {
    let mut options = ArrowReaderOptions::new();
    if let Some(keys) = dataset.and_then(|dataset| dataset.keys().unwrap()) {
        options = options.with_file_decryption_properties(keys.decryption_properties().unwrap());
    }
    ParquetRecordBatchReaderBuilder::try_new_with_options(File::open(path).unwrap(), options)
        .unwrap()
        .with_batch_size(1 << 20)
        .build()
        .unwrap()
        .collect::<Result<_, _>>()
        .unwrap()
}

/// Generates the dataset and has pyarrow read it, with each of these `keys`.
fn pyarrow_reads(dataset: &Dataset, keys: &[&str]) {
    let Some(python) = python() else { return };
    let folder = tempfile::tempdir().unwrap();
    let generated = generate(dataset, folder.path(), &()).unwrap();
    let expected = read(&generated.path, Some(dataset));
    for keys in keys {
        let copy = folder.path().join("copy.parquet");
        let output = Command::new(&python)
            .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/pyarrow_read.py"))
            .args([keys.as_ref(), generated.path.as_os_str(), copy.as_os_str()])
            .output()
            .unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success(),
            "{} {keys}: {errors}",
            dataset.name()
        );
        assert_eq!(
            String::from_utf8_lossy(&output.stdout).trim(),
            format!("{} alloquet-datagen version 1", dataset.rows())
        );
        let seen = read(&copy, None);
        assert!(seen == expected, "{} {keys}: other values", dataset.name());
    }
}

const SMALL: Scale = Scale {
    rows: 0.01,
    columns: 0.02,
};

#[test]
fn a_plain_file() {
    pyarrow_reads(&project("wide-float", &SMALL), &["none"]);
}

#[test]
fn an_encrypted_file_by_its_key_metadata_and_by_the_key() {
    // Enough rows for two pages of 1 MiB in each chunk.
    let scale = Scale {
        rows: 0.3,
        columns: 0.01,
    };
    for name in ["wide-float-encrypted", "wide-float-encrypted-optional"] {
        pyarrow_reads(&project(name, &scale), &["kms", "0123456789012345"]);
    }
}

#[test]
fn nulls_and_delta_encodings() {
    pyarrow_reads(&project("int32-nulls-delta", &SMALL), &["none"]);
    pyarrow_reads(&project("delta-strings", &SMALL), &["none"]);
}

#[test]
fn dictionaries_in_v2_pages() {
    pyarrow_reads(&project("small-dictionaries", &SMALL), &["none"]);
}

#[test]
fn column_keys_by_their_key_metadata_and_dictionaries() {
    for plaintext_footer in [false, true] {
        let dataset = Dataset::parse(
            "column-keys",
            &format!(
                r#"
                description = "two of three columns encrypted, one of them with dictionaries"
                seed = 3
                [file]
                row_groups = 2
                rows_per_row_group = 5_000
                page_bytes = 4096
                compression = "zstd(1)"
                [[columns]]
                name = "a"
                type = "float64"
                [[columns]]
                name = "b"
                type = "string"
                dictionary = true
                distinct = 9
                [[columns]]
                name = "c"
                type = "int64"
                optional = true
                nulls = 0.5
                [encryption]
                footer_key = "text:0123456789012345"
                column_keys = {{ a = "text:1234567890123450", b = "text:01234567890123450123456789012345" }}
                key_metadata = "test-kms"
                plaintext_footer = {plaintext_footer}
                "#
            ),
        )
        .unwrap();
        pyarrow_reads(&dataset, &["kms"]);
    }
}

#[test]
fn lists_and_logical_types() {
    let dataset = Dataset::parse(
        "types",
        r#"
        description = "lists, decimals, times, fixed bytes"
        seed = 4
        [file]
        row_groups = 2
        rows_per_row_group = 5_000
        page_bytes = 4096
        statistics = "page"
        compression = "lz4_raw"
        [[columns]]
        name = "l"
        type = "float32"
        optional = true
        nulls = 0.1
        list = { min_items = 0, max_items = 4, optional_items = true }
        [[columns]]
        name = "d"
        type = "decimal(15,2)"
        [[columns]]
        name = "t"
        type = "timestamp-micros"
        values = { kind = "sequence", start = 1_700_000_000_000_000 }
        [[columns]]
        name = "u"
        type = "uint16"
        [[columns]]
        name = "x"
        type = "fixed-binary(7)"
        encoding = "delta_byte_array"
        [[columns]]
        name = "b"
        type = "boolean"
        encoding = "rle"
        optional = true
        nulls = 0.2
        "#,
    )
    .unwrap();
    pyarrow_reads(&dataset, &["none"]);
}
