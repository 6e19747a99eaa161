//! The command `explain`: where resident memory is when the heap is largest, of recorded samples or of a user's file.

use std::process::ExitCode;

use alloquet_report::cell::Cell;
use alloquet_report::companions::Companions;
use alloquet_report::explain::{Explained, render, render_pair};
use alloquet_report::sample::{Kind, Sample, Status, Workload, read_samples};
use alloquet_report::table::Format;
use anyhow::{Result, bail, ensure};

use super::cells::{chosen, name, names};
use super::keys::keys;
use super::options::options;
use super::session::session;
use crate::cli::{ExplainArgs, ReportFormat};
use crate::interruption::INTERRUPTED;
use crate::measure::Writing;
use crate::output::{print, remark};
use crate::plan::{Input, Plan, Repetitions, Settings, Work, check_strategies};
use crate::run::{Binary, Folders, Setup};

/// As many cells as stand beside one another.
const MOST: usize = 2;

/// Timed samples of a user's file: what an explained sample is held against.
const REPETITIONS: usize = 3;

/// Runs the command.
///
/// # Errors
///
/// The input is neither samples with explanations nor a file that can be measured, or more cells are left than stand
/// beside one another.
pub(crate) fn run(args: &ExplainArgs) -> Result<ExitCode> {
    let is_csv = args
        .input
        .extension()
        .is_some_and(|ending| ending.eq_ignore_ascii_case("csv"));
    if is_csv {
        ensure!(
            !args.write && args.results.is_none() && args.key_file.is_none(),
            "{} is a CSV of samples: --write, --results and --key-file are for measuring a Parquet file",
            args.input.display()
        );
        let read = read_samples(&args.input)?;
        for warning in &read.warnings {
            remark(format_args!("note: {warning}"));
        }
        let (companions, warnings) = Companions::beside(&args.input, &read.rows)?;
        for warning in &warnings {
            remark(format_args!("note: {warning}"));
        }
        let run = args
            .cells
            .run
            .clone()
            .or_else(|| read.rows.last().map(|sample| sample.run_id.clone()));
        let samples: Vec<Sample> = read
            .rows
            .into_iter()
            .filter(|sample| Some(&sample.run_id) == run.as_ref())
            .collect();
        ensure!(
            !samples.is_empty(),
            "{} has no run {}",
            args.input.display(),
            run.unwrap_or_default()
        );
        show(
            args,
            &samples,
            &companions,
            &args.input.display().to_string(),
        )?;
        return Ok(ExitCode::SUCCESS);
    }
    measure(args)
}

/// Measures a user's file and explains what was measured.
fn measure(args: &ExplainArgs) -> Result<ExitCode> {
    let workload = if args.write {
        Workload::Write
    } else {
        Workload::Read
    };
    let strategies = if args.cells.strategy.is_empty() {
        vec!["upstream".to_owned()]
    } else {
        args.cells.strategy.clone()
    };
    check_strategies(workload, &strategies)?;
    let mut plan = Plan {
        matrix: "explain".to_owned(),
        repetitions: Repetitions {
            rss: REPETITIONS,
            heap: 1,
        },
        settings: Settings::Defaults,
        works: vec![Work {
            writing: Writing {
                situation: args.situation.into(),
                ..Writing::default()
            },
            ..Work::new(
                workload,
                Input::File(args.input.clone()),
                args.batch_rows.get(),
                strategies,
            )
        }],
    };
    args.measuring.apply(&mut plan)?;
    for work in &mut plan.works {
        work.watch.explain = true;
    }
    plan.check_build()?;
    ensure!(
        plan.works.iter().all(|work| work.memory_limit.is_none()),
        "a sample that is explained is not held to a limit: leave --memory-limit out, or ask `alloquet fit`"
    );
    let setups = Setup::all(&Binary::all(&args.measuring.with)?, &plan.settings)?;
    let cells: usize = plan.works.iter().map(|work| work.strategies.len()).sum();
    let cells = cells * setups.len();
    ensure!(
        args.all || cells <= MOST,
        "these are {cells} cells, and {MOST} stand side by side: name fewer strategies and settings, or take --all"
    );
    let keys = keys(args.key_file.as_deref())?;
    let results = args.results.clone();
    let outcome = session(plan, &args.measuring, Folders::none(), results, keys)?.run()?;
    if outcome.interrupted {
        remark("interrupted");
        return Ok(ExitCode::from(INTERRUPTED));
    }
    if let Some(error) = outcome.not_written {
        bail!(error);
    }
    show(
        args,
        &outcome.samples,
        &outcome.companions,
        &args.input.display().to_string(),
    )?;
    Ok(ExitCode::SUCCESS)
}

/// Prints the explanations of the cells that the arguments choose.
fn show(
    args: &ExplainArgs,
    samples: &[Sample],
    companions: &Companions,
    place: &str,
) -> Result<()> {
    let explained: Vec<&Sample> = samples
        .iter()
        .filter(|sample| sample.kind == Kind::Explain)
        .collect();
    ensure!(
        !explained.is_empty(),
        "{place} has no explained samples: measure with --explain, or with explain = true in the matrix"
    );
    let mut chosen = chosen(&args.cells, &explained);
    // Samples lie in the order in which they were taken, which is shuffled.
    let asked = &args.cells.strategy;
    chosen.sort_by_key(|sample| {
        let place = asked.iter().position(|asked| *asked == sample.strategy);
        (place, Cell::of(sample))
    });
    if let Some(failed) = chosen.iter().find(|sample| sample.status != Status::Ok) {
        bail!("{}: {}", name(failed), failed.error);
    }
    ensure!(
        !chosen.is_empty(),
        "{place} explains no such cell: it has {}",
        names(&explained)
    );
    let options = options(Format::Terminal);
    let format = match args.format {
        ReportFormat::Table => Format::Terminal,
        ReportFormat::Markdown => Format::Markdown,
        ReportFormat::Json => Format::Json,
    };
    let told = |sample| Explained {
        sample,
        parts: companions.parts(sample),
        samples,
    };
    for sample in &chosen {
        ensure!(
            !companions.parts(sample).is_empty(),
            "the parts of {} are not beside {place}: keep the .parts.csv with the CSV",
            name(sample)
        );
    }
    for sample in chosen.iter().filter(|sample| !sample.flags.is_empty()) {
        remark(format_args!("note: {}: {}", name(sample), sample.flags));
    }
    let text = match chosen[..] {
        [one] => render(&told(one), format, options.width),
        [one, two] => render_pair(&told(one), &told(two), format, options.width),
        _ if args.all => {
            let texts: Vec<String> = chosen
                .iter()
                .map(|sample| render(&told(sample), format, options.width))
                .collect();
            texts.join("\n")
        }
        _ => bail!(
            "{place} explains {} cells: choose one, or {MOST} to stand side by side, with --dataset, --strategy, \
             --allocator, --settings or --properties, or take --all; there are {}",
            chosen.len(),
            names(&chosen)
        ),
    };
    print(text)
}
