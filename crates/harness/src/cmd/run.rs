//! The command `run`: measures a matrix, appends to its CSV and prints its table.

use std::process::ExitCode;

use anyhow::{Result, ensure};

use super::session::session;
use super::show::show;
use crate::cli::RunArgs;
use crate::output::{print, remark};
use crate::plan::{Input, Matrix, Plan, order};
use crate::run::{Binary, Folders, Session, Setup};
use crate::sys;

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
    for what in plan.leave_out(sys::CAN_EXPLAIN, sys::HAS_HUGE_PAGES) {
        remark(format_args!(
            "note: the matrix asks for {what}: this system has none, so they are left out"
        ));
    }
    select(&mut plan, args)?;
    args.measuring.apply(&mut plan)?;
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
    if args.dry_run {
        let binaries = Binary::all(&args.measuring.with)?;
        return dry_run(&plan, &binaries, args.measuring.seed);
    }
    let mut outcome = Session {
        resume: args.resume,
        ..session(
            plan,
            &args.measuring,
            folders,
            Some(args.results.clone()),
            None,
        )?
    }
    .run()?;
    outcome.can_resume = true;
    show(&outcome, args.format)
}

/// Prints the samples of a run in their order, as a CSV.
fn dry_run(plan: &Plan, binaries: &[Binary], seed: Option<u64>) -> Result<ExitCode> {
    let setups = Setup::all(binaries, &plan.settings)?;
    let seed = seed.unwrap_or(0);
    let mut text = format!(
        "# seed {seed}\nposition,repetition,kind,workload,dataset,strategy,label,settings\n"
    );
    let rounds = 0..plan.rounds();
    let steps = rounds.flat_map(|repetition| order(plan, setups.len(), seed, repetition));
    for (position, step) in steps.enumerate() {
        let work = &plan.works[step.work];
        let setup = &setups[step.setup];
        text.push_str(&format!(
            "{position},{},{},{},{},\"{}\",{},\"{}\"\n",
            step.repetition,
            step.kind,
            work.workload,
            work.input.name(),
            work.strategies[step.strategy],
            setup.binary.label,
            setup.settings
        ));
    }
    print(text)?;
    Ok(ExitCode::SUCCESS)
}

/// Narrows the plan to what the arguments name.
fn select(plan: &mut Plan, args: &RunArgs) -> Result<()> {
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
