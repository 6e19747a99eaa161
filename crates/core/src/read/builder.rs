//! [`ReaderBuilder`]: what to read, and with which strategy.

use std::fmt;
use std::sync::Arc;

use arrow_array::RecordBatchReader;
use arrow_schema::extension::EXTENSION_TYPE_NAME_KEY;
use arrow_schema::{FieldRef, Schema, SchemaRef};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder, RowSelection,
};
use parquet::encryption::decrypt::FileDecryptionProperties;
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::ParquetMetaData;
use parquet::file::reader::ChunkReader;
use parquet::schema::types::SchemaDescriptor;

use super::columns::ColumnReader;
use super::reader::{Inner, Reader};
use super::selection::Batches;
use super::share::{self, Plan};
use super::threads::Shares;
use crate::crypto::FileCrypto;
use crate::decode::kind::DecodePath;
use crate::format::footer::{self, FileEncryption};
use crate::guard;
use crate::ledger::Ledger;
use crate::limits::Limits;
use crate::page::chunk::ChunkCursor;
use crate::page::file::FileShared;
use crate::page::info::PageInfo;
use crate::page::owners::ReaderOwners;
use crate::page::row_groups::StrategyRowGroups;
use crate::source::ReadAt;
use crate::strategy::{BufferOwners, ReadStrategy};

/// Rows per batch unless [`with_batch_size`](ReaderBuilder::with_batch_size) says otherwise, as in
/// the parquet crate.
const DEFAULT_BATCH_SIZE: usize = 1024;

/// Builds a [`Reader`]; the counterpart of the parquet crate's [`ParquetRecordBatchReaderBuilder`].
pub struct ReaderBuilder<T> {
    source: T,
    metadata: ArrowReaderMetadata,
    strategy: ReadStrategy,
    batch_size: usize,
    projection: ProjectionMask,
    row_groups: Option<Vec<usize>>,
    selection: Option<RowSelection>,
    decryption: Option<Arc<FileDecryptionProperties>>,
    /// How the file is encrypted, where that was read when it was opened.
    encryption: Option<FileEncryption>,
    /// Whether the caller said so; the default is yes.
    verify_checksums: Option<bool>,
    limits: Limits,
    threads: usize,
}

impl<T> fmt::Debug for ReaderBuilder<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReaderBuilder")
            .field("strategy", &self.strategy)
            .field("batch_size", &self.batch_size)
            .field("projection", &self.projection)
            .field("row_groups", &self.row_groups)
            .field("encrypted", &self.decryption.is_some())
            .finish_non_exhaustive()
    }
}

impl<T: ReadAt + ChunkReader + 'static> ReaderBuilder<T> {
    /// Reads the file's metadata.
    ///
    /// # Errors
    /// Where the file is no Parquet, is damaged, or has an encrypted footer: that needs
    /// [`try_new_with_options`](Self::try_new_with_options).
    pub fn try_new(source: T) -> Result<Self> {
        Self::try_new_with_options(source, ArrowReaderOptions::default())
    }

    /// Reads the file's metadata with options, among them the keys of an encrypted file
    /// ([`ArrowReaderOptions::with_file_decryption_properties`]).
    ///
    /// # Errors
    /// Where the file is no Parquet, is damaged, or cannot be decrypted with the keys.
    pub fn try_new_with_options(source: T, options: ArrowReaderOptions) -> Result<Self> {
        let decryption = options.file_decryption_properties().map(Arc::clone);
        footer::check_schema(&source, source.len())?;
        let metadata = guard::catch(|| ArrowReaderMetadata::load(&source, options))
            .map_err(ParquetError::General)??;
        let mut builder = Self::new_with_metadata(source, metadata);
        if decryption.is_some() {
            builder.encryption = footer::read_encryption(&builder.source, builder.source.len())?;
        }
        builder.decryption = decryption;
        Ok(builder)
    }

    /// Uses metadata that was read before. Of an encrypted file, give the keys again with
    /// [`with_file_decryption_properties`](Self::with_file_decryption_properties): metadata keeps
    /// them to itself.
    pub fn new_with_metadata(source: T, metadata: ArrowReaderMetadata) -> Self {
        Self {
            source,
            metadata,
            strategy: ReadStrategy::default(),
            batch_size: DEFAULT_BATCH_SIZE,
            projection: ProjectionMask::all(),
            row_groups: None,
            selection: None,
            decryption: None,
            encryption: None,
            verify_checksums: None,
            limits: Limits::default(),
            threads: 1,
        }
    }

    /// The same builder on another handle of the same file, for one more reader of it: nothing is read again.
    ///
    /// ```no_run
    /// # use alloquet_core::ReaderBuilder;
    /// # use std::fs::File;
    /// let whole = ReaderBuilder::try_new(File::open("a.parquet")?)?;
    /// let one_row_group = whole.with_source(File::open("a.parquet")?).with_row_groups(vec![0]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn with_source(&self, source: T) -> Self {
        Self {
            source,
            metadata: self.metadata.clone(),
            strategy: self.strategy,
            batch_size: self.batch_size,
            projection: self.projection.clone(),
            row_groups: self.row_groups.clone(),
            selection: self.selection.clone(),
            decryption: self.decryption.clone(),
            encryption: self.encryption.clone(),
            verify_checksums: self.verify_checksums,
            limits: self.limits,
            threads: self.threads,
        }
    }

    /// The file's metadata.
    pub fn metadata(&self) -> &Arc<ParquetMetaData> {
        self.metadata.metadata()
    }

    /// The file's Parquet schema, which a [`ProjectionMask`] is made from.
    pub fn parquet_schema(&self) -> &SchemaDescriptor {
        self.metadata.parquet_schema()
    }

    /// The Arrow schema of the whole file.
    pub fn schema(&self) -> &SchemaRef {
        self.metadata.schema()
    }

    /// Who owns the page buffers. Default: `pooled`.
    #[must_use]
    pub fn with_strategy(self, strategy: ReadStrategy) -> Self {
        Self { strategy, ..self }
    }

    /// Rows per batch, at most. Default: 1024.
    #[must_use]
    pub fn with_batch_size(self, batch_size: usize) -> Self {
        Self { batch_size, ..self }
    }

    /// The columns to read. Default: all.
    #[must_use]
    pub fn with_projection(self, projection: ProjectionMask) -> Self {
        Self { projection, ..self }
    }

    /// The row groups to read, in this order. Default: all.
    #[must_use]
    pub fn with_row_groups(self, row_groups: Vec<usize>) -> Self {
        Self {
            row_groups: Some(row_groups),
            ..self
        }
    }

    /// The rows to read, counted over the chosen row groups. Default: all.
    #[must_use]
    pub fn with_row_selection(self, selection: RowSelection) -> Self {
        Self {
            selection: Some(selection),
            ..self
        }
    }

    /// The keys of the columns, where the metadata was read without this builder
    /// ([`new_with_metadata`](Self::new_with_metadata)). The control `upstream` takes its keys from the
    /// metadata alone.
    ///
    /// What a key retriever hands out is wiped from memory once the cipher is made of it. The keys in `properties` are not,
    /// nor are the copies that the parquet crate makes of them and the expanded keys of the ciphers, which live as long as
    /// the reader.
    #[must_use]
    pub fn with_file_decryption_properties(
        self,
        properties: Arc<FileDecryptionProperties>,
    ) -> Self {
        Self {
            decryption: Some(properties),
            ..self
        }
    }

    /// Whether to check each page's CRC-32, where the file has one, over the page as stored. Default: yes. The control `upstream`
    /// cannot: it checks nothing, and refuses to be built where it is told to.
    #[must_use]
    pub fn with_page_checksum_verification(self, verify: bool) -> Self {
        Self {
            verify_checksums: Some(verify),
            ..self
        }
    }

    /// What the file may ask the reader to allocate. Default: [`Limits::default`]. The control `upstream` has no such limits.
    #[must_use]
    pub fn with_limits(self, limits: Limits) -> Self {
        Self { limits, ..self }
    }

    /// How many threads decode the columns of a batch, the calling one among them. Default: 1.
    ///
    /// Batches come in the same order and are the same for any number. The columns are decoded in groups, and no thread goes ahead of
    /// the batch that was asked for: so page buffers are bounded as for one thread, and each further thread adds the stored page and the
    /// codec's context that it works with. The control `upstream` has one thread whatever is said here.
    #[must_use]
    pub fn with_threads(self, threads: usize) -> Self {
        Self { threads, ..self }
    }

    /// Builds the reader. No page is read yet.
    ///
    /// # Errors
    /// Where a row group does not exist, a column's type is not supported, or the file is encrypted
    /// in a way that is not. Keys of columns that are missing or wrong show when their pages are read.
    pub fn build(self) -> Result<Reader> {
        let columns = self.parquet_schema().num_columns();
        let ledger = Arc::new(Ledger::new(columns));
        let metadata = self.metadata().memory_size() as u64;
        self.check_row_groups()?;
        let built = match self.strategy {
            ReadStrategy::Upstream => guard::catch(|| self.build_upstream()),
            ReadStrategy::Owned(buffers) => {
                let ledger = &ledger;
                guard::catch(move || self.build_owned(buffers, ledger))
            }
        };
        let built = built.map_err(ParquetError::General)??;
        Ok(Reader::new(
            built.inner,
            built.schema,
            built.paths,
            ledger,
            metadata,
        ))
    }

    /// Builds a reader of one column after the other, each page for itself, that makes no batches of them.
    ///
    /// # Errors
    /// As of [`build`](Self::build); and where a row selection or the control `upstream` was asked for, which read batches.
    pub fn build_column_wise(self) -> Result<ColumnReader> {
        let ReadStrategy::Owned(buffers) = self.strategy else {
            return Err(ParquetError::NYI(
                "columns one after the other: the strategy upstream reads batches".into(),
            ));
        };
        if self.selection.is_some() {
            return Err(ParquetError::NYI(
                "a row selection: columns one after the other are read as a whole".into(),
            ));
        }
        let ledger = Arc::new(Ledger::new(self.parquet_schema().num_columns()));
        let metadata = self.metadata().memory_size() as u64;
        self.check_row_groups()?;
        guard::catch(|| {
            let plan = self.plan(buffers, 1, &ledger)?;
            Ok(ColumnReader::new(plan, metadata))
        })
        .map_err(ParquetError::General)?
    }

    /// The pages of every column chunk as their headers describe them; no page body is read.
    ///
    /// For looking at a file before reading it: what a page takes when stored and when decompressed is
    /// what the strategies' buffers take.
    ///
    /// # Errors
    /// Where a header is damaged or cannot be decrypted.
    pub fn pages(&self) -> Result<Vec<PageInfo>> {
        let ledger = Arc::new(Ledger::new(self.parquet_schema().num_columns()));
        let owners = ReaderOwners::new(BufferOwners::TEMP_BOTH, 1, &ledger);
        let file = Arc::new(FileShared {
            source: &self.source,
            len: self.source.len(),
            metadata: Arc::clone(self.metadata()),
            crypto: self.file_crypto()?,
            verify_checksums: false,
            limits: self.limits,
            ledger: Arc::clone(&ledger),
        });
        let mut pages = Vec::new();
        for (row_group, chunks) in self.metadata().row_groups().iter().enumerate() {
            for column in 0..chunks.num_columns() {
                let mut cursor = ChunkCursor::try_new(
                    Arc::clone(&file),
                    owners.column(column),
                    row_group,
                    column,
                )?;
                while let Some((header, offset)) = cursor.next_header()? {
                    pages.push(PageInfo::new(row_group, column, offset, &header));
                }
            }
        }
        Ok(pages)
    }

    fn file_crypto(&self) -> Result<Option<FileCrypto>> {
        let Some(properties) = &self.decryption else {
            return Ok(None);
        };
        let encryption = match &self.encryption {
            Some(read) => Some(read.clone()),
            None => footer::read_encryption(&self.source, self.source.len())?,
        };
        Ok(encryption.map(|encryption| FileCrypto::new(Arc::clone(properties), encryption)))
    }

    fn refuse_virtual_columns(&self) -> Result<()> {
        let is_virtual = |field: &&FieldRef| {
            let name = field.metadata().get(EXTENSION_TYPE_NAME_KEY);
            name.is_some_and(|name| name.starts_with("arrow.virtual."))
        };
        match self.metadata.schema().fields().iter().find(is_virtual) {
            Some(field) => Err(ParquetError::NYI(format!(
                "virtual column '{}': only the strategy upstream gives virtual columns",
                field.name()
            ))),
            None => Ok(()),
        }
    }

    fn check_row_groups(&self) -> Result<()> {
        let count = self.metadata().num_row_groups();
        match self.row_groups.iter().flatten().find(|i| **i >= count) {
            Some(index) => Err(ParquetError::General(format!(
                "row group {index} was asked for and the file has {count}"
            ))),
            None => Ok(()),
        }
    }

    fn build_upstream(self) -> Result<Built> {
        if self.verify_checksums == Some(true) {
            return Err(ParquetError::NYI(
                "page checksums: the strategy upstream does not verify them".into(),
            ));
        }
        let paths = self.paths(DecodePath::Parquet {
            why: "the strategy is the parquet crate's reader",
        });
        let mut builder =
            ParquetRecordBatchReaderBuilder::new_with_metadata(self.source, self.metadata)
                .with_batch_size(self.batch_size)
                .with_projection(self.projection);
        if let Some(row_groups) = self.row_groups {
            builder = builder.with_row_groups(row_groups);
        }
        if let Some(selection) = self.selection {
            builder = builder.with_row_selection(selection);
        }
        let reader = builder.build()?;
        Ok(Built {
            schema: reader.schema(),
            paths,
            inner: Inner::Upstream(Box::new(reader)),
        })
    }

    /// The same path for every leaf column that is read.
    fn paths(&self, path: DecodePath) -> Vec<Option<DecodePath>> {
        let leaves = 0..self.parquet_schema().num_columns();
        let is_read = |leaf| self.projection.leaf_included(leaf).then_some(path);
        leaves.map(is_read).collect()
    }

    /// What the columns are read with by `threads` threads.
    fn plan(self, buffers: BufferOwners, threads: usize, ledger: &Arc<Ledger>) -> Result<Plan<T>> {
        let metadata = Arc::clone(self.metadata.metadata());
        let len = self.source.len();
        let crypto = self.file_crypto()?;
        self.refuse_virtual_columns()?;
        let skips = self.selection.is_some();
        Ok(Plan {
            projection: self.projection,
            strategy: buffers,
            // Decoders reserve a batch's length at once, so a file's rows bound it.
            batch_size: self.batch_size.min(share::rows(&metadata)?),
            selection: self.selection,
            ledger: Arc::clone(ledger),
            metadata: self.metadata,
            row_groups: StrategyRowGroups {
                skips,
                owners: ReaderOwners::new(buffers, threads, ledger),
                row_groups: self
                    .row_groups
                    .unwrap_or_else(|| (0..metadata.num_row_groups()).collect()),
                file: Arc::new(FileShared {
                    source: self.source,
                    len,
                    metadata,
                    crypto,
                    verify_checksums: self.verify_checksums.unwrap_or(true),
                    limits: self.limits,
                    ledger: Arc::clone(ledger),
                }),
            },
        })
    }

    fn build_owned(self, buffers: BufferOwners, ledger: &Arc<Ledger>) -> Result<Built> {
        let threads = self.threads.max(1);
        let mut paths = vec![None; self.parquet_schema().num_columns()];
        let plan = self.plan(buffers, threads, ledger)?;
        let batches = Batches::new(plan.batch_size, plan.selection.as_ref());
        let roots = plan.roots();
        for root in &roots {
            let of_root = paths.iter_mut().enumerate();
            let of_root = of_root.take(root.leaves.1).skip(root.leaves.0);
            for (_, path) in of_root.filter(|(leaf, _)| plan.projection.leaf_included(*leaf)) {
                *path = Some(root.path);
            }
        }
        let mut shares = Vec::new();
        let mut fields = Vec::with_capacity(roots.len());
        for roots in share::deal(&roots, threads) {
            let (share, of_share) = plan.share(roots, fields.len())?;
            shares.push(share);
            fields.extend(of_share);
        }
        Ok(Built {
            schema: Arc::new(Schema::new(fields)),
            paths,
            inner: Inner::Owned {
                batches,
                shares: Shares::try_new(shares, threads)?,
            },
        })
    }
}

/// What a [`Reader`] is made of.
struct Built {
    inner: Inner,
    schema: SchemaRef,
    paths: Vec<Option<DecodePath>>,
}
