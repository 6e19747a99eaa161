//! The offset index: where each data page of a chunk lies and which rows it has, known before any page is read.
//!
//! It comes from the file, so it is held against the chunk's extent here, and each page that it locates against the page's own header
//! when that is read. What it says of the rows of a page that is skipped is believed, as in the parquet crate: to read nothing of
//! skipped pages is what it is for.
//!
//! Source: <https://github.com/apache/parquet-format/blob/master/PageIndex.md>.

use std::ops::Range;

use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::ParquetMetaData;
use parquet::file::page_index::offset_index::PageLocation;

use crate::format::page_header::{PageHeader, PageKind};

/// A page as the offset index lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Listing {
    /// Header and body, bytes from the start of the file.
    pub(super) range: Range<u64>,
    /// Rows of a data page; `None` for the dictionary page, which stands in front of the pages that the index lists.
    pub(super) rows: Option<usize>,
}

impl Listing {
    pub(super) fn is_dictionary(&self) -> bool {
        self.rows.is_none()
    }

    /// Bytes of header and body.
    pub(super) fn len(&self) -> usize {
        usize::try_from(self.range.end - self.range.start).unwrap_or(usize::MAX)
    }

    /// Checks the page that was found, whose body takes `body`, against what the index says of it. `is_flat`: nothing repeats.
    pub(super) fn check(&self, header: &PageHeader, body: Range<u64>, is_flat: bool) -> Result<()> {
        if body.end != self.range.end {
            return Err(contradicts(&format!(
                "the page ends at byte {} of the file, and its header at {}",
                self.range.end, body.end
            )));
        }
        if header.is_dictionary() != self.is_dictionary() || header.kind == PageKind::Index {
            return Err(contradicts(match self.is_dictionary() {
                true => "a dictionary page is here, and its header another kind of page",
                false => "a data page is here, and its header another kind of page",
            }));
        }
        let found = match header.kind {
            PageKind::DataV1 { num_values, .. } if is_flat => num_values as usize,
            PageKind::DataV2 { num_rows, .. } => num_rows as usize,
            _ => return Ok(()),
        };
        match self.rows {
            Some(rows) if rows != found => Err(contradicts(&format!(
                "the page has {rows} rows, and its header {found}"
            ))),
            _ => Ok(()),
        }
    }
}

/// An error where the index and the page do not agree: `what` the index says, and what the page.
pub(super) fn contradicts(what: &str) -> ParquetError {
    ParquetError::General(format!(
        "the offset index contradicts the page: it says that {what} says; read the file without its page index"
    ))
}

/// A walk over the pages that an index lists.
#[derive(Debug, Clone)]
pub(super) struct Listed {
    /// Where the dictionary page lies, until it was passed.
    dictionary: Option<Range<u64>>,
    /// The next data page.
    next: usize,
}

impl Listed {
    /// A walk over the pages of the chunk that takes `chunk`, where the file's offset index was loaded and lists them without a gap.
    pub(super) fn new(
        metadata: &ParquetMetaData,
        row_group: usize,
        column: usize,
        chunk: Range<u64>,
    ) -> Option<Self> {
        let locations = locations(metadata, row_group, column)?;
        let first = u64::try_from(locations.first()?.offset).ok()?;
        let rows = metadata.row_group(row_group).num_rows();
        if first < chunk.start || !is_whole(locations, chunk.end, rows) {
            return None;
        }
        Some(Self {
            dictionary: (first > chunk.start).then_some(chunk.start..first),
            next: 0,
        })
    }

    /// The next page; `None` behind the last.
    pub(super) fn peek(
        &self,
        metadata: &ParquetMetaData,
        row_group: usize,
        column: usize,
    ) -> Option<Listing> {
        if let Some(range) = &self.dictionary {
            return Some(Listing {
                range: range.clone(),
                rows: None,
            });
        }
        let locations = locations(metadata, row_group, column)?;
        let location = locations.get(self.next)?;
        let until = match locations.get(self.next + 1) {
            Some(next) => next.first_row_index,
            None => metadata.row_group(row_group).num_rows(),
        };
        Some(Listing {
            range: range(location)?,
            rows: Some(usize::try_from(until.checked_sub(location.first_row_index)?).ok()?),
        })
    }

    /// Passes the next page.
    pub(super) fn pass(&mut self) {
        if self.dictionary.take().is_none() {
            self.next += 1;
        }
    }

    /// Where the last of the pages ends that follow, without a gap, from `start` on and take `most` bytes together.
    pub(super) fn reach(
        &self,
        metadata: &ParquetMetaData,
        row_group: usize,
        column: usize,
        start: u64,
        most: usize,
    ) -> u64 {
        let limit = start.saturating_add(most as u64);
        let locations = locations(metadata, row_group, column).unwrap_or_default();
        let ends = locations
            .iter()
            .skip(self.next)
            .map_while(range)
            .map(|range| range.end);
        ends.take_while(|end| *end <= limit).last().unwrap_or(start)
    }
}

fn locations(
    metadata: &ParquetMetaData,
    row_group: usize,
    column: usize,
) -> Option<&[PageLocation]> {
    let index = metadata.page_index()?;
    Some(index.page_locations(row_group, column)?.as_slice())
}

fn range(location: &PageLocation) -> Option<Range<u64>> {
    let start = u64::try_from(location.offset).ok()?;
    let len = u64::try_from(location.compressed_page_size).ok()?;
    Some(start..start.checked_add(len)?)
}

/// Whether the pages follow one another without a gap up to `end`, with rows that begin at 0, never go back and stay below `rows`.
fn is_whole(locations: &[PageLocation], end: u64, rows: i64) -> bool {
    let mut row = 0;
    let mut at = None;
    for location in locations {
        let Some(range) = range(location).filter(|range| !range.is_empty()) else {
            return false;
        };
        let first = at.is_none();
        if at.is_some_and(|at| at != range.start)
            || location.first_row_index < row
            || (first && location.first_row_index != 0)
        {
            return false;
        }
        row = location.first_row_index;
        at = Some(range.end);
    }
    row <= rows && at == Some(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn location(offset: i64, len: i32, row: i64) -> PageLocation {
        PageLocation {
            offset,
            compressed_page_size: len,
            first_row_index: row,
        }
    }

    #[test]
    fn an_index_with_gaps_or_disorder_is_not_used() {
        let good = [location(10, 5, 0), location(15, 5, 7), location(20, 5, 7)];
        assert!(is_whole(&good, 25, 7));
        assert!(!is_whole(&good, 26, 7) && !is_whole(&good, 25, 6));
        for bad in [
            [location(10, 5, 1), good[1].clone(), good[2].clone()],
            [good[0].clone(), location(16, 4, 7), good[2].clone()],
            [good[0].clone(), location(15, 6, 7), good[2].clone()],
            [good[0].clone(), good[2].clone(), good[1].clone()],
            [good[0].clone(), location(15, 5, 8), good[2].clone()],
            [good[0].clone(), location(15, 5, -1), good[2].clone()],
            [location(10, 0, 0), location(10, 10, 0), good[2].clone()],
            [location(10, -5, 0), location(5, 15, 0), good[2].clone()],
            [location(-10, 25, 0), good[1].clone(), good[2].clone()],
        ] {
            assert!(!is_whole(&bad, 25, 7), "{bad:?}");
        }
        assert!(!is_whole(&[], 0, 0));
    }
}
