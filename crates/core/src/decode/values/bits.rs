//! Booleans: PLAIN, a bit each from the lowest of a byte on, or RLE, the hybrid of runs behind its length.

use arrow_buffer::BooleanBufferBuilder;
use bytes::Bytes;
use parquet::errors::Result;

use crate::decode::ends_early;
use crate::decode::hybrid::{Hybrid, Run};

/// A position in the booleans of a page.
#[derive(Debug)]
pub(crate) struct Bits {
    runs: Hybrid,
}

impl Bits {
    /// The booleans that `bytes` are in PLAIN.
    #[cfg(test)]
    pub(crate) fn plain(bytes: Bytes) -> Self {
        Self {
            runs: Hybrid::bits(bytes),
        }
    }

    /// The booleans that `bytes` are in RLE: the length of the runs in four bytes, little-endian, and the runs. No bytes are no
    /// booleans.
    ///
    /// # Errors
    /// Where the runs are shorter than their length.
    pub(crate) fn rle(bytes: Bytes) -> Result<Self> {
        let runs = match bytes.split_first_chunk() {
            Some((len, rest)) => {
                let (start, len) = (size_of_val(len), u32::from_le_bytes(*len) as usize);
                if len > rest.len() {
                    return Err(ends_early());
                }
                bytes.slice(start..start + len)
            }
            None if bytes.is_empty() => bytes,
            None => return Err(ends_early()),
        };
        Ok(Self {
            runs: Hybrid::try_new(runs, 1)?,
        })
    }

    /// Appends the next `n` booleans to `out`.
    ///
    /// # Errors
    /// Where there are fewer, or the page is damaged.
    pub(crate) fn read(&mut self, n: usize, out: &mut BooleanBufferBuilder) -> Result<()> {
        out.reserve(n);
        let mut left = n;
        while left > 0 {
            left -= match self.runs.next_run(left)?.ok_or_else(ends_early)? {
                Run::Repeated { value, len } => {
                    out.append_n(len, value == 1);
                    len
                }
                Run::Packed { bytes, first, len } => {
                    out.append_packed_range(first..first + len, bytes);
                    len
                }
            };
        }
        Ok(())
    }

    /// Passes over the next `n` booleans.
    ///
    /// # Errors
    /// Where there are fewer, or the page is damaged.
    pub(crate) fn skip(&mut self, n: usize) -> Result<()> {
        self.runs.skip(n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::write::encode::encode_indices;
    use proptest::prelude::*;

    fn check(mut bits: Bits, expected: &[bool], cut: usize, skip: usize) {
        let cut = cut.min(expected.len());
        let skip = skip.min(expected.len() - cut);
        let mut out = BooleanBufferBuilder::new(0);
        bits.read(cut, &mut out).unwrap();
        bits.skip(skip).unwrap();
        bits.read(expected.len() - cut - skip, &mut out).unwrap();
        let out: Vec<bool> = out.finish().iter().collect();
        assert_eq!(out, [&expected[..cut], &expected[cut + skip..]].concat());
    }

    #[test]
    fn bits_are_as_the_format_says() {
        let plain = Bits::plain(Bytes::from_static(&[0b0000_0101, 1]));
        check(
            plain,
            &[true, false, true, false, false, false, false, false, true],
            2,
            0,
        );
        let runs = Bytes::from_static(&[4, 0, 0, 0, 3 << 1, 1, 1 << 1 | 1, 2, 9]);
        check(
            Bits::rle(runs).unwrap(),
            &[true, true, true, false, true],
            2,
            2,
        );
    }

    #[test]
    fn too_few_are_an_error() {
        let mut out = BooleanBufferBuilder::new(0);
        assert!(
            Bits::plain(Bytes::from_static(&[1]))
                .read(9, &mut out)
                .is_err()
        );
        assert!(Bits::plain(Bytes::from_static(&[1])).skip(9).is_err());
        assert!(Bits::rle(Bytes::new()).unwrap().read(1, &mut out).is_err());
        assert!(Bits::rle(Bytes::from_static(&[1, 0])).is_err());
        assert!(Bits::rle(Bytes::from_static(&[2, 0, 0, 0, 2])).is_err());
    }

    proptest! {
        #[test]
        fn what_is_encoded_is_read(
            pieces in prop::collection::vec((any::<u64>(), any::<bool>()), 0..20), cut in 0..999usize, skip in 0..99usize
        ) {
            let row = |&(seed, run): &(u64, bool)| (0..64).map(move |at| if run { seed & 1 } else { seed >> at & 1 } as u32);
            let rows: Vec<u32> = pieces.iter().flat_map(row).collect();
            let expected: Vec<bool> = rows.iter().map(|&row| row == 1).collect();
            let mut runs = Vec::new();
            encode_indices(&rows, 1, &mut runs);
            let page = [&(runs.len() as u32).to_le_bytes(), &runs[..]].concat();
            check(Bits::rle(page.into()).unwrap(), &expected, cut, skip);
            let word = |word: &[u32]| word.iter().rev().fold(0, |word, &bit| word << 1 | bit as u8);
            let page: Vec<u8> = rows.chunks(8).map(word).collect();
            check(Bits::plain(page.into()), &expected, cut, skip);
        }
    }
}
