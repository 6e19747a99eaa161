//! Records how the binary is built. Nothing here can fail a build: what is not known is recorded as
//! an empty string.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    let manifest = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    let root = manifest.join("../..");

    record("PROFILE", &profile());
    record("OPT_LEVEL", &env::var("OPT_LEVEL").unwrap_or_default());
    record("TARGET", &env::var("TARGET").unwrap_or_default());
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    record("RUSTC", &output(Command::new(rustc).arg("--version")));
    record("REVISION", &revision(&root));
    // Allocators that cannot be asked.
    let lock = root.join("Cargo.lock");
    record("DHAT_VERSION", &locked_version(&lock, "dhat"));
    record("SNMALLOC_VERSION", &locked_version(&lock, "snmalloc-rs"));

    // What the revision is of: a change of these can make it another one, or a dirty one.
    watch(&root.join("Cargo.toml"));
    watch(&root.join("Cargo.lock"));
    for package in ["core", "datagen", "report", "harness"] {
        watch(&root.join("crates").join(package).join("src"));
        watch(&root.join("crates").join(package).join("Cargo.toml"));
    }
    watch(&manifest.join("build.rs"));
}

fn record(name: &str, value: &str) {
    println!("cargo::rustc-env=ALLOQUET_{name}={value}");
}

/// A path that does not exist would make each build run this script again.
fn watch(path: &Path) {
    if path.exists() {
        println!("cargo::rerun-if-changed={}", path.display());
    }
}

/// The profile's name. Cargo's `PROFILE` says only `debug` or `release`, of which a custom profile
/// inherits; the output folder `<profile>/build/...` is named after the profile itself, but for
/// `dev`, whose folder is `debug`.
fn profile() -> String {
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());
    let folders: Vec<_> = out.iter().map(|folder| folder.to_string_lossy()).collect();
    let folder = folders
        .windows(2)
        .rev()
        .find(|pair| pair[1] == "build")
        .map(|pair| pair[0].as_ref());
    match folder {
        Some("debug") => "dev".to_owned(),
        Some(profile) => profile.to_owned(),
        None => env::var("PROFILE").unwrap_or_default(),
    }
}

fn revision(root: &Path) -> String {
    let git = |arguments: &[&str]| output(Command::new("git").arg("-C").arg(root).args(arguments));
    let revision = git(&["rev-parse", "--short=12", "HEAD"]);
    if revision.is_empty() {
        return revision;
    }
    // A commit moves the branch that `HEAD` names, or `HEAD` itself, and is noted in its log.
    let branch = git(&["symbolic-ref", "--quiet", "HEAD"]);
    for name in ["HEAD", branch.as_str(), "packed-refs", "logs/HEAD"] {
        let path = git(&["rev-parse", "--git-path", name]);
        if !name.is_empty() && !path.is_empty() {
            watch(&root.join(path));
        }
    }
    let changes = git(&[
        "status",
        "--porcelain",
        "--",
        "crates",
        "Cargo.toml",
        "Cargo.lock",
    ]);
    if changes.is_empty() {
        revision
    } else {
        format!("{revision}-dirty")
    }
}

/// The version of `package` in the lock file.
fn locked_version(lock: &Path, package: &str) -> String {
    let lock = std::fs::read_to_string(lock).unwrap_or_default();
    let name = format!("name = \"{package}\"");
    let mut lines = lock.lines().skip_while(|line| *line != name).skip(1);
    let version = lines
        .next()
        .and_then(|line| line.strip_prefix("version = \"")?.strip_suffix('"'));
    version.unwrap_or_default().to_owned()
}

/// What the command prints, trimmed; empty if it cannot be run or fails.
fn output(command: &mut Command) -> String {
    match command.output() {
        Ok(output) if output.status.success() => {
            String::from_utf8_lossy(&output.stdout).trim().to_owned()
        }
        _ => String::new(),
    }
}
