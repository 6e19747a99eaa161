//! Arrays under construction: what a column's values are collected in, or the slice of a page that they are already.

mod booleans;
mod numbers;
mod rows;

use std::fmt;

use arrow_array::{ArrayRef, make_array};
use arrow_buffer::{Buffer, NullBuffer};
use arrow_data::ArrayData;
use arrow_schema::DataType;
use bytes::Bytes;
use parquet::basic::Encoding;
use parquet::errors::{ParquetError, Result};

pub(super) use booleans::Booleans;
pub(super) use numbers::Numbers;
pub(super) use rows::Rows;

use super::damaged;
use super::validity::Validity;

/// Values of some rows, none of them null, as they lie in a page.
pub(super) struct Slice {
    values: Bytes,
    /// Bits in front of the first value, of booleans.
    skip_bits: usize,
    rows: usize,
}

/// The values of one column, of one batch.
pub(super) trait Output: Send {
    /// A position in the values of a page.
    type Position: Send;

    /// Takes the values of a dictionary, which are PLAIN. Returns the bytes that it holds them in.
    fn set_dictionary(&mut self, values: &Bytes, num_values: usize) -> Result<usize>;

    /// Whether the values of pages are indices into a dictionary that is there.
    fn has_dictionary(&self) -> bool;

    fn drop_dictionary(&mut self);

    /// The values of a page.
    fn open(&self, encoding: Encoding, values: Bytes) -> Result<Self::Position>;

    /// The next `rows` values as they lie in the page, where they are an array there. They are passed over then.
    fn slice(&self, position: &mut Self::Position, rows: usize) -> Option<Slice>;

    /// Appends what a slice shows.
    fn append(&mut self, slice: &Slice) -> Result<()>;

    /// Appends the next `n` values.
    fn read(&mut self, position: &mut Self::Position, n: usize) -> Result<()>;

    fn skip(&mut self, position: &mut Self::Position, n: usize) -> Result<()>;

    /// Moves the last `values` values to their rows, which are the last `rows` of `validity`.
    fn spread(&mut self, values: usize, validity: &Validity, rows: usize);

    /// Makes room for so many rows, where nothing is there yet.
    fn reserve(&mut self, rows: usize);

    /// The array of all that was appended; nothing is there then.
    fn finish(&mut self, rows: usize, nulls: Option<NullBuffer>) -> Result<Finished>;

    /// The array that a slice is.
    fn finish_slice(&self, slice: Slice) -> Result<ArrayRef>;
}

/// An array, and the bytes of values that were written into it.
pub(super) struct Finished {
    pub(super) array: ArrayRef,
    pub(super) value_bytes: usize,
}

/// A page says that its values are encoded in a way that its type has not.
fn unexpected(encoding: Encoding, of: impl fmt::Display) -> ParquetError {
    ParquetError::NYI(format!("{of} encoded as {encoding}"))
}

fn no_dictionary() -> ParquetError {
    damaged("a page's values are indices, and its column chunk has no dictionary")
}

fn array(
    data_type: &DataType,
    rows: usize,
    nulls: Option<NullBuffer>,
    values: Buffer,
) -> Result<ArrayRef> {
    let data = ArrayData::builder(data_type.clone())
        .len(rows)
        .nulls(nulls)
        .add_buffer(values)
        .build()?;
    Ok(make_array(data))
}
