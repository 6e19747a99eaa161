//! A field that the parquet crate's own writer encodes into this crate's file: nested ones, and what
//! [`plan_column`](super::column::plan::plan_column) leaves to it.
//!
//! There is no public way to the chunks it makes but its own file writer. So it writes a file of that one field: bytes
//! before the chunks are counted and dropped, so that positions are those of the real file; the chunks go to the real file; the
//! footer is kept, and its pieces go into the real footer.

use std::fmt;
use std::io::{self, Write};
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{FieldRef, Schema, SchemaRef};
use bytes::Bytes;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::{
    ArrowWriterOptions, PageKey, PageStore, PageStoreArgs, PageStoreFactory,
};
use parquet::errors::{ParquetError, Result};
use parquet::file::properties::WriterProperties;

use super::footer::RowGroup;
use super::output::Output;
use super::pages::{Spill, Stored};
use crate::format::thrift::{CompactReader, FieldType, ThriftError};

/// The temporary file of the pages that the parquet crate makes, where pages are not to wait in memory.
pub(super) type SharedSpill = Arc<Mutex<Spill>>;

/// Locks the temporary file. A panic under the lock leaves the writer unusable anyway.
pub(super) fn lock_spill(spill: &SharedSpill) -> MutexGuard<'_, Spill> {
    spill.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Makes stores in a temporary file.
#[derive(Clone)]
struct SpillStores(SharedSpill);

impl fmt::Debug for SpillStores {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SpillStores")
    }
}

impl PageStoreFactory for SpillStores {
    fn create(&self, _: &PageStoreArgs<'_>) -> Result<Box<dyn PageStore>> {
        Ok(Box::new(SpillStore {
            spill: Arc::clone(&self.0),
            pages: Vec::new(),
        }))
    }
}

/// The pages of one chunk in the temporary file of all.
struct SpillStore {
    spill: SharedSpill,
    pages: Vec<Stored>,
}

impl PageStore for SpillStore {
    fn put(&mut self, page: Bytes) -> Result<PageKey> {
        let mut spill = lock_spill(&self.spill);
        self.pages.push(spill.store(&[&page])?);
        Ok(PageKey::new(self.pages.len() as u64 - 1))
    }

    fn take(&mut self, key: PageKey) -> Result<Bytes> {
        let stored = usize::try_from(key.get())
            .ok()
            .and_then(|at| self.pages.get(at))
            .ok_or_else(|| ParquetError::General(format!("there is no page {}", key.get())))?;
        let mut page = Vec::new();
        let mut spill = lock_spill(&self.spill);
        spill.copy_to(stored, &mut page)?;
        Ok(page.into())
    }
}

/// A field's writer for one row group.
pub(super) struct UpstreamColumn<W: Write + Send> {
    writer: ArrowWriter<Passage<W>>,
    passage: Passage<W>,
    schema: SchemaRef,
}

/// The real file, which passages write to when it is their turn.
pub(super) type SharedOutput<W> = Arc<Mutex<Output<W>>>;

/// Locks the real file. A panic under the lock leaves the writer unusable anyway.
pub(super) fn lock<W: Write>(output: &SharedOutput<W>) -> MutexGuard<'_, Output<W>> {
    output.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What the parquet crate writes to.
struct Passage<W: Write> {
    output: SharedOutput<W>,
    state: Arc<Mutex<State>>,
}

enum State {
    Drop,
    Pass,
    Keep(Vec<u8>),
}

impl<W: Write> Clone for Passage<W> {
    fn clone(&self) -> Self {
        Self {
            output: Arc::clone(&self.output),
            state: Arc::clone(&self.state),
        }
    }
}

impl<W: Write> Passage<W> {
    fn set(&self, state: State) -> State {
        std::mem::replace(
            &mut *self.state.lock().unwrap_or_else(PoisonError::into_inner),
            state,
        )
    }
}

impl<W: Write> Write for Passage<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut *self.state.lock().unwrap_or_else(PoisonError::into_inner) {
            State::Drop => {}
            State::Pass => lock(&self.output).write_all(bytes)?,
            State::Keep(kept) => kept.extend_from_slice(bytes),
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What is written before the chunks, a piece at a time. Nobody reads it, so it takes no memory.
static ZEROS: [u8; 1 << 24] = [0; 1 << 24];

impl<W: Write + Send> UpstreamColumn<W> {
    /// A writer of one row group, under properties that do not end it.
    ///
    /// # Errors
    /// Those of the parquet crate's `ArrowWriter`.
    pub(super) fn new(
        field: &FieldRef,
        properties: &WriterProperties,
        output: &SharedOutput<W>,
        spill: Option<&SharedSpill>,
    ) -> Result<Self> {
        let schema = Arc::new(Schema::new(vec![Arc::clone(field)]));
        let passage = Passage {
            output: Arc::clone(output),
            state: Arc::new(Mutex::new(State::Drop)),
        };
        let mut options = ArrowWriterOptions::new()
            .with_properties(properties.clone())
            .with_skip_arrow_metadata(true);
        if let Some(spill) = spill {
            let stores = Arc::new(SpillStores(Arc::clone(spill)));
            options = options.with_page_store_factory(stores);
        }
        let writer =
            ArrowWriter::try_new_with_options(passage.clone(), Arc::clone(&schema), options)?;
        Ok(Self {
            writer,
            passage,
            schema,
        })
    }

    /// Encodes `rows` of an array.
    ///
    /// # Errors
    /// Those of the parquet crate's `ArrowWriter`.
    pub(super) fn write(&mut self, array: &ArrayRef, rows: Range<usize>) -> Result<()> {
        let array = if rows.len() == array.len() {
            Arc::clone(array)
        } else {
            array.slice(rows.start, rows.len())
        };
        // A batch of the array's own type: the same values may come in another form than the column's.
        let field = self.schema.field(0);
        let schema = if field.data_type() == array.data_type() {
            Arc::clone(&self.schema)
        } else {
            let field = field.clone().with_data_type(array.data_type().clone());
            Arc::new(Schema::new(vec![field]))
        };
        let batch = RecordBatch::try_new(schema, vec![array])?;
        self.writer.write(&batch)
    }

    /// Bytes that it holds, as far as it tells.
    pub(super) fn memory_size(&self) -> usize {
        self.writer.memory_size()
    }

    /// Bytes that the row group's chunks will take in the file, estimated.
    pub(super) fn size(&self) -> u64 {
        self.writer.in_progress_size() as u64
    }

    /// Writes the chunks to the file and what they say of themselves to `row_group`.
    ///
    /// # Errors
    /// Those of the file.
    pub(super) fn finish(mut self, row_group: &mut RowGroup) -> Result<()> {
        let start = lock(&self.passage.output).position();
        let mut padding = start.saturating_sub(self.writer.bytes_written() as u64);
        while padding > 0 {
            let piece = padding.min(ZEROS.len() as u64) as usize;
            self.writer.write_all(&ZEROS[..piece])?;
            padding -= piece as u64;
        }
        self.writer.sync()?;
        self.passage.set(State::Pass);
        self.writer.flush()?;
        self.writer.sync()?;
        self.passage.set(State::Keep(Vec::new()));
        let kept_from = self.writer.bytes_written() as u64;
        self.writer.finish()?;
        let State::Keep(kept) = self.passage.set(State::Drop) else {
            return Err(ParquetError::General("no footer was kept".into()));
        };
        take_chunks(&kept, kept_from, row_group).ok_or_else(|| {
            ParquetError::General(
                "the footer of a column that the parquet crate wrote cannot be read".into(),
            )
        })
    }
}

/// Takes the chunks of a file of one row group over into another: their metadata from the footer at the end of `kept`, their
/// indexes from what stands before it. `kept` begins at `kept_from` in the file.
fn take_chunks(kept: &[u8], kept_from: u64, row_group: &mut RowGroup) -> Option<()> {
    let (rest, tail) = kept.split_last_chunk::<8>()?;
    let len = u32::from_le_bytes(*tail.first_chunk::<4>()?) as usize;
    let footer = rest.get(rest.len().checked_sub(len)?..)?;
    for chunk in chunks(footer).ok()? {
        let index = |place: Option<(i64, i64)>| -> Option<&[u8]> {
            let Some((offset, len)) = place else {
                return Some(&[]);
            };
            let start =
                usize::try_from(u64::try_from(offset).ok()?.checked_sub(kept_from)?).ok()?;
            kept.get(start..start.checked_add(usize::try_from(len).ok()?)?)
        };
        let column_index = index(chunk.column_index)?;
        let offset_index = index(chunk.offset_index)?;
        row_group.uncompressed += u64::try_from(chunk.uncompressed).ok()?;
        row_group.stored += u64::try_from(chunk.stored).ok()?;
        row_group.push(
            |out| out.extend_from_slice(chunk.metadata),
            |out| out.extend_from_slice(column_index),
            |out| out.extend_from_slice(offset_index),
        );
    }
    Some(())
}

#[derive(Default)]
struct Chunk<'a> {
    metadata: &'a [u8],
    uncompressed: i64,
    stored: i64,
    offset_index: Option<(i64, i64)>,
    column_index: Option<(i64, i64)>,
}

/// The column chunks of the first row group of a `FileMetaData`.
fn chunks(footer: &[u8]) -> std::result::Result<Vec<Chunk<'_>>, ThriftError> {
    let mut chunks = Vec::new();
    CompactReader::new(footer).structure(|file, field| {
        if field.id != 4 {
            return Ok(false);
        }
        if file.list()? != 1 {
            return Err(ThriftError::Invalid("not one row group"));
        }
        file.structure(|group, field| {
            if field.id != 1 {
                return Ok(false);
            }
            for _ in 0..group.list()? {
                chunks.push(chunk(group, footer)?);
            }
            Ok(true)
        })?;
        Ok(true)
    })?;
    Ok(chunks)
}

fn chunk<'a>(
    reader: &mut CompactReader<'a>,
    footer: &'a [u8],
) -> std::result::Result<Chunk<'a>, ThriftError> {
    let mut chunk = Chunk::default();
    let (mut offset_at, mut offset_len, mut column_at, mut column_len) = (None, None, None, None);
    reader.structure(|reader, field| {
        match (field.id, field.kind) {
            (3, FieldType::Struct) => {
                let start = reader.position();
                reader.structure(|reader, field| {
                    match field.id {
                        6 => chunk.uncompressed = reader.int()?,
                        7 => chunk.stored = reader.int()?,
                        _ => return Ok(false),
                    }
                    Ok(true)
                })?;
                chunk.metadata = &footer[start..reader.position()];
            }
            (4, _) => offset_at = Some(reader.int()?),
            (5, _) => offset_len = Some(reader.int()?),
            (6, _) => column_at = Some(reader.int()?),
            (7, _) => column_len = Some(reader.int()?),
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    chunk.offset_index = offset_at.zip(offset_len);
    chunk.column_index = column_at.zip(column_len);
    Ok(chunk)
}
