//! The command `read`: a user's own file.

use predicates::prelude::PredicateBooleanExt;
use predicates::str::contains;

use crate::project::{Project, contents, rows};
use crate::support::KEY;

const FAST: [&str; 4] = ["--reps", "1", "--batch-rows", "4096"];

fn read(project: &Project, file: &str, more: &[&str]) -> assert_cmd::Command {
    let mut command = project.alloquet(&["read", file]);
    command.args(FAST).args(more);
    command
}

fn generated(project: &Project, name: &str) -> String {
    project.generate(name).display().to_string()
}

#[test]
fn every_strategy_is_measured_and_the_answer_given() {
    let project = Project::new();
    let file = generated(&project, "plain");
    read(&project, &file, &[])
        .assert()
        .success()
        .stdout(
            contains("retained")
                .and(contains("pooled"))
                .and(contains("upstream (control)"))
                .and(contains("Lowest max RSS")),
        )
        .stderr(contains("note: without").not());
    assert!(!project.path("results").exists(), "it only prints");

    let csv = read(
        &project,
        &file,
        &["--format", "csv", "--strategy", "temp-both,codec=shared"],
    );
    let output = { csv }
        .assert()
        .success()
        .stderr(contains("note: without the strategy upstream"));
    let found = rows(&String::from_utf8(output.get_output().stdout.clone()).unwrap());
    assert_eq!(found.len(), 3);
    assert!(
        found
            .iter()
            .all(|row| row["status"] == "ok" && row["matrix"] == "read")
    );

    let output = read(&project, &file, &["--format", "json"])
        .assert()
        .success();
    let json: serde_json::Value = serde_json::from_slice(&output.get_output().stdout).unwrap();
    assert!(json["runs"].is_array(), "{json}");

    read(&project, &file, &["--results", "mine"])
        .assert()
        .success();
    assert_eq!(project.rows("mine/read.csv").len(), 18);
}

#[test]
fn keys_come_from_a_file_or_a_variable() {
    let project = Project::new();
    let file = generated(&project, "wide");
    let keys = format!("footer_key = \"text:{KEY}\"\n");
    let key_file = project.write("keys.toml", &keys).display().to_string();
    read(&project, &file, &["--key-file", &key_file])
        .assert()
        .success();
    read(&project, &file, &[])
        .env("ALLOQUET_KEYS", &keys)
        .assert()
        .success();
    read(&project, &file, &[])
        .assert()
        .failure()
        .stdout(contains("encrypted"));
}

#[test]
fn a_key_that_does_not_fit_is_said_and_never_shown() {
    let project = Project::new();
    let file = generated(&project, "wide");
    for (keys, said) in [
        ("footer_key = \"text:another-secret!!\"\n", "footer key"),
        (
            "footer_key = \"text:too-short-secret-that-is-odd\"\n",
            "key",
        ),
        ("footer_key = \"another-secret!!\"\n", "text:"),
        ("fotter_key = \"text:another-secret!!\"\n", "fotter_key"),
        ("another-secret!!", "keys.toml"),
    ] {
        let key_file = project.write("keys.toml", keys).display().to_string();
        let output = read(
            &project,
            &file,
            &["--key-file", &key_file, "--results", "results"],
        )
        .assert()
        .failure();
        let output = output.get_output();
        let text = [&output.stdout[..], &output.stderr[..]].concat();
        let text = String::from_utf8(text).unwrap();
        assert!(text.contains(said), "{keys}: {text}");
        assert!(!text.contains("secret"), "{text}");
        assert!(!text.contains("panicked"), "{text}");
    }
    for (path, bytes) in contents(&project.path("results")) {
        assert!(
            !String::from_utf8_lossy(&bytes).contains("secret"),
            "{}",
            path.display()
        );
    }
}

#[test]
fn a_file_that_is_not_whole_or_not_parquet_is_named() {
    let project = Project::new();
    let bytes = std::fs::read(project.generate("plain")).unwrap();
    let truncated = project.path("truncated.parquet");
    std::fs::write(&truncated, &bytes[..bytes.len() / 2]).unwrap();
    project.write("text.parquet", "this is no Parquet");
    project.write("empty.parquet", "");
    for name in ["truncated.parquet", "text.parquet", "empty.parquet"] {
        read(&project, name, &[])
            .assert()
            .failure()
            .stdout(contains(name).and(contains("failed")))
            .stderr(contains("panicked").not());
    }
    for name in ["missing.parquet", "bench-data"] {
        read(&project, name, &[])
            .assert()
            .failure()
            .stdout("")
            .stderr(contains(format!("cannot read {name}")));
    }
}

#[test]
fn options_that_make_no_sense_are_refused() {
    let project = Project::new();
    let file = generated(&project, "plain");
    for (arguments, said) in [
        (&["--strategy", "poled"][..], "'poled'"),
        (
            &["--strategy", "pooled,page=heap"],
            "temporary, retained, pooled",
        ),
        (&["--strategy", "pooled", "--strategy", "pooled"], "twice"),
        (&["--key-file", "nowhere.toml"], "nowhere.toml"),
        (&["--reps", "0"], "--reps"),
    ] {
        project
            .alloquet(&["read", &file])
            .args(arguments)
            .assert()
            .failure()
            .stdout("")
            .stderr(contains(said).and(contains("panicked").not()));
    }
    project
        .alloquet(&["read", &file, "--batch-rows", "0"])
        .assert()
        .failure();
}
