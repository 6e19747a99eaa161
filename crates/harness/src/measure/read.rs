//! The workload `read`: a file's batches by a strategy, each folded and dropped before the next.
//!
//! Opening the file and reading its metadata come before the window: they are the same for every
//! strategy. Building the reader is in it, because buffers may be made there.

use std::fs::File;

use alloquet_core::{ReadStrategy, ReaderBuilder};
use alloquet_report::sample::Kind;
use anyhow::{Context, Result, ensure};
use parquet::arrow::arrow_reader::ArrowReaderOptions;

use super::checksum::Checksum;
use super::fold::Fold;
use super::job::Job;
use super::outcome::{LedgerFacts, Outcome, PageFacts, Work};
use super::window::Window;

pub(super) fn measure(job: &Job) -> Result<Outcome> {
    let strategy: ReadStrategy = job.strategy.parse()?;
    let name = job.file.display();
    let cannot_read = || format!("cannot read {name} with strategy {strategy}");

    let builder = open(job)?
        .with_strategy(strategy)
        .with_batch_size(job.batch_rows);
    let file_bytes = std::fs::metadata(&job.file)
        .with_context(|| format!("cannot read {name}"))?
        .len();
    let num_rows = builder.metadata().file_metadata().num_rows();
    let (mut checksum, pages) = match job.kind {
        Kind::Heap => (
            Some(Checksum::new(builder.schema())?),
            Some(PageFacts::of(&builder.pages().with_context(cannot_read)?)),
        ),
        Kind::Rss => (None, None),
    };
    let mut fold = Fold::default();

    let window = Window::open(job.kind)?;
    let mut reader = builder.build().with_context(cannot_read)?;
    for batch in &mut reader {
        let batch = batch.with_context(cannot_read)?;
        fold.add(&batch)?;
        if let Some(checksum) = &mut checksum {
            checksum.add(&batch)?;
        }
    }
    let closed = window.close()?;
    let ledger = reader.ledger();
    drop(reader);
    let (measures, flags) = closed.after_drop()?;
    // A reader that stops early must not pass for a fast one.
    ensure!(
        i64::try_from(fold.rows()) == Ok(num_rows),
        "{name} gave {} rows with strategy {strategy}, and its metadata says {num_rows}",
        fold.rows()
    );

    let work = Work {
        measures,
        flags,
        fold,
        checksum: checksum.map(|checksum| checksum.finish()),
        file_bytes,
        ledger: Some(LedgerFacts::from(&ledger.peak())),
        pages,
    };
    Ok(work.into())
}

/// Opens the job's file and reads its metadata.
pub(super) fn open(job: &Job) -> Result<ReaderBuilder<File>> {
    let name = job.file.display();
    let file = File::open(&job.file).with_context(|| format!("cannot open {name}"))?;
    ReaderBuilder::try_new_with_options(file, options(job)?)
        .with_context(|| format!("cannot read the Parquet metadata of {name}"))
}

/// The options that the job's keys make.
pub(super) fn options(job: &Job) -> Result<ArrowReaderOptions> {
    let options = ArrowReaderOptions::new();
    Ok(match &job.keys {
        Some(keys) => {
            let keys = keys.decryption_properties();
            options
                .with_file_decryption_properties(keys.context("cannot use the keys of the file")?)
        }
        None => options,
    })
}
