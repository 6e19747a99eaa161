//! Holds `docs/csv.md` to the columns that are really written.

use alloquet_report::sample::{SCHEMA_VERSION, columns};
use std::fs;

const DOCUMENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/csv.md");

fn document() -> String {
    fs::read_to_string(DOCUMENT).expect("docs/csv.md describes the columns")
}

/// The fields of the rows that describe a column: those that begin with a name in backticks.
fn described() -> Vec<Vec<String>> {
    let text = document();
    let columns = text
        .split_once("\n## Columns\n")
        .and_then(|(_, rest)| rest.split_once("\n## "))
        .map(|(columns, _)| columns)
        .expect("the columns have a chapter of their own");
    let rows = columns.lines().filter_map(|line| {
        let row = line.strip_prefix("| `")?.strip_suffix(" |")?;
        Some(
            row.split(" | ")
                .map(|field| field.trim_end_matches('`').to_owned())
                .collect(),
        )
    });
    rows.collect()
}

#[test]
fn every_column_is_described_in_its_order() {
    let names: Vec<String> = described().into_iter().map(|row| row[0].clone()).collect();
    assert_eq!(names, columns());
}

#[test]
fn every_description_says_unit_kind_and_meaning() {
    for row in described() {
        assert_eq!(row.len(), 4, "{row:?}");
        assert!(row.iter().all(|field| !field.trim().is_empty()), "{row:?}");
        assert!(
            ["both", "heap", "rss", "failed"].contains(&row[2].as_str()),
            "{row:?}"
        );
    }
}

#[test]
fn units_are_in_the_names() {
    for row in described() {
        let (name, unit) = (&row[0], &row[1]);
        assert_eq!(name.ends_with("_bytes"), unit == "bytes", "{row:?}");
        assert_eq!(name.ends_with("_s"), unit == "s", "{row:?}");
    }
}

#[test]
fn the_schema_version_is_the_described_one() {
    let text = document();
    assert!(text.contains(&format!("This page describes version {SCHEMA_VERSION}.")));
}
