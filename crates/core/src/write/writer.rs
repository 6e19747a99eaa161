//! [`Writer`]: the API, in the shape of the parquet crate's `ArrowWriter`.

use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchWriter};
use arrow_schema::{ArrowError, DataType, SchemaRef};
use parquet::arrow::ArrowWriter;
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;

use super::column::plan::refuse_byte_limit;
use super::file::FileWriter;
use super::new_file::NewFile;
use super::table::{Held, Piece, cut};
use super::upstream::{self, ColumnWise, Lent};
use super::written::WrittenFile;
use crate::ledger::{Ledger, Purpose};
use crate::strategy::{Order, WriteStrategy};

/// Writes record batches to a Parquet file, with encoder buffers owned as a [`WriteStrategy`] says.
///
/// ```
/// use std::sync::Arc;
/// use alloquet_core::{WriteStrategy, Writer};
/// use arrow_array::{ArrayRef, Int64Array, RecordBatch};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let column: ArrayRef = Arc::new(Int64Array::from_iter_values([1, 2, 3]));
/// let batch = RecordBatch::try_from_iter([("column", column)])?;
///
/// let mut file = Vec::new();
/// let mut writer = Writer::try_new(&mut file, batch.schema(), None)?
///     .with_strategy("bounded".parse::<WriteStrategy>()?)?;
/// writer.write(&batch)?;
/// println!("{} bytes are held", writer.memory_size());
/// let written = writer.close()?;
/// assert_eq!(written.num_rows(), 3);
/// # Ok(())
/// # }
/// ```
pub struct Writer<W: Write + Send> {
    engine: Engine<W>,
    /// Whether something is being written: found set only after a panic.
    busy: bool,
    schema: SchemaRef,
    /// What the file is written with; it goes to what writes, when that is made.
    properties: WriterProperties,
    /// Limits of a row group, in rows and in bytes.
    max_rows: usize,
    max_bytes: Option<u64>,
    strategy: WriteStrategy,
    ledger: Arc<Ledger>,
    spill_folder: PathBuf,
    held: Held,
    /// What is done with what was written to, once the file is whole.
    commit: Option<Commit<W>>,
}

type Commit<W> = Box<dyn FnOnce(W) -> Result<()> + Send>;

/// What writes, or why nothing does.
enum Engine<W: Write + Send> {
    /// Nothing was written yet.
    New(W),
    Upstream(Box<ArrowWriter<Lent<W>>>),
    ColumnWise(Box<ColumnWise<W>>),
    Owned(Box<FileWriter<W>>),
    /// An error came before: what is in the file is not known.
    Poisoned(String),
}

impl Writer<NewFile> {
    /// Writes a file that has its name only once it is closed: see [`NewFile`].
    ///
    /// # Errors
    /// As [`try_new`](Self::try_new), and where the folder of `path` takes no file.
    pub fn create(
        path: impl Into<PathBuf>,
        schema: SchemaRef,
        properties: Option<WriterProperties>,
    ) -> Result<Self> {
        let file = NewFile::create(path)?;
        let folder = file.path().parent().map(PathBuf::from);
        let mut writer = Self::try_new(file, schema, properties)?;
        if let Some(folder) = folder.filter(|folder| !folder.as_os_str().is_empty()) {
            writer.spill_folder = folder;
        }
        writer.commit = Some(Box::new(|file: NewFile| file.commit().map(drop)));
        Ok(writer)
    }
}

impl<W: Write + Send> Writer<W> {
    /// A writer to `sink` with the default strategy. Without `properties` it takes the parquet crate's
    /// defaults.
    ///
    /// # Errors
    /// None yet: what the strategy cannot do is told by [`with_strategy`](Self::with_strategy) or by the first
    /// [`write`](Self::write).
    pub fn try_new(
        sink: W,
        schema: SchemaRef,
        properties: Option<WriterProperties>,
    ) -> Result<Self> {
        let properties = properties.unwrap_or_default();
        let leaves = schema
            .fields()
            .iter()
            .map(|field| leaves(field.data_type()));
        let ledger = Arc::new(Ledger::new(leaves.sum()));
        Ok(Self {
            engine: Engine::New(sink),
            busy: false,
            held: Held::new(Arc::clone(&ledger)),
            ledger,
            schema,
            max_rows: properties.max_row_group_row_count().unwrap_or(usize::MAX),
            max_bytes: properties.max_row_group_bytes().map(|bytes| bytes as u64),
            properties,
            strategy: WriteStrategy::default(),
            spill_folder: std::env::temp_dir(),
            commit: None,
        })
    }

    /// Sets the strategy.
    ///
    /// # Errors
    /// Something was written already, or the parts of the strategy do not go together.
    pub fn with_strategy(mut self, strategy: WriteStrategy) -> Result<Self> {
        if !matches!(self.engine, Engine::New(_)) {
            return Err(general("the strategy is set before the first batch"));
        }
        if let WriteStrategy::Owned(buffers) = &strategy {
            buffers
                .check()
                .map_err(|error| general(error.to_string()))?;
        }
        self.strategy = strategy;
        Ok(self)
    }

    /// Sets where `sink=spill` makes its temporary file, before the first batch; by default beside the file of
    /// [`create`](Writer::create), else the system's folder for temporary files.
    pub fn with_spill_folder(mut self, folder: impl Into<PathBuf>) -> Self {
        self.spill_folder = folder.into();
        self
    }
}

impl<W: Write + Send> Writer<W> {
    /// Encodes a batch, or holds it until its row group is complete where the strategy encodes column
    /// by column. Row groups end as `WriterProperties` say.
    ///
    /// # Errors
    /// The batch does not fit the schema, the strategy cannot do what the properties ask for, or the sink fails. After an
    /// error the writer refuses everything, [`close`](Self::close) included: a file that misses rows never gets a footer.
    pub fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        self.guarded(|writer| writer.write_batch(batch))
    }

    /// Writes a table that is in memory anyway: as [`write`](Self::write) of each batch, but nothing is held where the
    /// strategy encodes column by column. A row group that [`write`](Self::write) began is ended first in that case.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn write_table(&mut self, batches: &[RecordBatch]) -> Result<()> {
        self.guarded(|writer| {
            for batch in batches {
                writer.check_schema(batch)?;
            }
            if !is_column_wise(writer.strategy) {
                return batches
                    .iter()
                    .try_for_each(|batch| writer.write_batch(batch));
            }
            writer.flush_row_group()?;
            let limit = writer.max_rows;
            cut(batches, limit, |pieces| writer.write_pieces(pieces))
        })
    }

    /// Ends the row group.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn flush(&mut self) -> Result<()> {
        self.guarded(Self::flush_row_group)
    }

    /// Ends the file. With [`create`](Writer::create), it gets its name now.
    ///
    /// # Errors
    /// As [`write`](Self::write), or the file cannot be given its name.
    pub fn close(mut self) -> Result<WrittenFile> {
        let commit = self.commit.take();
        let (written, sink) = self.finish()?;
        if let Some(commit) = commit {
            commit(sink)?;
        }
        Ok(written)
    }

    /// Ends the file and gives back what it was written to; with [`create`](Writer::create), that is the file under
    /// its temporary name.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn into_inner(self) -> Result<W> {
        Ok(self.finish()?.1)
    }

    fn finish(mut self) -> Result<(WrittenFile, W)> {
        self.guarded(|writer| {
            writer.flush_row_group()?;
            writer.begin()
        })?;
        match self.engine {
            Engine::Upstream(writer) => upstream::close(*writer),
            Engine::ColumnWise(writer) => writer.close(),
            Engine::Owned(writer) => writer.close(),
            Engine::New(_) => Err(general("the writer did not begin")),
            Engine::Poisoned(why) => Err(poisoned(&why)),
        }
    }

    /// Adds key-value metadata to the file's.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn append_key_value_metadata(&mut self, pair: KeyValue) -> Result<()> {
        self.guarded(|writer| {
            writer.begin()?;
            match &mut writer.engine {
                Engine::Upstream(writer) => writer.append_key_value_metadata(pair),
                Engine::ColumnWise(writer) => writer.append_key_value_metadata(pair),
                Engine::Owned(writer) => writer.append_key_value_metadata(pair),
                Engine::New(_) | Engine::Poisoned(_) => {}
            }
            Ok(())
        })
    }

    /// Bytes that the writer holds in Rust's heap, from the first batch on: encoder buffers, pages, batches that wait, metadata. What a
    /// control holds, and what a nested column does, is what the parquet crate says of itself. Not in it: zstd's contexts, which
    /// live in C's heap and are in the [`ledger`](Self::ledger) as [`Purpose::Codec`].
    pub fn memory_size(&self) -> usize {
        let held = usize::try_from(self.held.bytes()).unwrap_or(usize::MAX);
        match &self.engine {
            Engine::Upstream(writer) => writer.memory_size(),
            Engine::ColumnWise(_) => held,
            Engine::Owned(_) => {
                let rust = self.ledger.live_bytes() - self.ledger.live(Purpose::Codec);
                usize::try_from(rust).unwrap_or(usize::MAX)
            }
            Engine::New(_) | Engine::Poisoned(_) => 0,
        }
    }

    /// Rows of the row group that has begun.
    pub fn in_progress_rows(&self) -> usize {
        match &self.engine {
            Engine::Upstream(writer) => writer.in_progress_rows(),
            Engine::Owned(writer) => writer.open_rows() + self.held.rows(),
            _ => self.held.rows(),
        }
    }

    /// What the row group that has begun will take in the file at most, in bytes; batches that wait count as they are
    /// in memory.
    pub fn in_progress_size(&self) -> usize {
        match &self.engine {
            Engine::Upstream(writer) => writer.in_progress_size(),
            Engine::Owned(writer) => {
                usize::try_from(writer.open_size() + self.held.bytes()).unwrap_or(usize::MAX)
            }
            _ => usize::try_from(self.held.bytes()).unwrap_or(usize::MAX),
        }
    }

    /// Bytes written to the sink so far.
    pub fn bytes_written(&self) -> usize {
        match &self.engine {
            Engine::Upstream(writer) => writer.bytes_written(),
            Engine::ColumnWise(writer) => writer.bytes_written(),
            Engine::Owned(writer) => usize::try_from(writer.bytes_written()).unwrap_or(usize::MAX),
            Engine::New(_) | Engine::Poisoned(_) => 0,
        }
    }

    /// The ledger of this writer: empty for the controls but for the batches that wait.
    pub fn ledger(&self) -> Arc<Ledger> {
        Arc::clone(&self.ledger)
    }

    /// The strategy.
    pub fn strategy(&self) -> WriteStrategy {
        self.strategy
    }

    /// Runs `work`; after an error nothing more is taken.
    fn guarded<T>(&mut self, work: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if let Engine::Poisoned(why) = &self.engine {
            return Err(poisoned(why));
        }
        if self.busy {
            return Err(poisoned("it panicked"));
        }
        self.busy = true;
        let result = work(self);
        self.busy = false;
        if let Err(error) = &result {
            let poisoned = Engine::Poisoned(error.to_string());
            match std::mem::replace(&mut self.engine, poisoned) {
                Engine::Owned(writer) => writer.abandon(),
                failed => drop(failed),
            }
            drop(self.held.take());
            self.held.release();
        }
        result
    }

    fn write_batch(&mut self, batch: &RecordBatch) -> Result<()> {
        self.check_schema(batch)?;
        self.begin()?;
        if batch.num_rows() == 0 {
            return Ok(());
        }
        if let Engine::Upstream(writer) = &mut self.engine {
            return writer.write(batch);
        }
        if let Engine::Owned(writer) = &mut self.engine
            && !is_column_wise(self.strategy)
        {
            return write_interleaved(writer, batch, self.max_rows, self.max_bytes);
        }
        self.held.push(batch.clone());
        if self.held.rows() >= self.max_rows {
            self.write_held(false)?;
        }
        Ok(())
    }

    fn check_schema(&self, batch: &RecordBatch) -> Result<()> {
        let expected = self.schema.fields().len();
        if batch.num_columns() != expected {
            return Err(general(format!(
                "a batch of {} columns for a file of {expected}",
                batch.num_columns()
            )));
        }
        for (field, array) in self.schema.fields().iter().zip(batch.columns()) {
            if !fits(field.data_type(), array.data_type()) {
                return Err(general(format!(
                    "column {}: an array of {} does not go into a column of {}",
                    field.name(),
                    array.data_type(),
                    field.data_type()
                )));
            }
        }
        Ok(())
    }

    /// Makes what writes, at the first batch.
    fn begin(&mut self) -> Result<()> {
        if !matches!(self.engine, Engine::New(_)) {
            return Ok(());
        }
        let begun = Engine::Poisoned("the writer could not begin".to_owned());
        let Engine::New(sink) = std::mem::replace(&mut self.engine, begun) else {
            return Ok(());
        };
        let schema = SchemaRef::clone(&self.schema);
        self.engine = match self.strategy {
            WriteStrategy::Upstream | WriteStrategy::UpstreamExactStore => {
                let properties = std::mem::take(&mut self.properties);
                let exact = self.strategy == WriteStrategy::UpstreamExactStore;
                let writer = upstream::arrow_writer(sink, schema, properties, exact)?;
                Engine::Upstream(Box::new(writer))
            }
            WriteStrategy::UpstreamColumnWise => {
                let properties = std::mem::take(&mut self.properties);
                refuse_byte_limit(&properties)?;
                let writer = ColumnWise::try_new(sink, schema, properties)?;
                Engine::ColumnWise(Box::new(writer))
            }
            WriteStrategy::Owned(buffers) => {
                let properties = std::mem::take(&mut self.properties);
                let ledger = Arc::clone(&self.ledger);
                let folder = &self.spill_folder;
                let writer =
                    FileWriter::try_new(sink, schema, properties, buffers, folder, ledger)?;
                Engine::Owned(Box::new(writer))
            }
        };
        Ok(())
    }

    fn flush_row_group(&mut self) -> Result<()> {
        match &mut self.engine {
            Engine::Upstream(writer) => writer.flush(),
            Engine::Owned(writer) => {
                writer.flush()?;
                self.write_held(true)
            }
            _ => self.write_held(true),
        }
    }

    /// Writes the row groups that the held batches make up; what is left of them too if `all`.
    fn write_held(&mut self, all: bool) -> Result<()> {
        if self.held.rows() == 0 {
            return Ok(());
        }
        let batches = self.held.take();
        let limit = self.max_rows;
        let mut rest = Vec::new();
        let result = cut(&batches, limit, |pieces| {
            let rows: usize = pieces.iter().map(|piece| piece.rows).sum();
            if all || rows == limit {
                return self.write_pieces(pieces);
            }
            rest.extend(pieces.iter().map(|p| p.batch.slice(p.offset, p.rows)));
            Ok(())
        });
        drop(batches);
        self.held.release();
        for batch in rest {
            self.held.push(batch);
        }
        result
    }

    /// Writes one row group, column by column.
    fn write_pieces(&mut self, pieces: &[Piece<'_>]) -> Result<()> {
        self.begin()?;
        match &mut self.engine {
            Engine::ColumnWise(writer) => writer.write_row_group(pieces),
            Engine::Owned(writer) => writer.write_row_group(pieces),
            _ => Err(general("the strategy does not write column by column")),
        }
    }
}

/// Whether an array of type `array` can be written to a column of type `column`: what is the same values in another form
/// can, as with `ArrowWriter`.
fn fits(column: &DataType, array: &DataType) -> bool {
    use DataType::{
        Binary, BinaryView, Dictionary, LargeBinary, LargeUtf8, RunEndEncoded, Utf8, Utf8View,
    };
    match (column, array) {
        (a, b) if a == b => true,
        (Dictionary(_, value), other) | (other, Dictionary(_, value)) => fits(value, other),
        (RunEndEncoded(_, value), other) | (other, RunEndEncoded(_, value)) => {
            fits(value.data_type(), other)
        }
        (Utf8 | LargeUtf8 | Utf8View, Utf8 | LargeUtf8 | Utf8View)
        | (Binary | LargeBinary | BinaryView, Binary | LargeBinary | BinaryView) => true,
        // Names and nullability within are the business of who writes nested columns.
        (a, b) => a.is_nested() && b.is_nested() && a.equals_datatype(b),
    }
}

/// Leaf columns that a field of an Arrow type has in Parquet.
fn leaves(data_type: &DataType) -> usize {
    match data_type {
        DataType::Struct(fields) => fields.iter().map(|field| leaves(field.data_type())).sum(),
        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::ListView(item)
        | DataType::LargeListView(item)
        | DataType::FixedSizeList(item, _)
        | DataType::Map(item, _)
        | DataType::RunEndEncoded(_, item) => leaves(item.data_type()),
        DataType::Dictionary(_, value) => leaves(value),
        _ => 1,
    }
}

impl<W: Write + Send> RecordBatchWriter for Writer<W> {
    fn write(&mut self, batch: &RecordBatch) -> std::result::Result<(), ArrowError> {
        Self::write(self, batch).map_err(ArrowError::from)
    }

    fn close(self) -> std::result::Result<(), ArrowError> {
        Self::close(self).map(drop).map_err(ArrowError::from)
    }
}

fn is_column_wise(strategy: WriteStrategy) -> bool {
    match strategy {
        WriteStrategy::UpstreamColumnWise => true,
        WriteStrategy::Owned(buffers) => buffers.order == Order::ColumnWise,
        _ => false,
    }
}

/// Writes a batch to a file whose columns are all open, ending row groups at their limits. The limit in bytes is held
/// against the average row so far, as the parquet crate does.
fn write_interleaved<W: Write + Send>(
    writer: &mut FileWriter<W>,
    batch: &RecordBatch,
    max_rows: usize,
    max_bytes: Option<u64>,
) -> Result<()> {
    let mut at = 0;
    while at < batch.num_rows() {
        let mut rows = (batch.num_rows() - at).min(max_rows - writer.open_rows());
        if let Some(max) = max_bytes
            && writer.open_rows() > 0
        {
            let size = writer.open_size();
            let row = size.div_ceil(writer.open_rows() as u64).max(1);
            let fit = usize::try_from(max.saturating_sub(size) / row).unwrap_or(usize::MAX);
            if fit == 0 {
                writer.flush()?;
                continue;
            }
            rows = rows.min(fit);
        }
        writer.write(batch, at..at + rows)?;
        at += rows;
        let full = writer.open_rows() >= max_rows
            || max_bytes.is_some_and(|max| writer.open_size() >= max);
        if full {
            writer.flush()?;
        }
    }
    Ok(())
}

fn poisoned(why: &str) -> ParquetError {
    general(format!(
        "the writer failed before and takes nothing more ({why}): what it wrote is not a whole file"
    ))
}

fn general(text: impl Into<String>) -> ParquetError {
    ParquetError::General(text.into())
}
