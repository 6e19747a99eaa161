//! Which columns are decoded here, by their stored and their Arrow type.

use arrow_schema::{DataType, TimeUnit};
use parquet::basic::{Encoding, Type};
use parquet::schema::types::ColumnDescriptor;

/// How the values of a column lie in an array.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// One bit a value.
    Bits,
    /// Four bytes a value, as stored.
    Four,
    /// Eight bytes a value, as stored.
    Eight,
    /// So many bytes a value, as stored, without an alignment.
    Bytes(usize),
}

impl Kind {
    /// For leaf column `column`, read as `data_type`; otherwise why the parquet crate's decoders serve it.
    ///
    /// # Errors
    /// Says in a few words what about the column has no path here.
    pub(crate) fn of(
        column: &ColumnDescriptor,
        data_type: &DataType,
    ) -> Result<Self, &'static str> {
        if column.max_rep_level() > 0 || column.path().parts().len() > 1 {
            return Err("it is nested");
        }
        if column.max_def_level() > 1 {
            return Err("it has more than one definition level");
        }
        match (column.physical_type(), data_type) {
            (Type::BOOLEAN, DataType::Boolean) => Ok(Self::Bits),
            (
                Type::INT32,
                DataType::Int32
                | DataType::UInt32
                | DataType::Date32
                | DataType::Time32(TimeUnit::Second | TimeUnit::Millisecond)
                | DataType::Decimal32(_, _),
            )
            | (Type::FLOAT, DataType::Float32) => Ok(Self::Four),
            (
                Type::INT64,
                DataType::Int64
                | DataType::UInt64
                | DataType::Date64
                | DataType::Time64(TimeUnit::Microsecond | TimeUnit::Nanosecond)
                | DataType::Timestamp(_, _)
                | DataType::Duration(_)
                | DataType::Decimal64(_, _),
            )
            | (Type::DOUBLE, DataType::Float64) => Ok(Self::Eight),
            (Type::FIXED_LEN_BYTE_ARRAY, DataType::FixedSizeBinary(width))
                if *width > 0 && *width == column.type_length() =>
            {
                Ok(Self::Bytes(width.unsigned_abs() as usize))
            }
            // Measured: 0.94 to 1.13 times its instructions, and more where text has to be checked once more as safe code makes an array.
            (Type::BYTE_ARRAY, _) => Err(
                "its values have any length, and the parquet crate decodes those in fewer instructions",
            ),
            _ => Err("its values are stored in another form than in an array"),
        }
    }

    /// Whether columns with this encoding of values are decoded here. BYTE_STREAM_SPLIT could be, but takes 1.6 times the
    /// instructions of the parquet crate; a page that has it against the file's metadata is read all the same.
    pub(crate) fn decodes(self, encoding: Encoding) -> bool {
        match (self, encoding) {
            // Of levels and dictionary indices, not of values, but for booleans.
            (_, Encoding::PLAIN | Encoding::RLE) => true,
            #[expect(deprecated, reason = "old files have it, of levels")]
            (_, Encoding::BIT_PACKED) => true,
            (Self::Bits, _) => false,
            (_, Encoding::PLAIN_DICTIONARY | Encoding::RLE_DICTIONARY) => true,
            (Self::Four | Self::Eight, Encoding::DELTA_BINARY_PACKED) => true,
            _ => false,
        }
    }
}

/// Who decodes a column, and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum DecodePath {
    /// Decoded here, into arrays or as slices of its pages.
    Direct,
    /// Decoded by the parquet crate.
    Parquet {
        /// What there is about the column, in a few words.
        why: &'static str,
    },
}
