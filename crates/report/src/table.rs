//! Renders samples for people: one block a dataset, strategies down, metrics or allocators across.
//!
//! It lays out what [`crate::summary`] computed, and decides nothing about figures.

mod answers;
mod block;
pub(crate) mod grid;
mod panel;
pub(crate) mod text;

use crate::companions::Companions;
use crate::metric::Metric;
use crate::sample::Sample;
use crate::summary::{BlockSummary, Report, Run};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;

/// What a table is rendered as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    /// For a terminal: aligned text without colour.
    Terminal,
    /// For a document: Markdown.
    Markdown,
    /// For a program: the [`Report`] as JSON.
    Json,
}

/// A name that is no [`Format`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown format {0:?}: say terminal, markdown or json")]
pub struct UnknownFormat(String);

impl FromStr for Format {
    type Err = UnknownFormat;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        match name {
            "terminal" | "table" => Ok(Self::Terminal),
            "markdown" => Ok(Self::Markdown),
            "json" => Ok(Self::Json),
            _ => Err(UnknownFormat(name.to_owned())),
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Terminal => "terminal",
            Self::Markdown => "markdown",
            Self::Json => "json",
        })
    }
}

/// How to render.
#[derive(Debug, Clone)]
pub struct Options {
    /// Columns of the terminal. A single column that is wider is not broken.
    pub width: usize,
    /// One line on the machine of each run, by the run's name, for its heading. A run that is not
    /// among them says nothing of its machine.
    pub machines: BTreeMap<String, String>,
    /// What tables and the sentences around them show. Ratios of CPU time belong to [`Metric::Cpu`],
    /// and the answer to [`Metric::MaxRss`]. JSON has every figure.
    pub metrics: BTreeSet<Metric>,
    /// What the samples have besides their rows: where their RSS is, and how it went over time.
    pub companions: Companions,
}

impl Default for Options {
    /// 120 columns, the usual metrics, nothing beside the samples, and nothing said about machines.
    fn default() -> Self {
        Self {
            width: 120,
            machines: BTreeMap::new(),
            metrics: Metric::USUAL.into(),
            companions: Companions::default(),
        }
    }
}

/// Renders `samples`, each run of them under its own heading.
#[must_use]
pub fn render(samples: &[Sample], format: Format, options: &Options) -> String {
    let report = Report::of(samples, &options.machines, &options.companions);
    if format == Format::Json {
        // Strings and finite numbers only: there is nothing in it that JSON cannot say.
        let json = serde_json::to_string_pretty(&report);
        return json.map_or_else(
            |error| format!("{{\"error\": \"{error}\"}}\n"),
            |json| json + "\n",
        );
    }
    if report.runs.is_empty() {
        return "There are no samples.\n".to_owned();
    }
    let mut out = String::new();
    for run in &report.runs {
        if !out.is_empty() {
            out.push('\n');
        }
        render_run(&mut out, run, format, options);
    }
    out
}

fn render_run(out: &mut String, run: &Run, format: Format, options: &Options) {
    let heading = text::run_heading(run);
    let legend = text::legend(run, format, &options.metrics);
    if format == Format::Markdown {
        out.push_str(&format!(
            "{}\n\n{}\n",
            heading.join("  \n"),
            legend.join(" ")
        ));
    } else {
        for line in heading.iter().chain(&legend) {
            out.push_str(&text::wrapped(line, " ", options.width));
        }
    }
    for block in &run.blocks {
        out.push('\n');
        render_block(out, block, format, options);
    }
    out.push_str(&answers::render(&run.blocks, format, &options.metrics));
}

fn render_block(out: &mut String, block: &BlockSummary, format: Format, options: &Options) {
    let (title, facts) = text::block_heading(block);
    let shown = &block.shown(&options.metrics);
    let mut notes = panel::Notes::default();
    let panels = panel::panels(block, shown, &mut notes);
    let mut below: Vec<String> = notes.lines();
    below.extend(panel::failed_unseen(block, shown));
    let findings = block.findings.iter();
    let more = findings.filter(|finding| !notes.holds(&finding.text));
    below.extend(more.map(|finding| format!("{}: {}", finding.subject.lead(), finding.text)));
    let answer = block.answer.as_ref();
    let answer = answer.filter(|_| options.metrics.contains(&Metric::MaxRss));
    below.extend(answer.map(|answer| text::answer(answer, &options.metrics)));
    let over_time = text::over_time(block);

    if format == Format::Markdown {
        out.push_str(&format!("### {title}\n\n"));
        if !facts.is_empty() {
            out.push_str(&format!("{facts}\n\n"));
        }
        out.push_str(&block::markdown(block, &panels));
        for line in below {
            out.push_str(&format!("\n- {line}"));
        }
        for (title, lines) in over_time {
            out.push_str(&format!("\n- {title}:"));
            for line in lines {
                out.push_str(&format!("\n  - {line}"));
            }
        }
        out.push('\n');
    } else {
        let heading = [title, facts].join(" · ");
        let heading = heading.trim_end_matches(" · ");
        out.push_str(&text::wrapped(heading, " · ", options.width));
        out.push_str(&block::terminal(block, &panels, options.width));
        for line in below {
            out.push_str(&text::wrapped(&line, " ", options.width));
        }
        for (title, lines) in over_time {
            out.push_str(&format!("{title}:\n"));
            for line in lines {
                out.push_str(&text::wrapped(&format!("- {line}"), " ", options.width));
            }
        }
    }
}
