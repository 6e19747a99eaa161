//! The command `env`.

use predicates::str::contains;
use serde_json::Value;

use crate::support::alloquet;

fn json() -> Value {
    let output = alloquet()
        .args(["env", "--format", "json"])
        .assert()
        .success();
    serde_json::from_slice(&output.get_output().stdout).unwrap()
}

#[test]
fn the_allocator_and_its_version_are_shown() {
    let facts = json();
    let (name, version) = (&facts["allocator"]["name"], &facts["allocator"]["version"]);
    let text = alloquet().arg("env").assert().success();
    text.stdout(contains(name.as_str().unwrap()))
        .stdout(contains(version.as_str().unwrap()));
}

#[test]
fn facts_of_build_and_machine_are_recorded() {
    let facts = json();
    for (part, name) in [
        ("build", "profile"),
        ("build", "rustc"),
        ("build", "target"),
        ("machine", "kernel"),
        ("machine", "libc"),
    ] {
        assert!(
            !facts[part][name].as_str().unwrap().is_empty(),
            "{part} {name}"
        );
    }
    assert!(facts["machine"]["memory_bytes"].as_u64().unwrap() > 0);
}

#[test]
fn the_hosts_name_is_not_recorded() {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    let name = name.trim();
    // Some names are words that stand there anyway.
    if name.len() > 8 {
        assert!(!json().to_string().contains(name));
    }
}
