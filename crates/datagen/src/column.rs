//! A group of columns that differ in name and values only: type, nullability,
//! encoding. Where its values come from is in `distribution`.

use std::sync::Arc;

use arrow_schema::{DataType, Field};
use parquet::basic::Encoding as ParquetEncoding;
use serde::{Deserialize, Serialize};

use crate::distribution::Distribution;
use crate::value_type::{Physical, ValueType};

/// One `[[columns]]` table: `count` columns of one shape.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ColumnGroup {
    /// The column's name; `{n}` in it stands for the column's number in the
    /// group, counted from 0, and is needed where there is more than one.
    pub name: String,
    /// How many columns there are.
    #[serde(default = "one")]
    pub count: usize,
    /// The type of the values, or of a list's items.
    #[serde(rename = "type")]
    pub value_type: ValueType,
    /// Whether the column is optional (has definition levels).
    #[serde(default)]
    pub optional: bool,
    /// The fraction of rows that are null, 0 to 1; above 0 only if optional.
    #[serde(default)]
    pub nulls: f64,
    /// The encoding; that of the values after a dictionary overflowed, if
    /// `dictionary` is on.
    #[serde(default)]
    pub encoding: Encoding,
    /// Whether values are dictionary-encoded.
    #[serde(default)]
    pub dictionary: bool,
    /// Draw from this many distinct values only, the same in every row group.
    #[serde(default)]
    pub distinct: Option<usize>,
    /// Where the values come from; the whole range of the type if absent.
    #[serde(default)]
    pub values: Option<Distribution>,
    /// Makes every row a list of such values.
    #[serde(default)]
    pub list: Option<List>,
}

fn one() -> usize {
    1
}

/// The lengths of a list column's rows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct List {
    /// Fewest items of a row.
    pub min_items: usize,
    /// Most items of a row. Times the longest value's bytes at most 64 MiB.
    pub max_items: usize,
    /// Whether items are optional in the schema; none of them is null.
    #[serde(default)]
    pub optional_items: bool,
}

impl ColumnGroup {
    /// The names of the group's columns, in order.
    pub fn column_names(&self) -> impl Iterator<Item = String> {
        (0..self.count).map(|number| self.name.replace("{n}", &number.to_string()))
    }

    /// The Arrow field of one of its columns.
    pub(crate) fn field(&self, name: &str) -> Field {
        let values = self.value_type.arrow();
        let data_type = match &self.list {
            None => values,
            Some(list) => {
                // Parquet's own name for it, unlike Arrow's "item".
                DataType::List(Arc::new(Field::new("element", values, list.optional_items)))
            }
        };
        Field::new(name, data_type, self.optional)
    }
}

/// How a column's values are encoded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names are Parquet's")]
pub enum Encoding {
    #[default]
    Plain,
    Rle,
    DeltaBinaryPacked,
    DeltaLengthByteArray,
    DeltaByteArray,
    ByteStreamSplit,
}

impl Encoding {
    pub(crate) fn parquet(self) -> ParquetEncoding {
        match self {
            Self::Plain => ParquetEncoding::PLAIN,
            Self::Rle => ParquetEncoding::RLE,
            Self::DeltaBinaryPacked => ParquetEncoding::DELTA_BINARY_PACKED,
            Self::DeltaLengthByteArray => ParquetEncoding::DELTA_LENGTH_BYTE_ARRAY,
            Self::DeltaByteArray => ParquetEncoding::DELTA_BYTE_ARRAY,
            Self::ByteStreamSplit => ParquetEncoding::BYTE_STREAM_SPLIT,
        }
    }

    /// Whether the parquet crate writes values of `physical` so.
    pub(crate) fn fits(self, physical: Physical) -> bool {
        use Physical::{Boolean, ByteArray, Double, FixedLenByteArray, Float, Int32, Int64};
        match self {
            Self::Plain => true,
            Self::Rle => physical == Boolean,
            Self::DeltaBinaryPacked => matches!(physical, Int32 | Int64),
            Self::DeltaLengthByteArray => physical == ByteArray,
            Self::DeltaByteArray => matches!(physical, ByteArray | FixedLenByteArray),
            Self::ByteStreamSplit => {
                matches!(physical, Int32 | Int64 | Float | Double | FixedLenByteArray)
            }
        }
    }

    /// The name in a definition.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Rle => "rle",
            Self::DeltaBinaryPacked => "delta_binary_packed",
            Self::DeltaLengthByteArray => "delta_length_byte_array",
            Self::DeltaByteArray => "delta_byte_array",
            Self::ByteStreamSplit => "byte_stream_split",
        }
    }

    pub(crate) const ALL: [Self; 6] = [
        Self::Plain,
        Self::Rle,
        Self::DeltaBinaryPacked,
        Self::DeltaLengthByteArray,
        Self::DeltaByteArray,
        Self::ByteStreamSplit,
    ];
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encoding_names_are_those_serde_reads() {
        for encoding in Encoding::ALL {
            let json = serde_json::to_string(&encoding).unwrap();
            assert_eq!(json, format!("\"{}\"", encoding.name()));
        }
    }
}
