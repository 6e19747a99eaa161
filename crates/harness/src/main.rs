//! Alloquet measures which allocator, which allocator settings and which buffer strategy should read or write a
//! Parquet file. This binary has one allocator; it measures itself in fresh processes, one for each sample.

#![deny(unsafe_code)]

#[expect(
    unsafe_code,
    reason = "a global allocator and reading back its settings need it"
)]
mod allocator;
mod cli;
mod cmd;
mod measure;
#[expect(unsafe_code, reason = "libc's version has no safe binding")]
mod sys;

use std::process::ExitCode;

use clap::Parser;

use self::cli::{Cli, Command};

fn main() -> ExitCode {
    if cli::is_heap_worker(std::env::args_os()) {
        allocator::start_counting();
    }
    let done = match Cli::parse().command {
        Command::Env(args) => cmd::env::run(&args),
        Command::Worker(args) => return cmd::worker::run(&args),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
