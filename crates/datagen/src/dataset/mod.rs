//! A dataset: a definition that has been checked, perhaps scaled, and can say
//! everything about its file but write it.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_schema::{Schema, SchemaRef};
use parquet::arrow::ArrowSchemaConverter;
use parquet::encryption::encrypt::FileEncryptionProperties;
use parquet::errors::ParquetError;
use parquet::file::properties::{
    DEFAULT_CREATED_BY, EnabledStatistics, WriterProperties, WriterVersion,
};
use parquet::schema::types::{ColumnPath, SchemaDescriptor};
use serde::Serialize;
use sha2::{Digest, Sha256};
use toml::Spanned;

use crate::column::ColumnGroup;
use crate::definition::{
    DataPageVersion, Definition, Encryption, KeyMetadata, Layout, Statistics, line_of,
    without_values,
};
use crate::error::{Error, Result};
use crate::key_metadata;
use crate::keys::{Key, KeyError, KeySet, KeySource};
use crate::validate;

/// Counts up whenever the same definition gives other bytes, so that files of an
/// older generator are not used again.
pub const GENERATOR_VERSION: u32 = 1;

/// What files say they were made by. Fixed, so that they do not depend on a build.
const CREATED_BY: &str = "alloquet-datagen version 1";

/// The generator, with the parquet crate it writes with.
pub(crate) fn generator() -> String {
    format!("alloquet-datagen {GENERATOR_VERSION}, {DEFAULT_CREATED_BY}")
}

/// How much smaller than its definition a dataset is to be.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scale {
    /// Factor for the rows of each row group, above 0 and at most 1.
    pub rows: f64,
    /// Factor for the columns of each group, above 0 and at most 1.
    pub columns: f64,
}

impl Default for Scale {
    /// The definition as it is.
    fn default() -> Self {
        Self {
            rows: 1.0,
            columns: 1.0,
        }
    }
}

/// A checked dataset definition.
#[derive(Debug, Clone)]
pub struct Dataset {
    name: String,
    origin: String,
    /// Where relative `file:` keys are looked for.
    folder: Option<PathBuf>,
    description: String,
    seed: u64,
    layout: Layout,
    columns: Vec<ColumnGroup>,
    encryption: Option<Encryption>,
}

impl Dataset {
    /// Loads a definition; the file's name without `.toml` is the dataset's.
    ///
    /// # Errors
    ///
    /// The file cannot be read, is not such TOML, or does not fit together. The
    /// error names the file, and the line where it is known.
    pub fn load(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path).map_err(|source| Error::ReadDefinition {
            path: path.to_owned(),
            source,
        })?;
        let name = path
            .file_stem()
            .map(|stem| stem.to_string_lossy().into_owned())
            .unwrap_or_default();
        let folder = path.parent().map(Path::to_owned);
        Self::read(&name, path.display().to_string(), folder, &text)
    }

    /// Reads a definition's text. `name` names the dataset and its files; a
    /// relative `file:` key is looked for in the current folder.
    ///
    /// # Errors
    ///
    /// As [`load`](Self::load).
    pub fn parse(name: &str, text: &str) -> Result<Self> {
        Self::read(name, format!("dataset {name}"), None, text)
    }

    fn read(name: &str, origin: String, folder: Option<PathBuf>, text: &str) -> Result<Self> {
        let failed = |offset: Option<usize>, message: String| Error::Definition {
            origin: origin.clone(),
            line: offset.map(|offset| line_of(text, offset)),
            message,
        };
        if name.is_empty()
            || !name
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || "-_".contains(c))
        {
            return Err(failed(
                None,
                format!(
                    "dataset name `{}` must be letters, digits, - and _",
                    name.escape_debug()
                ),
            ));
        }
        let definition: Definition = toml::from_str(text).map_err(|error| {
            failed(
                error.span().map(|span| span.start),
                without_values(error.message()),
            )
        })?;

        let layout = checked(definition.file, validate::layout)
            .map_err(|(offset, message)| failed(Some(offset), message))?;
        let mut columns = Vec::with_capacity(definition.columns.len());
        for group in definition.columns {
            let group = checked(group, validate::group)
                .map_err(|(offset, message)| failed(Some(offset), message))?;
            columns.push(group);
        }
        validate::total(&layout, &columns).map_err(|message| failed(None, message))?;

        let mut dataset = Self {
            name: name.to_owned(),
            origin: origin.clone(),
            folder,
            description: definition.description,
            seed: definition.seed,
            layout,
            columns,
            encryption: None,
        };
        dataset
            .check_names()
            .map_err(|message| failed(None, message))?;
        if let Some(encryption) = definition.encryption {
            let offset = encryption.span().start;
            let encryption = encryption.into_inner();
            dataset
                .check_encryption(&encryption)
                .map_err(|message| failed(Some(offset), message))?;
            dataset.encryption = Some(encryption);
        }
        Ok(dataset)
    }

    fn check_names(&self) -> std::result::Result<(), String> {
        let mut seen = std::collections::HashSet::new();
        for name in self.columns.iter().flat_map(ColumnGroup::column_names) {
            if !seen.insert(name.clone()) {
                return Err(format!("there are two columns named `{name}`"));
            }
        }
        Ok(())
    }

    fn check_encryption(&self, encryption: &Encryption) -> std::result::Result<(), String> {
        let schema = self.parquet_schema();
        let paths: Vec<String> = schema.columns().iter().map(|c| c.path().string()).collect();
        if let Some(number) = encryption
            .column_keys
            .keys()
            .position(|column| !paths.contains(column))
        {
            // Not named: where key and column were swapped, the name is the key.
            return Err(format!(
                "column_keys: name {} (in alphabetical order) is not a column of this dataset, write \"column\" = \"key\"; the first column is `{}`",
                number + 1,
                paths.first().map_or("", String::as_str)
            ));
        }
        if encryption.store_aad_prefix && encryption.aad_prefix.is_none() {
            return Err("store_aad_prefix needs an aad_prefix".to_owned());
        }
        let inline = encryption.sources().all(|(_, source)| source.is_inline());
        if encryption.key_metadata == KeyMetadata::TestKms && !inline {
            return Err("key_metadata = \"test-kms\" writes the keys into the file, so they must be test keys that stand in the definition (text:, hex: or base64:)".to_owned());
        }
        for (place, source) in encryption
            .sources()
            .filter(|(_, source)| source.is_inline())
        {
            source
                .resolve_key(None, &place)
                .map_err(|error| error.to_string())?;
        }
        Ok(())
    }

    /// The dataset with fewer rows in each row group and fewer columns in each
    /// group, at least one of each. Columns that stay keep their values, up to
    /// where the row group now ends.
    ///
    /// # Errors
    ///
    /// A factor that is not above 0 and at most 1; a column key whose column
    /// is scaled away.
    pub fn scaled(&self, scale: &Scale) -> Result<Self> {
        for (what, factor) in [("rows", scale.rows), ("columns", scale.columns)] {
            if !(factor > 0.0 && factor <= 1.0) {
                return Err(Error::Scale { what, factor });
            }
        }
        let shrink = |count: usize, factor: f64| ((count as f64 * factor).round() as usize).max(1);
        let mut scaled = self.clone();
        scaled.layout.rows_per_row_group = shrink(self.layout.rows_per_row_group, scale.rows);
        for group in &mut scaled.columns {
            group.count = shrink(group.count, scale.columns);
        }
        if let Some(encryption) = &self.encryption {
            scaled
                .check_encryption(encryption)
                .map_err(|message| Error::Definition {
                    origin: self.origin.clone(),
                    line: None,
                    message: format!("scaled to {} of its columns: {message}", scale.columns),
                })?;
        }
        Ok(scaled)
    }

    /// The dataset's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The definition's file, or what stands for it in messages.
    #[must_use]
    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// What the definition says the dataset is.
    #[must_use]
    pub fn description(&self) -> &str {
        &self.description
    }

    /// The seed of every random stream.
    #[must_use]
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// How the file is laid out.
    #[must_use]
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The groups of columns, in order.
    #[must_use]
    pub fn columns(&self) -> &[ColumnGroup] {
        &self.columns
    }

    /// The number of columns.
    #[must_use]
    pub fn column_count(&self) -> usize {
        self.columns.iter().map(|group| group.count).sum()
    }

    /// The number of rows of the whole file.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.layout.row_groups as u64 * self.layout.rows_per_row_group as u64
    }

    /// Rows × columns, what [`Progress`](crate::Progress) counts.
    #[must_use]
    pub fn values(&self) -> u64 {
        self.rows() * self.column_count() as u64
    }

    /// Whether the file is encrypted.
    #[must_use]
    pub fn is_encrypted(&self) -> bool {
        self.encryption.is_some()
    }

    /// SHA-256, in hex, of the definition as resolved and scaled and of the
    /// generator: two datasets with the same hash are the same file.
    #[must_use]
    pub fn hash(&self) -> String {
        /// Everything that bears on the bytes, and not the name or description.
        #[derive(Serialize)]
        struct Canonical<'a> {
            generator: String,
            seed: u64,
            layout: &'a Layout,
            columns: &'a [ColumnGroup],
            encryption: Option<Vec<String>>,
        }
        let canonical = Canonical {
            generator: generator(),
            seed: self.seed,
            layout: &self.layout,
            columns: &self.columns,
            encryption: self.encryption.as_ref().map(Encryption::identity),
        };
        // Cannot fail: strings, finite numbers and lists of them.
        let json = serde_json::to_vec(&canonical).unwrap_or_default();
        let mut hex = String::with_capacity(64);
        for byte in Sha256::digest(json) {
            let _ = write!(hex, "{byte:02x}");
        }
        hex
    }

    /// `<name>-<first 12 digits of the hash>.parquet`.
    #[must_use]
    pub fn file_name(&self) -> String {
        format!("{}-{}.parquet", self.name, &self.hash()[..12])
    }

    /// The Arrow schema that the file reads as.
    #[must_use]
    pub fn schema(&self) -> SchemaRef {
        let fields: Vec<_> = self
            .columns
            .iter()
            .flat_map(|group| group.column_names().map(|name| group.field(&name)))
            .collect();
        Arc::new(Schema::new(fields))
    }

    /// The file's Parquet schema. Logical types say all there is to say, so files
    /// carry no Arrow schema of their own.
    pub(crate) fn parquet_schema(&self) -> SchemaDescriptor {
        // Cannot fail: every type that a definition can name has a Parquet type.
        ArrowSchemaConverter::new()
            .convert(&self.schema())
            .unwrap_or_else(|error| unreachable!("{}: {error}", self.origin))
    }

    /// The keys that the file is encrypted with, or `None` if it is not.
    ///
    /// # Errors
    ///
    /// A variable or file that a key is in is missing or malformed.
    pub fn keys(&self) -> Result<Option<KeySet>> {
        let Some(encryption) = &self.encryption else {
            return Ok(None);
        };
        encryption
            .resolve(self.folder.as_deref())
            .map(Some)
            .map_err(|source| Error::Key {
                origin: self.origin.clone(),
                source,
            })
    }

    /// What the parquet crate's writers need to write this file, encryption
    /// included.
    ///
    /// # Errors
    ///
    /// As [`keys`](Self::keys).
    pub fn writer_properties(&self) -> Result<WriterProperties> {
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
        if let (Some(encryption), Some(keys)) = (&self.encryption, self.keys()?) {
            let properties = encryption
                .properties(&keys)
                .map_err(|source| Error::Parquet {
                    path: self.file_name().into(),
                    source,
                })?;
            builder = builder.with_file_encryption_properties(properties);
        }
        Ok(builder.build())
    }
}

fn checked<T>(
    spanned: Spanned<T>,
    check: impl Fn(&T) -> std::result::Result<(), String>,
) -> std::result::Result<T, (usize, String)> {
    let offset = spanned.span().start;
    let value = spanned.into_inner();
    check(&value).map_err(|message| (offset, message))?;
    Ok(value)
}

impl Encryption {
    /// Every key (not the AAD prefix, which may have any length), with its name.
    fn sources(&self) -> impl Iterator<Item = (String, &KeySource)> {
        let columns = self
            .column_keys
            .iter()
            .map(|(column, source)| (format!("column_keys `{column}`"), source));
        std::iter::once(("footer_key".to_owned(), &self.footer_key)).chain(columns)
    }

    fn resolve(&self, folder: Option<&Path>) -> std::result::Result<KeySet, KeyError> {
        let footer_key = self.footer_key.resolve_key(folder, "footer_key")?;
        let mut keys = KeySet::new(footer_key);
        for (column, source) in &self.column_keys {
            let place = format!("column_keys `{column}`");
            keys = keys.with_column_key(column, source.resolve_key(folder, &place)?);
        }
        if let Some(prefix) = &self.aad_prefix {
            keys = keys.with_aad_prefix(prefix.resolve(folder, "aad_prefix")?);
        }
        Ok(keys)
    }

    /// For the definition's hash. It takes in the keys that stand in the
    /// definition, and of others where they come from: a file is never used
    /// again under other keys, because its footer is opened first.
    fn identity(&self) -> Vec<String> {
        let mut parts: Vec<String> = self
            .sources()
            .map(|(place, source)| format!("{place} {}", source.identity()))
            .collect();
        parts.extend(
            self.aad_prefix
                .iter()
                .map(|s| format!("aad_prefix {}", s.identity())),
        );
        parts.push(format!("store_aad_prefix {}", self.store_aad_prefix));
        parts.push(format!("plaintext_footer {}", self.plaintext_footer));
        parts.push(format!("key_metadata {:?}", self.key_metadata));
        parts
    }

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
