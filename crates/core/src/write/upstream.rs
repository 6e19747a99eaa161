//! The controls: the parquet crate's own `ArrowWriter`, as it is and in two variants.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arrow_schema::{Schema, SchemaRef};
use bytes::Bytes;
use parquet::arrow::arrow_writer::{
    ArrowRowGroupWriterFactory, ArrowWriter, ArrowWriterOptions, PageKey, PageStore, PageStoreArgs,
    PageStoreFactory, compute_leaves,
};
use parquet::arrow::{ArrowSchemaConverter, add_encoded_arrow_schema_to_metadata};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{WriterProperties, WriterPropertiesPtr};
use parquet::file::writer::SerializedFileWriter;

use super::output::Latch;
use super::table::Piece;
use super::written::{Metadata, WrittenFile};

/// A sink that can be taken back from the parquet crate's writers, which end a file or give the sink back, but not both.
pub(super) struct Lent<W>(Arc<Mutex<Latch<W>>>);

impl<W> Lent<W> {
    fn new(sink: W) -> Self {
        Self(Arc::new(Mutex::new(Latch::new(sink))))
    }

    fn share(&self) -> Self {
        Self(Arc::clone(&self.0))
    }

    fn take_back(self) -> Result<W> {
        Arc::into_inner(self.0)
            .and_then(|latch| Some(latch.into_inner().ok()?.sink))
            .ok_or_else(|| ParquetError::General("the sink is still written to".into()))
    }

    fn lock(&self) -> MutexGuard<'_, Latch<W>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<W: Write> Write for Lent<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.lock().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.lock().flush()
    }
}

/// An `ArrowWriter`, with the page store of `upstream-exact-store` where asked for.
pub(super) fn arrow_writer<W: Write + Send>(
    sink: W,
    schema: SchemaRef,
    properties: WriterProperties,
    exact_store: bool,
) -> Result<ArrowWriter<Lent<W>>> {
    let mut options = ArrowWriterOptions::new().with_properties(properties);
    if exact_store {
        options = options.with_page_store_factory(Arc::new(ExactStores));
    }
    ArrowWriter::try_new_with_options(Lent::new(sink), schema, options)
}

/// Closes an `ArrowWriter` and gives back what it wrote to.
pub(super) fn close<W: Write + Send>(mut writer: ArrowWriter<Lent<W>>) -> Result<(WrittenFile, W)> {
    let sink = writer.inner().share();
    let metadata = writer.finish()?;
    let bytes = writer.bytes_written() as u64;
    let written = WrittenFile {
        rows: u64::try_from(metadata.file_metadata().num_rows()).unwrap_or_default(),
        row_groups: metadata.num_row_groups(),
        bytes,
        metadata: Metadata::Decoded(Box::new(metadata)),
    };
    drop(writer);
    Ok((written, sink.take_back()?))
}

/// The control `upstream-column-wise`: the parquet crate's column writers, one field of a row group
/// after the other.
pub(super) struct ColumnWise<W: Write> {
    file: SerializedFileWriter<Lent<W>>,
    schema: SchemaRef,
    /// Of the whole file; the encoded Arrow schema is not in them.
    properties: WriterPropertiesPtr,
}

impl<W: Write + Send> ColumnWise<W> {
    pub(super) fn try_new(
        sink: W,
        schema: SchemaRef,
        properties: WriterProperties,
    ) -> Result<Self> {
        if properties.file_encryption_properties().is_some() {
            return Err(ParquetError::NYI(
                "the strategy 'upstream-column-wise' does not encrypt: use 'upstream' for an encrypted file".into(),
            ));
        }
        let parquet_schema = ArrowSchemaConverter::new()
            .with_coerce_types(properties.coerce_types())
            .convert(&schema)?;
        let mut of_file = properties.clone();
        add_encoded_arrow_schema_to_metadata(&schema, &mut of_file);
        let file = SerializedFileWriter::new(
            Lent::new(sink),
            parquet_schema.root_schema_ptr(),
            Arc::new(of_file),
        )?;
        Ok(Self {
            file,
            schema,
            properties: Arc::new(properties),
        })
    }

    pub(super) fn write_row_group(&mut self, pieces: &[Piece<'_>]) -> Result<()> {
        let index = self.file.flushed_row_groups().len();
        let mut row_group = self.file.next_row_group()?;
        for (column, field) in self.schema.fields().iter().enumerate() {
            // The factory makes the writers of a whole schema at once, so it is given one field of it.
            let alone = Arc::new(Schema::new(vec![Arc::clone(field)]));
            let converted = ArrowSchemaConverter::new()
                .with_coerce_types(self.properties.coerce_types())
                .convert(&alone)?;
            let scratch = SerializedFileWriter::new(
                io::sink(),
                converted.root_schema_ptr(),
                Arc::clone(&self.properties),
            )?;
            let mut writers =
                ArrowRowGroupWriterFactory::new(&scratch, alone).create_column_writers(index)?;
            for piece in pieces {
                let array = piece.batch.column(column);
                let slice;
                let array = if piece.rows == array.len() {
                    array
                } else {
                    slice = array.slice(piece.offset, piece.rows);
                    &slice
                };
                for (leaf, writer) in compute_leaves(field, array)?.iter().zip(&mut writers) {
                    writer.write(leaf)?;
                }
            }
            for writer in writers {
                writer.close()?.append_to_row_group(&mut row_group)?;
            }
        }
        row_group.close()?;
        Ok(())
    }

    pub(super) fn bytes_written(&self) -> usize {
        self.file.bytes_written()
    }

    pub(super) fn append_key_value_metadata(&mut self, pair: KeyValue) {
        self.file.append_key_value_metadata(pair);
    }

    pub(super) fn close(mut self) -> Result<(WrittenFile, W)> {
        let sink = self.file.inner().share();
        let metadata = self.file.finish()?;
        let written = WrittenFile {
            rows: u64::try_from(metadata.file_metadata().num_rows()).unwrap_or_default(),
            row_groups: metadata.num_row_groups(),
            bytes: self.file.bytes_written() as u64,
            metadata: Metadata::Decoded(Box::new(metadata)),
        };
        drop(self.file);
        Ok((written, sink.take_back()?))
    }
}

/// Makes the stores of `upstream-exact-store`.
#[derive(Debug)]
struct ExactStores;

impl PageStoreFactory for ExactStores {
    fn create(&self, _: &PageStoreArgs<'_>) -> Result<Box<dyn PageStore>> {
        Ok(Box::new(ExactStore::default()))
    }
}

/// Keeps a copy of each page that is as large as the page, where upstream keeps the buffer that the page was
/// built in.
#[derive(Default)]
struct ExactStore {
    pages: Vec<Bytes>,
    bytes: usize,
}

impl PageStore for ExactStore {
    fn put(&mut self, page: Bytes) -> Result<PageKey> {
        let key = PageKey::new(self.pages.len() as u64);
        self.bytes += page.len();
        self.pages.push(Bytes::copy_from_slice(&page));
        Ok(key)
    }

    fn take(&mut self, key: PageKey) -> Result<Bytes> {
        let page = usize::try_from(key.get())
            .ok()
            .and_then(|at| self.pages.get_mut(at))
            .map(std::mem::take)
            .ok_or_else(|| ParquetError::General(format!("there is no page {}", key.get())))?;
        self.bytes -= page.len();
        Ok(page)
    }

    fn memory_size(&self) -> usize {
        self.bytes
    }
}
