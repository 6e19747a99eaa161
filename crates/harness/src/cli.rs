//! The command line as it is typed. What the arguments mean is decided by the commands.

mod measuring;
mod write;

use std::ffi::OsStr;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use alloquet_report::metric::Metric;
use alloquet_report::sample::{Kind, Workload};
use alloquet_report::table::Format;
use clap::builder::TypedValueParser;
use clap::{Args, Parser, Subcommand, ValueEnum, value_parser};

use crate::plan::Bytes;

pub(crate) use self::measuring::MeasuringArgs;
pub(crate) use self::write::{SituationArg, WriteArgs};

/// Measures which allocator, which settings and which buffer strategy should read or write a Parquet file.
///
/// Without a command it does `run quick`.
#[derive(Debug, Parser)]
#[command(version, about)]
pub(crate) struct Cli {
    /// What to do.
    #[command(subcommand)]
    command: Option<Command>,
}

impl Cli {
    /// What to do: the command, or `run quick` where there is none.
    pub(crate) fn command() -> Command {
        let given = |cli: Self| cli.command;
        given(Self::parse())
            .or_else(|| given(Self::parse_from(["alloquet", "run"])))
            .unwrap_or_else(|| unreachable!("`run` is a command"))
    }
}

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Measure a matrix: generate what is missing, measure, append to the CSV, print the table.
    Run(RunArgs),
    /// Measure how to read a file of your own: every strategy, this binary's allocator.
    Read(ReadArgs),
    /// Measure how to write the contents of a file of your own, or a dataset: every strategy, this binary's allocator.
    Write(WriteArgs),
    /// Say where resident memory is when the heap is largest: of recorded samples, or of a file of your own; of one cell,
    /// or of two side by side.
    Explain(ExplainArgs),
    /// Draw memory over time, of samples that were recorded with --timeline.
    Timeline(TimelineArgs),
    /// Find out whether a file can be read, or written anew, within so much memory, and which knob gets it there.
    Fit(FitArgs),
    /// Generate the Parquet files of datasets, and report the page sizes they have.
    Generate(GenerateArgs),
    /// List matrices, datasets and strategies.
    List(ListArgs),
    /// Print the table of a CSV that was recorded before.
    Table(TableArgs),
    /// Show this binary's allocator and settings, how it was built, and the machine.
    Env(EnvArgs),
    /// Tell from a CSV how often the tables would call one build another than itself.
    #[command(hide = true)]
    Aa(AaArgs),
    /// Take one sample: the job is read from standard input. Started by the other commands.
    #[command(hide = true)]
    Worker(WorkerArgs),
    /// Do one thing with memory and say where it shows. For trying out whether it is told right.
    #[command(hide = true)]
    Plant(PlantArgs),
}

/// Where definitions and generated files are.
#[derive(Debug, Args)]
pub(crate) struct DataArgs {
    /// The folder of datasets, matrices and generated files.
    #[arg(long, value_name = "DIR", default_value = "bench-data")]
    pub(crate) bench_data: PathBuf,
}

/// Arguments of `run`.
#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// Name of the matrix.
    #[arg(default_value = "quick")]
    pub(crate) matrix: String,
    /// Only this dataset of the matrix; can be repeated.
    #[arg(long, value_name = "NAME")]
    pub(crate) dataset: Vec<String>,
    /// Only this strategy of the matrix; can be repeated.
    #[arg(long, value_name = "STRATEGY")]
    pub(crate) strategy: Vec<String>,
    #[command(flatten)]
    pub(crate) measuring: MeasuringArgs,
    /// The folder of the CSV, MATRIX.csv, which is appended to, and of environment.json.
    #[arg(long, value_name = "DIR", default_value = "results/local")]
    pub(crate) results: PathBuf,
    /// Go on with the last run of the CSV, which was interrupted: same matrix, options and binaries.
    #[arg(long)]
    pub(crate) resume: bool,
    /// Only print the samples that would be taken, in their order (give --seed to know it).
    #[arg(long, conflicts_with = "resume")]
    pub(crate) dry_run: bool,
    /// What to print.
    #[arg(long, value_enum, default_value_t = OutputFormat::Table)]
    pub(crate) format: OutputFormat,
    #[command(flatten)]
    pub(crate) data: DataArgs,
}

/// Arguments of `read`.
#[derive(Debug, Args)]
pub(crate) struct ReadArgs {
    /// The Parquet file.
    pub(crate) file: PathBuf,
    /// A strategy, such as pooled or temp-both,codec=shared; can be repeated. All presets if not given.
    #[arg(long, value_name = "STRATEGY")]
    pub(crate) strategy: Vec<String>,
    /// Rows asked for in a batch.
    #[arg(long, value_name = "N", default_value = "65536")]
    pub(crate) batch_rows: NonZeroUsize,
    /// A TOML file with the keys of an encrypted file: footer_key, aad_prefix and the table column_keys. The variable
    /// ALLOQUET_KEYS can hold the same text.
    #[arg(long, value_name = "FILE")]
    pub(crate) key_file: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) measuring: MeasuringArgs,
    /// Append the samples to read.csv in this folder. They are only printed if not given.
    #[arg(long, value_name = "DIR")]
    pub(crate) results: Option<PathBuf>,
    /// What to print.
    #[arg(long, value_enum, default_value_t = OutputFormat::Table)]
    pub(crate) format: OutputFormat,
}

/// Arguments of `explain`.
#[derive(Debug, Args)]
pub(crate) struct ExplainArgs {
    /// A CSV of samples (which ends in .csv), measured with --explain; or a Parquet file, which is measured first.
    pub(crate) input: PathBuf,
    #[command(flatten)]
    pub(crate) cells: CellArgs,
    /// Of a CSV: every cell, one after the other.
    #[arg(long)]
    pub(crate) all: bool,
    /// Of a Parquet file: write its contents anew instead of reading it.
    #[arg(long)]
    pub(crate) write: bool,
    /// With --write: where the batches come from.
    #[arg(long, value_enum, default_value_t = SituationArg::Arriving)]
    pub(crate) situation: SituationArg,
    /// Of a Parquet file: rows in a batch.
    #[arg(long, value_name = "N", default_value = "65536")]
    pub(crate) batch_rows: NonZeroUsize,
    /// Of a Parquet file: a TOML file with its keys: footer_key, aad_prefix and the table column_keys. The variable
    /// ALLOQUET_KEYS can hold the same text.
    #[arg(long, value_name = "FILE")]
    pub(crate) key_file: Option<PathBuf>,
    /// Of a Parquet file: append the samples to explain.csv in this folder. They are not kept if not given.
    #[arg(long, value_name = "DIR")]
    pub(crate) results: Option<PathBuf>,
    /// What to print.
    #[arg(long, value_enum, default_value_t = ReportFormat::Table)]
    pub(crate) format: ReportFormat,
    // Last, for it has many.
    #[command(flatten)]
    pub(crate) measuring: MeasuringArgs,
}

/// Arguments of `timeline`.
#[derive(Debug, Args)]
pub(crate) struct TimelineArgs {
    /// A CSV of samples, measured with --timeline.
    pub(crate) csv: PathBuf,
    #[command(flatten)]
    pub(crate) cells: CellArgs,
    /// What to print.
    #[arg(long, value_enum, default_value_t = DrawingFormat::Text)]
    pub(crate) format: DrawingFormat,
}

/// Which of the cells of a CSV.
#[derive(Debug, Args)]
pub(crate) struct CellArgs {
    /// This strategy; can be repeated. Of a Parquet file: what to measure, upstream if not given.
    #[arg(long, value_name = "STRATEGY")]
    pub(crate) strategy: Vec<String>,
    /// Of a CSV: this run; the last of the file if not given.
    #[arg(long, value_name = "RUN_ID")]
    pub(crate) run: Option<String>,
    /// Of a CSV: this dataset; can be repeated.
    #[arg(long, value_name = "NAME")]
    pub(crate) dataset: Vec<String>,
    /// Of a CSV: this allocator; can be repeated.
    #[arg(long, value_name = "NAME")]
    pub(crate) allocator: Vec<String>,
    /// Of a CSV: these settings, as its column has them, or default; can be repeated.
    #[arg(long, value_name = "SETTINGS")]
    pub(crate) settings: Vec<String>,
    /// Of a CSV: what the writer was told, as its column has it; can be repeated.
    #[arg(long, value_name = "PROPERTIES")]
    pub(crate) properties: Vec<String>,
}

/// How something is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DrawingFormat {
    /// With characters, for a terminal.
    Text,
    /// As SVG, of one cell.
    Svg,
}

/// How what was worked out is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReportFormat {
    /// For the terminal.
    Table,
    /// For a document.
    Markdown,
    /// For programs.
    Json,
}

/// Arguments of `fit`.
#[derive(Debug, Args)]
pub(crate) struct FitArgs {
    /// The Parquet file.
    pub(crate) file: PathBuf,
    /// The memory that it is to fit in, such as 512MiB.
    #[arg(long, value_name = "SIZE")]
    pub(crate) within: Bytes,
    /// Write its contents anew, from batches that come one by one, instead of reading it.
    #[arg(long)]
    pub(crate) write: bool,
    /// Only these strategies, besides upstream; can be repeated. All presets if not given.
    #[arg(long, value_name = "STRATEGY")]
    pub(crate) strategy: Vec<String>,
    /// Only so many rows in a batch; can be repeated, the first is what it is without turning a knob.
    #[arg(long, value_name = "N")]
    pub(crate) batch_rows: Vec<NonZeroUsize>,
    /// Only these settings of the allocator, besides its defaults; can be repeated. All presets if not given.
    #[arg(long, value_name = "SETTINGS")]
    pub(crate) set: Vec<String>,
    /// Try another build of this program too; can be repeated.
    #[arg(long, value_name = "NAME=BINARY")]
    pub(crate) with: Vec<String>,
    /// Samples of each way without a limit.
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = value_parser!(u32).range(1..=1000).map(|n| n as usize))]
    pub(crate) reps: usize,
    /// Seconds after which a sample is ended.
    #[arg(long, value_name = "SECONDS", default_value_t = 600, value_parser = value_parser!(u64).range(1..))]
    pub(crate) timeout: u64,
    /// A TOML file with the keys of an encrypted file: footer_key, aad_prefix and the table column_keys. The variable
    /// ALLOQUET_KEYS can hold the same text.
    #[arg(long, value_name = "FILE")]
    pub(crate) key_file: Option<PathBuf>,
    /// Append the samples to fit.csv in this folder. They are not kept if not given.
    #[arg(long, value_name = "DIR")]
    pub(crate) results: Option<PathBuf>,
}

/// Arguments of `generate`.
#[derive(Debug, Args)]
pub(crate) struct GenerateArgs {
    /// Names of datasets; all if none is given.
    pub(crate) datasets: Vec<String>,
    /// Scale of the rows of each row group, above 0 and at most 1.
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0)]
    pub(crate) scale_rows: f64,
    /// Scale of the columns, above 0 and at most 1.
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0)]
    pub(crate) scale_columns: f64,
    /// How to say what was generated.
    #[arg(long, value_enum, default_value_t = TextFormat::Text)]
    pub(crate) format: TextFormat,
    #[command(flatten)]
    pub(crate) data: DataArgs,
}

/// Arguments of `list`.
#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    #[command(flatten)]
    pub(crate) data: DataArgs,
}

/// Arguments of `table`.
#[derive(Debug, Args)]
pub(crate) struct TableArgs {
    /// The CSV.
    pub(crate) csv: PathBuf,
    /// Show this run; the last of the file if not given.
    #[arg(long, value_name = "RUN_ID", conflicts_with = "all")]
    pub(crate) run: Option<String>,
    /// Show every run of the file, each under its own heading.
    #[arg(long)]
    pub(crate) all: bool,
    /// Show only this dataset; can be repeated.
    #[arg(long, value_name = "NAME")]
    pub(crate) dataset: Vec<String>,
    /// Show only what was read, or only what was written.
    #[arg(long, value_enum)]
    pub(crate) workload: Option<WorkloadArg>,
    /// Show only this metric of a table: peak-heap, heap-per-column, heap-per-writer, max-rss, minor-faults, cpu (with
    /// its ratios), wall, rss-after (RSS that is left of the work) or libc-free (free in libc's own heap afterwards); can
    /// be repeated.
    #[arg(long, value_name = "NAME")]
    pub(crate) metric: Vec<Metric>,
    /// What to print.
    #[arg(long, value_enum, default_value_t = OutputFormat::Table)]
    pub(crate) format: OutputFormat,
}

/// Arguments of `aa`.
#[derive(Debug, Args)]
pub(crate) struct AaArgs {
    /// The CSV: every cell with at least 12 timed samples is looked at.
    pub(crate) csv: PathBuf,
    /// How often the samples of a cell are halved.
    #[arg(long, value_name = "N", default_value = "100", value_parser = value_parser!(u32).range(1..=100_000).map(|n| n as usize))]
    pub(crate) halves: usize,
    /// Seed of the halvings.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
}

/// Arguments of `env`.
#[derive(Debug, Args)]
pub(crate) struct EnvArgs {
    /// How to show the facts.
    #[arg(long, value_enum, default_value_t = TextFormat::Text)]
    pub(crate) format: TextFormat,
}

/// How facts are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TextFormat {
    /// Lines for reading.
    Text,
    /// For programs; of `env`, the form of `environment.json`.
    Json,
}

/// How samples are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OutputFormat {
    /// A table for the terminal.
    Table,
    /// The same for a document.
    Markdown,
    /// What the table shows, for programs.
    Json,
    /// The samples themselves.
    Csv,
}

impl OutputFormat {
    /// The table's format; `None` for the samples themselves.
    pub(crate) fn table(self) -> Option<Format> {
        match self {
            Self::Table => Some(Format::Terminal),
            Self::Markdown => Some(Format::Markdown),
            Self::Json => Some(Format::Json),
            Self::Csv => None,
        }
    }
}

/// Arguments of `worker`.
#[derive(Debug, Args)]
pub(crate) struct WorkerArgs {
    /// What to measure.
    #[arg(long, value_enum)]
    pub(crate) kind: KindArg,
    /// The file of a control group to be in from the start.
    #[arg(long)]
    group: Option<PathBuf>,
    /// Count the heap whatever the kind, to see what counting costs (scripts/wrapper-cost.sh).
    #[arg(long)]
    pub(crate) counted: bool,
}

/// Arguments of `plant`.
#[derive(Debug, Args)]
pub(crate) struct PlantArgs {
    /// What to do.
    #[arg(value_enum)]
    pub(crate) case: PlantCase,
    /// How much memory to do it with.
    #[arg(long, default_value_t = 64 << 20, value_parser = value_parser!(u64).range(1 << 20..=1 << 33))]
    pub(crate) bytes: u64,
}

/// What `plant` can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum PlantCase {
    /// Allocate, touch and never free.
    Leak,
    /// Free most of many small blocks, and hold a few among them.
    Keep,
    /// Free lazily by the system's own call.
    Lazy,
    /// Free large blocks, for an allocator that was set to free lazily.
    LazyBlock,
    /// Reserve and never touch.
    Reserve,
    /// Allocate one large chunk in C.
    C,
    /// Allocate many small chunks in C.
    CSmall,
    /// Map a file and read it.
    Map,
    /// Touch a byte in each huge page.
    Thp,
    /// Go deep into a thread's stack.
    Stack,
    /// Allocate blocks of a size that is no size class.
    Metadata,
}

/// A sample's kind on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum KindArg {
    /// Count the heap.
    Heap,
    /// Leave the allocator bare.
    Rss,
    /// Count, halt at the peak and say where the RSS is.
    Explain,
    /// Leave the allocator bare and look at what stays resident afterwards.
    Settle,
    /// Count, and do the work many times.
    Cycles,
    /// Count, and look at memory over time.
    Timeline,
}

impl From<KindArg> for Kind {
    fn from(kind: KindArg) -> Self {
        match kind {
            KindArg::Heap => Self::Heap,
            KindArg::Rss => Self::Rss,
            KindArg::Explain => Self::Explain,
            KindArg::Settle => Self::Settle,
            KindArg::Cycles => Self::Cycles,
            KindArg::Timeline => Self::Timeline,
        }
    }
}

/// A workload on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum WorkloadArg {
    /// What was read.
    Read,
    /// What was written.
    Write,
}

impl From<WorkloadArg> for Workload {
    fn from(workload: WorkloadArg) -> Self {
        match workload {
            WorkloadArg::Read => Self::Read,
            WorkloadArg::Write => Self::Write,
        }
    }
}

/// What must be known of the heap from the start of the process on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Counting {
    /// Calls and bytes.
    Calls,
    /// Every live block as well.
    Blocks,
}

/// What the process with these arguments must know of its heap. Asked before anything else is done, because what is
/// allocated earlier is not known.
pub(crate) fn counting<I: IntoIterator<Item = impl AsRef<OsStr>>>(
    arguments: impl Fn() -> I,
) -> Option<Counting> {
    if arguments().into_iter().nth(1)?.as_ref() == OsStr::new("plant") {
        return Some(Counting::Blocks);
    }
    match counting_worker(arguments())? {
        Kind::Explain => Some(Counting::Blocks),
        _ => Some(Counting::Calls),
    }
}

/// The kind of sample, where these are the arguments of a worker that counts its allocations. Asked before anything
/// else is done, because what is allocated before counting starts is not counted.
fn counting_worker(arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Option<Kind> {
    let mut arguments = arguments.into_iter().skip(1);
    for expected in ["worker", "--kind"] {
        if arguments.next()?.as_ref() != OsStr::new(expected) {
            return None;
        }
    }
    let given = arguments.next()?;
    // Nothing is allocated here, not even a kind's name.
    let name = |kind: &Kind| match kind {
        Kind::Heap => "heap",
        Kind::Rss => "rss",
        Kind::Explain => "explain",
        Kind::Settle => "settle",
        Kind::Cycles => "cycles",
        Kind::Timeline => "timeline",
    };
    let mut kinds = Kind::ALL.into_iter();
    let kind = kinds.find(|kind| given.as_ref() == OsStr::new(name(kind)))?;
    let mut is_told = || arguments.any(|argument| argument.as_ref() == OsStr::new("--counted"));
    (kind.counts() || is_told()).then_some(kind)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        <Cli as CommandFactory>::command().debug_assert();
    }

    #[test]
    fn only_workers_of_some_kinds_count() {
        for kind in Kind::ALL {
            let arguments = ["alloquet", "worker", "--kind", &kind.to_string()];
            assert_eq!(counting_worker(arguments), kind.counts().then_some(kind));
            let blocks = counting(|| arguments) == Some(Counting::Blocks);
            assert_eq!(blocks, kind == Kind::Explain);
        }
        assert_eq!(counting_worker(["alloquet", "env"]), None);
        assert_eq!(counting_worker(["worker", "--kind", "heap"]), None);
        let told = ["alloquet", "worker", "--kind", "rss", "--counted"];
        assert_eq!(counting_worker(told), Some(Kind::Rss));
    }
}
