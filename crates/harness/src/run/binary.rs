//! A binary that is measured: this one, or one that `--with NAME=BINARY` names.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use alloquet_report::format::listed;
use anyhow::{Context, Result, bail, ensure};

use crate::allocator::recorded_environment;
use crate::cmd::env::Environment;
use crate::output::remark;

/// Variables that a worker keeps: where libraries and temporary files are.
const ALLOWED_VARIABLES: [&str; 2] = ["LD_LIBRARY_PATH", "TMPDIR"];

/// A binary and what it said of itself.
#[derive(Clone, Debug)]
pub(crate) struct Binary {
    /// Its name in the tables.
    pub(crate) label: String,
    /// Where it is.
    pub(crate) path: PathBuf,
    /// Its allocator and build, read back from it.
    pub(crate) environment: Environment,
}

impl Binary {
    /// This binary, then each that `with` names as `NAME=BINARY`.
    ///
    /// # Errors
    ///
    /// One cannot be started or is not this program, or two have the same name.
    pub(crate) fn all(with: &[String]) -> Result<Vec<Self>> {
        let this = std::env::current_exe().context("cannot find this program's own file")?;
        let mut binaries = vec![Self::ask(None, &this)?];
        for text in with {
            let (label, path) = text
                .split_once('=')
                .filter(|(label, path)| !label.is_empty() && !path.is_empty())
                .with_context(|| format!("--with takes NAME=BINARY and was given '{text}'"))?;
            binaries.push(Self::ask(Some(label), Path::new(path))?);
        }
        for (i, binary) in binaries.iter().enumerate() {
            ensure!(
                !binaries[..i]
                    .iter()
                    .any(|other| other.label == binary.label),
                "two binaries are named '{}': give another name with --with NAME=BINARY",
                binary.label
            );
        }
        Ok(binaries)
    }

    fn ask(label: Option<&str>, path: &Path) -> Result<Self> {
        let name = path.display();
        let output = Command::new(path)
            .args(["env", "--format", "json"])
            .env_clear()
            .envs(worker_environment())
            .stdin(Stdio::null())
            .output()
            .with_context(|| format!("cannot start {name}"))?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            bail!(
                "{name} is not this program: `env --format json` failed ({}) {}",
                output.status,
                said.trim()
            );
        }
        let environment: Environment = serde_json::from_slice(&output.stdout).with_context(|| {
            format!("{name} is not this program, or of another version: build all binaries from one revision")
        })?;
        Ok(Self {
            label: label.unwrap_or(&environment.allocator.name).to_owned(),
            path: path.to_owned(),
            environment,
        })
    }
}

/// What a worker's environment is made of, besides its allocator's settings: nothing but what is allowed. The
/// allocators' own variables are not passed on: settings are asked for.
pub(crate) fn worker_environment() -> impl Iterator<Item = (OsString, OsString)> {
    std::env::vars_os().filter(|(name, _)| {
        name.to_str()
            .is_some_and(|name| ALLOWED_VARIABLES.contains(&name))
    })
}

/// Says which variables of allocators are in this environment: workers are started without them.
pub(crate) fn note_unused_variables() {
    let names: Vec<String> = recorded_environment().into_keys().collect();
    if !names.is_empty() {
        remark(format_args!(
            "note: {} of this environment {} not passed on: name settings with --set",
            listed(names.clone(), usize::MAX),
            if names.len() == 1 { "is" } else { "are" }
        ));
    }
}
