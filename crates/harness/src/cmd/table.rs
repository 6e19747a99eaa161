//! The command `table`: the table of samples that were recorded before.

use alloquet_report::sample::{read_samples, to_csv};
use alloquet_report::table::render;
use anyhow::{Result, ensure};

use super::show::options;
use crate::cli::TableArgs;

/// Runs the command.
///
/// # Errors
///
/// The file is no such CSV, or does not have the run.
pub(crate) fn run(args: &TableArgs) -> Result<()> {
    let read = read_samples(&args.csv)?;
    for warning in &read.warnings {
        eprintln!("note: {warning}");
    }
    let mut samples = read.rows;
    // Runs of different times are not compared: the last one is shown unless another is asked for.
    let run = args
        .run
        .clone()
        .or_else(|| samples.last().map(|sample| sample.run_id.clone()));
    if let Some(run) = run.filter(|_| !args.all) {
        samples.retain(|sample| sample.run_id == run);
        ensure!(
            !samples.is_empty(),
            "{} has no run '{run}': --all shows every run",
            args.csv.display()
        );
    }
    match args.format.table() {
        Some(format) => {
            print!("{}", render(&samples, format, &options(format)));
        }
        None => print!("{}", to_csv(&samples)?),
    }
    Ok(())
}
