//! The command `table`: what it shows of a recorded CSV, and that this machine does not matter.

use std::path::PathBuf;

use alloquet_report::sample::{Kind, Sample, SampleWriter, Workload};
use assert_cmd::assert::Assert;
use predicates::prelude::PredicateBooleanExt;
use predicates::str::contains;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::alloquet;

/// The last run of [`Recorded`].
const LAST: &str = "20260302T080000000Z";

/// Two runs: the first read `plain`, the last read `plain` and `wide` and wrote `lists`.
struct Recorded {
    folder: TempDir,
}

impl Recorded {
    fn new() -> Self {
        let recorded = Self {
            folder: tempfile::tempdir().unwrap(),
        };
        let mut writer = SampleWriter::append(recorded.path("made.csv")).unwrap();
        for (run, workload, dataset) in [
            ("20260301T120000000Z", Workload::Read, "plain"),
            (LAST, Workload::Read, "plain"),
            (LAST, Workload::Read, "wide"),
            (LAST, Workload::Write, "lists"),
        ] {
            for kind in [Kind::Heap, Kind::Rss] {
                writer.write(&sample(run, workload, dataset, kind)).unwrap();
            }
        }
        recorded
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, value: &Value) {
        std::fs::write(self.path(name), value.to_string()).unwrap();
    }

    fn table(&self, arguments: &[&str]) -> Assert {
        let mut command = alloquet();
        command.current_dir(self.folder.path());
        command.args(["table", "made.csv"]).args(arguments).assert()
    }
}

fn sample(run: &str, workload: Workload, dataset: &str, kind: Kind) -> Sample {
    let blank = Sample {
        run_id: run.to_owned(),
        matrix: "made".to_owned(),
        allocator: "system".to_owned(),
        label: "system".to_owned(),
        thp: "never".to_owned(),
        dataset: dataset.to_owned(),
        strategy: "upstream".to_owned(),
        fold: Some("f01d".to_owned()),
        ..Sample::new(kind, workload)
    };
    match kind {
        Kind::Heap => Sample {
            heap_peak_bytes: Some(5 << 20),
            ..blank
        },
        _ => Sample {
            max_rss_bytes: Some(7 << 20),
            minor_faults: Some(9),
            user_s: Some(0.25),
            sys_s: Some(0.25),
            wall_s: Some(0.75),
            ..blank
        },
    }
}

#[test]
fn datasets_and_workloads_are_chosen() {
    let recorded = Recorded::new();
    let (plain, wide, lists) = ("read plain", "read wide", "write lists");
    let shown = recorded.table(&["--dataset", "wide", "--dataset", "lists"]);
    let expected = contains(wide)
        .and(contains(lists))
        .and(contains(plain).not());
    shown.success().stdout(expected);
    let shown = recorded.table(&["--workload", "read"]);
    let expected = contains(wide)
        .and(contains(plain))
        .and(contains(lists).not());
    shown.success().stdout(expected);
    // The samples themselves are chosen too.
    let shown = recorded.table(&["--workload", "write", "--format", "csv"]);
    let expected = contains("lists").and(contains("plain").not());
    shown.success().stdout(expected);
}

#[test]
fn metrics_are_chosen() {
    let recorded = Recorded::new();
    let shown = recorded.table(&["--metric", "wall", "--metric", "max-rss"]);
    let hidden = contains("peak heap")
        .or(contains("faults"))
        .or(contains("CPU"));
    let expected = contains("max RSS MiB").and(contains("wall s"));
    shown.success().stdout(expected.and(hidden.not()));
    for format in ["csv", "json"] {
        let shown = recorded.table(&["--metric", "wall", "--format", format]);
        shown.failure().stderr(contains("--metric"));
    }
}

#[test]
fn names_that_are_not_there_are_answered_with_those_that_are() {
    let recorded = Recorded::new();
    let refused = |arguments: &[&str], said: &str| {
        let shown = recorded.table(arguments).failure().stdout("");
        shown.stderr(contains(said));
    };
    refused(
        &["--dataset", "plain", "--dataset", "wid"],
        &format!("run {LAST} of made.csv has no dataset 'wid': it has lists, plain, wide"),
    );
    refused(
        &["--workload", "write", "--dataset", "plain"],
        "has no dataset 'plain': it has lists",
    );
    let first = ["--run", "20260301T120000000Z"];
    refused(
        &[first[0], first[1], "--workload", "write"],
        "has no workload 'write': it has read",
    );
    refused(
        &["--metric", "rss"],
        "there is no metric 'rss', only peak-heap, heap-per-column, heap-per-writer, max-rss, minor-faults, cpu, wall, rss-after, libc-free, copied, reads",
    );
}

#[test]
fn the_machine_is_the_one_that_the_run_was_recorded_on() {
    let recorded = Recorded::new();
    let alone = recorded.table(&["--all"]).success().stderr("");
    alone.stdout(contains("machine:").not());

    let facts = alloquet().args(["env", "--format", "json"]).assert();
    let mut facts: Value = serde_json::from_slice(&facts.get_output().stdout).unwrap();
    facts["machine"]["cpu_model"] = json!("Elsewhere 9000");
    let machine = facts["machine"].take();
    let environment = json!({LAST: {"machine": machine}, "another run": {}});
    recorded.write("environment.json", &environment);
    let shown = recorded.table(&["--all"]).success().stderr("");
    let stdout = String::from_utf8(shown.get_output().stdout.clone()).unwrap();
    let lines: Vec<&str> = stdout
        .lines()
        .filter(|line| line.starts_with("run ") || line.starts_with("machine: "))
        .collect();
    assert_eq!(lines.len(), 3, "{stdout}");
    assert!(lines[1].contains(LAST), "{stdout}");
    assert!(lines[2].contains("Elsewhere 9000"), "{stdout}");

    // From another folder it is the same: the file is looked for beside the CSV.
    let mut command = alloquet();
    command.arg("table").arg(recorded.path("made.csv"));
    command.assert().stdout(contains("Elsewhere 9000"));
}

#[test]
fn a_damaged_environment_costs_the_machine_and_not_the_table() {
    let recorded = Recorded::new();
    for damaged in [json!([]), json!({LAST: 1}), json!({LAST: {"machine": {}}})] {
        recorded.write("environment.json", &damaged);
        let shown = recorded.table(&[]).success();
        shown
            .stdout(contains("read wide").and(contains("machine:").not()))
            .stderr(contains("note: no machine is shown").and(contains("environment.json")));
    }
}

#[test]
fn one_build_is_not_called_another_than_itself() {
    let recorded = Recorded::new();
    let aa = || {
        let mut command = alloquet();
        command.current_dir(recorded.folder.path());
        command.args(["aa", "made.csv", "--halves", "50"]).assert()
    };
    // One timed sample of each cell is nothing to halve.
    aa().failure()
        .stderr(contains("no cell with 12 timed samples"));
    let mut writer = SampleWriter::append(recorded.path("made.csv")).unwrap();
    for repetition in 1..24 {
        let sample = Sample {
            repetition,
            wall_s: Some(0.75 + f64::from(repetition % 7) / 100.0),
            ..sample(LAST, Workload::Read, "wide", Kind::Rss)
        };
        writer.write(&sample).unwrap();
    }
    let expected = contains("read wide, upstream on system: 24 samples")
        .and(contains(
            "of 50 halvings called real (12 pairs, 3.9 % are expected)",
        ))
        .and(contains("max-rss: 0 of 50"));
    aa().success().stdout(expected);
}
