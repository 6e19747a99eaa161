//! The command line as it is typed. What the arguments mean is decided by the commands.

use std::ffi::OsStr;

use alloquet_report::sample::Kind;
use clap::{Args, Parser, Subcommand, ValueEnum};

/// Measures which allocator, which settings and which buffer strategy should read or write a Parquet file.
#[derive(Debug, Parser)]
#[command(
    version,
    about,
    subcommand_required = true,
    arg_required_else_help = true
)]
pub(crate) struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Show this binary's allocator and settings, how it was built, and the machine.
    Env(EnvArgs),
    /// Take one sample: the job is read from standard input. Started by the other commands.
    #[command(hide = true)]
    Worker(WorkerArgs),
}

/// Arguments of `env`.
#[derive(Debug, Args)]
pub(crate) struct EnvArgs {
    /// How to show the facts.
    #[arg(long, value_enum, default_value_t = EnvFormat::Text)]
    pub(crate) format: EnvFormat,
}

/// How `env` shows facts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum EnvFormat {
    /// Lines for reading.
    Text,
    /// The form of `environment.json`.
    Json,
}

/// Arguments of `worker`.
#[derive(Debug, Args)]
pub(crate) struct WorkerArgs {
    /// What to measure.
    #[arg(long, value_enum)]
    pub(crate) kind: KindArg,
}

/// A sample's kind on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum KindArg {
    /// Count the heap.
    Heap,
    /// Leave the allocator bare.
    Rss,
}

impl From<KindArg> for Kind {
    fn from(kind: KindArg) -> Self {
        match kind {
            KindArg::Heap => Self::Heap,
            KindArg::Rss => Self::Rss,
        }
    }
}

/// Whether these are the arguments of a worker that counts its heap. Asked before anything else is done, because what
/// is allocated before counting starts is not counted.
pub(crate) fn is_heap_worker(arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> bool {
    let mut arguments = arguments.into_iter().skip(1);
    ["worker", "--kind", "heap"].iter().all(|expected| {
        arguments
            .next()
            .is_some_and(|argument| argument.as_ref() == OsStr::new(expected))
    })
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn only_a_heap_worker_counts() {
        assert!(is_heap_worker(["alloquet", "worker", "--kind", "heap"]));
        assert!(!is_heap_worker(["alloquet", "worker", "--kind", "rss"]));
        assert!(!is_heap_worker(["alloquet", "env"]));
        assert!(!is_heap_worker(["worker", "--kind", "heap"]));
    }
}
