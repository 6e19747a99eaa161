//! Samples that meet a limit are results, and workers that die are failures: each is a row that says so, and the run goes on.

use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

use predicates::prelude::PredicateBooleanExt;
use predicates::str::{contains, is_empty};

use crate::project::{Project, Row, rows};

const BINARY: &str = env!("CARGO_BIN_EXE_alloquet");

/// Reads the dataset `plain` with some more arguments; the rows, and the exit code.
fn read(project: &Project, arguments: &[&str]) -> (Vec<Row>, i32) {
    let file = project.generate("plain").display().to_string();
    let mut command = project.alloquet(&["read", &file, "--strategy", "pooled", "--reps", "2"]);
    command.args(["--format", "csv"]).args(arguments);
    let output = command.output().unwrap();
    let rows = rows(&String::from_utf8(output.stdout).unwrap());
    (rows, output.status.code().unwrap())
}

fn of_kind<'a>(rows: &'a [Row], label: &str, kind: &str) -> Vec<&'a Row> {
    let of_kind = rows
        .iter()
        .filter(|row| row["kind"] == kind && (label.is_empty() || row["label"] == label));
    of_kind.collect()
}

/// The program under another name, whose timed samples do something else than they should.
fn with(project: &Project, name: &str, instead: &str) -> String {
    let script =
        format!("#!/bin/sh\n[ \"$1 $3\" = 'worker rss' ] && {instead}\nexec '{BINARY}' \"$@\"\n");
    let path = project.write(name, &script);
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
    format!("{name}={}", path.display())
}

#[test]
fn what_needs_more_than_the_limit_did_not_fit() {
    let project = Project::new();
    let (rows, code) = read(&project, &["--memory-limit", "1MiB", "--cycles", "2"]);
    assert_eq!(code, 0, "a limit that was met is a result: {rows:?}");
    let limited = [of_kind(&rows, "", "rss"), of_kind(&rows, "", "cycles")].concat();
    assert_eq!(limited.len(), 2 + 1);
    for row in limited {
        assert_eq!(row["status"], "did-not-fit");
        assert_eq!(row["memory_limit_bytes"], "1048576");
        assert_eq!(row["max_rss_bytes"], "");
        let said = match row["limited_by"].as_str() {
            "cgroup-v1" | "cgroup-v2" => "did not fit in 1.0 MiB: the kernel killed the worker",
            "rss" => {
                eprintln!("skipped: no control group of memory can be made here");
                "did not fit in 1.0 MiB: max RSS was "
            }
            other => panic!("limited by '{other}'"),
        };
        assert!(row["error"].starts_with(said), "{}", row["error"]);
    }
    // They say how much would be needed.
    let counted = of_kind(&rows, "", "heap");
    assert!(counted.iter().all(|row| row["status"] == "ok"));
    assert!(!counted.is_empty());

    let (rows, code) = read(&project, &["--memory-limit", "1GiB"]);
    assert_eq!(code, 0);
    assert!(rows.iter().all(|row| row["status"] == "ok"), "{rows:?}");
}

#[test]
fn a_table_says_what_did_not_fit() {
    let project = Project::new();
    project
        .alloquet(&["run", "test", "--memory-limit", "1MiB"])
        .assert()
        .success()
        .stdout(contains("> 1.0 MiB"))
        .stderr(contains("error:").not());
    let csv = project.path("results/local/test.csv").display().to_string();
    project
        .alloquet(&["table", &csv])
        .assert()
        .success()
        .stdout(contains("> 1.0 MiB"))
        .stderr(is_empty());
}

#[test]
fn a_worker_that_is_killed_by_a_signal_is_a_row_that_says_so() {
    let project = Project::new();
    for (name, signal, number) in [("crashes", "SEGV", 11), ("is-killed", "KILL", 9)] {
        let other = with(&project, name, &format!("kill -{signal} $$"));
        let (rows, code) = read(&project, &["--with", &other]);
        assert_eq!(code, 1, "a worker that died is a failure");
        let died = of_kind(&rows, name, "rss");
        assert_eq!(died.len(), 2, "no sample is lost");
        for row in died {
            assert_eq!(row["status"], "failed");
            assert_eq!(row["max_rss_bytes"], "");
            let said = format!("signal: {number} (SIG{signal})");
            assert!(row["error"].contains(&said), "{}", row["error"]);
        }
        let others = rows.iter().filter(|row| row["status"] != "failed");
        assert_eq!(others.clone().count(), rows.len() - 2, "the run went on");
        assert!(others.clone().all(|row| row["status"] == "ok"));
    }
}

#[test]
fn what_takes_longer_than_the_limit_did_not_finish() {
    let project = Project::new();
    let other = with(&project, "sleeps", "exec sleep 100");
    let began = Instant::now();
    let (rows, code) = read(&project, &["--with", &other, "--timeout", "2"]);
    assert!(began.elapsed() < Duration::from_secs(60));
    assert_eq!(code, 0, "a limit that was met is a result: {rows:?}");
    let late = of_kind(&rows, "sleeps", "rss");
    assert_eq!(late.len(), 2);
    for row in late {
        assert_eq!(row["status"], "did-not-finish");
        assert_eq!(row["error"], "did not finish in 2 s: the worker was killed");
        let time = |name: &str| row[name].parse::<f64>().unwrap();
        assert!((2.0..10.0).contains(&(time("ended_s") - time("started_s"))));
    }
    let others = rows.iter().filter(|row| row["status"] == "ok");
    assert_eq!(others.count(), rows.len() - 2, "the run went on");
}
