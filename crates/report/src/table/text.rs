//! The sentences around the tables: headings, how to read them, and the answer.

use super::Format;
use super::panel::sureness;
use crate::answer::{Against, Answer};
use crate::cell::Block;
use crate::format;
use crate::metric::Metric;
use crate::sample::Situation;
use crate::stats::Ratio;
use crate::summary::{BlockSummary, CellSummary, Run};
use std::collections::BTreeSet;
use std::fmt::Display;

/// What held a sample to its limit where nothing did: it was compared afterwards.
const BY_RSS: &str = "rss";

/// What was measured, where and how often.
pub(super) fn run_heading(run: &Run) -> Vec<String> {
    let mut facts = vec![format!("run {}", run.run_id)];
    let mut fact = |name: &str, values: String| {
        if !values.is_empty() {
            facts.push(format!("{name} {values}"));
        }
    };
    fact("matrix", joined(&run.matrices));
    fact("seed", joined(&run.seeds));
    fact("profile", joined(&run.profiles));
    fact("THP", joined(&run.thp));
    fact("pinned to CPU", joined(&run.cpus));
    facts.insert(2.min(facts.len()), repetitions(run));
    let allocators: Vec<String> = run
        .allocators
        .iter()
        .map(|found| format!("{} {}", found.name, joined(&found.versions)))
        .map(|text| text.trim().to_owned())
        .collect();
    let mut lines = vec![
        facts.join(" · "),
        format!("allocator: {}", allocators.join(", ")),
    ];
    let machine = run.machine.as_ref();
    lines.extend(machine.map(|machine| format!("machine: {machine}")));
    lines
}

fn repetitions(run: &Run) -> String {
    let rss = format::plural(run.rss_repetitions as u64, "repetition");
    format!("{rss}, heap {}", format::count(run.heap_repetitions as u64))
}

/// How to read the tables, as far as this run's need it.
pub(super) fn legend(run: &Run, format: Format, metrics: &BTreeSet<Metric>) -> Vec<String> {
    let lowest = match format {
        Format::Markdown => "bold",
        Format::Terminal | Format::Json => "*",
    };
    let mut lines = vec![format!(
        "Figures are the minimum of all repetitions (+ how far the maximum lies above it); \
         {lowest} is the lowest of its metric."
    )];
    let writings = run.blocks.iter();
    let situations: BTreeSet<Situation> = writings
        .filter_map(|block| Some(block.block.writing.as_ref()?.situation))
        .collect();
    lines.extend(
        situations
            .iter()
            .map(|situation| told(*situation).to_owned()),
    );
    if run
        .blocks
        .iter()
        .any(|block| block.shown(metrics).iter().any(|metric| metric.is_share()))
    {
        lines.push(
            "heap/column and heap/writer are the peak heap above what was there before the work."
                .to_owned(),
        );
    }
    let cells = || run.blocks.iter().flat_map(|block| &block.cells);
    if cells().any(|cell| !cell.is_sound()) {
        lines.push("A lane of which any sample failed is not held the lowest.".to_owned());
    }
    if cells().any(|cell| !cell.limits.is_empty()) {
        lines.push(
            "> is what a lane needs more than: it did not fit, or did not finish, and is not held the lowest."
                .to_owned(),
        );
    }
    let ratios: Vec<&Ratio> = run
        .blocks
        .iter()
        .flat_map(|block| ratios(block, metrics))
        .collect();
    if ratios.iter().any(|ratio| ratio.interval.is_some()) {
        lines.push(
            "÷ is the median of ratios paired by repetition, [95 % confidence interval]."
                .to_owned(),
        );
    } else if !ratios.is_empty() {
        lines.push(
            "÷ is the median of ratios paired by repetition; an interval needs 6 pairs.".to_owned(),
        );
    }
    lines
}

/// What a situation means for the figures.
fn told(situation: Situation) -> &'static str {
    match situation {
        Situation::Resident => {
            "resident: the table is in memory before the work and counts in peak heap, not in what the work adds."
        }
        Situation::Arriving => {
            "arriving: batches are copied from a table in memory, written and dropped; what a writer holds of them \
             counts as added."
        }
    }
}

/// The paired ratios that are shown of a block, in its table and in its answer.
fn ratios<'a>(block: &'a BlockSummary, metrics: &BTreeSet<Metric>) -> Vec<&'a Ratio> {
    let mut ratios = Vec::new();
    if metrics.contains(&Metric::Cpu) {
        let cells = block.cells.iter();
        let both = cells.flat_map(|cell| [&cell.cpu_to_upstream, &cell.cpu_to_system]);
        ratios.extend(both.flatten());
    }
    let answer = block.answer.as_ref();
    let answer = answer.filter(|_| metrics.contains(&Metric::MaxRss));
    if let Some(against) = answer.and_then(|answer| answer.against.as_ref()) {
        ratios.extend(costs(metrics).filter_map(|(_, ratio)| ratio(against)));
    }
    ratios
}

/// Workload and dataset, of a write how, how it was scaled, threads where there are several, and the limit if any.
pub(crate) fn block_title(block: &Block) -> String {
    let work = &block.work;
    let mut ways: Vec<String> = situation(block).into_iter().collect();
    let scales = [
        ("rows", work.scale_rows.0),
        ("columns", work.scale_columns.0),
    ];
    for (what, scale) in scales {
        if scale.to_bits() != 1.0_f64.to_bits() {
            ways.push(format!("{what} × {scale}"));
        }
    }
    if block.threads > 1 {
        ways.push(format::plural(u64::from(block.threads), "thread"));
    }
    if block.concurrent > 1 {
        ways.push(format!("{} at once", block.concurrent));
    }
    if let Some(writing) = &block.writing {
        if writing.writers > 1 {
            ways.push(format::plural(writing.writers, "writer"));
        }
        let properties = writing.properties.split(';');
        ways.extend(
            properties
                .filter(|told| !told.is_empty())
                .map(str::to_owned),
        );
    }
    if let Some(limit) = block.memory_limit_bytes {
        ways.push(format!("within {}", format::mib(limit)));
    }
    let title = format!("{} {}", work.workload, work.dataset);
    if ways.is_empty() {
        return title;
    }
    format!("{title} ({})", ways.join(", "))
}

/// Where the batches of a write came from: every table of one says it.
pub(super) fn situation(block: &Block) -> Option<String> {
    let writing = block.writing.as_ref();
    writing.map(|writing| writing.situation.to_string())
}

/// The title, and the facts on what was read or written.
pub(super) fn block_heading(block: &BlockSummary) -> (String, String) {
    let mut facts = Vec::new();
    facts.extend(block.rows.map(|rows| format::plural(rows, "row")));
    facts.extend(block.values.map(|values| format::plural(values, "value")));
    let bytes = |name: &str, bytes: Option<u64>| {
        bytes.map(|bytes| format!("{name} {}", format::mib(bytes)))
    };
    facts.extend(bytes("file", block.file_bytes));
    facts.extend(bytes("decoded", block.decoded_bytes));
    if block.block.batch_rows > 0 {
        facts.push(format!("batch {}", format::count(block.block.batch_rows)));
    }
    facts.extend(block.limited_by.iter().map(|by| match by.as_str() {
        BY_RSS => "limit held against max RSS afterwards, not by a cgroup".to_owned(),
        by => format!("limit by {by}"),
    }));
    let mut title = block_title(&block.block);
    if let (Some(strategy), 1) = (block.strategies.first(), block.strategies.len()) {
        title.push_str(&format!(" by {strategy}"));
    }
    if let (Some(setup), 1) = (block.setups.first(), block.setups.len()) {
        title.push_str(&format!(" on {setup}"));
    }
    (title, facts.join(" · "))
}

/// Where an answer has one of its ratios of times.
pub(super) type Cost = fn(&Against) -> Option<&Ratio>;

/// What an answer may say on times, as far as they are among `metrics`, by name.
pub(super) fn costs(metrics: &BTreeSet<Metric>) -> impl Iterator<Item = (&'static str, Cost)> {
    let costs: [(Metric, &str, Cost); 2] = [
        (Metric::Cpu, "CPU", |against| against.cpu.as_ref()),
        (Metric::Wall, "wall", |against| against.wall.as_ref()),
    ];
    let shown = costs
        .into_iter()
        .filter(|(metric, ..)| metrics.contains(metric));
    shown.map(|(_, name, cost)| (name, cost))
}

/// The answer in a few sentences, with what it costs in those of `metrics` that are times.
pub(super) fn answer(answer: &Answer, metrics: &BTreeSet<Metric>) -> String {
    let mut text = format!(
        "Lowest max RSS: {}, {} MiB.",
        answer.lowest,
        format::mib_number(answer.max_rss_bytes)
    );
    if let Some(against) = &answer.against {
        text.push_str(&format!(
            " Against {} ({} MiB): RSS × {}",
            against.reference,
            format::mib_number(against.max_rss_bytes),
            format::ratio(against.max_rss_ratio),
        ));
        for (name, ratio) in costs(metrics) {
            if let Some(ratio) = ratio(against) {
                let median = format::ratio(ratio.median);
                text.push_str(&format!(", {name} × {median}{}", sureness(ratio)));
            }
        }
        text.push('.');
    }
    if !answer.as_low.is_empty() {
        text.push_str(&format!(
            " Within its spread: {}.",
            format::listed(&answer.as_low, 4)
        ));
    }
    text
}

/// What the samples of a block say besides its table, by what they are about.
pub(super) fn over_time(block: &BlockSummary) -> Vec<(&'static str, Vec<String>)> {
    let of = |texts: fn(&CellSummary) -> Vec<&String>| -> Vec<String> {
        let cells = block.cells.iter();
        cells
            .flat_map(|cell| {
                let texts = texts(cell).into_iter();
                texts.map(|text| format!("{}: {text}", cell.lane))
            })
            .collect()
    };
    let sections = [
        (
            "Where the RSS is when the heap is largest",
            of(|cell| cell.explained.iter().map(|found| &found.text).collect()),
        ),
        (
            "Memory given back after the work",
            of(|cell| cell.settling.iter().map(|found| &found.text).collect()),
        ),
        (
            "The same work many times",
            of(|cell| cell.cycles.iter().map(|found| &found.text).collect()),
        ),
    ];
    let sections = sections.into_iter();
    sections.filter(|(_, lines)| !lines.is_empty()).collect()
}

/// A line broken to a width where `between` stands, each further line indented.
pub(crate) fn wrapped(line: &str, between: &str, width: usize) -> String {
    let gap = between.chars().count();
    let mut out = String::new();
    let mut used = 0;
    for piece in line.split(between) {
        let length = piece.chars().count();
        if used > 0 && used + gap + length > width {
            out.push_str("\n  ");
            used = 2;
        } else if used > 0 {
            out.push_str(between);
            used += gap;
        }
        out.push_str(piece);
        used += length;
    }
    out.push('\n');
    out
}

fn joined<T: Display>(items: impl IntoIterator<Item = T>) -> String {
    format::listed(items, usize::MAX)
}
