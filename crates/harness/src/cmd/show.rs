//! Shows what a run measured, and says by the exit code whether all of it is to be believed.

use std::process::ExitCode;

use alloquet_report::format::plural;
use alloquet_report::table::{Format, Options, render};
use alloquet_report::verify::verify;
use anyhow::Result;

use super::options::options;
use super::timeline::below;
use crate::cli::OutputFormat;
use crate::interruption::INTERRUPTED;
use crate::output::{print, remark};
use crate::run::Outcome;
use crate::sys::machine::Machine;

/// Prints the samples to standard output and remarks to standard error.
///
/// # Errors
///
/// A sample cannot be written as CSV.
pub(crate) fn show(outcome: &Outcome, format: OutputFormat) -> Result<ExitCode> {
    match format.table() {
        Some(format) => {
            let machine = Machine::now().summary();
            let runs = outcome.samples.iter().map(|sample| &sample.run_id);
            let options = Options {
                companions: outcome.companions.clone(),
                machines: runs.map(|run| (run.clone(), machine.clone())).collect(),
                ..options(format)
            };
            print(render(&outcome.samples, format, &options))?;
            if format == Format::Terminal {
                print(below(&outcome.samples, &outcome.companions))?;
            }
        }
        None => print(alloquet_report::sample::to_csv(&outcome.samples)?)?,
    }
    if let Some(csv) = &outcome.csv {
        remark(format_args!("samples: {}", csv.display()));
    }
    if outcome.interrupted {
        remark(format_args!(
            "interrupted: {} of {} measured{}",
            outcome.samples.len(),
            plural(outcome.planned as u64, "sample"),
            if outcome.can_resume {
                "; the same command with --resume goes on"
            } else {
                ""
            }
        ));
        return Ok(ExitCode::from(INTERRUPTED));
    }
    if let Some(error) = &outcome.not_written {
        remark(format_args!(
            "error: {error}; the run ended after {}",
            plural(outcome.samples.len() as u64, "sample")
        ));
        return Ok(ExitCode::FAILURE);
    }
    let failures = outcome.failures();
    let disagreements = verify(&outcome.samples)
        .iter()
        .filter(|finding| finding.subject.fails())
        .count();
    if failures + disagreements > 0 {
        remark(format_args!(
            "error: {} failed, {} found between samples; the table says which",
            plural(failures as u64, "sample"),
            plural(disagreements as u64, "disagreement"),
        ));
        return Ok(ExitCode::FAILURE);
    }
    Ok(ExitCode::SUCCESS)
}
