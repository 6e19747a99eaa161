//! A run as the arguments that all measuring commands share ask for it.

use std::path::PathBuf;

use alloquet_datagen::keys::KeySet;
use anyhow::Result;

use crate::cli::MeasuringArgs;
use crate::plan::Plan;
use crate::run::{Binary, Folders, Session, note_unused_variables};

/// The run of `plan`; its samples are appended to a CSV in `results`, if that is given.
///
/// # Errors
///
/// A binary cannot be started or is not this program.
pub(super) fn session(
    plan: Plan,
    args: &MeasuringArgs,
    folders: Folders,
    results: Option<PathBuf>,
    keys: Option<KeySet>,
) -> Result<Session> {
    let binaries = Binary::all(&args.with)?;
    note_unused_variables();
    Ok(Session {
        plan,
        binaries,
        seed: args.seed,
        folders,
        results,
        resume: false,
        keys,
        limit: args.limit(),
        budget: args.budget(),
        cpus: args.pin.clone(),
    })
}
