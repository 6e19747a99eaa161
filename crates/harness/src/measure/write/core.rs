//! Core's writer in the window: so many open at once, batch by batch in turn.

use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;

use alloquet_core::strategy::Order;
use alloquet_core::{Ledger, WriteStrategy, Writer, WrittenFile};
use alloquet_report::sample::Situation;
use anyhow::Result;
use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use parquet::file::properties::WriterProperties;

use super::super::explain;
use super::copy::copy;
use super::input::Input;
use super::memory::MemoryCheck;
use super::{Ready, Sink};

/// Everything that can be made before the window.
pub(super) struct CoreLane<'a> {
    strategy: WriteStrategy,
    input: &'a Input,
    /// What is handed over at once where the table is resident.
    portions: Vec<Vec<RecordBatch>>,
    /// What each writer is told. It gets a copy that is made in the window, like all that is its own: a copy from before
    /// would be missing from the heap once it is dropped.
    properties: &'a WriterProperties,
    /// What each writer writes to.
    ready: Vec<File>,
    spill_folder: PathBuf,
    writers: Vec<Writer<File>>,
    written: Vec<WrittenFile>,
    ledgers: Vec<Arc<Ledger>>,
}

impl<'a> CoreLane<'a> {
    pub(super) fn new(
        strategy: WriteStrategy,
        input: &'a Input,
        properties: &'a WriterProperties,
        sinks: &[Sink],
    ) -> Result<Self> {
        let most_rows = properties.max_row_group_row_count().unwrap_or(usize::MAX);
        let portions = if is_column_wise(strategy) {
            input.row_groups(most_rows)
        } else {
            let batches = input.batches.iter();
            batches.map(|batch| vec![batch.clone()]).collect()
        };
        let ready = sinks
            .iter()
            .map(|sink| Ok(sink.file.try_clone()?))
            .collect::<Result<Vec<_>>>()?;
        Ok(Self {
            strategy,
            input,
            properties,
            portions,
            spill_folder: sinks
                .first()
                .map(|sink| sink.folder.clone())
                .unwrap_or_default(),
            writers: Vec::with_capacity(ready.len()),
            written: Vec::with_capacity(ready.len()),
            ledgers: Vec::with_capacity(ready.len()),
            ready,
        })
    }
}

impl Ready for CoreLane<'_> {
    fn write(&mut self, situation: Situation, mut memory: Option<&mut MemoryCheck>) -> Result<()> {
        for sink in self.ready.drain(..) {
            let properties = self.properties.clone();
            let schema = SchemaRef::clone(&self.input.schema);
            let writer = Writer::try_new(sink, schema, Some(properties))?
                .with_strategy(self.strategy)?
                .with_spill_folder(&self.spill_folder);
            let ledger = writer.ledger();
            explain::register(&ledger);
            self.ledgers.push(ledger);
            self.writers.push(writer);
        }
        // A writer tells what it holds from its first batch on, so all of them must have had it.
        let last = self.writers.len() - 1;
        let mut all_began = false;
        let mut look = |writers: &[Writer<File>], place: usize| {
            all_began |= place == last;
            if let Some(memory) = &mut memory
                && all_began
            {
                memory.look(writers.iter().map(Writer::memory_size).sum());
            }
        };
        match situation {
            Situation::Resident => {
                for portion in &self.portions {
                    for place in 0..self.writers.len() {
                        self.writers[place].write_table(portion)?;
                        look(&self.writers, place);
                    }
                }
            }
            Situation::Arriving => {
                for batch in &self.input.batches {
                    for place in 0..self.writers.len() {
                        let arrived = copy(batch)?;
                        self.writers[place].write(&arrived)?;
                        drop(arrived);
                        look(&self.writers, place);
                    }
                }
            }
        }
        for writer in self.writers.drain(..) {
            self.written.push(writer.close()?);
        }
        Ok(())
    }

    fn ledgers(&self) -> &[Arc<Ledger>] {
        &self.ledgers
    }
}

/// Whether a strategy encodes a whole row group column by column, and so takes it at once where the table is resident.
fn is_column_wise(strategy: WriteStrategy) -> bool {
    match strategy {
        WriteStrategy::UpstreamColumnWise => true,
        WriteStrategy::Owned(buffers) => buffers.order == Order::ColumnWise,
        _ => false,
    }
}
