//! What a sceptic asks of a run: does the parent show in its samples, were they taken in the planned order, and is anything
//! lost where it is killed?

use std::collections::BTreeSet;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use predicates::str::contains;
use serde_json::Value;

use crate::project::{Project, Row, SAMPLES};
use crate::support::{File, run};

const BINARY: &str = env!("CARGO_BIN_EXE_alloquet");

/// Lowest max RSS of a few samples, in bytes.
fn least_max_rss(job: &Value) -> u64 {
    let samples = (0..5).map(|_| run(job)["outcome"]["measures"]["max_rss_bytes"].as_u64());
    samples.map(Option::unwrap).min().unwrap()
}

#[test]
fn what_the_parent_holds_does_not_show() {
    let file = File::plain();
    let job = file.job("read", "rss", "pooled");
    let alone = least_max_rss(&job);
    let held = std::hint::black_box(vec![1_u8; 1 << 30]);
    let beside = least_max_rss(&job);
    drop(held);
    assert!(alone.abs_diff(beside) <= 1 << 20, "{alone} and {beside}");
}

fn rows(project: &Project) -> Vec<Row> {
    let csv = project.path("results/local/test.csv");
    if csv.exists() {
        project.rows("results/local/test.csv")
    } else {
        Vec::new()
    }
}

#[test]
fn samples_are_taken_one_by_one_in_the_order_of_the_plan() {
    let project = Project::new();
    let dry = ["run", "test", "--seed", "11", "--dry-run"];
    let plan = project.alloquet(&dry).assert().success();
    let plan = String::from_utf8(plan.get_output().stdout.clone()).unwrap();
    let again = project.alloquet(&dry).assert().success();
    assert_eq!(plan.as_bytes(), again.get_output().stdout);
    project
        .alloquet(&["run", "test", "--seed", "11"])
        .assert()
        .success();

    let planned = plan.lines().skip(2).map(|line| {
        let fields: Vec<&str> = line.split(',').collect();
        fields[..5].join(",") + "," + fields[5].trim_matches('"')
    });
    let rows = rows(&project);
    let names = [
        "position",
        "repetition",
        "kind",
        "workload",
        "dataset",
        "strategy",
    ];
    let taken = rows
        .iter()
        .map(|row| names.map(|name| row[name].as_str()).join(","));
    assert_eq!(taken.collect::<Vec<_>>(), planned.collect::<Vec<_>>());

    let time = |row: &Row, name: &str| row[name].parse::<f64>().unwrap();
    assert!(
        rows.iter()
            .all(|row| time(row, "started_s") <= time(row, "ended_s"))
    );
    for pair in rows.windows(2) {
        assert!(
            time(&pair[0], "ended_s") <= time(&pair[1], "started_s"),
            "{pair:?}"
        );
    }
}

#[test]
fn a_run_that_is_killed_at_any_time_loses_nothing_and_is_gone_on_with() {
    let project = Project::new();
    // What must be generated is there before anything is killed.
    for dataset in ["wide", "plain"] {
        project.generate(dataset);
    }
    let arguments = ["run", "test", "--seed", "5", "--explain"];
    let whole = SAMPLES + 5;
    let mut kills = 0;
    for (attempt, wait_ms) in [150_u64, 230, 310, 170, 270].into_iter().enumerate() {
        let mut child = Command::new(BINARY)
            .current_dir(project.path(""))
            .env_clear()
            .args(arguments)
            .args((attempt > 0).then_some("--resume"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let before = rows(&project).len();
        let began = Instant::now();
        // Before its first sample there is nothing to go on with.
        while (began.elapsed() < Duration::from_millis(wait_ms) || rows_now(&project) == 0)
            && child.try_wait().unwrap().is_none()
        {
            std::thread::sleep(Duration::from_millis(5));
        }
        kills += usize::from(child.try_wait().unwrap().is_none());
        let seen = rows_now(&project);
        child.kill().unwrap();
        child.wait().unwrap();
        let after = rows_now(&project);
        assert!(after >= seen && seen >= before, "{before} {seen} {after}");
    }
    assert!(kills > 0, "the run was over before it was killed");
    project
        .alloquet(&arguments)
        .arg("--resume")
        .arg("--reps")
        .arg("3")
        .assert()
        .failure()
        .stderr(contains("run without --resume"));
    project
        .alloquet(&arguments)
        .arg("--resume")
        .assert()
        .success();
    let rows = rows(&project);
    let positions: Vec<&str> = rows.iter().map(|row| row["position"].as_str()).collect();
    let distinct: BTreeSet<&str> = positions.iter().copied().collect();
    assert_eq!((positions.len(), distinct.len()), (whole, whole));
    assert!(
        rows.iter()
            .all(|row| row["status"] == "ok" && row["run_id"] == rows[0]["run_id"])
    );
    // Each explained sample has its parts.
    let csv = project.path("results/local/test.csv").display().to_string();
    project
        .alloquet(&["explain", &csv, "--all", "--format", "json"])
        .assert()
        .success();
}

/// The whole rows of the CSV, which may end in the middle of one.
fn rows_now(project: &Project) -> usize {
    let text = std::fs::read_to_string(project.path("results/local/test.csv")).unwrap_or_default();
    text.matches('\n').count().saturating_sub(1)
}
