//! The workload `write`: a file's batches are written anew, by any strategy, in one of two situations.
//!
//! The batches are decoded and held before the window, so they count as what was there before; what decoding them
//! left free in the allocator is given back. The output goes to nameless temporary files, which vanish with the process
//! however that ends, and is read back and compared once the window is closed.

mod copy;
mod core;
#[cfg(feature = "upstream-eager")]
mod eager;
mod input;
mod lane;
mod memory;
mod verify;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use alloquet_core::{Ledger, WriteStrategy};
use alloquet_report::parts::Part;
use alloquet_report::sample::{Kind, Situation};
use alloquet_report::verify::{MEMORY_SIZE_OFF, NOT_PURGED, PAGES_NOT_LISTED};
use anyhow::{Context, Result};
use parquet::arrow::ArrowSchemaConverter;
use parquet::file::properties::WriterProperties;
use parquet::schema::types::SchemaDescriptor;

use self::core::CoreLane;
#[cfg(feature = "upstream-eager")]
use self::eager::EagerLane;
use self::input::Input;
pub(crate) use self::lane::{WriteLane, write_strategies};
use self::memory::{MemoryCheck, TOLERANCE};
use super::explain;
use super::job::Job;
use super::outcome::{LedgerFacts, Outcome, Work};
use super::properties::writer_properties;
use super::read::explained;
use super::window::{Measures, Window};
use crate::allocator;

pub(super) fn measure(job: &Job) -> Result<Outcome> {
    let lane: WriteLane = job.strategy.parse()?;
    lane.check_build()?;
    let name = job.file.display();
    let mut input =
        Input::decode(job).with_context(|| format!("cannot decode {name} to write it anew"))?;
    let (properties, columns) = told(job, &input)?;
    let sinks = (0..job.writing.writers)
        .map(|_| Sink::beside(&job.file))
        .collect::<Result<Vec<_>>>()?;

    let ready = ready(lane, &mut input, &properties, &columns, &sinks)?;
    let run = run(job, ready).with_context(|| {
        let folder = sinks.first().map(|sink| sink.folder.display().to_string());
        format!(
            "cannot write the batches of {name} with strategy {lane} (to a temporary file in {})",
            folder.unwrap_or_default()
        )
    })?;

    let first = sinks.first().context("a write needs a writer")?;
    let file_bytes = first.length().context("cannot look at the file written")?;
    let pages = match job.kind {
        Kind::Heap => Some(verify::pages(job, &first.file)),
        _ => None,
    };
    for sink in sinks {
        verify::reads_back(job, sink.file, &input)
            .with_context(|| format!("cannot read back what was written of {name}"))?;
    }
    let mut flags = run.flags;
    if !allocator::purges() {
        flags.push(NOT_PURGED.to_owned());
    }
    if pages == Some(None) {
        flags.push(PAGES_NOT_LISTED.to_owned());
    }
    // The controls say of themselves what the parquet crate says: that is a finding, not a fault.
    let is_owned = matches!(lane, WriteLane::Core(WriteStrategy::Owned(_)));
    if is_owned && run.memory_size_error.is_some_and(|off| off > TOLERANCE) {
        flags.push(MEMORY_SIZE_OFF.to_owned());
    }
    Ok(Work {
        measures: run.measures,
        flags,
        fold: input.fold,
        checksum: Some(input.checksum),
        file_bytes,
        leaf_columns: columns.num_columns() as u64,
        memory_size_error: run.memory_size_error,
        ledger: ledger_facts(&run.ledgers),
        pages: pages.flatten(),
        parts: run.parts,
        points: Vec::new(),
    }
    .into())
}

/// What the writer is told, and the file's columns.
fn told(job: &Job, input: &Input) -> Result<(WriterProperties, SchemaDescriptor)> {
    let properties = writer_properties(job)?;
    let columns = ArrowSchemaConverter::new()
        .with_coerce_types(properties.coerce_types())
        .convert(&input.schema)
        .with_context(|| format!("the batches of {} cannot be Parquet", job.file.display()))?;
    Ok((job.writing.changes.apply(properties, &columns), columns))
}

/// A lane with everything made that can be made before the window.
trait Ready {
    /// The work of the window. What it leaves is held until `self` is dropped. A lane that can say how much memory it
    /// holds has that compared after each batch.
    fn write(&mut self, situation: Situation, memory: Option<&mut MemoryCheck>) -> Result<()>;

    /// The ledgers of its writers.
    fn ledgers(&self) -> &[Arc<Ledger>] {
        &[]
    }
}

#[cfg_attr(
    not(feature = "upstream-eager"),
    expect(unused_variables, reason = "the other lane needs the file's columns")
)]
fn ready<'a>(
    lane: WriteLane,
    input: &'a mut Input,
    properties: &'a WriterProperties,
    columns: &SchemaDescriptor,
    sinks: &[Sink],
) -> Result<Box<dyn Ready + 'a>> {
    Ok(match lane {
        WriteLane::Core(strategy) => Box::new(CoreLane::new(strategy, input, properties, sinks)?),
        #[cfg(feature = "upstream-eager")]
        WriteLane::UpstreamEager => Box::new(EagerLane::new(input, properties, columns, sinks)?),
        #[cfg(not(feature = "upstream-eager"))]
        WriteLane::UpstreamEager => anyhow::bail!("this build has no strategy '{lane}'"),
    })
}

/// What came of the window.
struct Run {
    measures: Measures,
    flags: Vec<String>,
    ledgers: Vec<Arc<Ledger>>,
    parts: Vec<Part>,
    memory_size_error: Option<f64>,
}

/// Gives back what is free in the allocator, and writes in a window.
fn run(job: &Job, mut ready: Box<dyn Ready + '_>) -> Result<Run> {
    allocator::purge();
    if job.kind == Kind::Explain {
        explain::arm(job.conduct.peak_call.unwrap_or(0));
    }
    let window = Window::open(job.kind)?;
    let mut memory = matches!(job.kind, Kind::Heap | Kind::Explain).then(MemoryCheck::start);
    ready.write(job.writing.situation, memory.as_mut())?;
    let closed = window.close()?;
    let explanation = explained(job)?;
    let ledgers = ready.ledgers().to_vec();
    drop(ready);
    let (measures, flags) = closed.after_drop()?;
    Ok(Run {
        measures,
        flags,
        ledgers,
        parts: explanation.map_or_else(Vec::new, |explanation| explanation.parts),
        memory_size_error: memory.and_then(|memory| memory.worst()),
    })
}

/// What the ledgers of all writers say together, each at its own peak; `None` where they know nothing.
fn ledger_facts(ledgers: &[Arc<Ledger>]) -> Option<LedgerFacts> {
    let mut sum = LedgerFacts::default();
    for ledger in ledgers {
        let facts = LedgerFacts::from(&ledger.peak());
        sum.total_bytes += facts.total_bytes;
        for (purpose, bytes) in facts.by_purpose {
            *sum.by_purpose.entry(purpose).or_default() += bytes;
        }
    }
    (sum.total_bytes > 0).then_some(sum)
}

/// A file without a name to write to.
struct Sink {
    file: File,
    /// Where it lies, and where a writer's own temporary files are to lie.
    folder: PathBuf,
}

impl Sink {
    /// Beside `input` if that folder takes one, so that it lies on the same disk.
    fn beside(input: &Path) -> Result<Self> {
        let temporary = std::env::temp_dir();
        let beside = match input.parent() {
            Some(folder) if folder != Path::new("") => folder,
            _ => Path::new("."),
        };
        for folder in [beside, &temporary] {
            if let Ok(file) = tempfile::tempfile_in(folder) {
                return Ok(Self {
                    file,
                    folder: folder.to_owned(),
                });
            }
        }
        let file = tempfile::tempfile().context(
            "cannot make a temporary file to write to, neither beside the input nor in TMPDIR",
        )?;
        Ok(Self {
            file,
            folder: temporary,
        })
    }

    fn length(&self) -> std::io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }
}
