//! The command `timeline`: memory over time of recorded samples, as text or as a drawing.

use alloquet_report::companions::Companions;
use alloquet_report::sample::{Kind, Sample, Status, read_samples};
use alloquet_report::table::Format;
use alloquet_report::timeline::{render, svg};
use anyhow::{Result, ensure};

use super::cells::{chosen, name, names};
use super::options::options;
use crate::cli::{DrawingFormat, TimelineArgs};
use crate::output::{print, remark};

/// As many as are drawn below the table of a run that took them.
const MOST_BELOW: usize = 4;

/// Runs the command.
///
/// # Errors
///
/// The file is no such CSV, or has no timeline of the cells asked for.
pub(crate) fn run(args: &TimelineArgs) -> Result<()> {
    let place = args.csv.display();
    let read = read_samples(&args.csv)?;
    let (companions, warnings) = Companions::beside(&args.csv, &read.rows)?;
    for warning in read.warnings.iter().chain(&warnings) {
        remark(format_args!("note: {warning}"));
    }
    let run = args.cells.run.as_ref();
    let run = run.or_else(|| read.rows.last().map(|sample| &sample.run_id));
    let there: Vec<&Sample> = timelines(&read.rows)
        .filter(|sample| Some(&sample.run_id) == run)
        .collect();
    ensure!(
        !there.is_empty(),
        "{place} has no timelines: measure with --timeline MS, or with timeline_ms in the matrix"
    );
    let chosen = chosen(&args.cells, &there);
    ensure!(
        !chosen.is_empty(),
        "{place} has no timeline of such a cell: it has {}",
        names(&there)
    );
    for sample in &chosen {
        ensure!(
            !companions.series(sample).is_empty(),
            "the points of {} are not beside {place}: keep the .series.csv with the CSV",
            name(sample)
        );
    }
    match args.format {
        DrawingFormat::Text => print(drawn(&chosen, &companions)),
        DrawingFormat::Svg => {
            ensure!(
                chosen.len() == 1,
                "a drawing is of one cell: choose with --dataset, --strategy, --allocator, --settings or --properties; there \
                 are {}",
                names(&chosen)
            );
            print(svg(companions.series(chosen[0]), &name(chosen[0])))
        }
    }
}

/// What stands below the table of a run that took timelines; empty where it took none.
pub(super) fn below(samples: &[Sample], companions: &Companions) -> String {
    let taken: Vec<&Sample> = timelines(samples).collect();
    if taken.len() > MOST_BELOW {
        return format!(
            "{} timelines: `alloquet timeline CSV` draws them\n",
            taken.len()
        );
    }
    drawn(&taken, companions)
}

fn timelines(samples: &[Sample]) -> impl Iterator<Item = &Sample> {
    samples
        .iter()
        .filter(|sample| sample.kind == Kind::Timeline && sample.status == Status::Ok)
}

fn drawn(samples: &[&Sample], companions: &Companions) -> String {
    let width = options(Format::Terminal).width;
    let mut text = String::new();
    for sample in samples {
        text.push_str(&format!(
            "\nMemory over time: {}\n{}",
            name(sample),
            render(companions.series(sample), width)
        ));
    }
    text
}
