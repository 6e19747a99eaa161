//! [`Booleans`]: values of one bit.

use std::mem;
use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray};
use arrow_buffer::{BooleanBuffer, BooleanBufferBuilder, NullBuffer};
use arrow_schema::DataType;
use bytes::Bytes;
use parquet::basic::Encoding;
use parquet::errors::Result;

use super::{Finished, Output, Slice, unexpected};
use crate::decode::ends_early;
use crate::decode::validity::Validity;
use crate::decode::values::bits::Bits;
use crate::decode::values::spread::spread_bits;

/// Booleans.
pub(in crate::decode) struct Booleans {
    values: BooleanBufferBuilder,
}

impl Booleans {
    pub(in crate::decode) fn new() -> Self {
        Self {
            values: BooleanBufferBuilder::new(0),
        }
    }
}

/// A position in booleans.
pub(in crate::decode) enum BooleansAt {
    /// As bits of the page, and how many of them were passed.
    Plain {
        page: Bytes,
        at: usize,
    },
    Rle(Bits),
}

impl BooleansAt {
    /// Passes over `n` bits of the page and says where they are.
    fn take(page: &Bytes, at: &mut usize, n: usize) -> Result<usize> {
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
                page: values,
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
                values: page.clone(),
                rows,
            }),
            BooleansAt::Rle(_) => None,
        }
    }

    fn append(&mut self, slice: &Slice) -> Result<()> {
        let range = slice.skip_bits..slice.skip_bits + slice.rows;
        self.values.append_packed_range(range, &slice.values);
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
        let bits = BooleanBuffer::new(slice.values.into(), slice.skip_bits, slice.rows);
        Ok(Arc::new(BooleanArray::new(bits, None)))
    }
}
