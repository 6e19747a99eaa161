//! The command `aa`: whether one build is called another than itself, told from the samples of one lane.

use std::collections::BTreeMap;

use alloquet_report::cell::Cell;
use alloquet_report::format::plural;
use alloquet_report::metric::Metric;
use alloquet_report::sample::{Sample, read_samples};
use alloquet_report::stats::called_real;
use anyhow::{Result, ensure};
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_pcg::Pcg64;

use crate::cli::AaArgs;
use crate::output::{print, remark};

/// Runs the command: halves the samples of each cell at random, and counts how often the halves are called different.
///
/// # Errors
///
/// The file is no such CSV, has no cell with enough samples, or more are called different than the intervals promise.
pub(crate) fn run(args: &AaArgs) -> Result<()> {
    let read = read_samples(&args.csv)?;
    for warning in &read.warnings {
        remark(format_args!("note: {warning}"));
    }
    let mut cells: BTreeMap<Cell, Vec<Sample>> = BTreeMap::new();
    for sample in read.rows {
        if Metric::Cpu.of(&sample).is_some() {
            cells.entry(Cell::of(&sample)).or_default().push(sample);
        }
    }
    // Below twelve, halves have no interval and nothing could be called real.
    cells.retain(|_, samples| samples.len() >= 12);
    ensure!(
        !cells.is_empty(),
        "{} has no cell with 12 timed samples: take more with --reps",
        args.csv.display()
    );
    let mut random = Pcg64::seed_from_u64(args.seed);
    let mut too_many = false;
    for (cell, samples) in &cells {
        let work = &cell.block.work;
        print(format_args!(
            "run {}: {} {}, {}: {}\n",
            work.run_id,
            work.workload,
            work.dataset,
            cell.lane,
            plural(samples.len() as u64, "sample")
        ))?;
        for called in called_real(samples, args.halves, |places| places.shuffle(&mut random)) {
            too_many |= called.too_many();
            print(format_args!(
                "  {}: {} of {} called real ({}, {:.1} % are expected)\n",
                called.metric.name(),
                called.real,
                plural(called.halvings as u64, "halving"),
                plural(called.pairs as u64, "pair"),
                called.expected * 100.0
            ))?;
        }
    }
    ensure!(
        !too_many,
        "more are called real than 5 % and chance account for: the intervals of tables promise too much"
    );
    Ok(())
}
