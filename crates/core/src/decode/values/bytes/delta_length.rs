//! DELTA_LENGTH_BYTE_ARRAY: the lengths as DELTA_BINARY_PACKED, then the bytes of all values in a row.

use arrow_array::OffsetSizeTrait;
use bytes::Bytes;
use parquet::errors::Result;

use super::super::delta::Delta;
use super::{BATCH, ByteArrays, ByteValues, reserve};
use crate::decode::{damaged, ends_early};

/// A position in byte arrays that are DELTA_LENGTH_BYTE_ARRAY.
#[derive(Debug)]
pub(crate) struct BytesDeltaLength {
    lengths: Delta<u32>,
    /// The bytes of the values that were not taken yet.
    data: Bytes,
}

impl BytesDeltaLength {
    /// The values that `bytes` are. No bytes are no values.
    ///
    /// # Errors
    /// Where the lengths are damaged.
    pub(crate) fn try_new(bytes: Bytes) -> Result<Self> {
        let lengths = Delta::try_new(bytes.clone())?;
        let data = bytes.slice(lengths.end()?..);
        Ok(Self { lengths, data })
    }

    /// Takes the next `n` values. Calls `each` with where each of them ends, and returns the bytes of all.
    fn take(&mut self, n: usize, mut each: impl FnMut(usize)) -> Result<Bytes> {
        let mut end = 0;
        let mut lengths = [0; BATCH];
        let mut left = n;
        while left > 0 {
            let lengths = &mut lengths[..left.min(BATCH)];
            take_lengths(&mut self.lengths, lengths)?;
            for &mut len in lengths {
                end += len as usize;
                each(end);
            }
            left -= left.min(BATCH);
        }
        if end > self.data.len() {
            return Err(ends_early());
        }
        Ok(self.data.split_to(end))
    }
}

/// Fills `out` with the next lengths.
///
/// # Errors
/// Where there are fewer, or one of them is negative.
pub(super) fn take_lengths(lengths: &mut Delta<u32>, out: &mut [u32]) -> Result<()> {
    lengths.take(out)?;
    let any = out.iter().fold(0, |any, &len| any | len);
    if any.cast_signed() < 0 {
        return Err(damaged("a page has a value of negative length"));
    }
    Ok(())
}

impl<O: OffsetSizeTrait> ByteValues<O> for BytesDeltaLength {
    fn read(&mut self, n: usize, out: &mut ByteArrays<O>) -> Result<()> {
        if n > self.lengths.left() {
            return Err(ends_early());
        }
        let (start, base) = (out.len(), out.values.len());
        out.offsets.reserve(n);
        // An offset that overflows is found out when room is made.
        let taken = self.take(n, |end| out.offsets.push(O::usize_as(base + end)))?;
        reserve(&mut out.values, taken.len(), O::MAX_OFFSET)?;
        out.values.extend_from_slice(&taken);
        out.check_text(start)
    }

    fn skip(&mut self, n: usize) -> Result<()> {
        self.take(n, |_| ()).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{check, some_steps, some_values};
    use super::*;
    use crate::strategy::Encode;
    use crate::write::encode::{DeltaBinaryPacked, DeltaLengthByteArray, Growth};
    use proptest::prelude::*;

    #[test]
    fn a_negative_length_is_an_error() {
        let growth = Growth::new(Encode::Grow);
        let mut lengths = DeltaBinaryPacked::new(&growth);
        lengths.put(&[3, -1, 2]);
        let mut page = Vec::new();
        lengths.finish(&growth, &mut page);
        page.extend([0; 9]);
        let decoder = || BytesDeltaLength::try_new(page.clone().into()).unwrap();
        let mut out = ByteArrays::<i32>::new(3, false);
        decoder().read(1, &mut out).unwrap();
        assert!(decoder().read(3, &mut out).is_err());
        assert!(ByteValues::<i32>::skip(&mut decoder(), 3).is_err());
    }

    proptest! {
        #[test]
        fn what_is_encoded_is_read(values in some_values(), steps in some_steps()) {
            let growth = Growth::new(Encode::Exact);
            let mut encoder = DeltaLengthByteArray::new(&growth);
            values.iter().for_each(|value| encoder.put(value));
            let mut page = Vec::new();
            encoder.finish(&growth, &mut page);
            check(BytesDeltaLength::try_new(page.clone().into()).unwrap(), &values, &steps);
            // One byte fewer is one too few.
            if values.iter().any(|value| !value.is_empty()) {
                page.pop();
                let mut decoder = BytesDeltaLength::try_new(page.into()).unwrap();
                let read = decoder.read(values.len(), &mut ByteArrays::<i32>::new(0, false));
                prop_assert!(read.is_err());
            }
        }

        #[test]
        fn any_bytes_are_values_or_an_error(
            bytes in prop::collection::vec(any::<u8>(), 0..200), count in 0..40u8, n in 0..40usize
        ) {
            let page = Bytes::from([&[0x80, 1, 4, count], &bytes[..]].concat());
            if let Ok(mut decoder) = BytesDeltaLength::try_new(page.clone()) {
                let mut out = ByteArrays::<i32>::new(0, false);
                let read = decoder.read(n, &mut out);
                let mut decoder = BytesDeltaLength::try_new(page.clone()).unwrap();
                prop_assert_eq!(read.is_ok(), ByteValues::<i32>::skip(&mut decoder, n).is_ok());
                prop_assert!(out.values.capacity() <= page.len());
            }
        }
    }
}
