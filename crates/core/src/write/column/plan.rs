//! What each column of a file is written with: `WriterProperties` resolved once, and who writes it.

use parquet::basic::{Compression, ConvertedType, Encoding, LogicalType, SortOrder, Type};
use parquet::errors::{ParquetError, Result};
use parquet::file::properties::{
    BloomFilterPosition, EnabledStatistics, WriterProperties, WriterVersion,
};
use parquet::schema::types::{ColumnDescriptor, ColumnPath};

/// A physical type, with the width where the format lets it vary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Physical {
    Bool,
    I32,
    I64,
    F32,
    F64,
    Bytes,
    /// Bytes of this number.
    Fixed(usize),
}

impl Physical {
    /// The type's number in the format (`Type` in parquet.thrift).
    pub(crate) fn code(self) -> i32 {
        match self {
            Self::Bool => 0,
            Self::I32 => 1,
            Self::I64 => 2,
            Self::F32 => 4,
            Self::F64 => 5,
            Self::Bytes => 6,
            Self::Fixed(_) => 7,
        }
    }
}

/// How values of a column compare, for statistics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ValueOrder {
    /// Integers and booleans by value; byte arrays byte by byte, unsigned.
    Natural,
    /// Integers as unsigned ones.
    Unsigned,
    /// Floating point: IEEE 754 total order, NaN left out.
    Float,
    /// The same in two bytes.
    Float16,
    /// Byte arrays as signed big-endian numbers.
    Decimal,
    /// The type has no order, so there is no minimum.
    None,
}

/// One leaf column, and what it is written with.
#[derive(Debug, Clone)]
pub(crate) struct ColumnPlan {
    pub(crate) physical: Physical,
    pub(crate) order: ValueOrder,
    /// Deprecated `min` and `max` are written where their order was always well defined.
    pub(crate) signed: bool,
    /// A statistic that is cut short must stay a string.
    pub(crate) utf8: bool,
    pub(crate) nullable: bool,
    pub(crate) compression: Compression,
    /// Of values that are not in a dictionary.
    pub(crate) encoding: Encoding,
    pub(crate) dictionary: bool,
    /// Bytes.
    pub(crate) dictionary_limit: usize,
    /// Bytes of a data page's levels and values before compression.
    pub(crate) page_bytes: usize,
    pub(crate) page_rows: usize,
    pub(crate) statistics: EnabledStatistics,
    pub(crate) header_statistics: bool,
    /// Distinct values and false positive probability.
    pub(crate) bloom: Option<(u64, f64)>,
    /// Compressed values of a v2 page are kept only if they are smaller than this part of the page.
    pub(crate) compression_threshold: f64,
}

impl ColumnPlan {
    /// Whether a minimum can be cut short and still be one.
    pub(crate) fn can_truncate(&self) -> bool {
        matches!(self.physical, Physical::Bytes | Physical::Fixed(_))
            && self.order == ValueOrder::Natural
    }
}

/// What is the same for all columns.
#[derive(Debug, Clone)]
pub(crate) struct FilePlan {
    pub(crate) v2: bool,
    /// Rows that are encoded before page limits are looked at again, at most.
    pub(crate) batch_rows: usize,
    pub(crate) index_truncate: Option<usize>,
    pub(crate) statistics_truncate: Option<usize>,
    pub(crate) offset_index: bool,
    pub(crate) bloom_for_dictionaries: bool,
    pub(crate) path_in_schema: bool,
}

impl FilePlan {
    /// # Errors
    /// A property that asks for what this writer does not do; the message names it.
    pub(crate) fn new(properties: &WriterProperties) -> Result<Self> {
        if properties.file_encryption_properties().is_some() {
            return Err(refused(
                "file_encryption_properties",
                "write the encrypted file with the strategy 'upstream'",
            ));
        }
        if properties.content_defined_chunking().is_some() {
            return Err(refused(
                "content_defined_chunking",
                "use the strategy 'upstream'",
            ));
        }
        if properties.bloom_filter_position() == BloomFilterPosition::End {
            return Err(refused(
                "bloom_filter_position = End",
                "each filter is written after its column chunk, or use the strategy 'upstream'",
            ));
        }
        Ok(Self {
            v2: properties.writer_version() == WriterVersion::PARQUET_2_0,
            batch_rows: properties.write_batch_size().max(1),
            index_truncate: properties.column_index_truncate_length(),
            statistics_truncate: properties.statistics_truncate_length(),
            offset_index: !properties.offset_index_disabled(),
            bloom_for_dictionaries: properties.bloom_filter_for_dictionary_encoded_chunks(),
            path_in_schema: properties.write_path_in_schema(),
        })
    }
}

/// Column by column, a row group's size is known only when it is written.
pub(crate) fn refuse_byte_limit(properties: &WriterProperties) -> Result<()> {
    if properties.max_row_group_bytes().is_some() {
        return Err(ParquetError::NYI(
            "max_row_group_bytes needs a strategy with order=interleaved: column by column a row group's size is known only when it is written. Set max_row_group_row_count instead".into(),
        ));
    }
    Ok(())
}

fn refused(property: &str, instead: &str) -> ParquetError {
    ParquetError::NYI(format!(
        "this write strategy does not do `{property}`: {instead}"
    ))
}

/// The plan of a flat column; `None` where the parquet crate's column writer takes it.
///
/// # Errors
/// The encoding does not go with the type; the message names the column.
pub(crate) fn plan_column(
    descriptor: &ColumnDescriptor,
    properties: &WriterProperties,
) -> Result<Option<ColumnPlan>> {
    let path: &ColumnPath = descriptor.path();
    let logical = descriptor.logical_type_ref();
    let physical = match descriptor.physical_type() {
        Type::BOOLEAN => Physical::Bool,
        Type::INT32 => Physical::I32,
        Type::INT64 => Physical::I64,
        Type::FLOAT => Physical::F32,
        Type::DOUBLE => Physical::F64,
        Type::BYTE_ARRAY => Physical::Bytes,
        Type::FIXED_LEN_BYTE_ARRAY => {
            Physical::Fixed(usize::try_from(descriptor.type_length()).unwrap_or_default())
        }
        Type::INT96 => return Ok(None),
    };
    if physical == Physical::Fixed(0) {
        return Err(ParquetError::General(format!(
            "column {}: values of no bytes (FixedSizeBinary(0)) cannot be written",
            path.string()
        )));
    }
    let encoding = properties
        .encoding(path)
        .unwrap_or_else(|| default_encoding(physical, properties.writer_version()));
    // What is rare is left to who does it already.
    if matches!(
        logical,
        Some(LogicalType::Geometry(_) | LogicalType::Geography(_) | LogicalType::Variant(_))
    ) || encoding == Encoding::ALP
        || properties
            .delta_binary_packed_encoder_options(path)
            .is_some()
        || properties.write_row_group_number_distinct_values()
    {
        return Ok(None);
    }
    if !fits(encoding, physical) {
        return Err(ParquetError::General(format!(
            "column {}: the encoding {encoding} does not take values of {}; set another with set_column_encoding",
            path.string(),
            descriptor.physical_type(),
        )));
    }
    let sort_order = descriptor.sort_order();
    let decimal = matches!(logical, Some(LogicalType::Decimal(_)))
        || descriptor.converted_type() == ConvertedType::DECIMAL;
    let order = match physical {
        _ if descriptor.converted_type() == ConvertedType::INTERVAL => ValueOrder::None,
        Physical::F32 | Physical::F64 => ValueOrder::Float,
        Physical::Fixed(_) if logical == Some(&LogicalType::Float16) => ValueOrder::Float16,
        Physical::Bytes | Physical::Fixed(_) if decimal => ValueOrder::Decimal,
        Physical::I32 | Physical::I64 if sort_order == SortOrder::UNSIGNED => ValueOrder::Unsigned,
        _ => ValueOrder::Natural,
    };
    Ok(Some(ColumnPlan {
        physical,
        order,
        signed: sort_order.is_signed(),
        utf8: logical == Some(&LogicalType::String)
            || descriptor.converted_type() == ConvertedType::UTF8,
        nullable: descriptor.max_def_level() > 0,
        compression: properties.compression(path),
        encoding,
        dictionary: properties.dictionary_enabled(path) && physical != Physical::Bool,
        dictionary_limit: properties.column_dictionary_page_size_limit(path),
        page_bytes: properties
            .column_data_page_size_limit(path)
            .min(MAX_PAGE_BYTES),
        page_rows: properties
            .column_data_page_row_count_limit(path)
            .clamp(1, i32::MAX as usize),
        statistics: properties.statistics_enabled(path),
        header_statistics: properties.write_page_header_statistics(path),
        bloom: properties
            .bloom_filter_properties(path)
            .map(|bloom| (bloom.ndv(), bloom.fpp())),
        compression_threshold: properties.column_data_page_v2_compression_ratio_threshold(path),
    }))
}

/// A page's sizes are written in 31 bits, and compression can make some bytes of what does not compress.
const MAX_PAGE_BYTES: usize = (1 << 30) + (1 << 29);

/// The encoding of a column that names none, as in the parquet crate.
fn default_encoding(physical: Physical, version: WriterVersion) -> Encoding {
    match (physical, version) {
        (Physical::Bool, WriterVersion::PARQUET_2_0) => Encoding::RLE,
        (Physical::I32 | Physical::I64, WriterVersion::PARQUET_2_0) => {
            Encoding::DELTA_BINARY_PACKED
        }
        (Physical::Bytes | Physical::Fixed(_), WriterVersion::PARQUET_2_0) => {
            Encoding::DELTA_BYTE_ARRAY
        }
        _ => Encoding::PLAIN,
    }
}

fn fits(encoding: Encoding, physical: Physical) -> bool {
    match encoding {
        Encoding::PLAIN => true,
        Encoding::RLE => physical == Physical::Bool,
        Encoding::DELTA_BINARY_PACKED => matches!(physical, Physical::I32 | Physical::I64),
        Encoding::DELTA_LENGTH_BYTE_ARRAY => physical == Physical::Bytes,
        Encoding::DELTA_BYTE_ARRAY => matches!(physical, Physical::Bytes | Physical::Fixed(_)),
        Encoding::BYTE_STREAM_SPLIT => !matches!(physical, Physical::Bool | Physical::Bytes),
        _ => false,
    }
}
