//! A project of its own for a test: a `bench-data` folder with small definitions, and its results.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use assert_cmd::Command;
use tempfile::TempDir;

use crate::support::alloquet;

/// Wide enough that pages outweigh everything else: 12 columns of two 64 KiB pages in each of two row groups.
const WIDE: &str = r#"
description = "encrypted floats in small pages"
seed = 1

[file]
row_groups = 2
rows_per_row_group = 32_768
page_bytes = 65_536
compression = "snappy"

[[columns]]
name = "f{n}"
count = 12
type = "float32"

[encryption]
footer_key = "text:secret-of-tests!"
"#;

const PLAIN: &str = r#"
description = "strings and integers"
seed = 2

[file]
row_groups = 1
rows_per_row_group = 5_000
page_bytes = 16_384
compression = "zstd"

[[columns]]
name = "s"
type = "string"
dictionary = true
distinct = 50

[[columns]]
name = "i"
type = "int64"
optional = true
nulls = 0.3
"#;

const MATRIX: &str = r#"
description = "for tests"
repetitions = { rss = 2, heap = 2 }

[[work]]
workload = "read"
datasets = ["wide", "plain"]
strategies = ["pooled", "upstream"]
batch_rows = 4096

[[work]]
workload = "write"
datasets = ["plain"]
strategies = ["upstream"]
"#;

/// The samples that [`MATRIX`] gives with one binary.
pub(crate) const SAMPLES: usize = (2 * 2 + 1) * 4;

/// One row, by column.
pub(crate) type Row = BTreeMap<String, String>;

/// The folder of a test.
pub(crate) struct Project {
    folder: TempDir,
}

impl Project {
    /// With the datasets `wide` and `plain` and the matrix `test`.
    pub(crate) fn new() -> Self {
        let project = Self {
            folder: tempfile::tempdir().unwrap(),
        };
        for folder in ["datasets", "matrices"] {
            std::fs::create_dir_all(project.path("bench-data").join(folder)).unwrap();
        }
        project.write("bench-data/datasets/wide.toml", WIDE);
        project.write("bench-data/datasets/plain.toml", PLAIN);
        project.write("bench-data/matrices/test.toml", MATRIX);
        project
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    /// The binary in this project's folder.
    pub(crate) fn alloquet(&self, arguments: &[&str]) -> Command {
        let mut command = alloquet();
        command.current_dir(self.folder.path()).args(arguments);
        command
    }

    /// Generates the dataset `name` and says where it is.
    pub(crate) fn generate(&self, name: &str) -> PathBuf {
        let output = self
            .alloquet(&["generate", name, "--format", "json"])
            .assert()
            .success();
        let files: serde_json::Value = serde_json::from_slice(&output.get_output().stdout).unwrap();
        self.path(files[0]["path"].as_str().unwrap())
    }

    /// The rows of a CSV.
    pub(crate) fn rows(&self, csv: &str) -> Vec<Row> {
        rows(&std::fs::read_to_string(self.path(csv)).unwrap())
    }
}

/// The rows of a CSV's text.
pub(crate) fn rows(text: &str) -> Vec<Row> {
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    reader.deserialize().map(Result::unwrap).collect()
}

/// A number of a row.
pub(crate) fn number(row: &Row, column: &str) -> u64 {
    row[column]
        .parse()
        .unwrap_or_else(|_| panic!("{column} is '{}'", row[column]))
}

/// Every file below a folder, as bytes.
pub(crate) fn contents(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(contents(&path));
        } else {
            let bytes = std::fs::read(&path).unwrap();
            found.push((path, bytes));
        }
    }
    found
}
