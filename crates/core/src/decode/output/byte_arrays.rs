//! [`ByteColumn`]: values of any length.

use std::mem;
use std::sync::Arc;

use arrow_array::types::ByteArrayType;
use arrow_array::{ArrayRef, GenericByteArray};
use arrow_buffer::{Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use bytes::Bytes;
use parquet::basic::Encoding;
use parquet::errors::Result;

use super::{Finished, Output, Slice, no_dictionary, unexpected};
use crate::decode::validity::Validity;
use crate::decode::values::bytes::delta_bytes::BytesDelta;
use crate::decode::values::bytes::delta_length::BytesDeltaLength;
use crate::decode::values::bytes::dictionary::{ByteDictionary, BytesDictionary};
use crate::decode::values::bytes::plain::BytesPlain;
use crate::decode::values::bytes::{ByteArrays, ByteValues};

/// Values of any length, in arrays of type `T`.
pub(in crate::decode) struct ByteColumn<T: ByteArrayType> {
    dictionary: Option<Arc<ByteDictionary>>,
    values: ByteArrays<T::Offset>,
}

impl<T: ByteArrayType> ByteColumn<T> {
    pub(in crate::decode) fn new() -> Self {
        Self {
            dictionary: None,
            values: ByteArrays::new(0, false),
        }
    }
}

/// A position in values of any length.
pub(in crate::decode) enum ByteColumnAt {
    Plain(BytesPlain),
    Dictionary(BytesDictionary),
    DeltaLength(BytesDeltaLength),
    Delta(BytesDelta),
}

impl<T: ByteArrayType> Output for ByteColumn<T> {
    type Position = ByteColumnAt;

    fn set_dictionary(&mut self, values: &Bytes, num_values: usize) -> Result<usize> {
        let dictionary = ByteDictionary::try_new(values.clone(), num_values, false)?;
        let bytes = dictionary.heap_bytes();
        self.dictionary = Some(Arc::new(dictionary));
        Ok(bytes)
    }

    fn has_dictionary(&self) -> bool {
        self.dictionary.is_some()
    }

    fn drop_dictionary(&mut self) {
        self.dictionary = None;
    }

    fn open(&self, encoding: Encoding, values: Bytes) -> Result<ByteColumnAt> {
        Ok(match encoding {
            Encoding::PLAIN => ByteColumnAt::Plain(BytesPlain::new(values)),
            Encoding::RLE_DICTIONARY | Encoding::PLAIN_DICTIONARY => {
                let dictionary = self.dictionary.clone().ok_or_else(no_dictionary)?;
                ByteColumnAt::Dictionary(BytesDictionary::try_new(values, dictionary)?)
            }
            Encoding::DELTA_LENGTH_BYTE_ARRAY => {
                ByteColumnAt::DeltaLength(BytesDeltaLength::try_new(values)?)
            }
            Encoding::DELTA_BYTE_ARRAY => ByteColumnAt::Delta(BytesDelta::try_new(values)?),
            other => return Err(unexpected(other, T::DATA_TYPE)),
        })
    }

    fn slice(&self, _: &mut ByteColumnAt, _: usize) -> Option<Slice> {
        None
    }

    fn append(&mut self, _: &Slice) -> Result<()> {
        Ok(()) // There are no slices.
    }

    fn read(&mut self, position: &mut ByteColumnAt, n: usize) -> Result<()> {
        let out = &mut self.values;
        match position {
            ByteColumnAt::Plain(values) => values.read(n, out),
            ByteColumnAt::Dictionary(values) => values.read(n, out),
            ByteColumnAt::DeltaLength(values) => values.read(n, out),
            ByteColumnAt::Delta(values) => values.read(n, out),
        }
    }

    fn skip(&mut self, position: &mut ByteColumnAt, n: usize) -> Result<()> {
        fn skip<O: arrow_array::OffsetSizeTrait>(
            values: &mut impl ByteValues<O>,
            n: usize,
        ) -> Result<()> {
            values.skip(n)
        }
        match position {
            ByteColumnAt::Plain(values) => skip::<T::Offset>(values, n),
            ByteColumnAt::Dictionary(values) => skip::<T::Offset>(values, n),
            ByteColumnAt::DeltaLength(values) => skip::<T::Offset>(values, n),
            ByteColumnAt::Delta(values) => skip::<T::Offset>(values, n),
        }
    }

    fn spread(&mut self, values: usize, validity: &Validity, rows: usize) {
        let start = self.values.len().saturating_sub(values);
        self.values.spread(start, validity, rows);
    }

    fn reserve(&mut self, rows: usize) {
        self.values = ByteArrays::new(rows, false);
    }

    fn finish(&mut self, _: usize, nulls: Option<NullBuffer>) -> Result<Finished> {
        let values = mem::replace(&mut self.values, ByteArrays::new(0, false));
        let value_bytes = values.values.len() + size_of_val(&*values.offsets);
        let offsets = OffsetBuffer::new(ScalarBuffer::from(values.offsets));
        let bytes = Buffer::from_vec(values.values);
        let array = GenericByteArray::<T>::try_new(offsets, bytes, nulls)?;
        Ok(Finished {
            value_bytes,
            array: Arc::new(array) as ArrayRef,
        })
    }

    fn finish_slice(&self, _: Slice) -> Result<ArrayRef> {
        Err(crate::decode::damaged("values of any length are no slice"))
    }
}
