//! Alloquet measures which allocator, which allocator settings and which buffer strategy should
//! read or write a Parquet file. This binary has one allocator; it measures itself in fresh
//! processes, one for each sample.

#![deny(unsafe_code)]

#[expect(
    unsafe_code,
    reason = "a global allocator and reading back its settings need it"
)]
mod allocator;
mod cli;
mod cmd;
mod interruption;
mod measure;
mod output;
mod plan;
mod run;
mod settings;
#[expect(unsafe_code, reason = "libc's version has no safe binding")]
mod sys;

use std::process::ExitCode;

use self::cli::{Cli, Command, Counting};

fn main() -> ExitCode {
    if let Some(error) = cmd::worker::join_group(std::env::args_os()) {
        output::remark(format_args!("error: {error}"));
        return ExitCode::FAILURE;
    }
    match cli::counting(std::env::args_os) {
        Some(Counting::Blocks) => measure::explain::start(),
        Some(Counting::Calls) => allocator::start_counting(),
        None => {}
    }
    let done = match Cli::command() {
        Command::Run(args) => cmd::run::run(&args),
        Command::Read(args) => cmd::read::run(&args),
        Command::Write(args) => cmd::write::run(&args),
        Command::Explain(args) => cmd::explain::run(&args),
        Command::Timeline(args) => cmd::timeline::run(&args).map(|()| ExitCode::SUCCESS),
        Command::Fit(args) => cmd::fit::run(&args),
        Command::Generate(args) => cmd::generate::run(&args).map(|()| ExitCode::SUCCESS),
        Command::List(args) => cmd::list::run(&args).map(|()| ExitCode::SUCCESS),
        Command::Table(args) => cmd::table::run(&args).map(|()| ExitCode::SUCCESS),
        Command::Aa(args) => cmd::aa::run(&args).map(|()| ExitCode::SUCCESS),
        Command::Env(args) => cmd::env::run(&args).map(|()| ExitCode::SUCCESS),
        Command::Plant(args) => cmd::plant::run(&args).map(|()| ExitCode::SUCCESS),
        Command::Worker(args) => Ok(cmd::worker::run(&args)),
    };
    done.unwrap_or_else(|error| {
        output::remark(format_args!("error: {}", output::message(&error)));
        ExitCode::FAILURE
    })
}
