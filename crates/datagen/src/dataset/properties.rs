//! A dataset in the parquet crate's terms: the properties its writers take.

use std::sync::Arc;

use parquet::encryption::encrypt::FileEncryptionProperties;
use parquet::errors::ParquetError;
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterVersion};
use parquet::schema::types::ColumnPath;

use super::Dataset;
use crate::definition::{DataPageVersion, Encryption, KeyMetadata, Statistics};
use crate::error::{Error, Result};
use crate::key_metadata;
use crate::keys::{Key, KeySet};

/// What files say they were made by. Fixed, so that they do not depend on a build.
const CREATED_BY: &str = "alloquet-datagen version 1";

impl Dataset {
    /// What the parquet crate's writers need to write this file, encryption
    /// included.
    ///
    /// # Errors
    ///
    /// As [`keys`](Self::keys).
    pub fn writer_properties(&self) -> Result<WriterProperties> {
        self.writer_properties_with(self.keys()?.as_ref())
    }

    /// The same with keys that were resolved before, for a process that does not
    /// see the variable or file that they are in. Without `keys` the file is not
    /// encrypted.
    ///
    /// # Errors
    ///
    /// Where the keys do not fit.
    pub fn writer_properties_with(&self, keys: Option<&KeySet>) -> Result<WriterProperties> {
        let layout = &self.layout;
        let mut builder = WriterProperties::builder()
            .set_created_by(CREATED_BY.to_owned())
            .set_writer_version(match layout.data_page_version {
                DataPageVersion::V1 => WriterVersion::PARQUET_1_0,
                DataPageVersion::V2 => WriterVersion::PARQUET_2_0,
            })
            .set_max_row_group_row_count(Some(layout.rows_per_row_group))
            .set_data_page_size_limit(layout.page_bytes)
            // The parquet crate has no word for "no limit", only a default of 20,000.
            .set_data_page_row_count_limit(layout.page_row_limit.unwrap_or(usize::MAX))
            .set_dictionary_page_size_limit(layout.dictionary_page_bytes)
            .set_compression(layout.compression.codec())
            .set_statistics_enabled(match layout.statistics {
                Statistics::None => EnabledStatistics::None,
                Statistics::Chunk => EnabledStatistics::Chunk,
                Statistics::Page => EnabledStatistics::Page,
            });
        // Most columns' settings are the defaults, which keeps the map of the
        // others, and the heap of whoever writes with it, small.
        let most = self.columns.iter().max_by_key(|group| group.count);
        if let Some(group) = most {
            builder = builder
                .set_encoding(group.encoding.parquet())
                .set_dictionary_enabled(group.dictionary);
        }
        let schema = self.parquet_schema();
        let mut paths = schema.columns().iter().map(|column| column.path());
        for group in &self.columns {
            let paths = paths.by_ref().take(group.count);
            if most.is_some_and(|most| {
                (most.encoding, most.dictionary) == (group.encoding, group.dictionary)
            }) {
                paths.for_each(drop);
                continue;
            }
            for path in paths {
                let path: ColumnPath = path.clone();
                builder = builder
                    .set_column_encoding(path.clone(), group.encoding.parquet())
                    .set_column_dictionary_enabled(path, group.dictionary);
            }
        }
        if let (Some(encryption), Some(keys)) = (&self.encryption, keys) {
            let properties = encryption
                .properties(keys)
                .map_err(|source| Error::Parquet {
                    path: self.file_name().into(),
                    source,
                })?;
            builder = builder.with_file_encryption_properties(properties);
        }
        Ok(builder.build())
    }
}

impl Encryption {
    fn properties(
        &self,
        keys: &KeySet,
    ) -> std::result::Result<Arc<FileEncryptionProperties>, ParquetError> {
        let bytes = |key: &Key| key.bytes().to_vec();
        let mut builder = FileEncryptionProperties::builder(bytes(keys.footer_key()))
            .with_plaintext_footer(self.plaintext_footer);
        let test_kms = self.key_metadata == KeyMetadata::TestKms;
        if test_kms {
            let metadata = key_metadata::of_footer_key(keys.footer_key());
            builder = builder.with_footer_key_metadata(metadata);
        }
        for (column, key) in keys.column_keys() {
            builder = if test_kms {
                let metadata = key_metadata::of_column_key(column, key);
                builder.with_column_key_and_metadata(column, bytes(key), metadata)
            } else {
                builder.with_column_key(column, bytes(key))
            };
        }
        if let Some(prefix) = keys.aad_prefix() {
            builder = builder
                .with_aad_prefix(prefix.to_vec())
                .with_aad_prefix_storage(self.store_aad_prefix);
        }
        builder.build()
    }
}
