//! The command `read`: a user's own file, every strategy.

use std::process::ExitCode;

use alloquet_core::ReadStrategy;
use alloquet_core::strategy::READ_PRESETS;
use alloquet_report::sample::Workload;
use anyhow::Result;

use super::keys::keys;
use super::session::session;
use super::show::show;
use crate::cli::ReadArgs;
use crate::output::remark;
use crate::plan::{Input, Plan, Repetitions, Settings, Work, check_strategies};
use crate::run::Folders;

/// Runs the command.
///
/// # Errors
///
/// The file, its keys, a strategy or a binary is not what it must be, or the results cannot be written.
pub(crate) fn run(args: &ReadArgs) -> Result<ExitCode> {
    let strategies: Vec<String> = if args.strategy.is_empty() {
        READ_PRESETS.iter().map(|&name| name.to_owned()).collect()
    } else {
        args.strategy.clone()
    };
    check_strategies(Workload::Read, &strategies)?;
    let control = ReadStrategy::Upstream.to_string();
    if !strategies.contains(&control) {
        remark(format_args!(
            "note: without the strategy {control} nothing but the strategies themselves verifies what was read, and \
             there are no ratios to {control}"
        ));
    }
    let defaults = Repetitions::default();
    let mut plan = Plan {
        matrix: "read".to_owned(),
        repetitions: Repetitions {
            rss: defaults.rss,
            heap: defaults.heap,
        },
        settings: Settings::Defaults,
        works: vec![Work::new(
            Workload::Read,
            Input::File(args.file.clone()),
            args.batch_rows.get(),
            strategies,
        )],
    };
    args.measuring.apply(&mut plan)?;
    let keys = keys(args.key_file.as_deref())?;
    let results = args.results.clone();
    let outcome = session(plan, &args.measuring, Folders::none(), results, keys)?.run()?;
    show(&outcome, args.format)
}
