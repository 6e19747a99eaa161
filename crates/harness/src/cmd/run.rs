//! The command `run`: measures a matrix, appends to its CSV and prints its table.

use std::process::ExitCode;

use anyhow::{Result, ensure};

use super::show::show;
use crate::cli::RunArgs;
use crate::plan::{Input, Matrix, Plan};
use crate::run::{Binary, Folders, Session};

/// Runs the command.
///
/// # Errors
///
/// The matrix, a dataset or a binary is not what it must be, or the results cannot be written.
pub(crate) fn run(args: &RunArgs) -> Result<ExitCode> {
    let folders = Folders {
        root: args.data.bench_data.clone(),
    };
    let matrix = Matrix::load(&folders.matrices(), &args.matrix)?;
    let mut plan = matrix.plan(&args.matrix)?;
    select(&mut plan, args)?;
    plan.check_build()?;
    for work in &plan.works {
        if let Input::Dataset { name, .. } = &work.input {
            let definition = folders.definition(name);
            ensure!(
                definition.is_file(),
                "matrix '{}' names dataset '{name}', and there is no {}: `alloquet list` shows the datasets",
                args.matrix,
                definition.display()
            );
        }
    }
    let outcome = Session {
        plan,
        binaries: Binary::all(&args.measuring.with)?,
        seed: args.measuring.seed,
        folders,
        results: Some(args.results.clone()),
        keys: None,
        limit: args.measuring.limit(),
    }
    .run()?;
    show(&outcome, args.format)
}

/// Narrows the plan to what the arguments name.
fn select(plan: &mut Plan, args: &RunArgs) -> Result<()> {
    if let Some(reps) = args.measuring.reps {
        plan.repetitions.rss = reps;
    }
    if !args.dataset.is_empty() {
        for name in &args.dataset {
            ensure!(
                plan.works.iter().any(|work| work.input.name() == *name),
                "matrix '{}' does not use dataset '{name}'",
                plan.matrix
            );
        }
        plan.works
            .retain(|work| args.dataset.contains(&work.input.name()));
    }
    if !args.strategy.is_empty() {
        for name in &args.strategy {
            ensure!(
                plan.works.iter().any(|work| work.strategies.contains(name)),
                "matrix '{}' does not use strategy '{name}'",
                plan.matrix
            );
        }
        for work in &mut plan.works {
            work.strategies
                .retain(|strategy| args.strategy.contains(strategy));
        }
        plan.works.retain(|work| !work.strategies.is_empty());
        ensure!(!plan.works.is_empty(), "nothing is left to measure");
    }
    Ok(())
}
