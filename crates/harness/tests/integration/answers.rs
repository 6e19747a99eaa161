//! The commands that answer a question at once: `fit` and `explain`, and what `--set`, `--budget` and the kinds of sample
//! do to `read`.

use predicates::prelude::PredicateBooleanExt;
use predicates::str::{contains, is_empty};

use crate::project::{Project, rows};

fn generated(project: &Project, name: &str) -> String {
    project.generate(name).display().to_string()
}

#[test]
fn what_fits_is_said_with_the_knob_that_gets_there() {
    let project = Project::new();
    let file = generated(&project, "plain");
    let fit = |within: &str, more: &[&str]| {
        let mut command = project.alloquet(&["fit", &file, "--within", within]);
        let few = [
            "--reps",
            "1",
            "--strategy",
            "pooled",
            "--batch-rows",
            "4096",
            "--set",
            "thp=off",
        ];
        command.args(few).args(more).assert()
    };
    fit("1GiB", &[]).success().stdout(
        contains("It fits as it is").and(contains("system (thp=off)").or(contains("thp=off"))),
    );
    // No process of this program is so small.
    fit("2MiB", &[])
        .failure()
        .stdout(contains("Nothing measured fits. The lowest is "));
    fit("1GiB", &["--write"])
        .success()
        .stdout(contains("It fits as it is"));
    fit("2 elephants", &[])
        .failure()
        .stderr(contains("'2 elephants' is no size: write it as 256MiB"));
}

#[test]
fn a_file_that_cannot_be_read_does_not_fit_for_that_reason() {
    let project = Project::new();
    let file = project.path("no.parquet");
    std::fs::write(&file, "PAR1 and nothing else").unwrap();
    let file = file.display().to_string();
    project
        .alloquet(&["fit", &file, "--within", "1GiB", "--reps", "1"])
        .assert()
        .failure()
        .stderr(contains("no.parquet").and(contains("cannot read the Parquet metadata")));
}

#[test]
fn a_file_is_explained_alone_and_side_by_side() {
    let project = Project::new();
    let file = generated(&project, "plain");
    let explain = |input: &str, more: &[&str]| {
        let mut command = project.alloquet(&["explain", input]);
        command.args(more).assert()
    };
    explain(&file, &["--reps", "1", "--results", "kept"])
        .success()
        .stdout(
            contains("live heap")
                .and(contains("stacks and the binary"))
                .and(contains("Bare max RSS")),
        );
    let two = ["--strategy", "pooled", "--strategy", "upstream"];
    explain(&file, &[&two[..], &["--reps", "1", "--write"]].concat())
        .success()
        .stdout(contains("B − A"));

    // What was kept is explained again without measuring.
    let csv = project.path("kept").join("explain.csv");
    let csv = csv.display().to_string();
    explain(&csv, &["--format", "json"])
        .success()
        .stdout(contains("\"rss_bytes\""));
    explain(&csv, &["--strategy", "pooled"])
        .failure()
        .stderr(contains("explains no such cell: it has read").and(contains("upstream on ")));
    std::fs::remove_file(project.path("kept").join("explain.parts.csv")).unwrap();
    explain(&csv, &[])
        .failure()
        .stderr(contains("keep the .parts.csv with the CSV"));
}

#[test]
fn samples_that_were_not_explained_say_how_to_explain_them() {
    let project = Project::new();
    let file = generated(&project, "plain");
    let read = [
        "read",
        &file,
        "--strategy",
        "upstream",
        "--reps",
        "1",
        "--results",
        "kept",
    ];
    project.alloquet(&read).assert().success();
    let csv = project.path("kept").join("read.csv").display().to_string();
    project
        .alloquet(&["explain", &csv])
        .assert()
        .failure()
        .stderr(contains("measure with --explain"));
}

// The presets are those of the allocator, and this one's have the names.
#[cfg(not(any(
    feature = "jemalloc",
    feature = "mimalloc",
    feature = "mimalloc-v2",
    feature = "snmalloc"
)))]
#[test]
fn settings_are_columns_and_nothing_else_reaches_a_worker() {
    let project = Project::new();
    let file = generated(&project, "plain");
    let read = |more: &[&str]| {
        let mut command =
            project.alloquet(&["read", &file, "--strategy", "upstream", "--reps", "1"]);
        command.env("MALLOC_ARENA_MAX", "3").args(more).assert()
    };
    let sets = [
        "--set",
        "default",
        "--set",
        "fixed-threshold",
        "--set",
        "glibc.malloc.hugetlb=1;thp=off",
    ];
    let output = read(&[&sets[..], &["--format", "csv"]].concat())
        .success()
        .stderr(contains(
            "MALLOC_ARENA_MAX of this environment is not passed on",
        ));
    let found = rows(&String::from_utf8(output.get_output().stdout.clone()).unwrap());
    let mut settings: Vec<&str> = found.iter().map(|row| row["settings"].as_str()).collect();
    settings.sort_unstable();
    settings.dedup();
    assert_eq!(
        settings,
        [
            "",
            "GLIBC_TUNABLES=glibc.malloc.hugetlb=1;thp=off",
            "MALLOC_MMAP_THRESHOLD_=131072"
        ]
    );
    let off = found
        .iter()
        .filter(|row| row["settings"].ends_with("thp=off"));
    assert!(off.clone().all(|row| row["thp"] == "off"));
    assert_eq!(off.count(), 3);
    assert!(found.iter().all(|row| row["status"] == "ok"));

    read(&["--set", "purge-at-once"])
        .failure()
        .stderr(contains("fixed-threshold").and(contains("purge-at-once")));
    read(&["--set", "default", "--set", "default"])
        .failure()
        .stderr(contains("twice"));
    // What the loader would cut to its limits was not taken.
    read(&["--set", "MALLOC_ARENA_MAX=many"]).failure();
}

#[test]
fn a_budget_ends_a_run_and_more_kinds_of_sample_are_told() {
    let project = Project::new();
    let file = generated(&project, "plain");
    let mut command = project.alloquet(&["read", &file, "--strategy", "upstream"]);
    command.args(["--budget", "1s", "--precision", "0.0001", "--format", "csv"]);
    let output = command
        .assert()
        .success()
        .stderr(contains("the budget is spent"));
    let found = rows(&String::from_utf8(output.get_output().stdout.clone()).unwrap());
    assert!(found.iter().filter(|row| row["kind"] == "rss").count() > 3);

    let mut command = project.alloquet(&["read", &file, "--strategy", "upstream", "--reps", "1"]);
    command.args(["--cycles", "5", "--settle", "--timeline", "1", "--explain"]);
    command.args(["--results", "kept"]);
    command.assert().success().stdout(
        contains("Where the RSS is when the heap is largest")
            .and(contains("Memory given back after the work"))
            .and(contains("The same work many times")),
    );
    // Recorded, they are told again.
    let csv = project.path("kept").join("read.csv").display().to_string();
    project
        .alloquet(&["table", &csv])
        .assert()
        .success()
        .stdout(contains("The same work many times"))
        .stderr(is_empty());
}

#[test]
fn readers_at_once_and_threads_are_cells_of_their_own() {
    let project = Project::new();
    let two = r#"
        description = "two row groups for two threads"
        seed = 3
        [file]
        row_groups = 2
        rows_per_row_group = 2_000
        page_bytes = 4_096
        compression = "zstd"
        [[columns]]
        name = "i{n}"
        count = 3
        type = "int64"
    "#;
    project.write("bench-data/datasets/two.toml", two);
    let file = generated(&project, "two");
    let mut command = project.alloquet(&["read", &file, "--strategy", "upstream", "--reps", "1"]);
    command.args([
        "--threads",
        "1",
        "--threads",
        "2",
        "--concurrent",
        "1",
        "--concurrent",
        "3",
    ]);
    let output = command.args(["--format", "csv"]).assert().success();
    let found = rows(&String::from_utf8(output.get_output().stdout.clone()).unwrap());
    let mut axes: Vec<(&str, &str)> = found
        .iter()
        .map(|row| (row["threads"].as_str(), row["concurrent"].as_str()))
        .collect();
    axes.sort_unstable();
    axes.dedup();
    assert_eq!(axes, [("1", "1"), ("1", "3"), ("2", "1"), ("2", "3")]);
    let mut checksums: Vec<&str> = found
        .iter()
        .filter(|row| row["kind"] == "heap")
        .map(|row| row["checksum"].as_str())
        .collect();
    checksums.dedup();
    assert_eq!(checksums.len(), 1);
    project
        .alloquet(&["write", &file, "--threads", "2"])
        .assert()
        .failure()
        .stderr(contains("--concurrent"));
}
