//! Arrays under construction: what a column's values are collected in, or the slice of a page that they are already.

use std::fmt;
use std::mem;
use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, make_array};
use arrow_buffer::{BooleanBuffer, BooleanBufferBuilder, Buffer, NullBuffer};
use arrow_data::ArrayData;
use arrow_schema::DataType;
use bytes::Bytes;
use parquet::basic::Encoding;
use parquet::errors::{ParquetError, Result};

use super::validity::Validity;
use super::values::bits::Bits;
use super::values::delta::Delta;
use super::values::dictionary::Dictionary;
use super::values::fixed::{FixedDictionary, FixedSplit};
use super::values::split::Split;
use super::values::spread::{spread, spread_bits, spread_rows};
use super::values::{Native, Values};
use super::{damaged, ends_early};

/// Values of some rows, none of them null, as they lie in a page.
pub(super) struct Slice {
    page: Buffer,
    /// Bits in front of the first value; whole values, but for booleans.
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

/// PLAIN values of a fixed width in a page.
pub(super) struct Plain {
    page: Buffer,
    at: usize,
}

impl Plain {
    fn new(values: Bytes) -> Self {
        Self {
            page: Buffer::from(values),
            at: 0,
        }
    }

    /// The next `n` values of `width` bytes.
    fn take(&mut self, n: usize, width: usize) -> Result<&[u8]> {
        let end = n
            .checked_mul(width)
            .and_then(|len| self.at.checked_add(len));
        let taken = end.and_then(|end| self.page.get(self.at..end));
        let taken = taken.ok_or_else(ends_early)?;
        self.at += taken.len();
        Ok(taken)
    }

    /// As a slice, if they are at an address that `alignment` divides.
    fn slice(&mut self, rows: usize, width: usize, alignment: usize) -> Option<Slice> {
        let at = self.at;
        if !(self.page.as_ptr() as usize + at).is_multiple_of(alignment) {
            return None;
        }
        self.take(rows, width).ok()?;
        Some(Slice {
            page: self.page.clone(),
            skip_bits: 8 * at,
            rows,
        })
    }
}

/// Numbers of four or eight bytes.
pub(super) struct Numbers<T> {
    data_type: DataType,
    dictionary: Option<Arc<[T]>>,
    values: Vec<T>,
}

impl<T> Numbers<T> {
    pub(super) fn new(data_type: DataType) -> Self {
        Self {
            data_type,
            dictionary: None,
            values: Vec::new(),
        }
    }
}

/// A position in numbers.
pub(super) enum NumbersAt<T> {
    Plain(Plain),
    Dictionary(Dictionary<T>),
    Delta(Delta<T>),
    Split(Split<T>),
}

impl<T: Native + Send + Sync + arrow_buffer::ArrowNativeType> Output for Numbers<T> {
    type Position = NumbersAt<T>;

    fn set_dictionary(&mut self, values: &Bytes, num_values: usize) -> Result<usize> {
        let len = num_values.checked_mul(size_of::<T>());
        let values = len.and_then(|len| values.get(..len));
        let values: Arc<[T]> = T::from_plain(values.ok_or_else(ends_early)?).collect();
        let bytes = size_of_val(&*values);
        self.dictionary = Some(values);
        Ok(bytes)
    }

    fn has_dictionary(&self) -> bool {
        self.dictionary.is_some()
    }

    fn drop_dictionary(&mut self) {
        self.dictionary = None;
    }

    fn open(&self, encoding: Encoding, values: Bytes) -> Result<NumbersAt<T>> {
        Ok(match encoding {
            Encoding::PLAIN => NumbersAt::Plain(Plain::new(values)),
            Encoding::RLE_DICTIONARY | Encoding::PLAIN_DICTIONARY => {
                let dictionary = self.dictionary.clone().ok_or_else(no_dictionary)?;
                NumbersAt::Dictionary(Dictionary::try_new(values, dictionary)?)
            }
            Encoding::DELTA_BINARY_PACKED => NumbersAt::Delta(Delta::try_new(values)?),
            Encoding::BYTE_STREAM_SPLIT => NumbersAt::Split(Split::try_new(values)?),
            other => return Err(unexpected(other, &self.data_type)),
        })
    }

    fn slice(&self, position: &mut NumbersAt<T>, rows: usize) -> Option<Slice> {
        match position {
            NumbersAt::Plain(plain) => plain.slice(rows, size_of::<T>(), align_of::<T>()),
            _ => None,
        }
    }

    fn append(&mut self, slice: &Slice) -> Result<()> {
        let at = slice.skip_bits / 8;
        let values = slice.page.get(at..at + slice.rows * size_of::<T>());
        self.values
            .extend(T::from_plain(values.ok_or_else(ends_early)?));
        Ok(())
    }

    fn read(&mut self, position: &mut NumbersAt<T>, n: usize) -> Result<()> {
        let out = &mut self.values;
        match position {
            NumbersAt::Plain(plain) => {
                out.extend(T::from_plain(plain.take(n, size_of::<T>())?));
                Ok(())
            }
            NumbersAt::Dictionary(values) => values.read(n, out),
            NumbersAt::Delta(values) => values.read(n, out),
            NumbersAt::Split(values) => values.read(n, out),
        }
    }

    fn skip(&mut self, position: &mut NumbersAt<T>, n: usize) -> Result<()> {
        match position {
            NumbersAt::Plain(plain) => plain.take(n, size_of::<T>()).map(drop),
            NumbersAt::Dictionary(values) => values.skip(n),
            NumbersAt::Delta(values) => values.skip(n),
            NumbersAt::Split(values) => values.skip(n),
        }
    }

    fn spread(&mut self, values: usize, validity: &Validity, rows: usize) {
        let start = self.values.len().saturating_sub(values);
        spread(&mut self.values, start, validity, rows);
    }

    fn reserve(&mut self, rows: usize) {
        self.values.reserve_exact(rows);
    }

    fn finish(&mut self, rows: usize, nulls: Option<NullBuffer>) -> Result<Finished> {
        let values = mem::take(&mut self.values);
        Ok(Finished {
            value_bytes: size_of_val(&*values),
            array: array(&self.data_type, rows, nulls, Buffer::from_vec(values))?,
        })
    }

    fn finish_slice(&self, slice: Slice) -> Result<ArrayRef> {
        let len = slice.rows * size_of::<T>();
        let values = slice.page.slice_with_length(slice.skip_bits / 8, len);
        array(&self.data_type, slice.rows, None, values)
    }
}

/// Values of a fixed number of bytes.
pub(super) struct Rows {
    data_type: DataType,
    width: usize,
    dictionary: Option<Arc<[u8]>>,
    values: Vec<u8>,
}

impl Rows {
    pub(super) fn new(data_type: DataType, width: usize) -> Self {
        Self {
            data_type,
            width,
            dictionary: None,
            values: Vec::new(),
        }
    }
}

/// A position in values of a fixed number of bytes.
pub(super) enum RowsAt {
    Plain(Plain),
    Dictionary(FixedDictionary),
    Split(FixedSplit),
}

impl Output for Rows {
    type Position = RowsAt;

    fn set_dictionary(&mut self, values: &Bytes, num_values: usize) -> Result<usize> {
        let len = num_values.checked_mul(self.width);
        let values = len.and_then(|len| values.get(..len));
        let values: Arc<[u8]> = values.ok_or_else(ends_early)?.into();
        let bytes = values.len();
        self.dictionary = Some(values);
        Ok(bytes)
    }

    fn has_dictionary(&self) -> bool {
        self.dictionary.is_some()
    }

    fn drop_dictionary(&mut self) {
        self.dictionary = None;
    }

    fn open(&self, encoding: Encoding, values: Bytes) -> Result<RowsAt> {
        Ok(match encoding {
            Encoding::PLAIN => RowsAt::Plain(Plain::new(values)),
            Encoding::RLE_DICTIONARY | Encoding::PLAIN_DICTIONARY => {
                let dictionary = self.dictionary.clone().ok_or_else(no_dictionary)?;
                RowsAt::Dictionary(FixedDictionary::try_new(values, dictionary, self.width)?)
            }
            Encoding::BYTE_STREAM_SPLIT => RowsAt::Split(FixedSplit::try_new(values, self.width)?),
            other => return Err(unexpected(other, &self.data_type)),
        })
    }

    fn slice(&self, position: &mut RowsAt, rows: usize) -> Option<Slice> {
        match position {
            RowsAt::Plain(plain) => plain.slice(rows, self.width, 1),
            _ => None,
        }
    }

    fn append(&mut self, slice: &Slice) -> Result<()> {
        let at = slice.skip_bits / 8;
        let values = slice.page.get(at..at + slice.rows * self.width);
        self.values
            .extend_from_slice(values.ok_or_else(ends_early)?);
        Ok(())
    }

    fn read(&mut self, position: &mut RowsAt, n: usize) -> Result<()> {
        let out = &mut self.values;
        match position {
            RowsAt::Plain(plain) => {
                out.extend_from_slice(plain.take(n, self.width)?);
                Ok(())
            }
            RowsAt::Dictionary(values) => values.read(n, out),
            RowsAt::Split(values) => values.read(n, out),
        }
    }

    fn skip(&mut self, position: &mut RowsAt, n: usize) -> Result<()> {
        match position {
            RowsAt::Plain(plain) => plain.take(n, self.width).map(drop),
            RowsAt::Dictionary(values) => values.skip(n),
            RowsAt::Split(values) => values.skip(n),
        }
    }

    fn spread(&mut self, values: usize, validity: &Validity, rows: usize) {
        let start = self.values.len().saturating_sub(values * self.width);
        spread_rows(&mut self.values, start, self.width, validity, rows);
    }

    fn reserve(&mut self, rows: usize) {
        self.values.reserve_exact(rows.saturating_mul(self.width));
    }

    fn finish(&mut self, rows: usize, nulls: Option<NullBuffer>) -> Result<Finished> {
        let values = mem::take(&mut self.values);
        Ok(Finished {
            value_bytes: values.len(),
            array: array(&self.data_type, rows, nulls, Buffer::from_vec(values))?,
        })
    }

    fn finish_slice(&self, slice: Slice) -> Result<ArrayRef> {
        let len = slice.rows * self.width;
        let values = slice.page.slice_with_length(slice.skip_bits / 8, len);
        array(&self.data_type, slice.rows, None, values)
    }
}

/// Booleans.
pub(super) struct Booleans {
    values: BooleanBufferBuilder,
}

impl Booleans {
    pub(super) fn new() -> Self {
        Self {
            values: BooleanBufferBuilder::new(0),
        }
    }
}

/// A position in booleans.
pub(super) enum BooleansAt {
    /// As bits of the page, and how many of them were passed.
    Plain {
        page: Buffer,
        at: usize,
    },
    Rle(Bits),
}

impl BooleansAt {
    /// Passes over `n` bits of the page and says where they are.
    fn take(page: &Buffer, at: &mut usize, n: usize) -> Result<usize> {
        let first = *at;
        let end = first
            .checked_add(n)
            .filter(|end| end.div_ceil(8) <= page.len());
        *at = end.ok_or_else(ends_early)?;
        Ok(first)
    }
}

impl Output for Booleans {
    type Position = BooleansAt;

    fn set_dictionary(&mut self, _: &Bytes, _: usize) -> Result<usize> {
        // As in the parquet crate: a dictionary of booleans is passed over, and refused when a page's values are indices.
        Ok(0)
    }

    fn has_dictionary(&self) -> bool {
        true
    }

    fn drop_dictionary(&mut self) {}

    fn open(&self, encoding: Encoding, values: Bytes) -> Result<BooleansAt> {
        match encoding {
            Encoding::PLAIN => Ok(BooleansAt::Plain {
                page: Buffer::from(values),
                at: 0,
            }),
            Encoding::RLE => Ok(BooleansAt::Rle(Bits::rle(values)?)),
            other => Err(unexpected(other, DataType::Boolean)),
        }
    }

    fn slice(&self, position: &mut BooleansAt, rows: usize) -> Option<Slice> {
        match position {
            BooleansAt::Plain { page, at } => Some(Slice {
                skip_bits: BooleansAt::take(page, at, rows).ok()?,
                page: page.clone(),
                rows,
            }),
            BooleansAt::Rle(_) => None,
        }
    }

    fn append(&mut self, slice: &Slice) -> Result<()> {
        let range = slice.skip_bits..slice.skip_bits + slice.rows;
        self.values.append_packed_range(range, &slice.page);
        Ok(())
    }

    fn read(&mut self, position: &mut BooleansAt, n: usize) -> Result<()> {
        match position {
            BooleansAt::Plain { page, at } => {
                let first = BooleansAt::take(page, at, n)?;
                self.values.append_packed_range(first..first + n, page);
                Ok(())
            }
            BooleansAt::Rle(bits) => bits.read(n, &mut self.values),
        }
    }

    fn skip(&mut self, position: &mut BooleansAt, n: usize) -> Result<()> {
        match position {
            BooleansAt::Plain { page, at } => BooleansAt::take(page, at, n).map(drop),
            BooleansAt::Rle(bits) => bits.skip(n),
        }
    }

    fn spread(&mut self, values: usize, validity: &Validity, rows: usize) {
        let start = self.values.len().saturating_sub(values);
        spread_bits(&mut self.values, start, validity, rows);
    }

    fn reserve(&mut self, rows: usize) {
        self.values.reserve(rows);
    }

    fn finish(&mut self, rows: usize, nulls: Option<NullBuffer>) -> Result<Finished> {
        let values = mem::replace(&mut self.values, BooleanBufferBuilder::new(0)).build();
        if values.len() != rows {
            return Err(ends_early());
        }
        Ok(Finished {
            value_bytes: rows.div_ceil(8),
            array: Arc::new(BooleanArray::new(values, nulls)),
        })
    }

    fn finish_slice(&self, slice: Slice) -> Result<ArrayRef> {
        let bits = BooleanBuffer::new(slice.page, slice.skip_bits, slice.rows);
        Ok(Arc::new(BooleanArray::new(bits, None)))
    }
}
