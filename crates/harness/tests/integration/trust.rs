//! What a sceptic asks of a run: does the parent show in its samples, were they taken in the planned order, and is anything
//! lost where it is killed?

use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use predicates::prelude::PredicateBooleanExt;
use predicates::str::contains;
use serde_json::Value;

use crate::project::{self, Project, Row, SAMPLES, number};
use crate::support::{File, alloquet, run};

const BINARY: &str = env!("CARGO_BIN_EXE_alloquet");

/// Lowest max RSS of a few samples, in bytes.
fn least_max_rss(job: &Value) -> u64 {
    let samples = (0..5).map(|_| run(job)["outcome"]["measures"]["max_rss_bytes"].as_u64());
    samples.map(Option::unwrap).min().unwrap()
}

/// Lowest max RSS of each strategy in a few reads by a whole run, in bytes, and whether its own figure and that of `wait4`
/// were ever far apart.
fn least_of_a_run(file: &File) -> Vec<(String, u64)> {
    let path = file.path.to_str().unwrap();
    let mut command = alloquet();
    command.args(["read", path, "--reps", "5", "--format", "csv"]);
    command.args(["--strategy", "pooled", "--strategy", "upstream"]);
    let output = command.assert().success();
    let text = String::from_utf8(output.get_output().stdout.clone()).unwrap();
    let mut least: BTreeMap<String, u64> = BTreeMap::new();
    for row in project::rows(&text)
        .iter()
        .filter(|row| row["kind"] == "rss")
    {
        assert!(!row["flags"].contains("ru_maxrss"), "{}", row["flags"]);
        let least = least.entry(row["strategy"].clone()).or_insert(u64::MAX);
        *least = number(row, "max_rss_bytes").min(*least);
    }
    least.into_iter().collect()
}

#[test]
fn what_the_parent_holds_does_not_show() {
    let file = File::plain();
    let job = file.job("read", "rss", "pooled");
    let (alone, run_alone) = (least_max_rss(&job), least_of_a_run(&file));
    // A worker of a parent that holds so much, and a run whose own parent does.
    let held = std::hint::black_box(vec![1_u8; 1 << 30]);
    let (beside, run_beside) = (least_max_rss(&job), least_of_a_run(&file));
    drop(held);
    // Shown with --nocapture.
    eprintln!("max RSS alone: {alone}, {run_alone:?}; beside 1 GiB: {beside}, {run_beside:?}");
    assert!(alone.abs_diff(beside) <= 1 << 20, "{alone} and {beside}");
    assert_eq!(run_alone.len(), 2);
    for (alone, beside) in run_alone.iter().zip(&run_beside) {
        assert_eq!(alone.0, beside.0);
        assert!(
            alone.1.abs_diff(beside.1) <= 1 << 20,
            "{alone:?} and {beside:?}"
        );
    }
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
    let arguments = ["run", "test", "--seed", "11"];
    let plan = planned(&project, &arguments);
    assert_eq!(plan, planned(&project, &arguments));
    project.alloquet(&arguments).assert().success();
    let rows = rows(&project);
    assert_eq!(rows.iter().map(as_planned).collect::<Vec<_>>(), plan);

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

/// The plan that a seed gives, a line a sample: position, repetition, kind, workload, dataset, strategy.
fn planned(project: &Project, arguments: &[&str]) -> Vec<String> {
    let output = project
        .alloquet(arguments)
        .arg("--dry-run")
        .assert()
        .success();
    let plan = String::from_utf8(output.get_output().stdout.clone()).unwrap();
    let line = |line: &str| {
        let fields: Vec<&str> = line.split(',').collect();
        fields[..5].join(",") + "," + fields[5].trim_matches('"')
    };
    plan.lines().skip(2).map(line).collect()
}

/// The same of a row.
fn as_planned(row: &Row) -> String {
    let names = [
        "position",
        "repetition",
        "kind",
        "workload",
        "dataset",
        "strategy",
    ];
    names.map(|name| row[name].as_str()).join(",")
}

/// The workers that a process has started and that still run.
fn workers(parent: u32) -> Vec<u32> {
    let processes = std::fs::read_dir("/proc").unwrap();
    let ids = processes.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    ids.filter(|id| matches!(state(*id), Some((_, of)) if of == parent))
        .collect()
}

/// A process's state, such as `R`, and its parent; `None` where there is no such process.
fn state(id: u32) -> Option<(String, u32)> {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    // The name before it may hold anything, a parenthesis too.
    let mut fields = stat[stat.rfind(')')? + 1..].split_whitespace();
    Some((fields.next()?.to_owned(), fields.next()?.parse().ok()?))
}

/// Waits until a process has ended, whether or not somebody asked for its exit code.
fn wait_until_gone(id: u32) {
    let began = Instant::now();
    while state(id).is_some_and(|(state, _)| state != "Z" && state != "X") {
        assert!(
            began.elapsed() < Duration::from_secs(5),
            "worker {id} outlives its parent"
        );
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// The CSV's whole rows as they stand in the file, which may end in the middle of one.
fn text_now(project: &Project) -> String {
    let text = std::fs::read_to_string(project.path("results/local/test.csv")).unwrap_or_default();
    let whole = text.rfind('\n').map_or(0, |end| end + 1);
    text[..whole].to_owned()
}

#[test]
fn a_run_that_is_killed_at_any_time_loses_nothing_and_is_gone_on_with() {
    let project = Project::new();
    // What must be generated is there before anything is killed.
    for dataset in ["wide", "plain"] {
        project.generate(dataset);
    }
    let kinds = ["--explain", "--cycles", "3", "--timeline", "1"];
    let planned_as =
        |more: &[&'static str]| [&["run", "test", "--seed", "5"][..], &kinds, more].concat();
    let arguments = planned_as(&["--reps", "40"]);
    let plan = planned(&project, &arguments);
    assert_eq!(plan.len(), SAMPLES + 5 * (40 - 2) + 5 * 3);
    let hasher = RandomState::new();
    let (mut kills, mut at_work) = (0, 0);
    for attempt in 0..8 {
        let mut child = Command::new(BINARY)
            .current_dir(project.path(""))
            .env_clear()
            .args(&arguments)
            .args((attempt > 0).then_some("--resume"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let wait = Duration::from_micros(50_000 + hasher.hash_one(attempt) % 150_000);
        let began = Instant::now();
        // Before its first sample there is nothing to go on with. Every other time it waits for a worker, too.
        let go_on = |child: &mut Child| {
            child.try_wait().unwrap().is_none()
                && (began.elapsed() < wait
                    || text_now(&project).lines().count() < 2
                    || (attempt % 2 == 0 && workers(child.id()).is_empty()))
        };
        while go_on(&mut child) {
            std::thread::sleep(Duration::from_millis(1));
        }
        kills += usize::from(child.try_wait().unwrap().is_none());
        let (seen, running) = (text_now(&project), workers(child.id()));
        child.kill().unwrap();
        child.wait().unwrap();
        at_work += usize::from(!running.is_empty());
        running.into_iter().for_each(wait_until_gone);
        assert!(
            text_now(&project).starts_with(&seen),
            "killed after {wait:?}"
        );
    }
    eprintln!("killed {kills} times, {at_work} times while a worker ran");
    assert!(
        kills > 2 && at_work > 0,
        "the run was over before it was killed"
    );
    let seen = text_now(&project);
    for changed in [&["--reps", "3"][..], &["--reps", "40", "--timeout", "60"]] {
        project
            .alloquet(&planned_as(changed))
            .arg("--resume")
            .assert()
            .failure()
            .stderr(contains("was not of the same plan").and(contains("run without --resume")));
    }
    project
        .alloquet(&arguments)
        .arg("--resume")
        .assert()
        .success();
    assert!(text_now(&project).starts_with(&seen));
    let rows = rows(&project);
    let taken: Vec<String> = rows.iter().map(as_planned).collect();
    assert_eq!(taken, plan);
    assert!(
        rows.iter()
            .all(|row| row["status"] == "ok" && row["run_id"] == rows[0]["run_id"])
    );
    companions_are_whole(&project, &rows);
}

/// Each explained sample has its parts, and each of a series its points. A sample that was killed between these and its row has
/// them twice: the later ones count.
fn companions_are_whole(project: &Project, rows: &[Row]) {
    let of = |name: &str, row: &Row, first: &str| {
        let all = project.rows(&format!("results/local/test.{name}.csv"));
        let own = |other: &Row| other["position"] == row["position"];
        let own: Vec<Row> = all.into_iter().filter(own).collect();
        let begins = own
            .iter()
            .rposition(|other| other[first] == own[0][first])
            .unwrap();
        own[begins..].to_vec()
    };
    for row in rows {
        match row["kind"].as_str() {
            "explain" => {
                let parts = of("parts", row, "part");
                let sum: i64 = parts
                    .iter()
                    .map(|part| part["bytes"].parse::<i64>().unwrap())
                    .sum();
                assert!(sum > 0 && parts.len() > 10, "{parts:?}");
            }
            "cycles" | "timeline" => {
                let points = of("series", row, "point");
                let numbers = points.iter().map(|point| number(point, "point") as usize);
                assert!(numbers.eq(0..points.len()), "{points:?}");
                let last = &points[points.len() - 1];
                let phase = if row["kind"] == "cycles" {
                    "cycle"
                } else {
                    "dropped"
                };
                assert_eq!(last["phase"], phase);
                assert!(row["kind"] == "timeline" || points.len() == 4);
            }
            _ => {}
        }
    }
    // And they are read without a complaint.
    let csv = project.path("results/local/test.csv").display().to_string();
    project
        .alloquet(&["explain", &csv, "--all", "--format", "json"])
        .assert()
        .success()
        .stderr(contains("not whole").not());
}
