//! The command `generate`: Parquet files from dataset definitions.

use std::path::PathBuf;

use alloquet_datagen::{Dataset, FileReport, PageSizes, Progress, Scale, Spread, generate};
use alloquet_report::format::{count, mib, plural};
use anyhow::{Context, Result, ensure};
use indicatif::{ProgressBar, ProgressStyle};
use serde::{Deserialize, Serialize};

use crate::cli::{GenerateArgs, TextFormat};
use crate::interruption::Interruption;
use crate::output::print;
use crate::plan::names;
use crate::run::Folders;

/// A file that is there now.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct GeneratedFile {
    /// Name of the dataset.
    pub(crate) dataset: String,
    /// Where the file is.
    pub(crate) path: PathBuf,
    /// Whether it was there already.
    pub(crate) reused: bool,
    /// What the file turned out to be.
    pub(crate) report: FileReport,
}

/// Runs the command.
///
/// # Errors
///
/// A definition is missing or wrong, or a file cannot be written.
pub(crate) fn run(args: &GenerateArgs) -> Result<()> {
    let folders = Folders {
        root: args.data.bench_data.clone(),
    };
    let known = names(&folders.datasets());
    ensure!(
        !known.is_empty(),
        "there are no datasets in {}: run at the root of the project, or pass --bench-data",
        folders.datasets().display()
    );
    let wanted = if args.datasets.is_empty() {
        &known
    } else {
        &args.datasets
    };
    for name in wanted {
        ensure!(
            known.contains(name),
            "there is no dataset '{name}' in {}; there are {}",
            folders.datasets().display(),
            known.join(", ")
        );
    }
    let scale = Scale {
        rows: args.scale_rows,
        columns: args.scale_columns,
    };
    let interruption = Interruption::catch()?;
    let mut files = Vec::with_capacity(wanted.len());
    for name in wanted {
        let dataset = Dataset::load(&folders.definition(name))?.scaled(&scale)?;
        let generated = generate(
            &dataset,
            &folders.generated(),
            &Bar::new(name, &interruption),
        )
        .with_context(|| format!("cannot generate dataset '{name}'"))?;
        let file = GeneratedFile {
            dataset: name.clone(),
            path: generated.path,
            reused: generated.reused,
            report: generated.report,
        };
        match args.format {
            TextFormat::Text => print(describe(&file))?,
            TextFormat::Json => files.push(file),
        }
    }
    if args.format == TextFormat::Json {
        print(serde_json::to_string(&files)? + "\n")?;
    }
    Ok(())
}

fn describe(file: &GeneratedFile) -> String {
    let report = &file.report;
    let mut text = format!(
        "{}{}\n  {}\n  {} rows × {} columns in {}, {}\n",
        file.dataset,
        if file.reused {
            " (was there already)"
        } else {
            ""
        },
        file.path.display(),
        count(report.rows),
        count(report.columns as u64),
        plural(report.row_groups as u64, "row group"),
        mib(report.file_bytes),
    );
    text.push_str(&describe_pages("data pages", &report.data_pages));
    if let Some(pages) = &report.dictionary_pages {
        text.push_str(&describe_pages("dictionary pages", pages));
    }
    text
}

fn describe_pages(what: &str, pages: &PageSizes) -> String {
    let range = |spread: &Spread, show: fn(u64) -> String| {
        if spread.min == spread.max {
            show(spread.min)
        } else {
            let [min, median, max] = [spread.min, spread.median, spread.max].map(show);
            format!("{min} to {max} (median {median})")
        }
    };
    format!(
        "  {} {what}: {} values, {} each; as stored {}\n",
        count(pages.count),
        range(&pages.rows, count),
        range(&pages.page_bytes, mib),
        range(&pages.stored_bytes, mib),
    )
}

/// The progress of one file, on standard error, and Ctrl-C.
struct Bar {
    bar: ProgressBar,
    interruption: Interruption,
}

impl Bar {
    fn new(name: &str, interruption: &Interruption) -> Self {
        let style =
            ProgressStyle::with_template("generating {msg} {bar:30} {percent}%, {eta} left")
                .unwrap_or_else(|_| ProgressStyle::default_bar());
        Self {
            bar: ProgressBar::new(0)
                .with_style(style)
                .with_message(name.to_owned()),
            interruption: interruption.clone(),
        }
    }
}

impl Progress for Bar {
    fn start(&self, total_values: u64) {
        self.bar.set_length(total_values);
    }

    fn advance(&self, values: u64) {
        self.bar.inc(values);
    }

    fn finish(&self) {
        self.bar.finish_and_clear();
    }

    fn is_cancelled(&self) -> bool {
        self.interruption.happened()
    }
}
