//! Encryption keys: where they come from, and what they may be shown as.
//!
//! A key is written as a source (`text:…`, `hex:…`, `base64:…`, `env:NAME`,
//! `file:PATH`) in a dataset definition or a key file. Nothing here puts key
//! material into an error, a `Debug` or a log, not even a malformed value.
//!
//! Keys held here are wiped from memory when they are dropped, and so is the text that they are read from. Not wiped are
//! the copies that the parsers of TOML and JSON make on the way, those inside the parquet crate's properties, and, of the test
//! keys that stand in a definition, what its hash and a file's key metadata are made from.

mod file;
mod source;

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use parquet::encryption::decrypt::FileDecryptionProperties;
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

pub use source::KeySource;

/// What is wrong with a key or a key file, told without its contents.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {problem}")]
pub struct KeyError {
    place: String,
    problem: String,
}

impl KeyError {
    pub(crate) fn new(place: impl Into<String>, problem: impl Into<String>) -> Self {
        Self {
            place: place.into(),
            problem: problem.into(),
        }
    }
}

/// One AES key of 128 or 256 bits. Its `Debug` shows the size only.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Key(Zeroizing<Vec<u8>>);

impl Key {
    /// Takes a key of 16 or 32 bytes; `place` names it in the error.
    ///
    /// # Errors
    ///
    /// Any other length. 24 bytes (192 bits) is valid Parquet, but neither the
    /// parquet crate nor `ring` can use it, and the error says so.
    pub fn new(bytes: Vec<u8>, place: &str) -> Result<Self, KeyError> {
        let bytes = Zeroizing::new(bytes);
        match bytes.len() {
            16 | 32 => Ok(Self(bytes)),
            24 => Err(KeyError::new(
                place,
                "the key is 24 bytes (192 bits), which the parquet crate cannot use; use 16 or 32 bytes",
            )),
            length => Err(KeyError::new(
                place,
                format!("the key is {length} bytes, it must be 16 or 32"),
            )),
        }
    }

    /// The key itself.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// The key as base64, as a test KMS wraps it.
    pub(crate) fn base64(&self) -> String {
        STANDARD.encode(self.bytes())
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({} bit)", self.0.len() * 8)
    }
}

impl From<Key> for String {
    fn from(key: Key) -> Self {
        key.base64()
    }
}

impl TryFrom<String> for Key {
    type Error = KeyError;

    fn try_from(text: String) -> Result<Self, KeyError> {
        let bytes = STANDARD
            .decode(Zeroizing::new(text).as_bytes())
            .map_err(|_| KeyError::new("key", "not base64"))?;
        Self::new(bytes, "key")
    }
}

/// The keys of one file, resolved: what a reader needs to open it.
///
/// Serializing writes the keys themselves. That is for handing them to a worker
/// process over a pipe, never for a file.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeySet {
    footer_key: Key,
    column_keys: BTreeMap<String, Key>,
    aad_prefix: Option<Vec<u8>>,
}

impl KeySet {
    /// Keys for a file that is encrypted with one key throughout.
    #[must_use]
    pub fn new(footer_key: Key) -> Self {
        Self {
            footer_key,
            column_keys: BTreeMap::new(),
            aad_prefix: None,
        }
    }

    /// Adds the key of one column, named by its dotted path.
    #[must_use]
    pub fn with_column_key(mut self, column: impl Into<String>, key: Key) -> Self {
        self.column_keys.insert(column.into(), key);
        self
    }

    /// Sets the AAD prefix that the file was written with.
    #[must_use]
    pub fn with_aad_prefix(mut self, prefix: Vec<u8>) -> Self {
        self.aad_prefix = Some(prefix);
        self
    }

    /// Reads a key file's text and resolves its sources; a `file:` source is
    /// relative to the current folder.
    ///
    /// ```
    /// # use alloquet_datagen::keys::KeySet;
    /// let keys = KeySet::from_toml(
    ///     r#"
    ///     footer_key = "text:0123456789012345"
    ///     aad_prefix = "text:tester"
    ///
    ///     [column_keys]
    ///     "a.b" = "hex:31323334353637383930313233343530"
    ///     "#,
    /// )?;
    /// assert_eq!(keys.column_keys().count(), 1);
    /// # Ok::<(), alloquet_datagen::keys::KeyError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Text that is not such a file, an unknown name, a source that cannot be
    /// resolved, a key of the wrong length. No error holds a value.
    pub fn from_toml(text: &str) -> Result<Self, KeyError> {
        file::parse(text, "key file", None)
    }

    /// Reads a key file; a `file:` source is relative to its folder.
    ///
    /// # Errors
    ///
    /// As [`from_toml`](Self::from_toml), or the file cannot be read.
    pub fn from_file(path: &Path) -> Result<Self, KeyError> {
        let origin = path.display().to_string();
        let text = std::fs::read_to_string(path).map_err(|error| {
            KeyError::new(&origin, format!("cannot read the key file: {error}"))
        })?;
        let text = Zeroizing::new(text);
        file::parse(&text, &origin, path.parent())
    }

    /// The key of the footer, and of every column where there are no column keys.
    #[must_use]
    pub fn footer_key(&self) -> &Key {
        &self.footer_key
    }

    /// The keys of single columns, by dotted path.
    pub fn column_keys(&self) -> impl Iterator<Item = (&str, &Key)> {
        self.column_keys
            .iter()
            .map(|(name, key)| (name.as_str(), key))
    }

    /// The AAD prefix, where there is one.
    #[must_use]
    pub fn aad_prefix(&self) -> Option<&[u8]> {
        self.aad_prefix.as_deref()
    }

    /// What the parquet crate needs to decrypt a file with these keys.
    ///
    /// # Errors
    ///
    /// The parquet crate refuses the keys.
    pub fn decryption_properties(
        &self,
    ) -> Result<Arc<FileDecryptionProperties>, parquet::errors::ParquetError> {
        let mut builder = FileDecryptionProperties::builder(self.footer_key.bytes().to_vec());
        for (column, key) in &self.column_keys {
            builder = builder.with_column_key(column, key.bytes().to_vec());
        }
        if let Some(prefix) = &self.aad_prefix {
            builder = builder.with_aad_prefix(prefix.clone());
        }
        builder.build()
    }
}

impl fmt::Debug for KeySet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeySet")
            .field("footer_key", &self.footer_key)
            .field("column_keys", &self.column_keys)
            .field(
                "aad_prefix",
                &self
                    .aad_prefix
                    .as_ref()
                    .map(|prefix| format!("{} bytes", prefix.len())),
            )
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys() -> KeySet {
        KeySet::new(Key::new(b"0123456789012345".to_vec(), "test").unwrap())
            .with_column_key(
                "a.b",
                Key::new(b"secret-secret-se".to_vec(), "test").unwrap(),
            )
            .with_aad_prefix(b"prefix".to_vec())
    }

    #[test]
    fn debug_shows_sizes_only() {
        let text = format!("{:?}", keys());
        assert!(text.contains("128 bit"), "{text}");
        assert!(text.contains("a.b"), "{text}");
        for secret in ["0123456789", "secret", "prefix\"", "48, 49"] {
            assert!(!text.contains(secret), "{text}");
        }
    }

    #[test]
    fn a_worker_gets_the_same_keys() {
        let json = serde_json::to_string(&keys()).unwrap();
        let back: KeySet = serde_json::from_str(&json).unwrap();
        assert_eq!(back, keys());
    }

    #[test]
    fn a_malformed_resolved_key_is_not_repeated() {
        for value in ["c2VjcmV0", "not*base64"] {
            let json =
                format!(r#"{{"footer_key":"{value}","column_keys":{{}},"aad_prefix":null}}"#);
            let error = serde_json::from_str::<KeySet>(&json)
                .unwrap_err()
                .to_string();
            assert!(!error.contains(value), "{error}");
        }
    }

    #[test]
    fn key_lengths() {
        for length in [16, 32] {
            assert!(Key::new(vec![1; length], "k").is_ok());
        }
        for length in [0, 15, 24, 33] {
            let error = Key::new(vec![1; length], "footer_key").unwrap_err();
            assert!(
                error.to_string().starts_with("footer_key: the key is "),
                "{error}"
            );
        }
    }

    #[test]
    fn decryption_properties_hold_every_part() {
        let properties = keys().decryption_properties().unwrap();
        assert_eq!(*properties.footer_key(None).unwrap(), b"0123456789012345");
        assert_eq!(
            *properties.column_key("a.b", None).unwrap(),
            b"secret-secret-se"
        );
        assert_eq!(
            properties.aad_prefix().map(Vec::as_slice),
            Some(&b"prefix"[..])
        );
    }
}
