//! A dataset definition as it stands in TOML: the names, and nothing beyond what
//! serde checks. What fits together is `validate`'s business.

use std::collections::BTreeMap;
use std::fmt;

use parquet::basic::{BrotliLevel, Compression as Codec, GzipLevel, ZstdLevel};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use toml::Spanned;

use crate::column::ColumnGroup;
use crate::keys::KeySource;

/// The whole file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Definition {
    pub(crate) description: String,
    pub(crate) seed: u64,
    pub(crate) file: Spanned<Layout>,
    pub(crate) columns: Vec<Spanned<ColumnGroup>>,
    pub(crate) encryption: Option<Spanned<Encryption>>,
}

/// `[file]`: how the file is laid out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Layout {
    /// Row groups in the file.
    pub row_groups: usize,
    /// Rows in each row group.
    pub rows_per_row_group: usize,
    /// The size in bytes, encoded and before compression, of the values at which a
    /// data page is closed. Levels come on top, and it is looked at only every
    /// 1,024 values, or at its very end where values all have the same width under
    /// PLAIN. What came of it is in the [`FileReport`](crate::FileReport).
    pub page_bytes: usize,
    /// Most rows of a data page; none if absent (the parquet crate's own default
    /// of 20,000 never applies).
    #[serde(default)]
    pub page_row_limit: Option<usize>,
    /// The size in bytes at which a dictionary is given up for the column's
    /// encoding; 1 MiB if absent.
    #[serde(default = "one_mebibyte")]
    pub dictionary_page_bytes: usize,
    /// Data pages of version 1 or 2.
    #[serde(default)]
    pub data_page_version: DataPageVersion,
    /// The codec of every page.
    pub compression: Compression,
    /// Which statistics are written.
    #[serde(default)]
    pub statistics: Statistics,
}

impl Layout {
    /// Rows of the whole file.
    pub(crate) fn rows(&self) -> u64 {
        self.row_groups as u64 * self.rows_per_row_group as u64
    }
}

fn one_mebibyte() -> usize {
    1 << 20
}

/// The data page header's version.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "i64", into = "i64")]
pub enum DataPageVersion {
    /// Levels and values are compressed together.
    #[default]
    V1,
    /// Levels stand uncompressed before the values.
    V2,
}

impl TryFrom<i64> for DataPageVersion {
    type Error = String;

    fn try_from(version: i64) -> Result<Self, String> {
        match version {
            1 => Ok(Self::V1),
            2 => Ok(Self::V2),
            _ => Err(format!(
                "unknown data_page_version {version}, expected 1 or 2"
            )),
        }
    }
}

impl From<DataPageVersion> for i64 {
    fn from(version: DataPageVersion) -> Self {
        match version {
            DataPageVersion::V1 => 1,
            DataPageVersion::V2 => 2,
        }
    }
}

/// How much of the statistics is written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Statistics {
    /// None at all.
    None,
    /// Per column chunk, in the footer.
    #[default]
    Chunk,
    /// Per column chunk and per page, the latter in the column index.
    Page,
}

/// The page codec, written `snappy` or, with a level, `zstd(3)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Compression(pub(crate) Codec);

impl Compression {
    /// As the parquet crate has it.
    #[must_use]
    pub fn codec(self) -> Codec {
        self.0
    }
}

impl std::str::FromStr for Compression {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, level) = match text.split_once('(') {
            None => (text, None),
            Some((name, rest)) => {
                let level = rest
                    .strip_suffix(')')
                    .and_then(|level| level.trim().parse::<i32>().ok())
                    .ok_or_else(|| format!("compression `{text}`: the level must be a number in brackets, as in `zstd(3)`"))?;
                (name, Some(level))
            }
        };
        let told = |error: parquet::errors::ParquetError| format!("compression `{text}`: {error}");
        let unsigned = |level: i32| {
            u32::try_from(level).map_err(|_| format!("compression `{text}`: the level is negative"))
        };
        let codec = match (name, level) {
            ("none", None) => Codec::UNCOMPRESSED,
            ("snappy", None) => Codec::SNAPPY,
            ("lz4_raw", None) => Codec::LZ4_RAW,
            ("none" | "snappy" | "lz4_raw", Some(_)) => {
                return Err(format!("compression `{text}`: {name} has no levels"));
            }
            ("zstd", level) => Codec::ZSTD(ZstdLevel::try_new(level.unwrap_or(1)).map_err(told)?),
            ("gzip", level) => {
                Codec::GZIP(GzipLevel::try_new(unsigned(level.unwrap_or(6))?).map_err(told)?)
            }
            ("brotli", level) => {
                Codec::BROTLI(BrotliLevel::try_new(unsigned(level.unwrap_or(1))?).map_err(told)?)
            }
            _ => {
                return Err(format!(
                    "unknown compression `{text}`, expected one of none, snappy, lz4_raw, zstd, gzip, brotli, the last three with an optional level as in `zstd(3)`"
                ));
            }
        };
        Ok(Self(codec))
    }
}

impl fmt::Display for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Codec::UNCOMPRESSED => f.write_str("none"),
            Codec::SNAPPY => f.write_str("snappy"),
            Codec::LZ4_RAW => f.write_str("lz4_raw"),
            Codec::ZSTD(level) => write!(f, "zstd({})", level.compression_level()),
            Codec::GZIP(level) => write!(f, "gzip({})", level.compression_level()),
            Codec::BROTLI(level) => write!(f, "brotli({})", level.compression_level()),
            other => write!(f, "{other:?}"),
        }
    }
}

impl Serialize for Compression {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Compression {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(serde::de::Error::custom)
    }
}

/// `[encryption]`: keys and how the footer is kept.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Encryption {
    pub(crate) footer_key: KeySource,
    #[serde(default)]
    pub(crate) column_keys: BTreeMap<String, KeySource>,
    pub(crate) aad_prefix: Option<KeySource>,
    /// Whether the AAD prefix is written into the file.
    #[serde(default)]
    pub(crate) store_aad_prefix: bool,
    #[serde(default)]
    pub(crate) plaintext_footer: bool,
    #[serde(default)]
    pub(crate) key_metadata: KeyMetadata,
}

/// What a file says about its keys.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum KeyMetadata {
    /// Nothing: the reader must know them.
    #[default]
    None,
    /// The keys themselves, as pyarrow's KMS API reads them from a KMS that
    /// "wraps" a key by base64. For test keys only.
    TestKms,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compression_reads_back_what_it_shows() {
        for text in [
            "none",
            "snappy",
            "lz4_raw",
            "zstd(3)",
            "gzip(9)",
            "brotli(5)",
        ] {
            assert_eq!(text.parse::<Compression>().unwrap().to_string(), text);
        }
        assert_eq!(
            "zstd".parse::<Compression>().unwrap().to_string(),
            "zstd(1)"
        );
    }

    #[test]
    fn bad_compression_says_what_is_allowed() {
        for (text, part) in [
            ("lzo", "expected one of none, snappy"),
            ("snappy(3)", "no levels"),
            ("zstd(x)", "must be a number"),
            ("zstd(99)", "zstd(99)"),
            ("gzip(-1)", "negative"),
        ] {
            let error = text.parse::<Compression>().unwrap_err();
            assert!(error.contains(part), "{error}");
        }
    }
}
