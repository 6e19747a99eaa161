//! The workload `write`, control `upstream`: the parquet crate's `ArrowWriter` writes a file's
//! batches anew.
//!
//! The batches are decoded and held before the window, so they count as what was there before, and
//! what the allocator kept of the decoding is there for the writer to use. The output goes to a
//! nameless temporary file, which vanishes with the process however that ends, and is read back and
//! compared once the window is closed.

use std::fs::File;
use std::path::Path;

use alloquet_core::ReadStrategy;
use anyhow::{Context, Result, bail};
use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::file::properties::WriterProperties;

use super::checksum::Checksum;
use super::fold::Fold;
use super::job::Job;
use super::outcome::{Outcome, Work};
use super::properties::writer_properties;
use super::read::{open, options};
use super::window::Window;

pub(super) fn measure(job: &Job) -> Result<Outcome> {
    if job.strategy != "upstream" {
        bail!(
            "there is no write strategy `{}`; there is `upstream`",
            job.strategy
        );
    }
    let name = job.file.display();
    let input = decode(job).with_context(|| format!("cannot decode {name} to write it anew"))?;
    let properties = writer_properties(job)?;
    let output = temporary_file(&job.file)?;
    let target = output
        .try_clone()
        .context("cannot use the temporary file")?;
    let cannot_write = || format!("cannot write the batches of {name}");

    let window = Window::open(job.kind)?;
    write(target, &input, properties).with_context(cannot_write)?;
    let closed = window.close()?;
    let (measures, flags) = closed.after_drop()?;

    let file_bytes = output
        .metadata()
        .context("cannot look at the file written")?
        .len();
    let written = checksum_of(job, output)
        .with_context(|| format!("cannot read back what was written of {name}"))?;
    if written != input.checksum {
        bail!(
            "what was written of {name} reads back as other values: {written:016x}, not {:016x}",
            input.checksum
        );
    }
    let checksum = Some(input.checksum);
    Ok(Work {
        measures,
        flags,
        fold: input.fold,
        checksum,
        file_bytes,
        ledger: None,
        pages: None,
    }
    .into())
}

/// What is written, and what reading it back must give.
struct Input {
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
    fold: Fold,
    checksum: u64,
}

fn decode(job: &Job) -> Result<Input> {
    let builder = open(job)?
        .with_strategy(ReadStrategy::Upstream)
        .with_batch_size(job.batch_rows);
    let schema = SchemaRef::clone(builder.schema());
    let mut checksum = Checksum::new(&schema)?;
    let mut fold = Fold::default();
    let mut batches = Vec::new();
    for batch in builder.build()? {
        let batch = batch?;
        fold.add(&batch)?;
        checksum.add(&batch)?;
        batches.push(batch);
    }
    Ok(Input {
        schema,
        batches,
        fold,
        checksum: checksum.finish(),
    })
}

fn write(target: File, input: &Input, properties: WriterProperties) -> Result<()> {
    let mut writer =
        ArrowWriter::try_new(target, SchemaRef::clone(&input.schema), Some(properties))?;
    for batch in &input.batches {
        writer.write(batch)?;
    }
    writer.close()?;
    Ok(())
}

/// A file without a name: beside `input` if that folder takes one, so that it lies on the same
/// disk.
fn temporary_file(input: &Path) -> Result<File> {
    let beside = input.parent().map(tempfile::tempfile_in);
    match beside {
        Some(Ok(file)) => Ok(file),
        _ => tempfile::tempfile().context(
            "cannot make a temporary file to write to; set TMPDIR to a folder that takes one",
        ),
    }
}

fn checksum_of(job: &Job, file: File) -> Result<u64> {
    let reader = ParquetRecordBatchReaderBuilder::try_new_with_options(file, options(job)?)?
        .with_batch_size(job.batch_rows)
        .build()?;
    let mut checksum = Checksum::new(arrow_array::RecordBatchReader::schema(&reader).as_ref())?;
    for batch in reader {
        checksum.add(&batch?)?;
    }
    Ok(checksum.finish())
}
