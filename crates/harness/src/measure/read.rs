//! The workload `read`: a file's batches by a strategy, each folded and dropped before the next.
//!
//! Opening the file and reading its metadata come before the window: they are the same for every
//! strategy. Building the reader is in it, because buffers may be made there.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use alloquet_core::{PageInfo, ReadStrategy, ReaderBuilder};
use alloquet_report::sample::Kind;
use alloquet_report::verify::PAGES_NOT_LISTED;
use anyhow::{Context, Result, ensure};
use parquet::arrow::arrow_reader::ArrowReaderOptions;

use super::checksum::Checksum;
use super::explain::{self, Explanation};
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
    let leaf_columns = builder.parquet_schema().num_columns() as u64;
    let num_rows = builder.metadata().file_metadata().num_rows();
    let (mut checksum, pages) = match job.kind {
        // The heap of an `explain` sample must be that of a `heap` sample, call by call.
        Kind::Heap | Kind::Explain => (
            Some(Checksum::new(builder.schema())?),
            Some(listed(builder.pages())),
        ),
        Kind::Rss | Kind::Settle | Kind::Cycles | Kind::Timeline => (None, None),
    };
    let mut fold = Fold::default();

    if job.kind == Kind::Explain {
        explain::arm(job.conduct.peak_call.unwrap_or(0));
    }
    let window = Window::open(job.kind)?;
    let mut reader = builder.build().with_context(cannot_read)?;
    explain::register(&reader.ledger());
    for batch in &mut reader {
        let batch = batch.with_context(cannot_read)?;
        fold.add(&batch)?;
        if let Some(checksum) = &mut checksum {
            checksum.add(&batch)?;
        }
    }
    let closed = window.close()?;
    let explanation = explained(job)?;
    let ledger = reader.ledger();
    drop(reader);
    let (measures, mut flags) = closed.after_drop()?;
    if pages == Some(None) {
        flags.push(PAGES_NOT_LISTED.to_owned());
    }
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
        leaf_columns,
        memory_size_error: None,
        ledger: Some(LedgerFacts::from(&ledger.peak())),
        pages: pages.flatten(),
        parts: explanation.map_or_else(Vec::new, |explanation| explanation.parts),
        points: Vec::new(),
    };
    Ok(work.into())
}

/// Where memory was at the peak, of an `explain` sample.
pub(super) fn explained(job: &Job) -> Result<Option<Explanation>> {
    (job.kind == Kind::Explain).then(explain::take).transpose()
}

/// What there is to say of a file's pages, if core can list them. `upstream` reads without core's page headers, so
/// that these cannot be listed must not fail it; every other strategy meets the same error when it reads.
fn listed<E>(pages: Result<Vec<PageInfo>, E>) -> Option<PageFacts> {
    pages.ok().as_deref().map(PageFacts::of)
}

/// Opens the job's file and reads its metadata.
pub(super) fn open(job: &Job) -> Result<ReaderBuilder<File>> {
    let name = job.file.display();
    // A FIFO or a device would be waited for.
    let found = std::fs::metadata(&job.file).with_context(|| format!("cannot read {name}"))?;
    ensure!(found.is_file(), "cannot read {name}: it is no regular file");
    let file = File::open(&job.file).with_context(|| format!("cannot open {name}"))?;
    let builder = ReaderBuilder::try_new_with_options(file, options(job)?).with_context(|| {
        let hint = if job.keys.is_none() && is_encrypted(&job.file) {
            "; it is encrypted: give its keys with --key-file or ALLOQUET_KEYS"
        } else {
            ""
        };
        format!("cannot read the Parquet metadata of {name}{hint}")
    })?;
    let metadata = builder.metadata();
    let in_groups: i64 = metadata
        .row_groups()
        .iter()
        .map(|group| group.num_rows())
        .sum();
    ensure!(
        in_groups == metadata.file_metadata().num_rows(),
        "the metadata of {name} contradicts itself: {} rows, and {in_groups} in its row groups",
        metadata.file_metadata().num_rows()
    );
    Ok(builder)
}

/// Whether a file ends as one with an encrypted footer does.
fn is_encrypted(path: &Path) -> bool {
    let ending = || -> std::io::Result<[u8; 4]> {
        let mut file = File::open(path)?;
        let mut magic = [0; 4];
        file.seek(SeekFrom::End(-4))?;
        file.read_exact(&mut magic)?;
        Ok(magic)
    };
    ending().is_ok_and(|magic| magic == *b"PARE")
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_that_cannot_be_listed_are_no_error() {
        assert_eq!(listed(Err("a header that only upstream understands")), None);
        let none = PageFacts {
            largest_stored_bytes: 0,
            largest_bytes: 0,
        };
        assert_eq!(listed(Ok::<_, ()>(Vec::new())), Some(none));
    }
}
