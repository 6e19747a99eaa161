//! How a definition says where a column's values come from. Drawing them is
//! `generate::source`'s business.

use serde::{Deserialize, Deserializer, Serialize};

/// Lengths of text where a definition does not give them.
pub(crate) const DEFAULT_TEXT: (usize, usize) = (8, 24);

/// `values = { kind = … }`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Distribution {
    /// Numbers between two bounds: of integers both are included, of floats the
    /// upper is not. Dates are days since 1970, decimals are unscaled.
    Uniform {
        /// Least value.
        min: Scalar,
        /// Greatest value.
        max: Scalar,
    },
    /// `start`, `start + step`, … by row of the file; integers only.
    Sequence {
        /// The first row's value.
        start: i64,
        /// What is added from one value to the next.
        #[serde(default = "one_i64")]
        step: i64,
        /// How many rows in a row have the same value.
        #[serde(default = "one_u64")]
        repeat: u64,
    },
    /// The same value in every row.
    Constant {
        /// That value; of text at most 64 KiB.
        value: Scalar,
    },
    /// One of a few values.
    Choices {
        /// The values; of text at most 64 KiB each.
        values: Vec<Scalar>,
        /// How often each is drawn, relative to the others; equally if absent.
        #[serde(default)]
        weights: Option<Vec<u32>>,
    },
    /// The values in turn, by row of the file, from the first again after the last.
    Cycle {
        /// The values; of text at most 64 KiB each.
        values: Vec<Scalar>,
    },
    /// Random text (or bytes) of a length between two bounds, both included.
    Text {
        /// Fewest bytes.
        min_length: usize,
        /// Most bytes, up to 16 MiB.
        max_length: usize,
        /// How a value begins.
        #[serde(default)]
        prefix: Prefix,
        /// The length in bytes of the shared prefix, or the most that a partial one
        /// has. The prefix counts in the value's length.
        #[serde(default)]
        prefix_length: usize,
    },
}

fn one_i64() -> i64 {
    1
}

fn one_u64() -> u64 {
    1
}

/// How much of its beginning a text shares with others.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Prefix {
    /// Nothing, but by chance.
    #[default]
    Distinct,
    /// Every value of the column begins alike.
    Shared,
    /// Each value begins like the one before it, for a random length.
    Partial,
}

/// A single value in a definition.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Scalar {
    Boolean(bool),
    Integer(i64),
    Float(f64),
    Text(String),
}

impl<'de> Deserialize<'de> for Scalar {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match toml::Value::deserialize(deserializer)? {
            toml::Value::Boolean(value) => Ok(Self::Boolean(value)),
            toml::Value::Integer(value) => Ok(Self::Integer(value)),
            toml::Value::Float(value) if value.is_finite() => Ok(Self::Float(value)),
            toml::Value::Float(_) => Err(serde::de::Error::custom("a value must be finite")),
            toml::Value::String(value) => Ok(Self::Text(value)),
            other => Err(serde::de::Error::custom(format!(
                "a value must be an integer, a float, a string or a boolean, not {}",
                other.type_str()
            ))),
        }
    }
}

impl Scalar {
    pub(crate) fn integer(&self) -> Option<i64> {
        match self {
            Self::Integer(value) => Some(*value),
            _ => None,
        }
    }

    /// As a float; an integer is one too.
    pub(crate) fn float(&self) -> Option<f64> {
        match self {
            Self::Float(value) => Some(*value),
            Self::Integer(value) => Some(*value as f64),
            _ => None,
        }
    }

    pub(crate) fn boolean(&self) -> Option<bool> {
        match self {
            Self::Boolean(value) => Some(*value),
            _ => None,
        }
    }

    pub(crate) fn text(&self) -> Option<&str> {
        match self {
            Self::Text(value) => Some(value),
            _ => None,
        }
    }
}
