//! The command `run`: order, rows, what it appends to and how it fails.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use predicates::prelude::PredicateBooleanExt;
use predicates::str::contains;

use crate::project::{Project, Row, SAMPLES, contents, number};
use crate::support::KEY;

const CSV: &str = "results/local/test.csv";

fn text(row: &Row, column: &str) -> String {
    row[column].clone()
}

#[test]
fn a_matrix_is_measured_appended_and_shown() {
    let project = Project::new();
    let shown = project.alloquet(&["run", "test"]).assert().success();
    shown
        .stdout(
            contains("read wide")
                .and(contains("read plain"))
                .and(contains("write plain")),
        )
        .stderr(contains(CSV));
    let rows = project.rows(CSV);
    assert_eq!(rows.len(), SAMPLES);
    assert!(rows.iter().all(|row| row["status"] == "ok"), "{rows:?}");

    // Once more: nothing is generated anew, nothing overwritten.
    let before = std::fs::read_to_string(project.path(CSV)).unwrap();
    project.alloquet(&["run", "test"]).assert().success();
    let after = std::fs::read_to_string(project.path(CSV)).unwrap();
    assert!(after.starts_with(&before));
    let runs: BTreeSet<String> = project
        .rows(CSV)
        .iter()
        .map(|r| text(r, "run_id"))
        .collect();
    assert_eq!(runs.len(), 2);

    // And what describes both runs stands beside it.
    let environment = std::fs::read(project.path("results/local/environment.json")).unwrap();
    let environment: serde_json::Value = serde_json::from_slice(&environment).unwrap();
    for run in runs {
        assert_eq!(environment[&run]["matrix"], "test");
        assert!(environment[&run]["machine"]["cpus"].as_u64() > Some(0));
    }
}

#[test]
fn samples_are_shuffled_inside_repetitions_as_the_seed_says() {
    let project = Project::new();
    let order = |seed: &str, results: &str| {
        project
            .alloquet(&["run", "test", "--seed", seed, "--results", results])
            .assert()
            .success();
        let rows = project.rows(&format!("{results}/test.csv"));
        let positions: Vec<u64> = rows.iter().map(|row| number(row, "position")).collect();
        assert_eq!(positions, (0..SAMPLES as u64).collect::<Vec<_>>());
        let repetitions: Vec<u64> = rows.iter().map(|row| number(row, "repetition")).collect();
        assert!(repetitions.is_sorted());
        assert!(rows.iter().all(|row| row["seed"] == seed));
        let cell = |row: &Row| {
            ["repetition", "kind", "workload", "dataset", "strategy"].map(|c| text(row, c))
        };
        rows.iter().map(cell).collect::<Vec<_>>()
    };
    let (first, again, other) = (order("7", "a"), order("7", "b"), order("8", "c"));
    assert_eq!(first, again);
    assert_ne!(first, other);
    let set = |order: &[[String; 5]]| order.iter().cloned().collect::<BTreeSet<_>>();
    assert_eq!(set(&first), set(&other));
}

#[test]
fn several_binaries_are_measured_in_one_run() {
    let project = Project::new();
    let other = format!(
        "other={}",
        assert_cmd::cargo::cargo_bin("alloquet").display()
    );
    project
        .alloquet(&[
            "run",
            "test",
            "--with",
            &other,
            "--dataset",
            "plain",
            "--strategy",
            "upstream",
        ])
        .assert()
        .success()
        .stdout(contains("other"));
    let rows = project.rows(CSV);
    let labels: BTreeSet<String> = rows.iter().map(|row| text(row, "label")).collect();
    assert_eq!(labels.len(), 2);
    assert_eq!(rows.len(), 2 * 2 * 4);
    // Interleaved: neither binary has a repetition to itself.
    let first_half: BTreeSet<String> = rows[..8].iter().map(|row| text(row, "label")).collect();
    assert_eq!(first_half.len(), 2);

    project
        .alloquet(&["run", "test", "--with", &other, "--with", &other])
        .assert()
        .failure()
        .stderr(contains("two binaries are named 'other'"));
    project
        .alloquet(&["run", "test", "--with", "true=/bin/true"])
        .assert()
        .failure()
        .stderr(contains("/bin/true is not this program"));
    project
        .alloquet(&["run", "test", "--with", "nonsense"])
        .assert()
        .failure()
        .stderr(contains("NAME=BINARY"));
}

/// The bars of the strategies, on a small file: they hold at every size.
#[test]
fn peaks_are_what_the_strategies_promise() {
    let project = Project::new();
    let matrix = std::fs::read_to_string(project.path("bench-data/matrices/test.toml")).unwrap();
    let strategies = r#"["retained", "temp-decrypt", "temp-both", "pooled", "upstream"]"#;
    project.write(
        "bench-data/matrices/test.toml",
        &matrix.replace(r#"["pooled", "upstream"]"#, strategies),
    );
    project
        .alloquet(&["run", "test", "--dataset", "wide"])
        .assert()
        .success();
    let rows = project.rows(CSV);
    let heap = |strategy: &str| {
        let of_cell = |row: &&Row| row["kind"] == "heap" && row["strategy"] == strategy;
        let samples: Vec<&Row> = rows.iter().filter(of_cell).collect();
        let figures = [
            "heap_peak_bytes",
            "allocated_bytes",
            "allocations",
            "reallocations",
            "checksum",
        ];
        for column in figures {
            assert_eq!(
                samples[0][column], samples[1][column],
                "{column} of {strategy}"
            );
        }
        samples[0].clone()
    };
    let peak = |strategy: &str| number(&heap(strategy), "heap_peak_bytes") as f64;
    let pooled = heap("pooled");

    let stored = number(&pooled, "largest_stored_pages_bytes") as f64;
    let kept = peak("retained") - peak("temp-decrypt");
    // At its peak `temp-decrypt` holds one decrypted page too, that of the column it is at.
    let columns = 12.0;
    let expected = stored * (columns - 1.0) / columns;
    assert!(
        (kept / expected - 1.0).abs() < 0.02,
        "{kept} against {expected}"
    );

    let batch = columns * 4.0 * 4096.0;
    let pages = number(&pooled, "largest_pages_bytes") as f64;
    let own = peak("pooled") - number(&pooled, "heap_before_bytes") as f64;
    // One page a column and one batch. Besides them one stored page, and the decoders of a column: both are as
    // good as nothing beside 453 pages of 1 MiB, and are not beside 12 of 64 KiB.
    let most = 1.03 * (pages + batch) + stored / columns + 4096.0 * columns;
    assert!(own < most, "{own} against {most}");

    // The ledger knows where it went.
    assert_eq!(number(&heap("retained"), "ledger_page_bytes") as f64, pages);
    let checksums: BTreeSet<String> = rows.iter().map(|row| text(row, "checksum")).collect();
    assert_eq!(
        checksums.len(),
        2,
        "one checksum, and none in timed samples"
    );
}

#[test]
fn a_sample_that_fails_is_a_row() {
    let project = Project::new();
    // Damaged in a page: as long as before, with the same footer. A dataset's own file would be made anew.
    let mut bytes = std::fs::read(project.generate("plain")).unwrap();
    for byte in &mut bytes[5_000..6_000] {
        *byte ^= 0xff;
    }
    std::fs::write(project.path("mine.parquet"), bytes).unwrap();
    project
        .alloquet(&["read", "mine.parquet", "--results", "mine"])
        .assert()
        .code(1)
        .stdout(contains("failed"))
        .stderr(contains("failed").and(contains("panicked").not()));
    let rows = project.rows("mine/read.csv");
    // Six strategies, five samples each.
    assert_eq!(rows.len(), 6 * 5, "no sample is lost");
    for row in rows {
        assert_eq!(row["status"], "failed");
        assert!(row["error"].contains("mine.parquet"), "{}", row["error"]);
        assert_eq!(row["heap_peak_bytes"], "");
    }
}

/// One line on standard error, a non-zero exit, and nothing measured.
fn refused(project: &Project, arguments: &[&str], said: &[&str]) {
    let output = project.alloquet(arguments).assert().failure();
    let stderr = String::from_utf8(output.get_output().stderr.clone()).unwrap();
    let errors: Vec<&str> = stderr
        .lines()
        .filter(|line| line.starts_with("error:"))
        .collect();
    assert_eq!(errors.len(), 1, "{stderr}");
    for text in said {
        assert!(errors[0].contains(text), "{stderr}");
    }
    assert!(!stderr.contains("panicked"), "{stderr}");
}

#[test]
fn what_does_not_exist_is_named() {
    let project = Project::new();
    refused(&project, &["run", "tset"], &["'tset'", "test"]);
    refused(&project, &["run", "test", "--dataset", "wid"], &["'wid'"]);
    refused(
        &project,
        &["run", "test", "--strategy", "poled"],
        &["'poled'"],
    );
    refused(
        &project,
        &["run", "test", "--bench-data", "nowhere"],
        &["nowhere", "--bench-data"],
    );
    refused(
        &project,
        &["generate", "nothing"],
        &["'nothing'", "plain, wide"],
    );
    std::fs::remove_file(project.path("bench-data/datasets/wide.toml")).unwrap();
    refused(&project, &["run", "test"], &["'wide'", "wide.toml"]);
    assert!(!project.path("results").exists(), "nothing was measured");
}

#[test]
fn a_wrong_matrix_is_refused_with_its_place() {
    let project = Project::new();
    let good = std::fs::read_to_string(project.path("bench-data/matrices/test.toml")).unwrap();
    for (from, to, said) in [
        (r#""upstream"]"#, r#""upsteam"]"#, "'upsteam'"),
        ("batch_rows", "batch_row", "batch_row"),
        ("rss = 2", "rss = -2", "test.toml"),
        (r#""wide""#, r#""../wide""#, "wide"),
    ] {
        project.write("bench-data/matrices/test.toml", &good.replacen(from, to, 1));
        refused(&project, &["run", "test"], &[said]);
    }
}

#[test]
fn results_that_cannot_be_written_stop_the_run_before_it_begins() {
    let project = Project::new();
    project.write("taken", "a file where the folder should be");
    refused(&project, &["run", "test", "--results", "taken"], &["taken"]);
    refused(
        &project,
        &["run", "test", "--results", "/proc/results"],
        &["/proc/results"],
    );
    std::fs::create_dir_all(project.path("results/local")).unwrap();
    project.write(CSV, "some,other,file\n1,2,3\n");
    refused(&project, &["run", "test"], &[CSV]);
    assert_eq!(
        std::fs::read_to_string(project.path(CSV)).unwrap(),
        "some,other,file\n1,2,3\n"
    );
    assert!(
        !project.path("bench-data/generated").exists(),
        "nothing was generated"
    );
}

#[test]
fn ctrl_c_keeps_what_was_measured() {
    let project = Project::new();
    project.alloquet(&["generate"]).assert().success();
    let mut child = std::process::Command::new(assert_cmd::cargo::cargo_bin("alloquet"))
        .args(["run", "test", "--reps", "500"])
        .current_dir(project.path(""))
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let csv = project.path(CSV);
    let started = Instant::now();
    // Some rows are there: it measures.
    while std::fs::read_to_string(&csv).map_or(0, |text| text.lines().count()) < 6 {
        assert!(
            started.elapsed() < Duration::from_secs(60),
            "it does not measure"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
    let interrupted = std::process::Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status()
        .unwrap();
    assert!(interrupted.success());
    let status = child.wait().unwrap();
    let output = child.wait_with_output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(status.code(), Some(130), "{stderr}");
    assert!(stderr.contains("interrupted"), "{stderr}");
    assert!(String::from_utf8(output.stdout).unwrap().contains("read "));
    let rows = project.rows(CSV);
    assert!(rows.len() >= 5 && rows.iter().all(|row| row["status"] == "ok"));
}

#[test]
fn no_key_is_in_anything_that_is_written() {
    let project = Project::new();
    let output = project
        .alloquet(&["run", "test", "--dataset", "wide"])
        .assert()
        .success();
    let mut everything = contents(&project.path("results"));
    everything.extend(contents(&project.path("bench-data/generated")));
    everything.push(("stdout".into(), output.get_output().stdout.clone()));
    everything.push(("stderr".into(), output.get_output().stderr.clone()));
    for (path, bytes) in everything {
        let found = bytes
            .windows(KEY.len())
            .any(|window| window == KEY.as_bytes());
        assert!(!found, "{}", path.display());
    }
}

#[test]
fn a_users_key_comes_from_a_variable_that_workers_do_not_see() {
    let project = Project::new();
    let wide = std::fs::read_to_string(project.path("bench-data/datasets/wide.toml")).unwrap();
    let key = format!("\"text:{KEY}\"");
    project.write(
        "bench-data/datasets/plain.toml",
        &wide.replace(&key, "\"env:ALLOQUET_TEST_KEY\""),
    );
    let run = || project.alloquet(&["run", "test", "--dataset", "plain"]);
    run()
        .assert()
        .failure()
        .stderr(contains("ALLOQUET_TEST_KEY"));
    run()
        .env("ALLOQUET_TEST_KEY", format!("text:{KEY}"))
        .assert()
        .success();
    let rows = project.rows(CSV);
    // Written encrypted too: reading it back needs the key.
    assert!(rows.iter().any(|row| row["workload"] == "write"));
}

#[test]
fn without_a_command_it_runs_quick() {
    let project = Project::new();
    refused(&project, &[], &["'quick'", "test"]);
    std::fs::copy(
        project.path("bench-data/matrices/test.toml"),
        project.path("bench-data/matrices/quick.toml"),
    )
    .unwrap();
    project
        .alloquet(&[])
        .assert()
        .success()
        .stderr(contains("results/local/quick.csv"));
    project
        .alloquet(&["table", "results/local/quick.csv"])
        .assert()
        .success()
        .stdout(contains("read wide"));
    project
        .alloquet(&["table", "results/local/quick.csv", "--run", "never"])
        .assert()
        .failure()
        .stderr(contains("'never'"));
    project.alloquet(&["list"]).assert().success().stdout(
        contains("quick")
            .and(contains("strings and integers"))
            .and(contains("pooled")),
    );
}
