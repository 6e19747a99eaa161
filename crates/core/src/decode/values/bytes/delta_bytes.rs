//! DELTA_BYTE_ARRAY: how much of the value before each one starts with, as DELTA_BINARY_PACKED, then the rest of each, as
//! DELTA_LENGTH_BYTE_ARRAY.

use arrow_array::OffsetSizeTrait;
use bytes::Bytes;
use parquet::errors::Result;

use super::super::Values;
use super::super::delta::Delta;
use super::delta_length::take_lengths;
use super::{BATCH, ByteArrays, ByteValues, SHORT, copy, grow};
use crate::decode::{damaged, ends_early};

/// A position in byte arrays that are DELTA_BYTE_ARRAY.
#[derive(Debug)]
pub(crate) struct BytesDelta {
    lengths: Lengths,
    /// What the values have after their prefixes, of those that were not taken yet.
    data: Bytes,
    /// The last value that was taken.
    previous: Vec<u8>,
}

/// The lengths of prefixes and of what follows them.
#[derive(Debug, Clone)]
struct Lengths {
    prefixes: Delta<u32>,
    suffixes: Delta<u32>,
}

impl Lengths {
    /// Takes the next `n` of each, and calls `each` with the two.
    #[inline]
    fn take(&mut self, n: usize, mut each: impl FnMut(usize, usize) -> Result<()>) -> Result<()> {
        let (mut prefixes, mut suffixes) = ([0; BATCH], [0; BATCH]);
        let mut left = n;
        while left > 0 {
            let now = left.min(BATCH);
            let (prefixes, suffixes) = (&mut prefixes[..now], &mut suffixes[..now]);
            take_lengths(&mut self.prefixes, prefixes)?;
            take_lengths(&mut self.suffixes, suffixes)?;
            for (prefix, suffix) in prefixes.iter().zip(suffixes.iter()) {
                each(*prefix as usize, *suffix as usize)?;
            }
            left -= now;
        }
        Ok(())
    }
}

impl BytesDelta {
    /// The values that `bytes` are. No bytes are no values.
    ///
    /// # Errors
    /// Where the lengths are damaged, or there are not as many of both kinds.
    pub(crate) fn try_new(bytes: Bytes) -> Result<Self> {
        let prefixes = Delta::try_new(bytes.clone())?;
        let rest = bytes.slice(prefixes.end()?..);
        let suffixes = Delta::try_new(rest.clone())?;
        if prefixes.left() != suffixes.left() {
            return Err(damaged(format!(
                "a page has {} prefixes of values, and {} ends of them",
                prefixes.left(),
                suffixes.left()
            )));
        }
        Ok(Self {
            data: rest.slice(suffixes.end()?..),
            lengths: Lengths { prefixes, suffixes },
            previous: Vec::new(),
        })
    }

    /// Bytes of heap that are held beside the page.
    #[cfg(test)]
    fn heap_bytes(&self) -> usize {
        self.previous.capacity()
    }

    /// Bytes that the next `n` values have. They can be taken then: the lengths are good, and the data is there.
    fn measure(&self, n: usize) -> Result<usize> {
        let mut previous = self.previous.len();
        let (mut total, mut data) = (0usize, 0usize);
        self.lengths.clone().take(n, |prefix, suffix| {
            if prefix > previous {
                return Err(damaged(
                    "a value of a page starts with more bytes than the one before has",
                ));
            }
            previous = prefix + suffix;
            data += suffix;
            total = total.saturating_add(previous);
            Ok(())
        })?;
        if data > self.data.len() {
            return Err(ends_early());
        }
        Ok(total)
    }

    /// Appends the next `n` values to `out`, which then has at most `most` bytes, and calls `each` with the length of each.
    fn read_each(
        &mut self,
        n: usize,
        out: &mut Vec<u8>,
        most: usize,
        mut each: impl FnMut(usize) -> Result<()>,
    ) -> Result<()> {
        // Prefixes make a page's values longer than the page, so room is made for what is known to be good.
        let total = self.measure(n)?;
        let slots = grow(out, total, most)?;
        let previous = &mut self.previous;
        let data = &*self.data;
        // Where the value before starts, and the one at hand, of which the first has its prefix elsewhere.
        let (mut before, mut at, mut from) = (None, 0, 0);
        self.lengths.take(n, |prefix, suffix| {
            match before {
                Some(before) => copy_back(slots, at, before, prefix),
                None => copy(slots, at, previous, 0, prefix),
            }
            copy(slots, at + prefix, data, from, suffix);
            before = Some(at);
            from += suffix;
            at += prefix + suffix;
            each(prefix + suffix)
        })?;
        if let Some(before) = before {
            previous.clear();
            previous.extend_from_slice(&slots[before..at]);
        }
        self.data = self.data.slice(from..);
        Ok(())
    }

    fn skip_all(&mut self, n: usize) -> Result<()> {
        self.measure(n)?;
        let previous = &mut self.previous;
        let data = &*self.data;
        let mut from = 0;
        self.lengths.take(n, |prefix, suffix| {
            previous.truncate(prefix);
            previous.extend_from_slice(&data[from..from + suffix]);
            from += suffix;
            Ok(())
        })?;
        self.data = self.data.slice(from..);
        Ok(())
    }
}

/// As [`copy`], from an earlier place of the same bytes.
#[inline(always)]
fn copy_back(bytes: &mut [u8], at: usize, from: usize, len: usize) {
    if len <= SHORT
        && let Some(&short) = bytes.get(from..).and_then(<[u8]>::first_chunk::<SHORT>)
        && let Some(to) = bytes.get_mut(at..).and_then(<[u8]>::first_chunk_mut)
    {
        *to = short;
    } else {
        bytes.copy_within(from..from + len, at);
    }
}

impl<O: OffsetSizeTrait> ByteValues<O> for BytesDelta {
    fn read(&mut self, n: usize, out: &mut ByteArrays<O>) -> Result<()> {
        if n > self.lengths.prefixes.left() {
            return Err(ends_early());
        }
        let start = out.len();
        let mut end = out.values.len();
        out.offsets.reserve(n);
        self.read_each(n, &mut out.values, O::MAX_OFFSET, |len| {
            end += len;
            out.offsets.push(O::usize_as(end));
            Ok(())
        })?;
        out.check_text(start)
    }

    fn skip(&mut self, n: usize) -> Result<()> {
        self.skip_all(n)
    }
}

/// A position in values of FIXED_LEN_BYTE_ARRAY that are DELTA_BYTE_ARRAY. `n` counts rows, not bytes.
#[derive(Debug)]
pub(crate) struct FixedDelta {
    values: BytesDelta,
    width: usize,
}

impl FixedDelta {
    /// The rows of `width` bytes that `bytes` are. No bytes are no rows.
    ///
    /// # Errors
    /// As of [`BytesDelta::try_new`].
    pub(crate) fn try_new(bytes: Bytes, width: usize) -> Result<Self> {
        let values = BytesDelta::try_new(bytes)?;
        Ok(Self { values, width })
    }
}

impl Values<u8> for FixedDelta {
    fn read(&mut self, n: usize, out: &mut Vec<u8>) -> Result<()> {
        let most = n.saturating_mul(self.width).saturating_add(out.len());
        self.values.read_each(n, out, most, |len| {
            if len == self.width {
                return Ok(());
            }
            Err(damaged(format!(
                "a value of {len} bytes in a column of {}",
                self.width
            )))
        })
    }

    fn skip(&mut self, n: usize) -> Result<()> {
        self.values.skip_all(n)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{check, some_steps, some_values};
    use super::*;
    use crate::strategy::Encode;
    use crate::write::encode::{DeltaBinaryPacked, DeltaByteArray, Growth};
    use proptest::prelude::*;

    fn page<T: AsRef<[u8]>>(values: &[T]) -> Vec<u8> {
        let growth = Growth::new(Encode::Exact);
        let mut encoder = DeltaByteArray::new(&growth);
        encoder.put(values.iter().map(AsRef::as_ref));
        let mut page = Vec::new();
        encoder.finish(&growth, &mut page);
        page
    }

    /// A page whose lengths are these, whatever they mean.
    fn raw(prefixes: &[i32], suffixes: &[i32], data: &[u8]) -> Bytes {
        let growth = Growth::new(Encode::Grow);
        let mut page = Vec::new();
        for lengths in [prefixes, suffixes] {
            let mut encoder = DeltaBinaryPacked::new(&growth);
            encoder.put(lengths);
            encoder.finish(&growth, &mut page);
        }
        page.extend_from_slice(data);
        page.into()
    }

    #[test]
    fn lengths_that_cannot_be_are_errors() {
        let read = |prefixes: &[i32], suffixes: &[i32]| {
            let mut decoder = BytesDelta::try_new(raw(prefixes, suffixes, b"abcde"))?;
            let mut out = ByteArrays::<i32>::new(0, false);
            let read = decoder.read(prefixes.len(), &mut out);
            assert!(out.values.capacity() <= 10);
            read
        };
        read(&[0, 2, 1], &[3, 1, 1]).unwrap();
        assert!(read(&[1, 2, 1], &[3, 1, 1]).is_err());
        assert!(read(&[0, 4, 1], &[3, 1, 1]).is_err());
        assert!(read(&[0, 2, 1], &[3, 1, 2]).is_err());
        assert!(read(&[0, -1, 1], &[3, 1, 1]).is_err());
        assert!(read(&[0, 2], &[3, 1, 1]).is_err());
    }

    #[test]
    fn rows_of_another_width_are_an_error() {
        let page = Bytes::from(page(&[b"abc", b"abd"]));
        for (width, fits) in [(2, false), (3, true), (4, false)] {
            let mut rows = FixedDelta::try_new(page.clone(), width).unwrap();
            assert_eq!(rows.read(2, &mut Vec::new()).is_ok(), fits);
        }
    }

    #[test]
    fn values_longer_than_offsets_reach_are_an_error() {
        // 4096 values of 1 MiB, of one that is stored.
        let prefixes = [&[0][..], &[1 << 20; 4095]].concat();
        let suffixes = [&[1 << 20][..], &[0; 4095]].concat();
        let mut decoder = BytesDelta::try_new(raw(&prefixes, &suffixes, &[7; 1 << 20])).unwrap();
        let mut out = ByteArrays::<i32>::new(0, false);
        assert!(decoder.read(4096, &mut out).is_err());
        assert_eq!(out.values.capacity(), 0);
    }

    proptest! {
        #[test]
        fn what_is_encoded_is_read(values in some_values(), steps in some_steps()) {
            let decoder = BytesDelta::try_new(page(&values).into()).unwrap();
            prop_assert_eq!(decoder.heap_bytes(), 0);
            check(decoder, &values, &steps);
        }

        #[test]
        fn rows_that_are_encoded_are_read(
            rows in prop::collection::vec(prop::array::uniform5(0..3u8), 0..300), cut in 0..300usize, skip in 0..9usize
        ) {
            let (cut, skip) = (cut.min(rows.len()), skip.min(rows.len().saturating_sub(cut)));
            let mut decoder = FixedDelta::try_new(page(&rows).into(), 5).unwrap();
            let mut out = vec![7];
            decoder.read(cut, &mut out).unwrap();
            decoder.skip(skip).unwrap();
            decoder.read(rows.len() - cut - skip, &mut out).unwrap();
            let expected = [rows[..cut].as_flattened(), rows[cut + skip..].as_flattened()].concat();
            prop_assert_eq!(&out[1..], &expected);
        }

        #[test]
        fn any_bytes_are_values_or_an_error(
            prefixes in prop::collection::vec(-1..9i32, 0..40), suffixes in prop::collection::vec(-1..9i32, 0..40),
            data in prop::collection::vec(any::<u8>(), 0..90), flip in any::<prop::sample::Index>(), n in 0..50usize
        ) {
            let mut page = raw(&prefixes, &suffixes, &data).to_vec();
            let at = flip.index(page.len());
            page[at] ^= 1 << (at % 8);
            let page = Bytes::from(page);
            if let Ok(mut decoder) = BytesDelta::try_new(page.clone()) {
                let read = decoder.read(n, &mut ByteArrays::<i32>::new(0, true));
                let mut decoder = BytesDelta::try_new(page).unwrap();
                let skipped = ByteValues::<i32>::skip(&mut decoder, n);
                prop_assert!(read.is_err() || skipped.is_ok());
            }
        }
    }
}
