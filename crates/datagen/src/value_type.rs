//! The types a column's values can have: their names in a definition, and what
//! they are to Arrow and to the parquet crate's column writers.

use std::fmt;
use std::str::FromStr;

use arrow_schema::{DataType, TimeUnit};
use serde::{Deserialize, Serialize};

/// What a value is. Read from TOML as `float32`, `decimal(15,2)` and so on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
#[expect(missing_docs, reason = "the names say it")]
pub enum ValueType {
    Boolean,
    Int8,
    Int16,
    Int32,
    Int64,
    UInt8,
    UInt16,
    UInt32,
    UInt64,
    Float32,
    Float64,
    Date32,
    TimestampMillis,
    TimestampMicros,
    TimestampNanos,
    /// At most 18 digits, so that it is stored as an integer.
    Decimal {
        precision: u8,
        scale: u8,
    },
    String,
    Binary,
    FixedBinary {
        bytes: u16,
    },
}

const TYPES: &str = "boolean, int8, int16, int32, int64, uint8, uint16, uint32, uint64, float32, float64, date32, timestamp-millis, timestamp-micros, timestamp-nanos, decimal(precision,scale), string, binary, fixed-binary(bytes)";

impl FromStr for ValueType {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let unknown = || format!("unknown type `{text}`, expected one of {TYPES}");
        Ok(match text {
            "boolean" => Self::Boolean,
            "int8" => Self::Int8,
            "int16" => Self::Int16,
            "int32" => Self::Int32,
            "int64" => Self::Int64,
            "uint8" => Self::UInt8,
            "uint16" => Self::UInt16,
            "uint32" => Self::UInt32,
            "uint64" => Self::UInt64,
            "float32" => Self::Float32,
            "float64" => Self::Float64,
            "date32" => Self::Date32,
            "timestamp-millis" => Self::TimestampMillis,
            "timestamp-micros" => Self::TimestampMicros,
            "timestamp-nanos" => Self::TimestampNanos,
            "string" => Self::String,
            "binary" => Self::Binary,
            _ => {
                let (name, rest) = text.split_once('(').ok_or_else(unknown)?;
                let arguments = rest.strip_suffix(')').ok_or_else(unknown)?;
                match name {
                    "decimal" => {
                        let (precision, scale) = arguments.split_once(',').ok_or_else(unknown)?;
                        let precision = precision.trim().parse().map_err(|_| unknown())?;
                        let scale = scale.trim().parse().map_err(|_| unknown())?;
                        if !(1..=18).contains(&precision) || scale > precision {
                            return Err(format!(
                                "type `{text}`: the precision must be 1 to 18 and the scale at most the precision"
                            ));
                        }
                        Self::Decimal { precision, scale }
                    }
                    "fixed-binary" => match arguments.trim().parse() {
                        Ok(bytes) if bytes > 0 => Self::FixedBinary { bytes },
                        _ => {
                            return Err(format!(
                                "type `{text}`: the length must be 1 to {} bytes",
                                u16::MAX
                            ));
                        }
                    },
                    _ => return Err(unknown()),
                }
            }
        })
    }
}

impl fmt::Display for ValueType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Boolean => "boolean",
            Self::Int8 => "int8",
            Self::Int16 => "int16",
            Self::Int32 => "int32",
            Self::Int64 => "int64",
            Self::UInt8 => "uint8",
            Self::UInt16 => "uint16",
            Self::UInt32 => "uint32",
            Self::UInt64 => "uint64",
            Self::Float32 => "float32",
            Self::Float64 => "float64",
            Self::Date32 => "date32",
            Self::TimestampMillis => "timestamp-millis",
            Self::TimestampMicros => "timestamp-micros",
            Self::TimestampNanos => "timestamp-nanos",
            Self::Decimal { precision, scale } => return write!(f, "decimal({precision},{scale})"),
            Self::String => "string",
            Self::Binary => "binary",
            Self::FixedBinary { bytes } => return write!(f, "fixed-binary({bytes})"),
        })
    }
}

impl TryFrom<String> for ValueType {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<ValueType> for String {
    fn from(value_type: ValueType) -> Self {
        value_type.to_string()
    }
}

/// How the parquet crate's column writers take a type's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Physical {
    Boolean,
    Int32,
    Int64,
    Float,
    Double,
    ByteArray,
    FixedLenByteArray,
}

impl ValueType {
    /// The Arrow type that the file reads as.
    #[must_use]
    pub fn arrow(self) -> DataType {
        match self {
            Self::Boolean => DataType::Boolean,
            Self::Int8 => DataType::Int8,
            Self::Int16 => DataType::Int16,
            Self::Int32 => DataType::Int32,
            Self::Int64 => DataType::Int64,
            Self::UInt8 => DataType::UInt8,
            Self::UInt16 => DataType::UInt16,
            Self::UInt32 => DataType::UInt32,
            Self::UInt64 => DataType::UInt64,
            Self::Float32 => DataType::Float32,
            Self::Float64 => DataType::Float64,
            Self::Date32 => DataType::Date32,
            Self::TimestampMillis => DataType::Timestamp(TimeUnit::Millisecond, None),
            Self::TimestampMicros => DataType::Timestamp(TimeUnit::Microsecond, None),
            Self::TimestampNanos => DataType::Timestamp(TimeUnit::Nanosecond, None),
            Self::Decimal { precision, scale } => {
                DataType::Decimal128(precision, scale.cast_signed())
            }
            Self::String => DataType::Utf8,
            Self::Binary => DataType::Binary,
            Self::FixedBinary { bytes } => DataType::FixedSizeBinary(i32::from(bytes)),
        }
    }

    pub(crate) fn physical(self) -> Physical {
        match self {
            Self::Boolean => Physical::Boolean,
            Self::Int8
            | Self::Int16
            | Self::Int32
            | Self::UInt8
            | Self::UInt16
            | Self::UInt32
            | Self::Date32 => Physical::Int32,
            Self::Decimal { precision, .. } if precision <= 9 => Physical::Int32,
            Self::Int64
            | Self::UInt64
            | Self::TimestampMillis
            | Self::TimestampMicros
            | Self::TimestampNanos
            | Self::Decimal { .. } => Physical::Int64,
            Self::Float32 => Physical::Float,
            Self::Float64 => Physical::Double,
            Self::String | Self::Binary => Physical::ByteArray,
            Self::FixedBinary { .. } => Physical::FixedLenByteArray,
        }
    }

    /// The least and greatest value of a type that is stored as an integer; of
    /// `uint64` and of timestamps what fits an `i64`.
    pub(crate) fn integer_range(self) -> Option<(i64, i64)> {
        Some(match self {
            Self::Int8 => (i8::MIN.into(), i8::MAX.into()),
            Self::Int16 => (i16::MIN.into(), i16::MAX.into()),
            Self::Int32 | Self::Date32 => (i32::MIN.into(), i32::MAX.into()),
            Self::Int64 | Self::TimestampMillis | Self::TimestampMicros | Self::TimestampNanos => {
                (i64::MIN, i64::MAX)
            }
            Self::UInt8 => (0, u8::MAX.into()),
            Self::UInt16 => (0, u16::MAX.into()),
            Self::UInt32 => (0, u32::MAX.into()),
            Self::UInt64 => (0, i64::MAX),
            Self::Decimal { precision, .. } => {
                let most = 10_i64.pow(u32::from(precision)) - 1;
                (-most, most)
            }
            _ => return None,
        })
    }

    /// Whether values are text or bytes.
    pub(crate) fn is_bytes(self) -> bool {
        matches!(
            self.physical(),
            Physical::ByteArray | Physical::FixedLenByteArray
        )
    }

    /// The bytes of a value under PLAIN, where all have the same and it is whole.
    pub(crate) fn plain_width(self) -> Option<usize> {
        match self.physical() {
            Physical::Boolean | Physical::ByteArray => None,
            Physical::Int32 | Physical::Float => Some(4),
            Physical::Int64 | Physical::Double => Some(8),
            Physical::FixedLenByteArray => match self {
                Self::FixedBinary { bytes } => Some(usize::from(bytes)),
                _ => None,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_read_back_what_they_show() {
        for text in [
            "boolean",
            "uint32",
            "timestamp-nanos",
            "decimal(15,2)",
            "fixed-binary(16)",
            "string",
        ] {
            assert_eq!(text.parse::<ValueType>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn unknown_types_say_what_is_allowed() {
        for text in ["float", "decimal(15)", "decimal(15,2", "list(int32)"] {
            let error = text.parse::<ValueType>().unwrap_err();
            assert!(error.contains(&format!("`{text}`")), "{error}");
            assert!(error.contains("float32, float64"), "{error}");
        }
        assert!("decimal(19,2)".parse::<ValueType>().is_err());
        assert!("decimal(3,4)".parse::<ValueType>().is_err());
        assert!("fixed-binary(0)".parse::<ValueType>().is_err());
    }
}
