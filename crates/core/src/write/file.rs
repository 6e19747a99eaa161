//! [`FileWriter`]: this crate's writer of one file, in either order of its columns.

use std::io::Write;
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, SchemaRef};
use parquet::arrow::{ArrowSchemaConverter, add_encoded_arrow_schema_to_metadata};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::{KeyValue, SortingColumn};
use parquet::file::properties::WriterProperties;

use super::account::Account;
use super::column::plan::{ColumnPlan, FilePlan, plan_column, refuse_byte_limit};
use super::column::{ColumnWriter, Scratch, Shared};
use super::compress::{self, Compressor};
use super::encode::Growth;
use super::footer::{Footer, RowGroup};
use super::output::Output;
use super::pages::Spill;
use super::table::Piece;
use super::upstream_column::{SharedOutput, SharedSpill, UpstreamColumn, lock, lock_spill};
use super::written::{Metadata, WrittenFile};
use crate::ledger::{Ledger, Purpose};
use crate::strategy::{EncoderBuffers, Order, PageSink};

/// Who writes a field.
enum Route {
    Own(Arc<ColumnPlan>),
    Upstream,
}

/// A column of the row group that has begun.
enum Open<W: Write + Send> {
    Own(Box<ColumnWriter>),
    Upstream(Box<UpstreamColumn<W>>),
}

/// A file under construction.
pub(super) struct FileWriter<W: Write + Send> {
    output: SharedOutput<W>,
    schema: SchemaRef,
    /// For the columns that the parquet crate writes.
    properties: WriterProperties,
    sorting: Option<Vec<SortingColumn>>,
    routes: Vec<Route>,
    /// The first leaf column of each field.
    leaves: Vec<usize>,
    footer: Footer,
    row_groups: Vec<RowGroup>,
    /// Of all of them, in the heap.
    row_group_bytes: usize,
    shared: Shared,
    /// The pages of columns that the parquet crate writes.
    upstream_spill: SharedSpill,
    /// The columns of the row group that has begun, where they are all open.
    open: Vec<Open<W>>,
    open_rows: usize,
    account: Account,
}

impl<W: Write + Send> FileWriter<W> {
    /// Begins a file.
    ///
    /// # Errors
    /// The properties ask for what this writer does not do, a column cannot be written so, or the sink
    /// fails.
    pub(super) fn try_new(
        sink: W,
        schema: SchemaRef,
        mut properties: WriterProperties,
        buffers: EncoderBuffers,
        spill_folder: &Path,
        ledger: Arc<Ledger>,
    ) -> Result<Self> {
        let plan = FilePlan::new(&properties)?;
        if schema.fields().is_empty() {
            return Err(ParquetError::General(
                "a file without columns cannot be written".into(),
            ));
        }
        if buffers.order == Order::ColumnWise {
            refuse_byte_limit(&properties)?;
        }
        let parquet_schema = ArrowSchemaConverter::new()
            .with_coerce_types(properties.coerce_types())
            .convert(&schema)?;
        let parquet_schema = Arc::new(parquet_schema);
        let mut routes = Vec::with_capacity(schema.fields().len());
        let mut first_leaves = Vec::with_capacity(schema.fields().len());
        let mut leaf = 0;
        for (field, arrow) in schema.fields().iter().enumerate() {
            // A nested field has several leaves, or one that is deeper than its root.
            let leaves = (leaf..parquet_schema.num_columns())
                .take_while(|leaf| parquet_schema.get_column_root_idx(*leaf) == field)
                .count();
            let descriptor = parquet_schema.column(leaf);
            let flat = leaves == 1
                && descriptor.path().parts().len() == 1
                && descriptor.max_rep_level() == 0
                && !is_nested(arrow.data_type());
            let own = if flat {
                plan_column(&descriptor, &properties)?
                    .filter(|plan| compress::is_supported(plan.compression))
            } else {
                None
            };
            routes.push(own.map_or(Route::Upstream, |plan| Route::Own(Arc::new(plan))));
            first_leaves.push(leaf);
            leaf += leaves;
        }
        add_encoded_arrow_schema_to_metadata(&schema, &mut properties);
        let footer = Footer::new(&parquet_schema, &properties)?;
        drop(parquet_schema);
        // What is in the footer and in the plans is not kept a second time.
        let sorting = properties.sorting_columns().cloned();
        let upstream = routes.iter().any(|route| matches!(route, Route::Upstream));
        let properties = if upstream {
            properties
                .into_builder()
                .set_key_value_metadata(None)
                .set_sorting_columns(None)
                .set_max_row_group_row_count(None)
                .set_max_row_group_bytes(None)
                .build()
        } else {
            WriterProperties::default()
        };
        let mut output = Output::new(sink);
        output.write_all(b"PAR1")?;
        let columns = leaf;
        let mut writer = Self {
            output: Arc::new(Mutex::new(output)),
            schema,
            properties,
            sorting,
            routes,
            leaves: first_leaves,
            footer,
            row_groups: Vec::new(),
            row_group_bytes: 0,
            shared: Shared {
                file: plan,
                buffers,
                growth: Growth::new(buffers.encode),
                scratch: Scratch::default(),
                compressor: Compressor::default(),
                spill: Spill::new(spill_folder),
            },
            upstream_spill: Arc::new(Mutex::new(Spill::new(spill_folder))),
            open: Vec::new(),
            open_rows: 0,
            account: Account::new(ledger, columns),
        };
        writer.charge_shared();
        Ok(writer)
    }

    /// Encodes rows of a batch into the row group that has begun, or begins one.
    ///
    /// # Errors
    /// The batch does not fit, or pages cannot be stored.
    pub(super) fn write(&mut self, batch: &RecordBatch, rows: Range<usize>) -> Result<()> {
        if self.open.is_empty() {
            self.open_columns()?;
        }
        let mut open = std::mem::take(&mut self.open);
        let mut result = Ok(());
        for (field, column) in open.iter_mut().enumerate() {
            let array = batch.column(field);
            result = match column {
                Open::Own(writer) => {
                    let mut context = self.shared.context(None);
                    let written = writer.write(array.as_ref(), rows.clone(), &mut context);
                    self.account.column(self.leaves[field], writer.heap());
                    written
                }
                Open::Upstream(writer) => {
                    let written = writer.write(array, rows.clone());
                    self.account
                        .upstream(self.leaves[field], writer.memory_size());
                    written
                }
            }
            .map_err(|error| named(&self.schema, field, error));
            if result.is_err() {
                break;
            }
            self.charge_scratch();
        }
        self.open = open;
        self.open_rows += rows.len();
        self.charge_shared();
        result
    }

    fn open_columns(&mut self) -> Result<()> {
        self.open.reserve_exact(self.routes.len());
        for (field, route) in self.routes.iter().enumerate() {
            let column = open_column(
                route,
                field,
                &self.schema,
                &self.properties,
                (&self.output, &self.upstream_spill),
                (self.shared.buffers, &self.shared.growth),
            )?;
            if let Open::Own(writer) = &column {
                self.account.column(self.leaves[field], writer.heap());
            }
            self.open.push(column);
        }
        self.charge_shared();
        Ok(())
    }

    /// Ends the row group whose columns are all open.
    ///
    /// # Errors
    /// Pages cannot be stored, or the sink fails.
    pub(super) fn flush(&mut self) -> Result<()> {
        if self.open.is_empty() {
            return Ok(());
        }
        let mut row_group = self.begin_row_group();
        let open = std::mem::take(&mut self.open);
        for (field, column) in open.into_iter().enumerate() {
            self.close_column(field, column, &mut row_group)
                .map_err(|error| named(&self.schema, field, error))?;
        }
        self.clear_spills()?;
        row_group.rows = self.open_rows as u64;
        self.open_rows = 0;
        self.end_row_group(row_group);
        Ok(())
    }

    /// Writes a row group column by column.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub(super) fn write_row_group(&mut self, pieces: &[Piece<'_>]) -> Result<()> {
        self.flush()?;
        let mut row_group = self.begin_row_group();
        for field in 0..self.routes.len() {
            self.write_column(field, pieces, &mut row_group)
                .map_err(|error| named(&self.schema, field, error))?;
            self.clear_spills()?;
        }
        row_group.rows = pieces.iter().map(|piece| piece.rows as u64).sum();
        self.end_row_group(row_group);
        Ok(())
    }

    fn write_column(
        &mut self,
        field: usize,
        pieces: &[Piece<'_>],
        row_group: &mut RowGroup,
    ) -> Result<()> {
        let mut column = open_column(
            &self.routes[field],
            field,
            &self.schema,
            &self.properties,
            (&self.output, &self.upstream_spill),
            (self.shared.buffers, &self.shared.growth),
        )?;
        for piece in pieces {
            let array: &ArrayRef = piece.batch.column(field);
            let rows = piece.offset..piece.offset + piece.rows;
            match &mut column {
                Open::Upstream(writer) => {
                    writer.write(array, rows)?;
                    self.account
                        .upstream(self.leaves[field], writer.memory_size());
                }
                Open::Own(writer) => {
                    let mut output = lock(&self.output);
                    let mut context = self.shared.context(Some(&mut *output));
                    writer.write(array.as_ref(), rows, &mut context)?;
                    drop(output);
                    self.account.column(self.leaves[field], writer.heap());
                    self.charge_scratch();
                }
            }
        }
        self.close_column(field, column, row_group)
    }

    /// Ends a column chunk: its pages go to the file, its metadata to the row group.
    fn close_column(
        &mut self,
        field: usize,
        column: Open<W>,
        row_group: &mut RowGroup,
    ) -> Result<()> {
        let mut writer = match column {
            Open::Own(writer) => writer,
            Open::Upstream(writer) => {
                writer.finish(row_group)?;
                self.account.upstream(self.leaves[field], 0);
                self.account.metadata(self.metadata_bytes(row_group));
                return Ok(());
            }
        };
        let mut output = lock(&self.output);
        let mut context = self.shared.context(Some(&mut *output));
        writer.finish(&mut context)?;
        self.account.column(self.leaves[field], writer.heap());
        for page in writer.take_pages() {
            self.shared.spill.copy_to(&page, &mut *output)?;
        }
        let chunk = writer.metadata();
        let start = output.position() - chunk.stored();
        let end = output.position();
        let bloom = writer.take_bloom(&self.shared.file);
        let bloom = match bloom {
            Some(filter) => {
                filter.write(&mut *output)?;
                Some((end, (output.position() - end) as u32))
            }
            None => None,
        };
        drop(output);
        let (chunk, plan) = (writer.metadata(), writer.plan());
        row_group.push(
            |out| {
                let name = self.schema.field(field).name();
                chunk.write_metadata(out, name, start, bloom, plan, &self.shared.file);
            },
            |out| chunk.write_column_index(out, plan),
            |out| {
                if self.shared.file.offset_index {
                    chunk.write_offset_index(out, start, plan);
                }
            },
        );
        row_group.uncompressed += chunk.uncompressed();
        row_group.stored += chunk.stored();
        drop(writer);
        self.account.column(self.leaves[field], Default::default());
        self.charge_scratch();
        self.account.metadata(self.metadata_bytes(row_group));
        Ok(())
    }

    /// Gives back what the temporary files take on the disk.
    fn clear_spills(&mut self) -> Result<()> {
        self.shared.spill.clear()?;
        lock_spill(&self.upstream_spill).clear()
    }

    fn begin_row_group(&self) -> RowGroup {
        let mut row_group = RowGroup::with_columns(self.routes.len());
        row_group.offset = lock(&self.output).position();
        row_group
    }

    fn end_row_group(&mut self, mut row_group: RowGroup) {
        row_group.seal();
        self.row_group_bytes += row_group.heap_bytes();
        self.row_groups.push(row_group);
        self.charge_shared();
    }

    /// Ends the file and gives back what it was written to.
    ///
    /// # Errors
    /// The sink fails, or the footer is too large for the format.
    pub(super) fn close(mut self) -> Result<(WrittenFile, W)> {
        self.flush()?;
        let row_groups = self.row_groups.len();
        let rows = self.row_groups.iter().map(|group| group.rows).sum();
        let offset = lock(&self.output).position();
        let mut tail = Vec::new();
        let footer =
            self.footer
                .write(self.row_groups, self.sorting.as_deref(), offset, &mut tail)?;
        // Closed columns have dropped what they had of it.
        let output = Arc::try_unwrap(self.output)
            .ok()
            .and_then(|output| output.into_inner().ok())
            .ok_or_else(|| ParquetError::General("a column still writes to the file".into()))?;
        let mut output = output;
        output.write_all(&tail)?;
        let bytes = output.position();
        tail.truncate(footer.end);
        tail.drain(..footer.start);
        let written = WrittenFile {
            rows,
            row_groups,
            bytes,
            metadata: Metadata::Encoded(tail),
        };
        Ok((written, output.into_inner()?))
    }

    /// Gives the file up: nothing more is written to it.
    pub(super) fn abandon(self) {
        let Self { output, open, .. } = self;
        drop(open);
        if let Some(output) = Arc::into_inner(output) {
            output
                .into_inner()
                .unwrap_or_else(PoisonError::into_inner)
                .abandon();
        }
    }

    pub(super) fn append_key_value_metadata(&mut self, pair: KeyValue) {
        self.footer.append(pair);
        self.charge_shared();
    }

    pub(super) fn bytes_written(&self) -> u64 {
        lock(&self.output).position()
    }

    pub(super) fn open_rows(&self) -> usize {
        self.open_rows
    }

    /// Bytes that the row group that has begun will take in the file, with what is not in a page yet at
    /// its largest.
    pub(super) fn open_size(&self) -> u64 {
        self.open
            .iter()
            .map(|column| match column {
                Open::Own(writer) => writer.size(),
                Open::Upstream(writer) => writer.size(),
            })
            .sum()
    }

    fn metadata_bytes(&self, open: &RowGroup) -> usize {
        size_of::<Self>()
            + open.heap_bytes()
            + self.footer.heap_bytes()
            + lock(&self.output).heap_bytes()
            + self.row_groups.capacity() * size_of::<RowGroup>()
            + self.row_group_bytes
            + self.routes.capacity() * size_of::<Route>()
            + self.leaves.capacity() * size_of::<usize>()
            + self.routes.len() * (size_of::<ColumnPlan>() + 2 * size_of::<usize>())
            + self.open.capacity() * size_of::<Open<W>>()
            + self.open.len() * size_of::<ColumnWriter>()
            + self.account.heap_bytes()
    }

    fn charge_shared(&mut self) {
        let metadata = self.metadata_bytes(&RowGroup::default());
        self.account.metadata(metadata);
        self.charge_scratch();
    }

    fn charge_scratch(&mut self) {
        let shared = &mut self.shared;
        let peak = shared.scratch.take_peak();
        let encoder = shared.scratch.heap_bytes()
            + shared.growth.heap_bytes()
            + shared.compressor.heap_bytes();
        // While a page was put together, its buffers stood beside all else.
        let top = encoder - shared.scratch.page_bytes() + peak;
        self.account.shared(Purpose::Encoder, encoder, top);
        let upstream_spill = lock_spill(&self.upstream_spill).heap_bytes();
        let spills = self.shared.spill.heap_bytes() + upstream_spill;
        self.account.shared(Purpose::PageStore, spills, 0);
        self.account
            .shared(Purpose::Codec, self.shared.compressor.c_heap_bytes(), 0);
    }
}

fn open_column<W: Write + Send>(
    route: &Route,
    field: usize,
    schema: &SchemaRef,
    properties: &WriterProperties,
    (output, spill): (&SharedOutput<W>, &SharedSpill),
    (buffers, growth): (EncoderBuffers, &Growth),
) -> Result<Open<W>> {
    Ok(match route {
        Route::Own(column) => Open::Own(Box::new(ColumnWriter::new(
            Arc::clone(column),
            buffers,
            growth,
        )?)),
        Route::Upstream => Open::Upstream(Box::new(UpstreamColumn::new(
            &schema.fields()[field],
            properties,
            output,
            (buffers.sink == PageSink::Spill).then_some(spill),
        )?)),
    })
}

/// An error with the column that it is about.
fn named(schema: &SchemaRef, field: usize, error: ParquetError) -> ParquetError {
    let name = schema.field(field).name();
    match error {
        ParquetError::General(text) => ParquetError::General(format!("column {name}: {text}")),
        ParquetError::NYI(text) => ParquetError::NYI(format!("column {name}: {text}")),
        ParquetError::ArrowError(text) => {
            ParquetError::ArrowError(format!("column {name}: {text}"))
        }
        other => other,
    }
}

fn is_nested(data_type: &DataType) -> bool {
    match data_type {
        DataType::Dictionary(_, value) => is_nested(value),
        DataType::RunEndEncoded(_, value) => is_nested(value.data_type()),
        other => other.is_nested(),
    }
}
