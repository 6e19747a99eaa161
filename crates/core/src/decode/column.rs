//! [`Column`]: one flat column of a file, from its pages to the arrays of batches.

use std::sync::Arc;
use std::vec;

use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;
use parquet::basic::Encoding;
use parquet::errors::Result;
use parquet::schema::types::ColumnDescriptor;

use super::damaged;
use super::kind::Kind;
use super::levels::Levels;
use super::output::{Booleans, Numbers, Output, Rows, Slice};
use super::validity::Validity;
use crate::format::page_header::{PageHeader, PageKind};
use crate::ledger::{Ledger, Purpose};
use crate::page::chunk::{ChunkCursor, RawPage};
use crate::page::file::FileShared;
use crate::page::owners::ColumnOwners;
use crate::source::ReadAt;
use crate::strategy::Arrays;

/// A column whose batches are decoded here.
pub(crate) trait DirectColumn: Send {
    /// Adds the next `rows` rows to the batch. Returns how many there were: fewer only at the column's end.
    fn read(&mut self, rows: usize) -> Result<usize>;

    /// Passes over the next `rows` rows. Returns how many there were: fewer only at the column's end.
    fn skip(&mut self, rows: usize) -> Result<usize>;

    /// How many rows the page has that the next row is in, from that row on; none behind the last.
    fn rows_in_page(&mut self) -> Result<usize>;

    /// The array of all rows that were added.
    fn finish(&mut self) -> Result<Decoded>;
}

/// A column's array of one batch.
pub(crate) struct Decoded {
    pub(crate) array: ArrayRef,
    /// Bytes of the array's own buffers: none where it is a slice of a page.
    pub(crate) owned_bytes: usize,
}

/// Rows that room is made for at once. How many there will be is a claim of the caller and of the file's metadata; what goes beyond this
/// grows as rows come.
const RESERVED_ROWS: usize = 1 << 20;

/// What is needed to read a column.
pub(crate) struct ColumnParts<S> {
    pub(crate) file: Arc<FileShared<S>>,
    pub(crate) owners: ColumnOwners,
    /// Leaf column, counted from 0.
    pub(crate) column: usize,
    pub(crate) row_groups: Vec<usize>,
    pub(crate) data_type: DataType,
    pub(crate) arrays: Arrays,
    pub(crate) ledger: Arc<Ledger>,
}

impl<S: ReadAt + 'static> ColumnParts<S> {
    /// The column of these parts, whose values are of `kind`.
    pub(crate) fn build(self, kind: Kind) -> Box<dyn DirectColumn> {
        let data_type = self.data_type.clone();
        match kind {
            Kind::Bits => Box::new(Column::new(self, Booleans::new())),
            Kind::Four => Box::new(Column::new(self, Numbers::<u32>::new(data_type))),
            Kind::Eight => Box::new(Column::new(self, Numbers::<u64>::new(data_type))),
            Kind::Bytes(width) => Box::new(Column::new(self, Rows::new(data_type, width))),
        }
    }
}

struct Column<S, O: Output> {
    file: Arc<FileShared<S>>,
    owners: ColumnOwners,
    column: usize,
    arrays: Arrays,
    /// Row groups that were not begun.
    row_groups: vec::IntoIter<usize>,
    /// The chunk that is being read.
    cursor: Option<ChunkCursor<S>>,
    page: Option<OpenPage<O::Position>>,
    output: O,
    dictionary: Option<Charge>,
    /// Rows of the batch so far.
    rows: usize,
    validity: Validity,
    /// All rows of the batch so far, where they are a slice of the page.
    slice: Option<Slice>,
    ledger: Arc<Ledger>,
}

/// A data page that is being read.
struct OpenPage<P> {
    rows_left: usize,
    /// Where a row of the page is null.
    levels: Option<Levels>,
    values: P,
}

impl<S: ReadAt + 'static, O: Output> Column<S, O> {
    fn new(parts: ColumnParts<S>, output: O) -> Self {
        Self {
            file: parts.file,
            owners: parts.owners,
            column: parts.column,
            arrays: parts.arrays,
            row_groups: parts.row_groups.into_iter(),
            cursor: None,
            page: None,
            output,
            dictionary: None,
            rows: 0,
            validity: Validity::new(0),
            slice: None,
            ledger: parts.ledger,
        }
    }

    /// The chunk that is being read, or the next one; `None` behind the last.
    fn cursor(&mut self) -> Result<Option<&mut ChunkCursor<S>>> {
        if self.cursor.is_none() {
            let Some(row_group) = self.row_groups.next() else {
                return Ok(None);
            };
            let (file, owners) = (Arc::clone(&self.file), self.owners.clone());
            let cursor = ChunkCursor::try_new(file, owners, row_group, self.column)?;
            self.cursor = Some(cursor);
        }
        Ok(self.cursor.as_mut())
    }

    /// Leaves the chunk that is being read.
    fn end_chunk(&mut self) {
        // It is used up: only arrays may hold its buffer now.
        self.page = None;
        self.cursor = None;
        self.output.drop_dictionary();
        self.dictionary = None;
    }

    /// Opens the next data page that has rows. `false` behind the last.
    fn next_page(&mut self) -> Result<bool> {
        // Its buffer must be free for the next page.
        self.page = None;
        loop {
            let Some(cursor) = self.cursor()? else {
                return Ok(false);
            };
            match cursor.next_raw(expected_values)? {
                None => self.end_chunk(),
                Some(raw) if raw.header.is_dictionary() => self.take_dictionary(&raw)?,
                Some(raw) => {
                    let page = self.open(raw)?;
                    if page.rows_left > 0 {
                        self.page = Some(page);
                        return Ok(true);
                    }
                }
            }
        }
    }

    /// Whether there is another page. Its body is not read.
    fn has_next_page(&mut self) -> Result<bool> {
        while let Some(cursor) = self.cursor()? {
            if cursor.peek()?.is_some() {
                return Ok(true);
            }
            self.end_chunk();
        }
        Ok(false)
    }

    fn take_dictionary(&mut self, raw: &RawPage) -> Result<()> {
        let PageKind::Dictionary { num_values, .. } = raw.header.kind else {
            return Ok(());
        };
        let bytes = self
            .output
            .set_dictionary(&raw.bytes, num_values as usize)
            .map_err(|error| self.located(error))?;
        self.dictionary = Some(Charge::new(&self.ledger, self.column, bytes));
        Ok(())
    }

    fn open(&mut self, raw: RawPage) -> Result<OpenPage<O::Position>> {
        let encoding = raw.header.encoding();
        let is_indices = matches!(
            encoding,
            Encoding::RLE_DICTIONARY | Encoding::PLAIN_DICTIONARY
        );
        if is_indices
            && !self.output.has_dictionary()
            && let Some(cursor) = &mut self.cursor
            && let Some(dictionary) = cursor.take_skipped_raw_dictionary()?
        {
            self.take_dictionary(&dictionary)?;
        }
        let opened = self.levels_and_values(&raw).and_then(|(levels, at)| {
            Ok(OpenPage {
                rows_left: raw.header.num_values(),
                levels: levels.filter(Levels::has_nulls),
                values: self.output.open(encoding, raw.bytes.slice(at..))?,
            })
        });
        opened.map_err(|error| self.located(error))
    }

    /// The page's definition levels, if its column has any, and where its values start.
    fn levels_and_values(&self, raw: &RawPage) -> Result<(Option<Levels>, usize)> {
        let optional = self
            .cursor
            .as_ref()
            .is_some_and(|cursor| is_optional(cursor.descriptor()));
        match raw.header.kind {
            PageKind::DataV1 {
                num_values,
                def_level_encoding,
                ..
            } if optional => {
                let (levels, at) = Levels::v1(&raw.bytes, num_values as usize, def_level_encoding)?;
                Ok((Some(levels), at))
            }
            PageKind::DataV2 {
                num_values,
                def_levels_byte_len,
                rep_levels_byte_len,
                ..
            } => {
                // That the page has its levels was checked when it was loaded.
                let start = rep_levels_byte_len as usize;
                let end = start + def_levels_byte_len as usize;
                let levels = raw.bytes.slice(start..end);
                let levels = optional.then(|| Levels::v2(levels, num_values as usize));
                Ok((levels.transpose()?, end))
            }
            _ => Ok((None, 0)),
        }
    }

    fn located(&self, error: parquet::errors::ParquetError) -> parquet::errors::ParquetError {
        match &self.cursor {
            Some(cursor) => cursor.located(error),
            None => error,
        }
    }

    /// Adds `rows` rows of the open page, which has them.
    fn read_page(&mut self, rows: usize, wanted: usize) -> Result<()> {
        let Some(page) = &mut self.page else {
            return Ok(());
        };
        if self.rows == 0 {
            self.validity = Validity::new(wanted.min(RESERVED_ROWS));
        }
        let valid = match &mut page.levels {
            Some(levels) => levels.read(rows, &mut self.validity)?,
            None => {
                self.validity.append_valid(rows);
                rows
            }
        };
        page.rows_left -= rows;
        let may_slice = self.arrays == Arrays::Shared && self.rows == 0 && valid == rows;
        if may_slice && let Some(slice) = self.output.slice(&mut page.values, rows) {
            self.slice = Some(slice);
        } else {
            if self.rows == 0 {
                self.output.reserve(wanted.min(RESERVED_ROWS));
            } else if let Some(slice) = self.slice.take() {
                self.output.reserve(self.rows + wanted.min(RESERVED_ROWS));
                self.output.append(&slice)?;
            }
            self.output.read(&mut page.values, valid)?;
            if valid < rows {
                self.output.spread(valid, &self.validity, rows);
            }
        }
        self.rows += rows;
        Ok(())
    }

    /// Copies the rows so far out of the page, which is going to be left.
    fn leave_slice(&mut self, wanted: usize) -> Result<()> {
        if let Some(slice) = self.slice.take() {
            self.output.reserve(self.rows + wanted.min(RESERVED_ROWS));
            self.output.append(&slice)?;
        }
        Ok(())
    }

    fn has_open_rows(&self) -> bool {
        self.page.as_ref().is_some_and(|page| page.rows_left > 0)
    }
}

impl<S: ReadAt + 'static, O: Output> DirectColumn for Column<S, O> {
    fn read(&mut self, rows: usize) -> Result<usize> {
        let mut done = 0;
        while done < rows {
            if !self.has_open_rows() {
                // Behind the last page a slice can stay what it is.
                if !self.has_next_page()? {
                    break;
                }
                self.leave_slice(rows - done)?;
                if !self.next_page()? {
                    break;
                }
            }
            let left = self.page.as_ref().map_or(0, |page| page.rows_left);
            let now = left.min(rows - done);
            self.read_page(now, rows - done)
                .map_err(|error| self.located(error))?;
            done += now;
        }
        Ok(done)
    }

    fn skip(&mut self, rows: usize) -> Result<usize> {
        let mut done = 0;
        while done < rows {
            if let Some(page) = &mut self.page
                && page.rows_left > 0
            {
                let now = page.rows_left.min(rows - done);
                page.rows_left -= now;
                let valid = match &mut page.levels {
                    Some(levels) => levels.skip(now),
                    None => Ok(now),
                };
                let skipped = valid.and_then(|valid| self.output.skip(&mut page.values, valid));
                skipped.map_err(|error| self.located(error))?;
                done += now;
                continue;
            }
            self.leave_slice(0)?;
            self.page = None;
            let Some(cursor) = self.cursor()? else {
                break;
            };
            let Some(next) = cursor.peek()? else {
                self.end_chunk();
                continue;
            };
            let page_rows = next.num_rows.or(next.num_levels).unwrap_or(0);
            if next.is_dict {
                // It is read when a page needs it.
                cursor.skip_page()?;
            } else if page_rows <= rows - done {
                cursor.skip_page()?;
                done += page_rows;
            } else if !self.next_page()? {
                break;
            }
        }
        Ok(done)
    }

    fn rows_in_page(&mut self) -> Result<usize> {
        if !self.has_open_rows() {
            self.leave_slice(0)?;
            self.next_page()?;
        }
        Ok(self.page.as_ref().map_or(0, |page| page.rows_left))
    }

    fn finish(&mut self) -> Result<Decoded> {
        let rows = std::mem::take(&mut self.rows);
        let nulls = self.validity.finish();
        if let Some(slice) = self.slice.take() {
            let array = self.output.finish_slice(slice)?;
            let bytes = array.to_data().get_slice_memory_size()?;
            self.ledger.count_values(self.column, bytes as u64, 0);
            return Ok(Decoded {
                array,
                owned_bytes: 0,
            });
        }
        let finished = self.output.finish(rows, nulls)?;
        let written = finished.value_bytes as u64;
        self.ledger.count_values(self.column, 0, written);
        Ok(Decoded {
            owned_bytes: finished.array.get_buffer_memory_size(),
            array: finished.array,
        })
    }
}

fn is_optional(column: &ColumnDescriptor) -> bool {
    column.max_def_level() > 0
}

/// Where the values of a page begin that has no nulls.
fn expected_values(header: &PageHeader, column: &ColumnDescriptor) -> usize {
    match header.kind {
        PageKind::DataV1 { num_values, .. } if is_optional(column) => {
            // The length of the levels, the length of their only run as a varint, and its level.
            let run = (u64::from(num_values) << 1).checked_ilog2().unwrap_or(0) as usize;
            size_of::<u32>() + run / 7 + 1 + 1
        }
        PageKind::DataV2 { .. } => header.levels_len(),
        _ => 0,
    }
}

/// Bytes of a dictionary that are charged as long as this lives.
struct Charge {
    ledger: Arc<Ledger>,
    column: usize,
    bytes: u64,
}

impl Charge {
    fn new(ledger: &Arc<Ledger>, column: usize, bytes: usize) -> Self {
        let bytes = bytes as u64;
        ledger.charge(Purpose::Dictionary, Some(column), bytes);
        Self {
            ledger: Arc::clone(ledger),
            column,
            bytes,
        }
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        let column = Some(self.column);
        self.ledger.release(Purpose::Dictionary, column, self.bytes);
    }
}

/// A column in which some page is encoded as nothing here decodes, by the file's metadata.
pub(crate) fn undecoded(kind: Kind, encodings: impl IntoIterator<Item = Encoding>) -> bool {
    !encodings.into_iter().all(|encoding| kind.decodes(encoding))
}

/// The error of columns that end at different rows.
pub(crate) fn uneven(rows: usize, other: usize) -> parquet::errors::ParquetError {
    damaged(format!(
        "columns of one batch have {rows} and {other} rows: the file is damaged"
    ))
}
