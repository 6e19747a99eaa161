//! What a page's header may say: sizes and counts held against the chunk's metadata and the caller's [`Limits`], before anything is
//! allocated, fetched or decompressed for them.

use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::{ColumnChunkMetaData, RowGroupMetaData};

use crate::crypto::FRAMING_LEN;
use crate::format::page_header::{PageHeader, PageKind};
use crate::limits::Limits;

/// The bounds of one column chunk.
pub(super) struct Bounds {
    limits: Limits,
    /// Decompressed size of the chunk by its metadata, bytes; `None` where that does not say.
    uncompressed_size: Option<u64>,
    /// Values that the pages to come may have, nulls included; `None` where the metadata does not say.
    values_left: Option<u64>,
    is_encrypted: bool,
}

impl Bounds {
    pub(super) fn new(
        limits: Limits,
        row_group: &RowGroupMetaData,
        chunk: &ColumnChunkMetaData,
        is_encrypted: bool,
    ) -> Self {
        let positive = |number: i64| u64::try_from(number).ok().filter(|number| *number > 0);
        let rows = match chunk.column_descr().max_rep_level() {
            0 => u64::try_from(row_group.num_rows()).ok(),
            _ => None,
        };
        Self {
            limits,
            // DuckDB before 0.6 wrote 0.
            uncompressed_size: positive(chunk.uncompressed_size()),
            values_left: positive(chunk.num_values()).or(rows),
            is_encrypted,
        }
    }

    /// The most bytes that a page may take, stored or decompressed.
    pub(super) fn page_limit(&self, dictionary: bool) -> usize {
        match dictionary {
            true => self.limits.max_dictionary_bytes,
            false => self.limits.max_page_bytes,
        }
    }

    /// Refuses counts of a header that the chunk rules out. Decoders may be told them, or reserve by them.
    pub(super) fn check_counts(&self, header: &PageHeader) -> Result<()> {
        let (num_values, parts) = match header.kind {
            PageKind::DataV1 { num_values, .. } => (num_values, 0),
            PageKind::DataV2 {
                num_values,
                num_nulls,
                num_rows,
                ..
            } => (num_values, num_nulls.max(num_rows)),
            PageKind::Dictionary { .. } | PageKind::Index => return Ok(()),
        };
        if parts > num_values {
            return Err(ParquetError::General(format!(
                "a page of {num_values} values says that it has {parts} nulls or rows"
            )));
        }
        match self.values_left {
            Some(left) if u64::from(num_values) > left => Err(ParquetError::General(format!(
                "a page says that it has {num_values} values, and by the file's metadata {left} are left of its column chunk"
            ))),
            _ => Ok(()),
        }
    }

    /// Counts the values of a page that was passed.
    pub(super) fn pass(&mut self, header: &PageHeader) {
        if let PageKind::DataV1 { num_values, .. } | PageKind::DataV2 { num_values, .. } =
            header.kind
        {
            let left = &mut self.values_left;
            *left = left.map(|left| left.saturating_sub(u64::from(num_values)));
        }
    }

    /// Refuses sizes of a header that the limits or the chunk rule out. To be asked before the body is fetched.
    pub(super) fn check_sizes(&self, header: &PageHeader, is_compressed: bool) -> Result<()> {
        let (limit, name, page) = match header.is_dictionary() {
            true => (
                self.limits.max_dictionary_bytes,
                "max_dictionary_bytes",
                "dictionary page",
            ),
            false => (self.limits.max_page_bytes, "max_page_bytes", "data page"),
        };
        let sizes = [
            (header.stored_size, "stored"),
            (header.uncompressed_size, "decompressed"),
        ];
        let count = if is_compressed { 2 } else { 1 };
        for (size, when) in &sizes[..count] {
            if *size > limit {
                return Err(ParquetError::General(format!(
                    "a {page} takes {size} bytes {when}, more than Limits::{name} allows ({limit}): raise it to read this file"
                )));
            }
        }
        let mut stored = header.stored_size;
        if self.is_encrypted {
            stored = stored.checked_sub(FRAMING_LEN).ok_or_else(|| {
                ParquetError::EOF("an encrypted page is shorter than its framing".into())
            })?;
        }
        let levels = header.levels_len();
        if levels > stored || (is_compressed && levels > header.uncompressed_size) {
            return Err(ParquetError::General(format!(
                "a page's levels take {levels} bytes by its header and the page has {}",
                stored.min(header.uncompressed_size)
            )));
        }
        if !is_compressed {
            return Ok(());
        }
        if let Some(ratio) = self.limits.max_ratio
            && header.uncompressed_size as u64 > stored as u64 * u64::from(ratio)
        {
            return Err(ParquetError::General(format!(
                "a page of {stored} stored bytes says that it decompresses to {} bytes, more than Limits::max_ratio allows ({ratio} for \
                 one): raise it to read this file",
                header.uncompressed_size
            )));
        }
        match self.uncompressed_size {
            Some(chunk) if header.uncompressed_size as u64 > chunk => {
                Err(ParquetError::General(format!(
                    "a page of {stored} stored bytes says that it decompresses to {} bytes, more than its whole column chunk by the \
                 file's metadata",
                    header.uncompressed_size
                )))
            }
            _ => Ok(()),
        }
    }
}
