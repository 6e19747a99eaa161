//! The command `write`, and the write works of a matrix.

use std::collections::BTreeSet;

use alloquet_core::strategy::WRITE_PRESETS;
use predicates::prelude::PredicateBooleanExt;
use predicates::str::contains;
use serde_json::{Value, json};

use crate::project::{Project, Row, contents, number, rows};
#[cfg(not(feature = "upstream-eager"))]
use crate::support::fail;
use crate::support::{File, KEY, names, run};

const CONTROLS: [&str; 3] = ["upstream", "upstream-column-wise", "upstream-exact-store"];

/// Strategies as options.
fn options<'a>(strategies: &[&'a str]) -> Vec<&'a str> {
    strategies
        .iter()
        .flat_map(|strategy| ["--strategy", strategy])
        .collect()
}

fn write(project: &Project, more: &[&str]) -> assert_cmd::Command {
    let mut command = project.alloquet(&["write", "--reps", "1"]);
    command.args(more);
    if !more.contains(&"--batch-rows") {
        command.args(["--batch-rows", "1000"]);
    }
    command
}

/// The rows that `write` prints as CSV.
fn measured(project: &Project, more: &[&str]) -> Vec<Row> {
    let output = write(project, more)
        .args(["--format", "csv"])
        .assert()
        .success();
    rows(&String::from_utf8(output.get_output().stdout.clone()).unwrap())
}

fn generated(project: &Project, name: &str) -> String {
    project.generate(name).display().to_string()
}

fn heap_rows(rows: &[Row]) -> impl Iterator<Item = &Row> {
    rows.iter().filter(|row| row["kind"] == "heap")
}

/// What the work added to the heap.
fn added(row: &Row) -> u64 {
    number(row, "heap_peak_bytes") - number(row, "heap_before_bytes")
}

#[test]
fn every_preset_writes_a_dataset_and_a_users_file_in_both_situations() {
    let project = Project::new();
    let file = generated(&project, "plain");
    for input in [&["--dataset", "plain"][..], &[&file]] {
        let both = ["--situation", "resident", "--situation", "arriving"];
        let rows = measured(&project, &[input, &both].concat());
        let strategies = WRITE_PRESETS.len() + usize::from(cfg!(feature = "upstream-eager"));
        assert_eq!(rows.len(), strategies * 2 * 3);
        let of =
            |column: &str| -> BTreeSet<&String> { rows.iter().map(|row| &row[column]).collect() };
        for column in [
            "checksum",
            "fold",
            "rows",
            "values",
            "leaf_columns",
            "writers",
        ] {
            assert_eq!(of(column).len(), 1, "{column}");
        }
        assert_eq!(of("strategy").len(), strategies);
        assert_eq!(of("situation").len(), 2);
        assert_eq!(rows[0]["workload"], "write");
        assert_eq!(rows[0]["leaf_columns"], "2");
        assert_eq!(rows[0]["properties"], "");
    }
}

#[test]
fn tables_say_the_situation_and_what_a_column_and_a_writer_cost() {
    let project = Project::new();
    let arguments = [
        &options(&CONTROLS)[..],
        &["--dataset", "plain", "--situation", "arriving"],
        &[
            "--situation",
            "resident",
            "--writers",
            "3",
            "--page-rows",
            "700",
        ],
    ]
    .concat();
    write(&project, &arguments).assert().success().stdout(
        contains("write plain (resident, 3 writers, page_row_limit=700)")
            .and(contains(
                "write plain (arriving, 3 writers, page_row_limit=700)",
            ))
            .and(contains("heap/column KiB"))
            .and(contains("heap/writer KiB"))
            .and(contains("resident: the table is in memory"))
            .and(contains("upstream-exact-store (control)")),
    );
    assert!(!project.path("results").exists(), "it only prints");

    let recorded = [&arguments[..], &["--results", "mine"]].concat();
    write(&project, &recorded).assert().success();
    let rows = project.rows("mine/write.csv");
    assert_eq!(rows.len(), 3 * 2 * 3);
    assert!(rows.iter().all(|row| row["matrix"] == "write"
        && row["writers"] == "3"
        && row["properties"] == "page_row_limit=700"));
    project
        .alloquet(&["table", "mine/write.csv", "--metric", "heap-per-writer"])
        .assert()
        .success()
        .stdout(contains("heap/writer KiB").and(contains("heap/column KiB").not()));
}

#[test]
fn what_is_held_of_arriving_batches_counts() {
    let project = Project::new();
    let wide = std::fs::read_to_string(project.path("bench-data/datasets/wide.toml")).unwrap();
    let (clear, _) = wide.split_once("[encryption]").unwrap();
    project.write("bench-data/datasets/clear.toml", clear);
    let rows = measured(
        &project,
        &[
            &options(&["upstream-column-wise"])[..],
            &["--dataset", "clear", "--batch-rows", "4096"],
            &["--situation", "resident", "--situation", "arriving"],
        ]
        .concat(),
    );
    let added = |situation: &str| {
        let mut of = heap_rows(&rows).filter(|row| row["situation"] == situation);
        added(of.next().unwrap())
    };
    // A row group of 12 columns × 32,768 floats waits until it is whole.
    let held = 12 * 32_768 * 4;
    assert!(added("resident") < held / 2, "{}", added("resident"));
    assert!(added("arriving") > held, "{}", added("arriving"));
}

#[test]
fn writers_are_open_at_once() {
    let project = Project::new();
    let of = |writers: &str| {
        let arguments = [
            "--dataset",
            "plain",
            "--strategy",
            "upstream",
            "--writers",
            writers,
        ];
        let rows = measured(&project, &arguments);
        let heap = heap_rows(&rows).next().unwrap();
        (
            added(heap),
            heap["file_bytes"].clone(),
            heap["rows"].clone(),
        )
    };
    let (one, four) = (of("1"), of("4"));
    assert!(four.0 > 2 * one.0, "{} and {}", four.0, one.0);
    assert_eq!((one.1, one.2), (four.1, four.2), "those of one file");
}

#[test]
fn what_the_writer_is_told_shows_in_the_file_and_is_a_cell_of_its_own() {
    let project = Project::new();
    let file = generated(&project, "plain");
    let told = |more: &[&str]| {
        let arguments = [&[&*file, "--strategy", "upstream"][..], more].concat();
        measured(&project, &arguments)
    };
    let plain = told(&[]);
    let uncompressed = told(&["--compression", "none", "--dictionary", "off"]);
    assert_eq!(
        uncompressed[0]["properties"],
        "compression=none;dictionary=false"
    );
    assert!(number(&uncompressed[0], "file_bytes") > number(&plain[0], "file_bytes"));
    assert_eq!(uncompressed[0]["fold"], plain[0]["fold"]);

    // Of upstream it cannot be said: it keeps a limit of rows only every so many values.
    let largest = |rows: &str| {
        let encoded = ["--dictionary", "off", "--encoding", "plain"];
        let limit = ["--page-rows", rows, "--strategy", "bounded"];
        let measured = measured(&project, &[&[&*file][..], &encoded, &limit].concat());
        number(heap_rows(&measured).next().unwrap(), "largest_pages_bytes")
    };
    let (small, large) = (largest("100"), largest("1000"));
    assert!(small * 8 < large, "{small} and {large}");
}

#[test]
fn a_matrix_writes_in_every_situation_with_its_properties() {
    let project = Project::new();
    project.write(
        "bench-data/matrices/writing.toml",
        r#"
        description = "writing"
        repetitions = { rss = 1, heap = 1 }
        [[work]]
        workload = "write"
        datasets = ["plain"]
        strategies = ["upstream-exact-store", "upstream"]
        batch_rows = 1000
        situations = ["resident", "arriving"]
        [[work]]
        workload = "write"
        datasets = ["plain"]
        strategies = ["upstream"]
        writers = 2
        [work.properties]
        compression = "snappy"
        "#,
    );
    project
        .alloquet(&["run", "writing"])
        .assert()
        .success()
        .stdout(
            contains("write plain (arriving)")
                .and(contains("write plain (resident)"))
                .and(contains(
                    "write plain (resident, 2 writers, compression=snappy)",
                )),
        );
    let rows = project.rows("results/local/writing.csv");
    assert_eq!(rows.len(), (2 * 2 + 1) * 2);
    assert!(rows.iter().all(|row| row["status"] == "ok"));
    assert_eq!(
        names(&project.path("bench-data/generated")).len(),
        2,
        "one file and its report"
    );
}

#[test]
fn an_encrypted_file_is_written_encrypted_or_refused() {
    let project = Project::new();
    let file = generated(&project, "wide");
    let keys = format!("footer_key = \"text:{KEY}\"\n");
    let key_file = project.write("keys.toml", &keys).display().to_string();
    let arguments = [&*file, "--key-file", &key_file, "--results", "results"];
    let both = options(&["upstream", "upstream-column-wise"]);
    write(&project, &[&arguments[..], &both].concat())
        .assert()
        .failure()
        .stdout(contains("does not encrypt: use 'upstream'"))
        .stderr(contains("panicked").not());
    let rows = project.rows("results/write.csv");
    assert_eq!(rows.len(), 6);
    for row in rows {
        let expected = if row["strategy"] == "upstream" {
            "ok"
        } else {
            "failed"
        };
        assert_eq!(row["status"], expected, "{row:?}");
        assert_eq!(
            row["error"].contains("does not encrypt"),
            expected == "failed"
        );
    }
    for (path, bytes) in contents(&project.path("results")) {
        let text = String::from_utf8_lossy(&bytes);
        assert!(!text.contains(KEY), "{}", path.display());
    }
    // A dataset's own keys are in its definition.
    write(&project, &["--dataset", "wide", "--strategy", "upstream"])
        .assert()
        .success();
}

#[test]
fn what_cannot_be_written_is_refused_before_anything_is_measured() {
    let project = Project::new();
    for (arguments, said) in [
        (
            &["--dataset", "plain", "--strategy", "poled"][..],
            "bounded",
        ),
        (
            &["--dataset", "plain", "--strategy", "grow,sink=direct"],
            "order=column-wise",
        ),
        (
            &[
                "--dataset",
                "plain",
                "--strategy",
                "upstream",
                "--strategy",
                "upstream",
            ],
            "given twice",
        ),
        (
            &[
                "--dataset",
                "plain",
                "--situation",
                "resident",
                "--situation",
                "resident",
            ],
            "given twice",
        ),
        (
            &["--dataset", "plain", "--situation", "leaving"],
            "arriving",
        ),
        (&["--dataset", "plain", "--writers", "0"], "1 to 400"),
        (&["--dataset", "nothing"], "there are plain, wide"),
        (
            &["--dataset", "plain", "--scale-rows", "2"],
            "--scale-rows is 2",
        ),
        (&["missing.parquet"], "cannot read missing.parquet"),
        (&["bench-data"], "cannot read bench-data"),
        (&[], "--dataset"),
    ] {
        write(&project, arguments)
            .assert()
            .failure()
            .stdout("")
            .stderr(contains(said).and(contains("panicked").not()));
    }
    project.write("text.parquet", "this is no Parquet");
    write(&project, &["text.parquet"])
        .assert()
        .failure()
        .stdout(contains("cannot decode text.parquet").and(contains("failed")));
}

#[test]
#[cfg(not(feature = "upstream-eager"))]
fn the_older_release_is_in_another_build() {
    let project = Project::new();
    let arguments = ["--dataset", "plain", "--strategy", "upstream-eager"];
    write(&project, &arguments)
        .assert()
        .failure()
        .stdout("")
        .stderr(contains("--features upstream-eager"));
    let matrix = std::fs::read_to_string(project.path("bench-data/matrices/test.toml")).unwrap();
    project.write(
        "bench-data/matrices/test.toml",
        &matrix.replace(r#"["upstream"]"#, r#"["upstream-eager", "upstream"]"#),
    );
    project
        .alloquet(&["run", "test"])
        .assert()
        .failure()
        .stderr(contains("--features upstream-eager"));
    project
        .alloquet(&["run", "test", "--strategy", "upstream", "--reps", "1"])
        .assert()
        .success();
    let file = File::plain();
    assert!(fail(&file.job("write", "heap", "upstream-eager")).contains("--features"));
}

#[test]
#[cfg(feature = "upstream-eager")]
fn the_older_release_writes_the_same() {
    let project = Project::new();
    let both = options(&["upstream-eager", "upstream"]);
    let situations = ["--situation", "resident", "--situation", "arriving"];
    let rows = measured(
        &project,
        &[&["--dataset", "plain"], &both[..], &situations].concat(),
    );
    assert_eq!(rows.len(), 12);
    let checksums: BTreeSet<&String> = rows.iter().map(|row| &row["checksum"]).collect();
    assert_eq!(checksums.len(), 1);
    write(
        &project,
        &["--dataset", "wide", "--strategy", "upstream-eager"],
    )
    .assert()
    .failure()
    .stdout(contains("does not encrypt"));
    let arguments = [
        "--dataset",
        "plain",
        "--strategy",
        "upstream-eager",
        "--writers",
        "2",
    ];
    write(&project, &arguments)
        .assert()
        .failure()
        .stdout(contains("writers = 1"));
}

fn outcome(job: &Value) -> Value {
    run(job)["outcome"].clone()
}

fn job(file: &File, strategy: &str, situation: &str, writers: u64) -> Value {
    let mut job = file.job("write", "heap", strategy);
    job["writing"] = json!({"situation": situation, "writers": writers, "changes": {}});
    job
}

#[test]
fn samples_repeat_exactly_and_leave_nothing_behind() {
    let file = File::plain();
    let before = names(file.folder.path());
    for strategy in WRITE_PRESETS {
        for (situation, writers) in [("resident", 1), ("arriving", 2)] {
            let job = job(&file, strategy, situation, writers);
            let (one, two) = (outcome(&job), outcome(&job));
            assert_eq!(one["measures"], two["measures"], "{strategy} {situation}");
            assert_eq!(one["memory_size_error"], two["memory_size_error"]);
            assert!(one["memory_size_error"].is_f64(), "{one}");
        }
    }
    assert_eq!(names(file.folder.path()), before);
}

/// What core says it holds is what is counted.
#[test]
fn owned_strategies_tell_the_truth_of_their_memory() {
    let file = File::plain();
    for strategy in ["grow", "exact", "bounded", "pooled"] {
        for (situation, writers) in [("resident", 1), ("arriving", 1), ("arriving", 5)] {
            let outcome = outcome(&job(&file, strategy, situation, writers));
            let off = outcome["memory_size_error"].as_f64().unwrap();
            assert!(off <= 0.05, "{strategy} {situation} {writers}: {off}");
            let flags = outcome["flags"].as_array().unwrap();
            assert!(!flags.contains(&json!("memory-size-off")), "{strategy}");
            assert!(outcome["ledger"]["total_bytes"].as_u64() > Some(0));
        }
    }
    let upstream = outcome(&job(&file, "upstream", "resident", 1));
    assert_eq!(upstream["ledger"], Value::Null, "its ledger knows nothing");
}
