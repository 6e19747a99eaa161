//! [`Rows`]: values of a fixed number of bytes.

use std::mem;
use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_buffer::{Buffer, NullBuffer};
use arrow_schema::DataType;
use bytes::Bytes;
use parquet::basic::Encoding;
use parquet::errors::Result;

use super::{Finished, Output, Slice, array, no_dictionary, unexpected};
use crate::decode::ends_early;
use crate::decode::validity::Validity;
use crate::decode::values::Values;
use crate::decode::values::fixed::{FixedDictionary, FixedPlain, FixedSplit};
use crate::decode::values::spread::spread_rows;

/// Values of a fixed number of bytes.
pub(in crate::decode) struct Rows {
    data_type: DataType,
    width: usize,
    dictionary: Option<Arc<[u8]>>,
    values: Vec<u8>,
}

impl Rows {
    pub(in crate::decode) fn new(data_type: DataType, width: usize) -> Self {
        Self {
            data_type,
            width,
            dictionary: None,
            values: Vec::new(),
        }
    }
}

/// A position in values of a fixed number of bytes.
pub(in crate::decode) enum RowsAt {
    Plain(FixedPlain),
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
            Encoding::PLAIN => RowsAt::Plain(FixedPlain::new(values, self.width)),
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
            RowsAt::Plain(plain) => Some(Slice {
                values: plain.take(rows).ok()?,
                skip_bits: 0,
                rows,
            }),
            _ => None,
        }
    }

    fn append(&mut self, slice: &Slice) -> Result<()> {
        self.values.extend_from_slice(&slice.values);
        Ok(())
    }

    fn read(&mut self, position: &mut RowsAt, n: usize) -> Result<()> {
        let out = &mut self.values;
        match position {
            RowsAt::Plain(values) => values.read(n, out),
            RowsAt::Dictionary(values) => values.read(n, out),
            RowsAt::Split(values) => values.read(n, out),
        }
    }

    fn skip(&mut self, position: &mut RowsAt, n: usize) -> Result<()> {
        match position {
            RowsAt::Plain(values) => values.skip(n),
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
        array(&self.data_type, slice.rows, None, slice.values.into())
    }
}
