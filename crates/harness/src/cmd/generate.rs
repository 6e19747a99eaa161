//! The command `generate`: Parquet files from dataset definitions.

use std::path::PathBuf;

use alloquet_datagen::{Dataset, FileReport, Progress, Scale, generate};
use alloquet_report::format::{count, mib};
use anyhow::{Context, Result, ensure};
use indicatif::{ProgressBar, ProgressStyle};
use serde::{Deserialize, Serialize};

use crate::cli::{GenerateArgs, TextFormat};
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
    let wanted = if args.datasets.is_empty() { &known } else { &args.datasets };
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
    let mut files = Vec::with_capacity(wanted.len());
    for name in wanted {
        let dataset = Dataset::load(&folders.definition(name))?.scaled(&scale)?;
        let generated = generate(&dataset, &folders.generated(), &Bar::new(name))
            .with_context(|| format!("cannot generate dataset '{name}'"))?;
        let file = GeneratedFile {
            dataset: name.clone(),
            path: generated.path,
            reused: generated.reused,
            report: generated.report,
        };
        match args.format {
            TextFormat::Text => print!("{}", describe(&file)),
            TextFormat::Json => files.push(file),
        }
    }
    if args.format == TextFormat::Json {
        println!("{}", serde_json::to_string(&files)?);
    }
    Ok(())
}

fn describe(file: &GeneratedFile) -> String {
    let report = &file.report;
    format!(
        "{}{}\n  {}\n  {} rows × {} columns in {} row groups, {}\n  data pages {}; {} as stored\n",
        file.dataset,
        if file.reused { " (was there)" } else { "" },
        file.path.display(),
        count(report.rows),
        count(report.columns),
        count(report.row_groups),
        mib(report.file_bytes),
        spread(&report.uncompressed_page_bytes),
        spread(&report.stored_page_bytes),
    )
}

/// The progress of one file, on standard error.
struct Bar {
    bar: ProgressBar,
}

impl Bar {
    fn new(name: &str) -> Self {
        let style = ProgressStyle::with_template("generating {msg} {bar:30} {percent}%, {eta} left")
            .unwrap_or_else(|_| ProgressStyle::default_bar());
        Self {
            bar: ProgressBar::new(0)
                .with_style(style)
                .with_message(name.to_owned()),
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
}
