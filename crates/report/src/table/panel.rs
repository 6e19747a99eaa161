//! What stands in the fields of a block's table: one panel a metric, one column a setup.

use crate::cell::{CONTROL, Setup, Strategy};
use crate::format;
use crate::metric::Metric;
use crate::sample::{Kind, Status};
use crate::stats::{Ratio, Summary};
use crate::summary::{BlockSummary, CellSummary, Limited};
use std::collections::BTreeSet;

/// Stands where there is no sample.
pub(super) const NONE: &str = "–";

/// One metric, or one comparison: a column for each setup, a field for each strategy.
pub(super) struct Panel {
    pub(super) title: String,
    /// Whether it compares setups with the plain one, which then needs no column.
    beside_plain: bool,
    /// What one column for all setups is headed, where they all read the same.
    common: Option<&'static str>,
    columns: Vec<(Setup, Vec<Field>)>,
}

/// Whose figures a column has.
pub(super) enum Whose<'a> {
    /// One setup's.
    Setup(&'a Setup),
    /// Every setup's alike, in words.
    All(&'static str),
}

impl Panel {
    /// The columns that are worth showing beside one another.
    pub(super) fn columns(&self) -> impl Iterator<Item = (Whose<'_>, &[Field])> {
        let columns = self.columns.iter();
        let shown = columns.filter(|(setup, _)| !(self.beside_plain && setup.is_plain()));
        let shown = shown.take(self.common.map_or(usize::MAX, |_| 1));
        shown.map(|(setup, fields)| {
            let whose = self.common.map_or(Whose::Setup(setup), Whose::All);
            (whose, fields.as_slice())
        })
    }

    /// The field of the block's so many-th setup and strategy.
    pub(super) fn field(&self, setup: usize, strategy: usize) -> &Field {
        &self.columns[setup].1[strategy]
    }
}

/// One field: what is aligned to the right, a mark, and what follows it.
#[derive(PartialEq)]
pub(super) struct Field {
    pub(super) number: String,
    pub(super) lowest: bool,
    pub(super) rest: String,
}

/// The numbered lines below a block that say what a field has no room for.
#[derive(Default)]
pub(super) struct Notes {
    texts: Vec<String>,
}

impl Notes {
    /// The number of a text, the same for the same text.
    fn number(&mut self, text: String) -> usize {
        let place = self.texts.iter().position(|known| *known == text);
        place.unwrap_or_else(|| {
            self.texts.push(text);
            self.texts.len() - 1
        }) + 1
    }

    pub(super) fn holds(&self, text: &str) -> bool {
        self.texts.iter().any(|known| known.contains(text))
    }

    pub(super) fn lines(&self) -> Vec<String> {
        let numbered = self.texts.iter().enumerate();
        numbered
            .map(|(place, text)| format!("[{}] {text}", place + 1))
            .collect()
    }
}

/// The panels of a block that show `metrics`; those that compare only where there is something to
/// compare with.
pub(super) fn panels(
    block: &BlockSummary,
    metrics: &BTreeSet<Metric>,
    notes: &mut Notes,
) -> Vec<Panel> {
    let mut panels: Vec<Panel> = metrics
        .iter()
        .map(|metric| metric_panel(block, *metric, notes))
        .collect();
    if !metrics.contains(&Metric::Cpu) {
        return panels;
    }
    if block
        .cells
        .iter()
        .any(|cell| cell.cpu_to_upstream.is_some())
    {
        panels.push(ratio_panel(
            block,
            &format!("CPU ÷ {CONTROL}"),
            |cell| cell.cpu_to_upstream,
            |strategy, _| strategy.0 == CONTROL,
        ));
    }
    if block.cells.iter().any(|cell| cell.cpu_to_system.is_some()) {
        let mut panel = ratio_panel(
            block,
            "CPU ÷ system",
            |cell| cell.cpu_to_system,
            |_, setup| setup.is_plain(),
        );
        panel.beside_plain = true;
        panels.push(panel);
    }
    panels
}

/// What went wrong with samples that none of `metrics` comes from: no panel of them has a note on it, and
/// still such a lane may not be the lowest.
pub(super) fn failed_unseen(block: &BlockSummary, metrics: &BTreeSet<Metric>) -> Vec<String> {
    let seen: BTreeSet<Kind> = metrics.iter().map(|metric| metric.kind()).collect();
    let unseen = Kind::ALL.into_iter();
    let unseen: Vec<Kind> = unseen.filter(|kind| !seen.contains(kind)).collect();
    let cells = block.cells.iter();
    cells
        .flat_map(|cell| unseen.iter().map(move |kind| (cell, *kind)))
        .filter_map(|(cell, kind)| {
            let why = without_figures(cell, kind)?;
            Some(format!("{kind} samples of {}: {why}", cell.lane))
        })
        .collect()
}

fn metric_panel(block: &BlockSummary, metric: Metric, notes: &mut Notes) -> Panel {
    let shown = |cell: &CellSummary| {
        let figures = cell.of(metric).filter(|_| cell.can_win());
        figures.map(|figures| (figures.min, metric.show(figures.min)))
    };
    let lowest = block.cells.iter().filter_map(shown);
    let lowest = lowest.min_by(|a, b| a.0.total_cmp(&b.0));
    // What reads the same is marked the same; a lone figure is not the lowest of anything.
    let count = block.cells.iter().filter_map(shown).count();
    let lowest = lowest.filter(|_| count > 1).map(|(_, text)| text);
    let mut panel = panel(block, metric.title(), |strategy, setup| {
        let Some(cell) = block.cell(strategy, setup) else {
            return Field::text(NONE);
        };
        let note = trouble(cell, metric).map(|text| format!(" [{}]", notes.number(text)));
        let figures = cell.of(metric).filter(|_| cell.disagreements.is_empty());
        let Some(figures) = figures else {
            return Field {
                rest: note.unwrap_or_default(),
                ..Field::text(&instead(cell, metric))
            };
        };
        let number = metric.show(figures.min);
        Field {
            lowest: cell.can_win() && lowest.as_ref() == Some(&number),
            number,
            rest: spread(metric, figures) + &note.unwrap_or_default(),
        }
    });
    panel.common = common(&panel.columns);
    panel
}

/// The heading of one column for all setups, where each of them reads the same in every row: peak
/// heap is what the program asked for, whatever allocator gave it.
fn common(columns: &[(Setup, Vec<Field>)]) -> Option<&'static str> {
    let ((first, fields), others) = columns.split_first()?;
    if others.is_empty() || others.iter().any(|(_, theirs)| theirs != fields) {
        return None;
    }
    let alike =
        |same: fn(&Setup, &Setup) -> bool| others.iter().all(|(other, _)| same(first, other));
    if !alike(|a, b| a.allocator == b.allocator) {
        Some("every allocator")
    } else if !alike(|a, b| a.settings == b.settings) {
        Some("every setting")
    } else {
        Some("every binary")
    }
}

fn spread(metric: Metric, figures: &Summary) -> String {
    if figures.samples < 2 {
        return String::new();
    }
    format!(" (+{})", metric.show(figures.spread()))
}

/// Why a cell's figures of one metric are missing, or not the whole truth.
fn trouble(cell: &CellSummary, metric: Metric) -> Option<String> {
    if !cell.disagreements.is_empty() {
        return Some(format!("does not agree: {}", cell.disagreements.join("; ")));
    }
    without_figures(cell, metric.kind())
}

/// What stands in the place of a figure that no sample has.
fn instead(cell: &CellSummary, metric: Metric) -> String {
    let kind = metric.kind();
    let of_kind = |limited: &&Limited| limited.kind == kind;
    if !cell.disagreements.is_empty() || cell.failures.iter().any(|failure| failure.kind == kind) {
        return "failed".to_owned();
    }
    let Some(limited) = cell.limits.iter().find(of_kind) else {
        return NONE.to_owned();
    };
    let at_least = match (metric, limited.status) {
        (Metric::MaxRss, Status::DidNotFit) => limited.memory_limit_bytes.map(format::mib),
        (Metric::Wall, Status::DidNotFinish) => {
            limited.waited_s.map(|seconds| format!("{seconds} s"))
        }
        _ => None,
    };
    at_least.map_or_else(|| NONE.to_owned(), |figure| format!("> {figure}"))
}

/// Why samples of one kind have no figures: those that failed, and those that met a limit.
fn without_figures(cell: &CellSummary, kind: Kind) -> Option<String> {
    let limits = cell.limits.iter().filter(|limited| limited.kind == kind);
    let why = failed(cell, kind).into_iter().chain(limits.map(met));
    let why: Vec<String> = why.collect();
    (!why.is_empty()).then(|| why.join("; "))
}

/// What is said of samples that met a limit.
fn met(limited: &Limited) -> String {
    let what = match limited.status {
        Status::DidNotFit => "did not fit",
        _ => "did not finish",
    };
    let of = if limited.limited == limited.samples {
        String::new()
    } else {
        let all = format::plural(limited.samples as u64, "sample");
        format!("{} of {all} ", limited.limited)
    };
    if limited.text.starts_with(what) {
        return format!("{of}{}", limited.text);
    }
    let limit = match limited.status {
        Status::DidNotFit => limited.memory_limit_bytes.map(format::mib),
        _ => limited.waited_s.map(|seconds| format!("{seconds} s")),
    };
    let limit = limit.map_or_else(String::new, |limit| format!(" in {limit}"));
    format!("{of}{what}{limit}: {}", limited.text)
}

/// How many samples of one kind failed, and why.
fn failed(cell: &CellSummary, kind: Kind) -> Option<String> {
    let failures = cell.failures.iter();
    let ours: Vec<_> = failures.filter(|failure| failure.kind == kind).collect();
    let (first, others) = ours.split_first()?;
    let failed: usize = ours.iter().map(|failure| failure.failed).sum();
    let more = match others.len() {
        0 => String::new(),
        more => format!("; and {}", format::plural(more as u64, "other error")),
    };
    let of = if failed == first.samples {
        String::new()
    } else {
        format!(
            " ({failed} of {})",
            format::plural(first.samples as u64, "sample")
        )
    };
    Some(format!("failed{of}: {}{more}", first.error))
}

fn ratio_panel(
    block: &BlockSummary,
    title: &str,
    ratio: impl Fn(&CellSummary) -> Option<Ratio>,
    is_reference: impl Fn(&Strategy, &Setup) -> bool,
) -> Panel {
    panel(block, title, |strategy, setup| {
        let cell = block.cell(strategy, setup);
        match cell.filter(|cell| cell.disagreements.is_empty()) {
            Some(_) if is_reference(strategy, setup) => Field::number(format::ratio(1.0)),
            Some(cell) => ratio(cell).map_or_else(
                || Field::text(NONE),
                |ratio| Field {
                    rest: sureness(&ratio),
                    ..Field::number(format::ratio(ratio.median))
                },
            ),
            None => Field::text(NONE),
        }
    })
}

/// What follows a ratio: its interval, or how many pairs there are where that is too few for one.
pub(super) fn sureness(ratio: &Ratio) -> String {
    match ratio.interval {
        Some(interval) => format!(
            " [{}, {}]",
            format::ratio(interval.low),
            format::ratio(interval.high)
        ),
        None => format!(" ({})", format::plural(ratio.pairs as u64, "pair")),
    }
}

fn panel(
    block: &BlockSummary,
    title: &str,
    mut field: impl FnMut(&Strategy, &Setup) -> Field,
) -> Panel {
    let setups = block.setups.iter().cloned();
    let mut columns: Vec<(Setup, Vec<Field>)> = setups.map(|setup| (setup, Vec::new())).collect();
    // Strategy by strategy, so that notes are numbered as they are read.
    for strategy in &block.strategies {
        for (setup, fields) in &mut columns {
            fields.push(field(strategy, setup));
        }
    }
    Panel {
        title: title.to_owned(),
        beside_plain: false,
        common: None,
        columns,
    }
}

impl Field {
    /// The field as Markdown; the lowest is bold.
    pub(super) fn markdown(&self) -> String {
        let mark = if self.lowest { "**" } else { "" };
        format!("{mark}{}{mark}{}", self.number, self.rest)
    }

    fn number(number: String) -> Self {
        Self {
            number,
            lowest: false,
            rest: String::new(),
        }
    }

    /// A word in the place of a number.
    fn text(text: &str) -> Self {
        Self::number(text.to_owned())
    }
}
