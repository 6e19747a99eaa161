//! What the tests share: definitions, reading a file back, listing a folder.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use alloquet_datagen::{Dataset, Generated, Scale};
use arrow_array::RecordBatch;
use parquet::arrow::arrow_reader::{ArrowReaderOptions, ParquetRecordBatchReaderBuilder};
use tempfile::TempDir;

/// The folder of the project's definitions.
pub(crate) fn datasets() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench-data/datasets")
}

pub(crate) fn project(name: &str) -> Dataset {
    Dataset::load(&datasets().join(format!("{name}.toml"))).unwrap()
}

pub(crate) fn scaled(name: &str, rows: f64, columns: f64) -> Dataset {
    project(name).scaled(&Scale { rows, columns }).unwrap()
}

pub(crate) fn with(file: &str, rest: &str) -> Dataset {
    Dataset::parse(
        "t",
        &format!("description = ''\nseed = 7\n[file]\n{file}\n{rest}"),
    )
    .unwrap_or_else(|error| panic!("{error}"))
}

pub(crate) fn read(dataset: &Dataset, generated: &Generated) -> Vec<RecordBatch> {
    let mut options = ArrowReaderOptions::new();
    if let Some(keys) = dataset.keys().unwrap() {
        options = options.with_file_decryption_properties(keys.decryption_properties().unwrap());
    }
    let file = File::open(&generated.path).unwrap();
    let builder = ParquetRecordBatchReaderBuilder::try_new_with_options(file, options).unwrap();
    assert_eq!(*builder.schema(), dataset.schema());
    builder
        .with_batch_size(10_000)
        .build()
        .unwrap()
        .collect::<Result<_, _>>()
        .unwrap()
}

pub(crate) fn files(folder: &TempDir) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// Everything that a definition can say, in one small file.
pub(crate) const KITCHEN_SINK: &str = r#"
[[columns]]
name = "b"
type = "boolean"
optional = true
nulls = 0.5
[[columns]]
name = "u{n}"
count = 2
type = "uint32"
[[columns]]
name = "d"
type = "decimal(15,2)"
values = { kind = "uniform", min = -5, max = 100_000 }
[[columns]]
name = "d9"
type = "decimal(7,2)"
[[columns]]
name = "t"
type = "timestamp-micros"
encoding = "delta_binary_packed"
values = { kind = "sequence", start = 1_700_000_000_000_000, step = 1000, repeat = 3 }
[[columns]]
name = "flag"
type = "string"
dictionary = true
values = { kind = "choices", values = ["A", "N", "R"], weights = [1, 0, 3] }
[[columns]]
name = "x"
type = "fixed-binary(5)"
encoding = "byte_stream_split"
[[columns]]
name = "bin"
type = "binary"
optional = true
nulls = 0.1
encoding = "delta_length_byte_array"
[[columns]]
name = "c"
type = "float64"
dictionary = true
values = { kind = "constant", value = 1.5 }
[[columns]]
name = "l"
type = "float32"
list = { min_items = 0, max_items = 5 }
[[columns]]
name = "lo"
type = "uint8"
optional = true
nulls = 0.3
dictionary = true
list = { min_items = 0, max_items = 3, optional_items = true }
[[columns]]
name = "i8"
type = "int8"
distinct = 200
"#;

pub(crate) fn kitchen_sink(version: u8, compression: &str) -> Dataset {
    with(
        &format!(
            "row_groups = 2\nrows_per_row_group = 3_000\npage_bytes = 1024\npage_row_limit = 700\ndata_page_version = {version}\ncompression = '{compression}'\nstatistics = 'page'"
        ),
        KITCHEN_SINK,
    )
}
