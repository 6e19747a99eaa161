//! [`Numbers`]: values of four or eight bytes.

use std::mem;
use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_buffer::{ArrowNativeType, Buffer, NullBuffer};
use arrow_schema::DataType;
use bytes::Bytes;
use parquet::basic::Encoding;
use parquet::errors::Result;

use super::{Finished, Output, Slice, array, no_dictionary, unexpected};
use crate::decode::ends_early;
use crate::decode::validity::Validity;
use crate::decode::values::delta::Delta;
use crate::decode::values::dictionary::Dictionary;
use crate::decode::values::plain::Plain;
use crate::decode::values::split::Split;
use crate::decode::values::spread::spread;
use crate::decode::values::{Native, Values};

/// Numbers of four or eight bytes.
pub(in crate::decode) struct Numbers<T> {
    data_type: DataType,
    dictionary: Option<Arc<[T]>>,
    values: Vec<T>,
}

impl<T> Numbers<T> {
    pub(in crate::decode) fn new(data_type: DataType) -> Self {
        Self {
            data_type,
            dictionary: None,
            values: Vec::new(),
        }
    }
}

/// A position in numbers.
pub(in crate::decode) enum NumbersAt<T> {
    Plain(Plain<T>),
    Dictionary(Dictionary<T>),
    Delta(Delta<T>),
    Split(Split<T>),
}

impl<T: Native + Send + Sync + ArrowNativeType> Output for Numbers<T> {
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
            NumbersAt::Plain(plain) if plain.is_aligned() => Some(Slice {
                values: plain.take(rows).ok()?,
                skip_bits: 0,
                rows,
            }),
            _ => None,
        }
    }

    fn append(&mut self, slice: &Slice) -> Result<()> {
        self.values.extend(T::from_plain(&slice.values));
        Ok(())
    }

    fn read(&mut self, position: &mut NumbersAt<T>, n: usize) -> Result<()> {
        let out = &mut self.values;
        match position {
            NumbersAt::Plain(values) => values.read(n, out),
            NumbersAt::Dictionary(values) => values.read(n, out),
            NumbersAt::Delta(values) => values.read(n, out),
            NumbersAt::Split(values) => values.read(n, out),
        }
    }

    fn skip(&mut self, position: &mut NumbersAt<T>, n: usize) -> Result<()> {
        match position {
            NumbersAt::Plain(values) => values.skip(n),
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
        array(&self.data_type, slice.rows, None, slice.values.into())
    }
}
