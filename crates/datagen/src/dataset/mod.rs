//! A dataset: a definition that has been checked, perhaps scaled, and can say
//! everything about its file but write it.

mod identity;
mod properties;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_schema::{Schema, SchemaRef};
use parquet::arrow::ArrowSchemaConverter;
use parquet::schema::types::SchemaDescriptor;
use toml::Spanned;

use crate::column::ColumnGroup;
use crate::definition::{Definition, Encryption, KeyMetadata, Layout};
use crate::error::{Error, Result};
use crate::keys::{KeyError, KeySet, KeySource};
use crate::toml_error::{line_of, without_values};
use crate::validate;

pub use identity::GENERATOR_VERSION;
pub(crate) use identity::generator;

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
            let group = checked(group, |group| validate::group(group, layout.rows()))
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
        self.layout.rows()
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
}
