//! The command `write`: the contents of a user's own file, or a dataset, written anew by every strategy.

use std::process::ExitCode;

use alloquet_core::WriteStrategy;
use alloquet_report::sample::Workload;
use anyhow::{Result, ensure};

use super::keys::keys;
use super::session::session;
use super::show::show;
use crate::cli::WriteArgs;
use crate::measure::{Writing, write_strategies};
use crate::output::remark;
use crate::plan::{Input, Plan, Repetitions, Settings, Work, check_scale, check_strategies};
use crate::run::Folders;

/// Runs the command.
///
/// # Errors
///
/// The file, its keys, the dataset, a strategy or a binary is not what it must be, or the results cannot be written.
pub(crate) fn run(args: &WriteArgs) -> Result<ExitCode> {
    let folders = Folders {
        root: args.data.bench_data.clone(),
    };
    let defaults = Repetitions::default();
    let mut plan = Plan {
        matrix: "write".to_owned(),
        repetitions: Repetitions {
            rss: defaults.rss,
            heap: defaults.heap,
        },
        settings: Settings::Defaults,
        works: works(args, input(args, &folders)?)?,
    };
    args.measuring.apply(&mut plan)?;
    plan.check_build()?;
    let keys = match args.dataset {
        Some(_) => None,
        None => keys(args.key_file.as_deref())?,
    };
    let results = args.results.clone();
    let outcome = session(plan, &args.measuring, folders, results, keys)?.run()?;
    show(&outcome, args.format)
}

fn input(args: &WriteArgs, folders: &Folders) -> Result<Input> {
    if let Some(file) = &args.file {
        return Ok(Input::File(file.clone()));
    }
    let name = args.dataset.clone().unwrap_or_default();
    let known = crate::plan::names(&folders.datasets());
    ensure!(
        known.contains(&name),
        "there is no dataset '{name}' in {}; there are {}",
        folders.datasets().display(),
        known.join(", ")
    );
    for (what, factor) in [("rows", args.scale_rows), ("columns", args.scale_columns)] {
        check_scale(&format!("--scale-{what}"), factor)?;
    }
    Ok(Input::Dataset {
        name,
        scale_rows: args.scale_rows,
        scale_columns: args.scale_columns,
    })
}

fn works(args: &WriteArgs, input: Input) -> Result<Vec<Work>> {
    let strategies: Vec<String> = if args.strategy.is_empty() {
        let names = write_strategies().into_iter();
        names.map(str::to_owned).collect()
    } else {
        args.strategy.clone()
    };
    check_strategies(Workload::Write, &strategies)?;
    let control = WriteStrategy::Upstream.to_string();
    if !strategies.contains(&control) {
        remark(format_args!(
            "note: without the strategy {control} there are no ratios to {control}"
        ));
    }
    let mut works: Vec<Work> = Vec::new();
    for &situation in &args.situation {
        let work = Work {
            writing: Writing {
                situation: situation.into(),
                writers: args.writers,
                changes: args.changes(),
            },
            ..Work::new(
                Workload::Write,
                input.clone(),
                args.batch_rows.get(),
                strategies.clone(),
            )
        };
        ensure!(
            !works.contains(&work),
            "situation '{}' is given twice",
            work.writing.situation
        );
        works.push(work);
    }
    Ok(works)
}
