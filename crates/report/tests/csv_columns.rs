//! Holds `docs/csv.md` to the columns that are really written.

use alloquet_report::companions::{parts_columns, series_columns};
use alloquet_report::sample::{Kind, SCHEMA_VERSION, columns};
use std::fs;

const DOCUMENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/csv.md");

fn document() -> String {
    fs::read_to_string(DOCUMENT).expect("docs/csv.md describes the columns")
}

/// The fields of the rows below a heading that describe a column: those that begin with a name in backticks.
fn described_below(heading: &str) -> Vec<Vec<String>> {
    let text = document();
    let (_, chapter) = text
        .split_once(&format!("\n{heading}\n"))
        .expect("the columns have a chapter of their own");
    // It ends at the next heading of its rank or above.
    let rank = |line: &str| line.chars().take_while(|one| *one == '#').count();
    let ends = |line: &str| (1..=rank(heading)).contains(&rank(line));
    let columns = chapter.lines().take_while(|line| !ends(line));
    let rows = columns.filter_map(|line| {
        let row = line.strip_prefix("| `")?.strip_suffix(" |")?;
        Some(
            row.split(" | ")
                .map(|field| field.trim_end_matches('`').to_owned())
                .collect(),
        )
    });
    rows.collect()
}

fn described() -> Vec<Vec<String>> {
    described_below("## Columns")
}

fn names(rows: Vec<Vec<String>>) -> Vec<String> {
    rows.into_iter().map(|row| row[0].clone()).collect()
}

#[test]
fn every_column_is_described_in_its_order() {
    assert_eq!(names(described()), columns());
}

#[test]
fn the_companions_columns_are_described_too() {
    assert_eq!(names(described_below("### Parts")), parts_columns());
    assert_eq!(names(described_below("### Series")), series_columns());
    for row in ["### Parts", "### Series"]
        .into_iter()
        .flat_map(described_below)
    {
        assert_eq!(row.len(), 3, "{row:?}");
        assert!(row.iter().all(|field| !field.trim().is_empty()), "{row:?}");
    }
}

#[test]
fn every_kind_and_state_is_described() {
    let kinds = names(described_below("## Kinds of samples"));
    assert_eq!(kinds, Kind::ALL.map(|kind| kind.to_string()));
    let text = document();
    for status in ["`ok`:", "`failed`:", "`did-not-fit`:", "`did-not-finish`:"] {
        assert!(text.contains(status), "{status}");
    }
}

#[test]
fn every_description_says_unit_kind_and_meaning() {
    for row in described() {
        assert_eq!(row.len(), 4, "{row:?}");
        assert!(row.iter().all(|field| !field.trim().is_empty()), "{row:?}");
        let kinds = Kind::ALL.map(|kind| kind.to_string());
        let is_kind = |name: &str| kinds.iter().any(|kind| kind == name);
        let filled_by = row[2].as_str();
        assert!(
            ["all", "counted", "not ok"].contains(&filled_by) || filled_by.split(", ").all(is_kind),
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
