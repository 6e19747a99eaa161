//! The lane `upstream-eager` in the window: the parquet crate of before arrow-rs #11149.
//!
//! Arrays and properties of that release are other types, so both are carried over before the window. It encrypts
//! nothing, has no bloom filters here, and writes one file at a time.

use std::fs::File;

use alloquet_report::sample::Situation;
use alloquet_upstream_eager::{self as eager, ColumnOptions, Options, Properties, Table};
use anyhow::{Context, Result, bail, ensure};
use arrow_ipc::writer::StreamWriter;
use parquet::basic::{Compression, Encoding};
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterVersion};
use parquet::schema::types::{ColumnPath, SchemaDescriptor};

use super::input::Input;
use super::memory::MemoryCheck;
use super::{Ready, Sink};

/// The table, in the arrays of that release.
pub(super) struct EagerTable(Table);

impl EagerTable {
    /// Takes the batches out of `input`, so that the table is in memory once as for every other lane.
    pub(super) fn new(input: &mut Input) -> Result<Self> {
        let table = carried_over(input).context("parquet 59.3.2 cannot take the batches over")?;
        Ok(Self(table))
    }
}

/// Everything that can be made before the window.
pub(super) struct EagerLane<'a> {
    table: &'a Table,
    properties: Properties,
    sink: File,
}

impl<'a> EagerLane<'a> {
    pub(super) fn new(
        table: &'a EagerTable,
        properties: &WriterProperties,
        schema: &SchemaDescriptor,
        sinks: &[Sink],
    ) -> Result<Self> {
        let [sink] = sinks else {
            bail!("the strategy 'upstream-eager' opens one writer: measure it with writers = 1")
        };
        Ok(Self {
            table: &table.0,
            properties: options(properties, schema)?.properties(),
            sink: sink.file.try_clone()?,
        })
    }
}

impl Ready for EagerLane<'_> {
    fn write(&mut self, situation: Situation, _memory: Option<&mut MemoryCheck>) -> Result<()> {
        match situation {
            Situation::Resident => self.table.write(&self.sink, &self.properties)?,
            Situation::Arriving => self.table.write_copies(&self.sink, &self.properties)?,
        };
        Ok(())
    }
}

fn carried_over(input: &mut Input) -> Result<Table> {
    let mut stream = Vec::new();
    let mut writer = StreamWriter::try_new(&mut stream, &input.schema)?;
    for batch in std::mem::take(&mut input.batches) {
        writer.write(&batch)?;
    }
    writer.finish()?;
    drop(writer);
    Ok(Table::from_ipc(&stream)?)
}

fn options(properties: &WriterProperties, schema: &SchemaDescriptor) -> Result<Options> {
    ensure!(
        properties.file_encryption_properties().is_none(),
        "the strategy 'upstream-eager' does not encrypt: use 'upstream' for an encrypted file"
    );
    // The settings of a column that has none of its own.
    let every_column = column(properties, &ColumnPath::new(Vec::new()))?;
    let mut options = Options {
        writer_version: match properties.writer_version() {
            WriterVersion::PARQUET_1_0 => eager::WriterVersion::PARQUET_1_0,
            WriterVersion::PARQUET_2_0 => eager::WriterVersion::PARQUET_2_0,
        },
        created_by: Some(properties.created_by().to_owned()),
        row_group_rows: properties.max_row_group_row_count(),
        page_rows: properties.data_page_row_count_limit(),
        write_batch_rows: properties.write_batch_size(),
        every_column,
        columns: Vec::new(),
    };
    for path in schema.columns().iter().map(|column| column.path()) {
        ensure!(
            properties.bloom_filter_properties(path).is_none(),
            "the strategy 'upstream-eager' writes no bloom filters here: leave bloom_filter out"
        );
        let own = column(properties, path)?;
        if own != every_column {
            options.columns.push((path.parts().to_vec(), own));
        }
    }
    Ok(options)
}

fn column(properties: &WriterProperties, path: &ColumnPath) -> Result<ColumnOptions> {
    Ok(ColumnOptions {
        compression: compression(properties.compression(path))?,
        encoding: properties.encoding(path).map(encoding).transpose()?,
        dictionary: properties.dictionary_enabled(path),
        dictionary_page_bytes: properties.column_dictionary_page_size_limit(path),
        page_bytes: properties.column_data_page_size_limit(path),
        statistics: match properties.statistics_enabled(path) {
            EnabledStatistics::None => eager::EnabledStatistics::None,
            EnabledStatistics::Chunk => eager::EnabledStatistics::Chunk,
            EnabledStatistics::Page => eager::EnabledStatistics::Page,
        },
    })
}

fn compression(codec: Compression) -> Result<eager::Compression> {
    Ok(match codec {
        Compression::UNCOMPRESSED => eager::Compression::UNCOMPRESSED,
        Compression::SNAPPY => eager::Compression::SNAPPY,
        Compression::LZ4_RAW => eager::Compression::LZ4_RAW,
        Compression::LZ4 => eager::Compression::LZ4,
        Compression::GZIP(level) => {
            eager::Compression::GZIP(eager::GzipLevel::try_new(level.compression_level())?)
        }
        Compression::BROTLI(level) => {
            eager::Compression::BROTLI(eager::BrotliLevel::try_new(level.compression_level())?)
        }
        Compression::ZSTD(level) => {
            eager::Compression::ZSTD(eager::ZstdLevel::try_new(level.compression_level())?)
        }
        other => bail!("the strategy 'upstream-eager' does not compress with {other}"),
    })
}

fn encoding(encoding: Encoding) -> Result<eager::Encoding> {
    Ok(match encoding {
        Encoding::PLAIN => eager::Encoding::PLAIN,
        Encoding::RLE => eager::Encoding::RLE,
        Encoding::DELTA_BINARY_PACKED => eager::Encoding::DELTA_BINARY_PACKED,
        Encoding::DELTA_LENGTH_BYTE_ARRAY => eager::Encoding::DELTA_LENGTH_BYTE_ARRAY,
        Encoding::DELTA_BYTE_ARRAY => eager::Encoding::DELTA_BYTE_ARRAY,
        Encoding::BYTE_STREAM_SPLIT => eager::Encoding::BYTE_STREAM_SPLIT,
        other => bail!("the strategy 'upstream-eager' does not encode as {other}"),
    })
}
