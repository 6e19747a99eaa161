//! The command `table`: the table of samples that were recorded before, or of some of them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use alloquet_report::companions::Companions;
use alloquet_report::format::listed;
use alloquet_report::sample::{Sample, Workload, read_samples, to_csv};
use alloquet_report::table::{Format, Options, render};
use anyhow::{Result, ensure};

use super::options::options;
use crate::cli::TableArgs;
use crate::output::{print, remark};
use crate::run::machines;

/// Runs the command.
///
/// # Errors
///
/// The file is no such CSV, or does not have what is to be shown.
pub(crate) fn run(args: &TableArgs) -> Result<()> {
    let format = args.format.table();
    ensure!(
        args.metric.is_empty() || matches!(format, Some(Format::Terminal | Format::Markdown)),
        "--metric chooses what a table shows: leave it out, for csv and json have every figure"
    );
    let read = read_samples(&args.csv)?;
    for warning in &read.warnings {
        remark(format_args!("note: {warning}"));
    }
    let samples = select(read.rows, args)?;
    let Some(format) = format else {
        print(to_csv(&samples)?)?;
        return Ok(());
    };
    let (companions, warnings) = Companions::beside(&args.csv, &samples)?;
    for warning in &warnings {
        remark(format_args!("note: {warning}"));
    }
    let mut options = Options {
        companions,
        machines: machine_lines(&args.csv, &samples),
        ..options(format)
    };
    if !args.metric.is_empty() {
        options.metrics = args.metric.iter().copied().collect();
    }
    print(render(&samples, format, &options))?;
    Ok(())
}

/// Those of the file's samples that the arguments ask for.
fn select(mut samples: Vec<Sample>, args: &TableArgs) -> Result<Vec<Sample>> {
    let mut place = args.csv.display().to_string();
    // Runs of different times are not compared: the last one is shown unless another is asked for.
    let run = args
        .run
        .clone()
        .or_else(|| samples.last().map(|sample| sample.run_id.clone()));
    if let Some(run) = run.filter(|_| !args.all) {
        samples.retain(|sample| sample.run_id == run);
        ensure!(
            !samples.is_empty(),
            "{place} has no run '{run}': --all shows every run"
        );
        place = format!("run {run} of {place}");
    }
    if let Some(workload) = args.workload.map(Workload::from) {
        let there = names(&samples, |sample| sample.workload.to_string());
        samples.retain(|sample| sample.workload == workload);
        ensure!(
            !samples.is_empty(),
            "{place} has no workload '{workload}': it has {there}"
        );
        place = format!("the workload '{workload}' in {place}");
    }
    let there = names(&samples, |sample| sample.dataset.clone());
    for name in &args.dataset {
        ensure!(
            samples.iter().any(|sample| sample.dataset == *name),
            "{place} has no dataset '{name}': it has {there}"
        );
    }
    samples.retain(|sample| args.dataset.is_empty() || args.dataset.contains(&sample.dataset));
    Ok(samples)
}

/// What samples go by, for an error that says what there is.
fn names(samples: &[Sample], name: fn(&Sample) -> String) -> String {
    let names: BTreeSet<String> = samples.iter().map(name).collect();
    if names.is_empty() {
        return "no samples".to_owned();
    }
    listed(names, usize::MAX)
}

/// A line on the machine of each run, as far as `environment.json` beside the CSV has it: samples may be of another
/// machine than this one. The figures stand without it, so what is wrong with it is only noted.
fn machine_lines(csv: &Path, samples: &[Sample]) -> BTreeMap<String, String> {
    let folder = csv.parent().unwrap_or(Path::new(""));
    let runs = samples
        .iter()
        .map(|sample| sample.run_id.as_str())
        .collect();
    let machines = machines(folder, &runs).unwrap_or_else(|error| {
        remark(format_args!("note: no machine is shown: {error:#}"));
        BTreeMap::new()
    });
    let lines = machines.into_iter();
    lines
        .map(|(run, machine)| (run, machine.summary()))
        .collect()
}
