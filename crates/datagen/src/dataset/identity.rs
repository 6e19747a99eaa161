//! What makes two datasets the same file: the hash that is in its name.

use std::fmt::Write as _;

use parquet::file::properties::DEFAULT_CREATED_BY;
use serde::Serialize;
use sha2::{Digest, Sha256};

use super::Dataset;
use crate::column::ColumnGroup;
use crate::definition::{Encryption, Layout};

/// Counts up whenever the same definition gives other bytes, so that files of an
/// older generator are not used again.
pub const GENERATOR_VERSION: u32 = 1;

/// The generator, with the parquet crate it writes with.
pub(crate) fn generator() -> String {
    format!("alloquet-datagen {GENERATOR_VERSION}, {DEFAULT_CREATED_BY}")
}

impl Dataset {
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
}

impl Encryption {
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
}
