//! The answers of all blocks in one last table: what is left on the screen after a long run.

use super::Format;
use super::grid::{self, Align, Column, Rows};
use super::panel::{NONE, sureness};
use super::text::block_title;
use crate::answer::{Against, Answer};
use crate::cell::Lane;
use crate::format;
use crate::stats::Ratio;
use crate::summary::BlockSummary;
use std::collections::BTreeSet;

/// The table with its title; empty where there are fewer than two answers to put together.
pub(super) fn render(blocks: &[BlockSummary], format: Format) -> String {
    let answers: Vec<(&BlockSummary, &Answer)> = blocks
        .iter()
        .filter_map(|block| Some((block, block.answer.as_ref()?)))
        .collect();
    if answers.len() < 2 {
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

    let mut columns = vec![
        name(of_all("lowest", &|answer| answer.lowest.to_string())),
        of_all("max RSS MiB", &|answer| {
            format::mib_number(answer.max_rss_bytes)
        }),
    ];
    let mut title = "Lowest max RSS of each, and what it costs".to_owned();
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
        columns.push(compared("CPU ÷", &|against| {
            against.cpu.as_ref().map(with_sureness)
        }));
        columns.push(compared("wall ÷", &|against| {
            against.wall.as_ref().map(with_sureness)
        }));
    }
    let batches: BTreeSet<u64> = answers
        .iter()
        .map(|(block, _)| block.block.batch_rows)
        .collect();
    let title_of = |block: &BlockSummary| match batches.len() {
        1 => block_title(block),
        _ => format!(
            "{}, batch {}",
            block_title(block),
            format::count(block.block.batch_rows)
        ),
    };
    let rows = Rows {
        heading: "dataset".to_owned(),
        names: answers.iter().map(|(block, _)| title_of(block)).collect(),
        groups: Vec::new(),
    };
    if format == Format::Markdown {
        return format!("\n### {title}\n\n{}", grid::markdown(&rows, &columns));
    }
    format!("\n{title}\n{}", grid::terminal(&rows, &columns))
}

fn with_sureness(ratio: &Ratio) -> String {
    format::ratio(ratio.median) + &sureness(ratio)
}
