//! `environment.json`: what the figures of each run depend on, beside the CSV and by the run's id.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, Permissions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::binary::Binary;
use crate::allocator::AllocatorFacts;
use crate::sys::build::Build;
use crate::sys::machine::Machine;

const FILE_NAME: &str = "environment.json";

/// One run.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct RunEnvironment {
    matrix: String,
    seed: u64,
    /// UTC, when the run began.
    started: String,
    machine: Machine,
    /// By label.
    binaries: BTreeMap<String, BinaryEnvironment>,
    /// A hash of the plan, the settings and the builds: only a run of the same can be gone on with.
    #[serde(default)]
    plan: String,
}

#[derive(Debug, Serialize, Deserialize)]
struct BinaryEnvironment {
    allocator: AllocatorFacts,
    build: Build,
}

impl RunEnvironment {
    pub(super) fn new(
        matrix: &str,
        seed: u64,
        started: String,
        binaries: &[Binary],
        plan: String,
    ) -> Self {
        let facts = |binary: &Binary| {
            let environment = binary.environment.clone();
            let facts = BinaryEnvironment {
                allocator: environment.allocator,
                build: environment.build,
            };
            (binary.label.clone(), facts)
        };
        Self {
            matrix: matrix.to_owned(),
            seed,
            started,
            machine: Machine::now(),
            binaries: binaries.iter().map(facts).collect(),
            plan,
        }
    }

    /// What the folder's `environment.json` says of the run `run_id`: its plan's hash and its seed; `None` where it
    /// says nothing.
    ///
    /// # Errors
    ///
    /// The file cannot be read.
    pub(super) fn plan_and_seed(run_id: &str, folder: &Path) -> Result<Option<(String, u64)>> {
        let (_, mut runs) = read(folder)?;
        let known = runs.remove(run_id).and_then(|run| {
            let plan = run.get("plan")?.as_str()?.to_owned();
            Some((plan, run.get("seed")?.as_u64()?))
        });
        Ok(known)
    }

    /// Adds the run to the folder's `environment.json`, which is replaced as a whole.
    ///
    /// # Errors
    ///
    /// The file is there and is not such a file, or cannot be written.
    pub(super) fn add(self, run_id: &str, folder: &Path) -> Result<()> {
        // Until this returns no other run reads what it is about to replace.
        let lock = File::open(folder).and_then(|folder| folder.lock().map(|()| folder));
        let _lock = lock.with_context(|| format!("cannot lock {}", folder.display()))?;
        let (path, mut runs) = read(folder)?;
        let name = path.display();
        runs.insert(run_id.to_owned(), serde_json::to_value(self)?);
        let cannot_write = || format!("cannot write {name}");
        let mut file = tempfile::Builder::new()
            .permissions(Permissions::from_mode(0o644))
            .tempfile_in(folder)
            .with_context(cannot_write)?;
        serde_json::to_writer_pretty(&mut file, &runs).with_context(cannot_write)?;
        file.write_all(b"\n").with_context(cannot_write)?;
        file.persist(&path).with_context(cannot_write)?;
        Ok(())
    }
}

/// The machines of those of `runs` that the folder's `environment.json` tells of; none where there is no such file.
///
/// # Errors
///
/// The file cannot be read, or what it says of a run is not what this program writes.
pub(crate) fn machines(folder: &Path, runs: &BTreeSet<&str>) -> Result<BTreeMap<String, Machine>> {
    let (path, recorded) = read(folder)?;
    let mut machines = BTreeMap::new();
    for (run, mut environment) in recorded {
        if runs.contains(run.as_str()) {
            let machine = environment.get_mut("machine").map(Value::take);
            let machine = serde_json::from_value(machine.unwrap_or_default())
                .with_context(|| format!("the machine of run {run} in {}", path.display()))?;
            machines.insert(run, machine);
        }
    }
    Ok(machines)
}

/// The file's path, and its runs by their ids.
fn read(folder: &Path) -> Result<(PathBuf, BTreeMap<String, Value>)> {
    let path = folder.join(FILE_NAME);
    let runs = match std::fs::read(&path) {
        Ok(bytes) => serde_json::from_slice(&bytes)
            .with_context(|| format!("{} is damaged: move it away", path.display()))?,
        Err(error) if error.kind() == ErrorKind::NotFound => BTreeMap::new(),
        Err(error) => {
            return Err(error).with_context(|| format!("cannot read {}", path.display()));
        }
    };
    Ok((path, runs))
}
