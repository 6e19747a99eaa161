//! Where in a file an error happened.

use std::fmt;

use parquet::errors::ParquetError;
use parquet::file::metadata::ColumnChunkMetaData;

use crate::format::page_header::PageHeader;

/// What of a column chunk is being read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Dictionary,
    /// The number of a page among the chunk's data pages, counted from 0, those that were skipped too.
    Data(usize),
}

impl Place {
    pub(super) fn of(header: &PageHeader, ordinal: usize) -> Self {
        Self::new(header.is_dictionary(), ordinal)
    }

    pub(super) fn new(dictionary: bool, ordinal: usize) -> Self {
        match dictionary {
            true => Self::Dictionary,
            false => Self::Data(ordinal),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dictionary => f.write_str("dictionary page"),
            Self::Data(ordinal) => write!(f, "page {ordinal}"),
        }
    }
}

/// Says in which column chunk, and on which page of it, an error happened.
pub(super) fn located(
    error: ParquetError,
    chunk: &ColumnChunkMetaData,
    row_group: usize,
    place: Option<Place>,
) -> ParquetError {
    let column = chunk.column_path().string();
    let place = match place {
        Some(place) => format!("column '{column}', row group {row_group}, {place}: "),
        None => format!("column '{column}', row group {row_group}: "),
    };
    match error {
        ParquetError::General(text) => ParquetError::General(place + &text),
        ParquetError::EOF(text) => ParquetError::EOF(place + &text),
        ParquetError::NYI(text) => ParquetError::NYI(place + &text),
        other => ParquetError::General(format!("{place}{other}")),
    }
}
