//! BYTE_STREAM_SPLIT: the first bytes of all values, then all second bytes, and so on.

use std::marker::PhantomData;

use bytes::Bytes;
use parquet::errors::Result;

use super::{CHUNK, Native, Values, append};
use crate::decode::{damaged, ends_early};

/// The streams of a page of values that have one width.
#[derive(Debug)]
pub(super) struct Streams {
    bytes: Bytes,
    width: usize,
    /// Values of the page, and how many of them were taken.
    count: usize,
    taken: usize,
}

impl Streams {
    /// The streams that `bytes` are.
    ///
    /// # Errors
    /// Where `bytes` are not whole values of `width` bytes, or that is 0.
    pub(super) fn try_new(bytes: Bytes, width: usize) -> Result<Self> {
        let len = bytes.len();
        if len.checked_rem(width) != Some(0) {
            return Err(damaged(format!(
                "{len} bytes are no streams of values of {width} bytes"
            )));
        }
        Ok(Self {
            count: len / width,
            taken: 0,
            bytes,
            width,
        })
    }

    /// Takes the next `n` values. Returns which of all values is the first of them.
    pub(super) fn take(&mut self, n: usize) -> Result<usize> {
        let from = self.taken;
        if n > self.count - from {
            return Err(ends_early());
        }
        self.taken += n;
        Ok(from)
    }

    /// The bytes `k` of the `n` values after the first `from`.
    pub(super) fn bytes(&self, k: usize, from: usize, n: usize) -> &[u8] {
        let start = k * self.count + from;
        self.bytes.get(start..start + n).unwrap_or_default()
    }

    pub(super) fn width(&self) -> usize {
        self.width
    }
}

/// A position in numbers that are BYTE_STREAM_SPLIT.
#[derive(Debug)]
pub(crate) struct Split<T> {
    streams: Streams,
    of: PhantomData<T>,
}

impl<T: Native> Split<T> {
    /// The numbers that `bytes` are.
    ///
    /// # Errors
    /// Where the last one is not whole.
    pub(crate) fn try_new(bytes: Bytes) -> Result<Self> {
        Ok(Self {
            streams: Streams::try_new(bytes, size_of::<T>())?,
            of: PhantomData,
        })
    }
}

impl<T: Native> Values<T> for Split<T> {
    fn read(&mut self, n: usize, out: &mut Vec<T>) -> Result<()> {
        let from = self.streams.take(n)?;
        out.reserve(n);
        let width = self.streams.width();
        let end = from + n;
        for from in (from..end).step_by(CHUNK) {
            let n = CHUNK.min(end - from);
            let mut streams = [&[][..]; 8];
            for (k, stream) in streams.iter_mut().enumerate().take(width) {
                *stream = self.streams.bytes(k, from, n);
            }
            T::from_streams(&streams[..width.min(8)], append(out, n));
        }
        Ok(())
    }

    fn skip(&mut self, n: usize) -> Result<()> {
        self.streams.take(n).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::strategy::Encode;
    use crate::write::encode::{ByteStreamSplit, Growth};
    use proptest::prelude::*;

    #[test]
    fn streams_are_as_the_format_says() {
        // The format's example: the bytes AA BB CC DD, 00 11 22 33, A3 B4 C5 D6 of three values.
        let page = [
            0xaa, 0x00, 0xa3, 0xbb, 0x11, 0xb4, 0xcc, 0x22, 0xc5, 0xdd, 0x33, 0xd6,
        ];
        let mut out = vec![7];
        let mut values = Split::<u32>::try_new(page.to_vec().into()).unwrap();
        values.read(3, &mut out).unwrap();
        assert_eq!(out, [7, 0xddcc_bbaa, 0x3322_1100, 0xd6c5_b4a3]);
        assert!(values.skip(1).is_err());
        assert!(Split::<u64>::try_new(page.to_vec().into()).is_err());
        assert!(Split::<u32>::try_new(Bytes::new()).unwrap().skip(0).is_ok());
    }

    fn check<T: Native + PartialEq + std::fmt::Debug>(bytes: &[u8], cut: usize, skip: usize) {
        let values: Vec<T> = T::from_plain(bytes).collect();
        let mut encoder = ByteStreamSplit::new(size_of::<T>());
        encoder.put(&bytes[..size_of_val(&values[..])]);
        let mut page = Vec::new();
        encoder.finish(&Growth::new(Encode::Exact), &mut page);
        let (cut, skip) = (cut.min(values.len()), skip.min(values.len()));
        let mut split = Split::<T>::try_new(page.into()).unwrap();
        let mut out = Vec::new();
        split.read(cut, &mut out).unwrap();
        let skipped = skip.min(values.len() - cut);
        split.skip(skipped).unwrap();
        split.read(values.len() - cut - skipped, &mut out).unwrap();
        assert_eq!(out[..cut], values[..cut]);
        assert_eq!(out[cut..], values[cut + skipped..]);
    }

    proptest! {
        #[test]
        fn what_is_encoded_is_read(bytes in prop::collection::vec(any::<u8>(), 0..3000), cut in 0..400usize, skip in 0..99usize) {
            check::<u32>(&bytes, cut, skip);
            check::<u64>(&bytes, cut, skip);
        }
    }
}
