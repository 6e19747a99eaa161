//! Files that the writer wrote, read by pyarrow and by DuckDB: both must find in them what they find
//! in files that the parquet crate wrote of the same batches. Where the two cannot be had the test
//! says so and passes; in CI it fails.

#![forbid(unsafe_code)]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod cases;
mod nested;
#[path = "../python/mod.rs"]
mod python;
#[path = "../write/support.rs"]
#[expect(dead_code, reason = "other tests need more of it")]
mod support;

use std::fs;
use std::path::Path;

use alloquet_core::{WriteStrategy, Writer};
use arrow_array::RecordBatch;
use parquet::file::properties::WriterProperties;
use serde_json::Value;

use crate::cases::{Statistics, cases};
use crate::python::run_script;
use crate::support::{Nulls, write_upstream};

/// Writes a file as a program does that does not want half of one.
fn write(path: &Path, batches: &[RecordBatch], properties: WriterProperties, strategy: &str) {
    let strategy: WriteStrategy = strategy.parse().unwrap();
    let mut writer = Writer::create(path, batches[0].schema(), Some(properties))
        .unwrap()
        .with_strategy(strategy)
        .unwrap();
    for batch in batches {
        writer.write(batch).unwrap();
    }
    writer.close().unwrap();
}

/// A count that `peers_read.py` says of a file.
fn count(file: &Value, name: &str) -> u64 {
    file[name]
        .as_u64()
        .unwrap_or_else(|| panic!("peers_read.py says no {name} in {file}"))
}

#[test]
fn pyarrow_and_duckdb_read_what_was_written() {
    let folder = tempfile::tempdir().unwrap();
    let (ours, theirs) = (folder.path().join("ours"), folder.path().join("theirs"));
    fs::create_dir(&ours).unwrap();
    fs::create_dir(&theirs).unwrap();
    let cases = cases();
    for case in &cases {
        let file = format!("{}.parquet", case.name());
        let batches = case.batches();
        let properties = case.properties(&batches[0].schema());
        let expected = write_upstream(&batches, &properties);
        fs::write(theirs.join(&file), expected).unwrap();
        write(&ours.join(&file), &batches, properties, case.strategy);
    }
    let Some(said) = run_script("peers_read.py", &[ours.as_os_str(), theirs.as_os_str()]) else {
        return;
    };

    let files: Vec<Value> = said
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let (total, files) = files.split_last().unwrap();
    println!("{total}");
    assert_eq!(files.len(), cases.len());
    assert!(files.len() >= 75, "{} files", files.len());
    for (case, file) in cases.iter().zip(files) {
        let name = case.name();
        assert_eq!(file["file"], name);
        let batches = case.batches();
        let rows: usize = batches.iter().map(RecordBatch::num_rows).sum();
        let columns = batches[0].num_columns() as u64;
        let read = |peer: &str| {
            let peer = &file[peer];
            assert_eq!(count(peer, "rows"), rows as u64, "{name}");
            let skipped = peer["skipped"].as_object().unwrap().len() as u64;
            assert_eq!(count(peer, "columns") + skipped, columns, "{name}");
            assert!(count(peer, "columns") >= 42, "{name}: {peer}");
            peer
        };
        let (pyarrow, duckdb) = (read("pyarrow"), read("duckdb"));
        assert_eq!(
            count(pyarrow, "row_groups"),
            case.row_groups() as u64,
            "{name}"
        );
        // Of each chunk of each leaf, or of none.
        let without = case.statistics == Statistics::None;
        let chunks = count(pyarrow, "leaves") * count(pyarrow, "row_groups");
        let statistics = if without { 0 } else { chunks };
        assert_eq!(count(pyarrow, "statistics"), statistics, "{name}");
        // Where all is null there are only values to look for that are not there.
        let filters = if case.nulls == Nulls::All { 6 } else { 16 };
        assert!(count(duckdb, "filters") >= filters, "{name}: {duckdb}");
        let probes = count(duckdb, "bloom_probes");
        assert_eq!(probes == 0, !case.bloom, "{name}: {probes}");
        let blooms = count(duckdb, "bloom_filters");
        assert_eq!(blooms >= 50, case.bloom, "{name}: {blooms} bloom filters");
        let filtered = count(pyarrow, "filtered_rows");
        assert_eq!(
            filtered == 0,
            case.nulls == Nulls::All,
            "{name}: {filtered} rows"
        );
    }
}
