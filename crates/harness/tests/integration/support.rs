//! Small datasets, and workers to run on them.

use std::path::{Path, PathBuf};

use alloquet_datagen::keys::KeySet;
use alloquet_datagen::{Dataset, generate};
use assert_cmd::Command;
use serde_json::{Value, json};
use tempfile::TempDir;

/// Fixed and variable width, without and with nulls.
const PLAIN: &str = r#"
description = "a few columns of each kind"
seed = 1

[file]
row_groups = 2
rows_per_row_group = 5_000
page_bytes = 4096
compression = "snappy"

[[columns]]
name = "f{n}"
count = 5
type = "float32"

[[columns]]
name = "i"
type = "int32"
optional = true
nulls = 0.2

[[columns]]
name = "s"
type = "string"
optional = true
nulls = 0.1
dictionary = true
"#;

/// Pages of 1 MiB.
const LARGE: &str = r#"
description = "many floats in large pages"
seed = 2

[file]
row_groups = 1
rows_per_row_group = 262_144
page_bytes = 1_048_576
compression = "snappy"

[[columns]]
name = "f{n}"
count = 24
type = "float32"
"#;

const ENCRYPTED: &str = r#"
[encryption]
footer_key = "text:secret-of-tests!"
"#;

/// The key's text, which no output may hold.
pub(crate) const KEY: &str = "secret-of-tests!";

/// A generated file in a folder of its own.
pub(crate) struct File {
    /// The folder.
    pub(crate) folder: TempDir,
    /// The Parquet file.
    pub(crate) path: PathBuf,
    definition: PathBuf,
    keys: Option<KeySet>,
}

impl File {
    /// A file in the clear.
    pub(crate) fn plain() -> Self {
        Self::new(PLAIN)
    }

    /// A file with one row group.
    pub(crate) fn single() -> Self {
        Self::new(&PLAIN.replace("row_groups = 2", "row_groups = 1"))
    }

    /// The same as the plain one, encrypted with one key.
    pub(crate) fn encrypted() -> Self {
        Self::new(&format!("{PLAIN}{ENCRYPTED}"))
    }

    /// A file whose readers hold some 25 MiB each, if they keep what they read.
    pub(crate) fn large() -> Self {
        Self::new(LARGE)
    }

    fn new(definition: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sample.toml");
        std::fs::write(&path, definition).unwrap();
        let dataset = Dataset::load(&path).unwrap();
        let generated = generate(&dataset, folder.path(), &()).unwrap();
        Self {
            folder,
            path: generated.path,
            definition: path,
            keys: dataset.keys().unwrap(),
        }
    }

    /// A job on this file with its keys.
    pub(crate) fn job(&self, workload: &str, kind: &str, strategy: &str) -> Value {
        json!({
            "workload": workload,
            "kind": kind,
            "file": self.path,
            "strategy": strategy,
            "batch_rows": 1000,
            "dataset": {"definition": self.definition, "scale_rows": 1.0, "scale_columns": 1.0},
            "keys": self.keys,
        })
    }
}

/// The binary, with nothing in its environment.
pub(crate) fn alloquet() -> Command {
    let mut command = Command::cargo_bin("alloquet").unwrap();
    command.env_clear();
    command
}

/// What a worker replies to a job: the JSON it prints.
pub(crate) fn run(job: &Value) -> Value {
    let output = command(job).assert().success().stderr("");
    serde_json::from_slice(&output.get_output().stdout).unwrap()
}

/// The reason of a job that fails.
pub(crate) fn fail(job: &Value) -> String {
    let output = command(job).assert().failure().stderr("");
    let reply: Value = serde_json::from_slice(&output.get_output().stdout).unwrap();
    reply["error"].as_str().unwrap().to_owned()
}

fn command(job: &Value) -> Command {
    let mut command = alloquet();
    command
        .args(["worker", "--kind", job["kind"].as_str().unwrap()])
        .write_stdin(job.to_string());
    command
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
    Some(
        Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../..")
            .join(folder),
    )
}

/// Names of the files in a folder, sorted.
pub(crate) fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}
