//! The answers of all blocks in one last table: what is left on the screen after a long run.

use super::Format;
use super::grid::{self, Align, Column, Rows};
use super::panel::{NONE, sureness};
use super::text::{Cost, block_title, costs, situation};
use crate::answer::{Against, Answer};
use crate::cell::{Lane, Setup};
use crate::format;
use crate::metric::Metric;
use crate::stats::Ratio;
use crate::summary::BlockSummary;
use std::collections::BTreeSet;

/// The table with its title; empty where there are fewer than two answers to put together, or max
/// RSS is not shown.
pub(super) fn render(
    blocks: &[BlockSummary],
    format: Format,
    metrics: &BTreeSet<Metric>,
) -> String {
    let answers: Vec<(&BlockSummary, &Answer)> = blocks
        .iter()
        .filter_map(|block| Some((block, block.answer.as_ref()?)))
        .collect();
    if answers.len() < 2 || !metrics.contains(&Metric::MaxRss) {
        return String::new();
    }
    let of_all = |heading: &str, field: &dyn Fn(&Answer) -> String| Column {
        heading: heading.to_owned(),
        fields: answers.iter().map(|(_, answer)| field(answer)).collect(),
        align: Align::Right,
    };
    let compared = |heading: &str, field: &dyn Fn(&Against) -> Option<String>| {
        let field = |answer: &Answer| answer.against.as_ref().and_then(field);
        of_all(heading, &|answer| {
            field(answer).unwrap_or_else(|| NONE.to_owned())
        })
    };

    let name = |column: Column| Column {
        align: Align::Left,
        ..column
    };

    // One setup for all need not be repeated.
    let setups: BTreeSet<&Setup> = answers
        .iter()
        .flat_map(|(block, _)| &block.setups)
        .collect();
    let lowest = |answer: &Answer| match setups.len() {
        1 => answer.lowest.strategy.to_string(),
        _ => answer.lowest.to_string(),
    };

    let mut columns = vec![
        name(of_all("lowest", &lowest)),
        of_all("max RSS MiB", &|answer| {
            format::mib_number(answer.max_rss_bytes)
        }),
    ];
    let costs: Vec<(&str, Cost)> = costs(metrics).collect();
    let mut title = "Lowest max RSS of each".to_owned();
    if !costs.is_empty() {
        title.push_str(", and what it costs");
    }
    let against = answers
        .iter()
        .filter_map(|(_, answer)| answer.against.as_ref());
    let references: BTreeSet<&Lane> = against.map(|against| &against.reference).collect();
    if let (Some(reference), 1) = (references.first(), references.len()) {
        // One for all: it needs no column.
        title.push_str(&format!(" against {reference}"));
    } else if !references.is_empty() {
        let reference = |against: &Against| Some(against.reference.to_string());
        columns.push(name(compared("against", &reference)));
    }
    if !references.is_empty() {
        let mib = |against: &Against| Some(format::mib_number(against.max_rss_bytes));
        columns.push(compared("against MiB", &mib));
        columns.push(compared("RSS ÷", &|against| {
            Some(format::ratio(against.max_rss_ratio))
        }));
        for (name, ratio) in &costs {
            columns.push(compared(&format!("{name} ÷"), &|against| {
                ratio(against).map(with_sureness)
            }));
        }
    }
    let rows = Rows {
        heading: "dataset".to_owned(),
        names: names(answers.iter().map(|(block, _)| *block).collect()),
        groups: Vec::new(),
    };
    if format == Format::Markdown {
        return format!("\n### {title}\n\n{}", grid::markdown(&rows, &columns));
    }
    format!("\n{title}\n{}", grid::terminal(&rows, &columns))
}

/// The blocks by as little as tells them apart.
fn names(blocks: Vec<&BlockSummary>) -> Vec<String> {
    let short = |block: &BlockSummary| {
        let work = &block.block.work;
        let situation =
            situation(&block.block).map_or_else(String::new, |name| format!(" ({name})"));
        format!("{} {}{situation}", work.workload, work.dataset)
    };
    let long = |block: &BlockSummary| block_title(&block.block);
    let longest = |block: &BlockSummary| {
        let batch = format::count(block.block.batch_rows);
        format!("{}, batch {batch}", block_title(&block.block))
    };
    let forms: [&dyn Fn(&BlockSummary) -> String; 3] = [&short, &long, &longest];
    let mut names = Vec::new();
    for form in forms {
        names = blocks.iter().map(|block| form(block)).collect();
        if names.iter().collect::<BTreeSet<_>>().len() == blocks.len() {
            break;
        }
    }
    names
}

fn with_sureness(ratio: &Ratio) -> String {
    format::ratio(ratio.median) + &sureness(ratio)
}
