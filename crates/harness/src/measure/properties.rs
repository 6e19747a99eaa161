//! How the workload `write` writes: as the dataset's definition says, or as the file it writes anew
//! was written.

use std::fs::File;

use alloquet_datagen::keys::KeySet;
use anyhow::{Context, Result};
use parquet::arrow::arrow_reader::ArrowReaderMetadata;
use parquet::basic::{Encoding, PageType};
use parquet::encryption::encrypt::FileEncryptionProperties;
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData};
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterVersion};

use super::job::Job;
use super::read::options;

/// The properties to write the job's file with.
pub(super) fn writer_properties(job: &Job) -> Result<WriterProperties> {
    match &job.dataset {
        // The keys came with the job: a variable that the definition names is not in this environment.
        Some(source) => Ok(source.load()?.writer_properties_with(job.keys.as_ref())?),
        None => properties_like(job),
    }
}

fn properties_like(job: &Job) -> Result<WriterProperties> {
    let name = job.file.display();
    let file = File::open(&job.file).with_context(|| format!("cannot open {name}"))?;
    // By default the metadata keeps only which encodings there are, not in which kind of page.
    let options = options(job)?.with_encoding_stats_as_mask(false);
    let metadata = ArrowReaderMetadata::load(&file, options)
        .with_context(|| format!("cannot read the Parquet metadata of {name}"))?;
    properties_of(metadata.metadata(), job.keys.as_ref())
}

/// Properties that come near those which a file was written with: codec, encoding, dictionary and
/// statistics of each column, the version of its pages, the rows of a row group. The footer does
/// not tell page sizes and compression levels; those are the parquet crate's defaults.
fn properties_of(metadata: &ParquetMetaData, keys: Option<&KeySet>) -> Result<WriterProperties> {
    let mut builder = WriterProperties::builder();
    let rows = metadata
        .row_groups()
        .iter()
        .map(|group| group.num_rows())
        .max();
    if let Some(rows) = rows
        .and_then(|rows| usize::try_from(rows).ok())
        .filter(|&rows| rows > 0)
    {
        builder = builder.set_max_row_group_row_count(Some(rows));
    }
    let columns = metadata
        .row_groups()
        .first()
        .map_or(&[][..], |group| group.columns());
    if columns.iter().any(has_v2_pages) {
        builder = builder.set_writer_version(WriterVersion::PARQUET_2_0);
    }
    for column in columns {
        let path = column.column_path();
        let statistics = match column.statistics() {
            Some(_) => EnabledStatistics::Chunk,
            None => EnabledStatistics::None,
        };
        builder = builder
            .set_column_compression(path.clone(), column.compression())
            .set_column_dictionary_enabled(path.clone(), column.dictionary_page_offset().is_some())
            .set_column_statistics_enabled(path.clone(), statistics);
        if let Some(encoding) = column.encodings().find(is_chosen) {
            builder = builder.set_column_encoding(path.clone(), encoding);
        }
    }
    if let Some(keys) = keys {
        let mut encryption = FileEncryptionProperties::builder(keys.footer_key().bytes().to_vec());
        for (column, key) in keys.column_keys() {
            encryption = encryption.with_column_key(column, key.bytes().to_vec());
        }
        if let Some(prefix) = keys.aad_prefix() {
            encryption = encryption.with_aad_prefix(prefix.to_vec());
        }
        let encryption = encryption
            .build()
            .context("cannot encrypt with the keys of the file")?;
        builder = builder.with_file_encryption_properties(encryption);
    }
    Ok(builder.build())
}

fn has_v2_pages(column: &ColumnChunkMetaData) -> bool {
    let statistics = column.page_encoding_stats().map_or(&[][..], Vec::as_slice);
    statistics
        .iter()
        .any(|pages| pages.page_type == PageType::DATA_PAGE_V2)
}

/// Whether a writer uses the encoding for values only when told to: the others are defaults, or
/// also those of levels.
fn is_chosen(encoding: &Encoding) -> bool {
    matches!(
        encoding,
        Encoding::DELTA_BINARY_PACKED
            | Encoding::DELTA_LENGTH_BYTE_ARRAY
            | Encoding::DELTA_BYTE_ARRAY
            | Encoding::BYTE_STREAM_SPLIT
    )
}
