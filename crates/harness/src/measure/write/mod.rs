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
use std::io::{self, Seek};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use alloquet_core::{Ledger, WriteStrategy};
use alloquet_report::sample::{Kind, Situation};
use alloquet_report::verify::{MEMORY_SIZE_OFF, NOT_PURGED, PAGES_NOT_LISTED};
use anyhow::{Context, Result, ensure};
use parquet::arrow::ArrowSchemaConverter;
use parquet::file::properties::WriterProperties;
use parquet::schema::types::SchemaDescriptor;

use self::core::CoreLane;
#[cfg(feature = "upstream-eager")]
use self::eager::{EagerLane, EagerTable};
use self::input::Input;
pub(crate) use self::lane::{WriteLane, write_strategies};
use self::memory::{MemoryCheck, TOLERANCE};
use super::conduct::take;
use super::job::Job;
use super::outcome::{LedgerFacts, Outcome, Work};
use super::properties::writer_properties;
use super::task::{Facts, Task};
use crate::allocator;

pub(super) fn measure(job: &Job) -> Result<Outcome> {
    let lane: WriteLane = job.strategy.parse()?;
    lane.check_build()?;
    let name = job.file.display();
    let mut input =
        Input::decode(job).with_context(|| format!("cannot decode {name} to write it anew"))?;
    let (properties, columns) = told(job, &input)?;
    let writers = job.writing.writers;
    let sinks = (0..writers * job.conduct.concurrent)
        .map(|_| Sink::beside(&job.file))
        .collect::<Result<Vec<_>>>()?;

    let lane = Lane::new(lane, &mut input)?;
    let taken = take(job, job.conduct.concurrent, |number| {
        let sinks = &sinks[number * writers..][..writers];
        sinks.iter().try_for_each(Sink::empty)?;
        Ok(WriteTask {
            job,
            ready: lane.ready(&input, &properties, &columns, sinks)?,
            sinks,
            memory: None,
        })
    })?;

    let first = sinks.first().context("a write needs a writer")?;
    let file_bytes = first.length().context("cannot look at the file written")?;
    let pages = match job.kind {
        Kind::Heap => Some(verify::pages(job, &first.file)),
        _ => None,
    };
    for sink in &sinks {
        let file = sink.file.try_clone()?;
        verify::reads_back(job, file, &input)
            .with_context(|| format!("cannot read back what was written of {name}"))?;
    }
    let mut flags = taken.flags;
    if !allocator::purges() && !flags.iter().any(|flag| flag == NOT_PURGED) {
        flags.push(NOT_PURGED.to_owned());
    }
    if pages == Some(None) {
        flags.push(PAGES_NOT_LISTED.to_owned());
    }
    let memory_size_error = match &taken.facts[..] {
        [facts] => facts.memory_size_error,
        _ => None,
    };
    if lane.is_owned() && memory_size_error.is_some_and(|off| off > TOLERANCE) {
        flags.push(MEMORY_SIZE_OFF.to_owned());
    }
    Ok(Work {
        measures: taken.measures,
        flags,
        fold: input.fold,
        checksum: Some(input.checksum),
        file_bytes,
        leaf_columns: columns.num_columns() as u64,
        memory_size_error,
        ledger: ledger_facts(&taken.facts),
        copying: None,
        pages: pages.flatten(),
        parts: taken
            .explanation
            .map_or_else(Vec::new, |explanation| explanation.parts),
        points: taken.points,
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

/// A lane, with what all its writers share.
enum Lane {
    Core(WriteStrategy),
    #[cfg(feature = "upstream-eager")]
    Eager(EagerTable),
}

impl Lane {
    /// Takes from `input` what the lane holds in a form of its own, so that the table is in memory once.
    fn new(lane: WriteLane, input: &mut Input) -> Result<Self> {
        Ok(match lane {
            WriteLane::Core(strategy) => Self::Core(strategy),
            #[cfg(feature = "upstream-eager")]
            WriteLane::UpstreamEager => Self::Eager(EagerTable::new(input)?),
            #[cfg(not(feature = "upstream-eager"))]
            WriteLane::UpstreamEager => {
                anyhow::bail!(
                    "this build has no strategy '{lane}' for {} batches",
                    input.batches.len()
                )
            }
        })
    }

    #[cfg_attr(
        not(feature = "upstream-eager"),
        expect(unused_variables, reason = "the other lane needs the file's columns")
    )]
    fn ready<'a>(
        &'a self,
        input: &'a Input,
        properties: &'a WriterProperties,
        columns: &SchemaDescriptor,
        sinks: &[Sink],
    ) -> Result<Box<dyn Ready + 'a>> {
        Ok(match self {
            Self::Core(strategy) => Box::new(CoreLane::new(*strategy, input, properties, sinks)?),
            #[cfg(feature = "upstream-eager")]
            Self::Eager(table) => Box::new(EagerLane::new(table, properties, columns, sinks)?),
        })
    }

    /// Whether it is a strategy of core's own. The controls say of themselves what the parquet crate says: that is a
    /// finding, not a fault.
    fn is_owned(&self) -> bool {
        matches!(self, Self::Core(WriteStrategy::Owned(_)))
    }
}

/// A lane with everything made that can be made before the window.
trait Ready: Send {
    /// The work of the window. What it leaves is held until `self` is dropped. A lane that can say how much memory it
    /// holds has that compared after each batch.
    fn write(&mut self, situation: Situation, memory: Option<&mut MemoryCheck>) -> Result<()>;

    /// The ledgers of its writers.
    fn ledgers(&self) -> &[Arc<Ledger>] {
        &[]
    }
}

/// The writers that one thread has open at once.
struct WriteTask<'a> {
    job: &'a Job,
    ready: Box<dyn Ready + 'a>,
    sinks: &'a [Sink],
    memory: Option<MemoryCheck>,
}

impl Task for WriteTask<'_> {
    type Facts = WriteFacts;

    fn perform(&mut self) -> Result<()> {
        // Beside other threads nobody can tell what is whose.
        let is_checked = matches!(self.job.kind, Kind::Heap | Kind::Explain);
        let is_checked = is_checked && self.job.conduct.concurrent == 1;
        self.memory = is_checked.then(MemoryCheck::start);
        let written = self
            .ready
            .write(self.job.writing.situation, self.memory.as_mut());
        written.with_context(|| {
            let folder = self.sinks.first().map(|sink| sink.folder.display());
            format!(
                "cannot write the batches of {} with strategy {} (to a temporary file in {})",
                self.job.file.display(),
                self.job.strategy,
                folder.map(|folder| folder.to_string()).unwrap_or_default()
            )
        })
    }

    fn finish(self) -> WriteFacts {
        let ledgers = self.ready.ledgers().to_vec();
        drop(self.ready);
        WriteFacts {
            ledgers,
            memory_size_error: self.memory.and_then(|memory| memory.worst()),
            file_bytes: self.sinks.first().and_then(|sink| sink.length().ok()),
        }
    }
}

/// What is left of writers. What they wrote lies in their files and is read back at the end.
struct WriteFacts {
    ledgers: Vec<Arc<Ledger>>,
    memory_size_error: Option<f64>,
    file_bytes: Option<u64>,
}

impl Facts for WriteFacts {
    fn check_same(&self, before: &Self) -> Result<()> {
        ensure!(
            self.file_bytes == before.file_bytes,
            "the file written is {} bytes long and not {}",
            self.file_bytes.unwrap_or(0),
            before.file_bytes.unwrap_or(0)
        );
        Ok(())
    }

    fn shrink(&mut self) {
        self.ledgers = Vec::new();
    }
}

/// What the ledgers of all writers say together, each at its own peak; `None` where they know nothing.
fn ledger_facts(facts: &[WriteFacts]) -> Option<LedgerFacts> {
    let mut sum = LedgerFacts::default();
    for ledger in facts.iter().flat_map(|facts| &facts.ledgers) {
        sum.add(LedgerFacts::from(&ledger.peak()));
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

    fn length(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    /// Forgets what was written before.
    fn empty(&self) -> io::Result<()> {
        self.file.set_len(0)?;
        (&self.file).rewind()
    }
}
