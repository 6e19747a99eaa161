//! DELTA_BINARY_PACKED: blocks of differences, bit-packed above the smallest of them.
//!
//! A block is its smallest difference, the bit width of each miniblock, and the miniblocks. All of it is arithmetic modulo
//! 2^32 or 2^64.

use bytes::Bytes;
use parquet::errors::Result;

use super::{CHUNK, Native, Values, append};
use crate::decode::unpack::{self, GROUP};
use crate::decode::{damaged, ends_early, varint};

/// Values that are passed over at once.
const SKIPPED: usize = 256;

/// A position in numbers that are DELTA_BINARY_PACKED.
#[derive(Debug, Clone)]
pub(crate) struct Delta<T> {
    bytes: Bytes,
    /// Miniblocks of a block.
    miniblocks: usize,
    /// Values of a miniblock.
    len: usize,
    /// Values that were not taken yet.
    left: usize,
    /// Whether the first of all values is the next one; it is `last` then, and in no block.
    at_first: bool,
    /// The value before the next one.
    last: T,
    /// The smallest difference of the block at hand.
    least: T,
    /// Where the bit width of the next miniblock is.
    widths_at: usize,
    /// How many miniblocks the block at hand has after the one at hand.
    more: usize,
    /// Where the miniblock at hand starts, its bit width, and how many of its values were taken.
    start: usize,
    width: u32,
    taken: usize,
}

impl<T: Native> Delta<T> {
    /// The numbers that `bytes` start with. No bytes are no numbers.
    ///
    /// # Errors
    /// Where the header is damaged.
    pub(crate) fn try_new(bytes: Bytes) -> Result<Self> {
        let mut at = 0;
        let empty = bytes.is_empty();
        let mut number = || {
            if empty {
                Ok(0)
            } else {
                varint::read(&bytes, &mut at)
            }
        };
        let (block, miniblocks, count) = (number()?, number()?, number()?);
        let first = if empty {
            0
        } else {
            varint::read_zigzag(&bytes, &mut at)?
        };
        let len = block.checked_div(miniblocks).unwrap_or(0);
        let whole = block > 0 && len.checked_mul(miniblocks) == Some(block);
        let allowed = whole && block.is_multiple_of(128) && len.is_multiple_of(32);
        if !allowed && !empty {
            return Err(damaged(format!(
                "a page of deltas has blocks of {block} values in {miniblocks} parts"
            )));
        }
        let first = T::from_signed(first)
            .ok_or_else(|| damaged("a page of deltas starts with a value that is too large"))?;
        let size = |number| usize::try_from(number).map_err(|_| ends_early());
        Ok(Self {
            miniblocks: size(miniblocks)?,
            len: size(len)?,
            left: size(count)?,
            at_first: true,
            last: first,
            least: T::default(),
            widths_at: at,
            more: 0,
            start: at,
            width: 0,
            // Of a block that is not there all was taken.
            taken: size(len)?,
            bytes,
        })
    }

    /// Values that were not taken yet, as the page says: no more than a claim.
    #[cfg(test)]
    fn left(&self) -> usize {
        self.left
    }

    /// Where in the bytes the values end that were not taken yet.
    ///
    /// # Errors
    /// Where they end early.
    #[cfg(test)]
    fn end(&self) -> Result<usize> {
        let mut rest = self.clone();
        let first = usize::from(rest.at_first);
        let mut left = rest.left.saturating_sub(first);
        left = left.saturating_sub(rest.len - rest.taken);
        while left > 0 {
            rest.next_miniblock()?;
            left = left.saturating_sub(rest.len);
        }
        let end = rest.miniblock_end();
        if end > self.bytes.len() {
            return Err(ends_early());
        }
        Ok(end)
    }

    fn miniblock_end(&self) -> usize {
        // The values of a miniblock are a multiple of 32.
        let bytes = (self.len / 8).saturating_mul(self.width as usize);
        self.start.saturating_add(bytes)
    }

    /// Goes on to the next miniblock, of the next block if need be.
    fn next_miniblock(&mut self) -> Result<()> {
        let mut at = self.miniblock_end();
        if self.more == 0 {
            let least = varint::read_zigzag(&self.bytes, &mut at)?;
            self.least = T::from_signed(least)
                .ok_or_else(|| damaged("a page of deltas has a difference that is too large"))?;
            self.widths_at = at;
            self.more = self.miniblocks;
            at = at.saturating_add(self.miniblocks);
        }
        self.width = match self.bytes.get(self.widths_at) {
            Some(&width) if u32::from(width) <= T::BITS => width.into(),
            Some(width) => {
                return Err(damaged(format!(
                    "a page of deltas has differences of {width} bits"
                )));
            }
            None => return Err(ends_early()),
        };
        self.start = at;
        self.widths_at += 1;
        self.more -= 1;
        self.taken = 0;
        Ok(())
    }

    /// Fills `out` with the next values.
    ///
    /// # Errors
    /// Where there are fewer, or the page is damaged.
    pub(crate) fn take(&mut self, mut out: &mut [T]) -> Result<()> {
        self.left = self.left.checked_sub(out.len()).ok_or_else(ends_early)?;
        if self.at_first && !out.is_empty() {
            let (first, rest) = out.split_at_mut(1);
            first.fill(self.last);
            self.at_first = false;
            out = rest;
        }
        while !out.is_empty() {
            if self.taken == self.len {
                self.next_miniblock()?;
            }
            let (now, rest) = out.split_at_mut(out.len().min(self.len - self.taken));
            self.take_of_miniblock(now)?;
            out = rest;
        }
        Ok(())
    }

    /// Fills `out` with the next values of the miniblock at hand, which has so many.
    fn take_of_miniblock(&mut self, out: &mut [T]) -> Result<()> {
        let (width, first) = (self.width as usize, self.taken % GROUP);
        self.taken += out.len();
        if width == 0 {
            for out in out {
                self.last = self.last.wrapping_add(self.least);
                *out = self.last;
            }
            return Ok(());
        }
        // What fills up the last miniblock is not needed.
        let from = self.taken - out.len() - first;
        let end = self.taken.checked_mul(width).map(|bits| bits.div_ceil(8));
        let packed = end
            .and_then(|end| self.start.checked_add(end))
            .and_then(|end| self.bytes.get(self.start + from / GROUP * width..end))
            .ok_or_else(ends_early)?;

        let head = if first == 0 { 0 } else { GROUP - first };
        let (head, rest) = out.split_at_mut(head.min(out.len()));
        let (mut last, least) = (self.last, self.least);
        let mut next = |difference: T| {
            last = last.wrapping_add(difference.wrapping_add(least));
            last
        };
        if !head.is_empty() {
            let group = unpack::group::<T>(packed, self.width, 0);
            for (out, &difference) in head.iter_mut().zip(&group[first..]) {
                *out = next(difference);
            }
        }
        let packed = &packed[packed.len().min(usize::from(first > 0) * width)..];
        let (groups, tail) = rest.as_chunks_mut();
        T::map_groups(packed, self.width, groups, |group| group.map(&mut next));
        if !tail.is_empty() {
            let group = unpack::group::<T>(packed, self.width, groups.len());
            for (out, &difference) in tail.iter_mut().zip(&group) {
                *out = next(difference);
            }
        }
        self.last = last;
        Ok(())
    }
}

impl<T: Native> Values<T> for Delta<T> {
    fn read(&mut self, n: usize, out: &mut Vec<T>) -> Result<()> {
        if n > self.left {
            return Err(ends_early());
        }
        out.reserve(n);
        let end = out.len() + n;
        while out.len() < end {
            // As far as whole groups of a miniblock go.
            let now = match self.len - self.taken {
                _ if self.at_first => 1,
                0 => CHUNK.min(self.len),
                left => CHUNK.min(left),
            };
            let now = now.min(end - out.len());
            self.take(append(out, now))?;
        }
        Ok(())
    }

    fn skip(&mut self, mut n: usize) -> Result<()> {
        if n > self.left {
            return Err(ends_early());
        }
        let mut out = [T::default(); SKIPPED];
        while n > 0 {
            let now = n.min(SKIPPED);
            self.take(&mut out[..now])?;
            n -= now;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::is_early;
    use crate::strategy::Encode;
    use crate::write::encode::{DeltaBinaryPacked, Growth};
    use proptest::prelude::*;

    fn page64(values: &[i64]) -> Vec<u8> {
        let growth = Growth::new(Encode::Exact);
        let mut encoder = DeltaBinaryPacked::new(&growth);
        encoder.put(values);
        let mut out = Vec::new();
        encoder.finish(&growth, &mut out);
        out
    }

    fn page32(values: &[i32]) -> Vec<u8> {
        let growth = Growth::new(Encode::Exact);
        let mut encoder = DeltaBinaryPacked::new(&growth);
        encoder.put(values);
        let mut out = Vec::new();
        encoder.finish(&growth, &mut out);
        out
    }

    /// Reads and skips `steps` again and again until all of `expected` was.
    fn check<T: Native + PartialEq + std::fmt::Debug>(
        mut page: Vec<u8>,
        expected: &[T],
        steps: &[(usize, bool)],
    ) {
        let end = page.len();
        page.extend([0xa5; 3]);
        let mut values = Delta::<T>::try_new(page.into()).unwrap();
        assert_eq!(values.end().unwrap(), end);
        let mut at = 0;
        for &(step, skip) in steps.iter().cycle() {
            let step = step.min(expected.len() - at);
            if step == 0 {
                break;
            }
            if skip {
                values.skip(step).unwrap();
            } else {
                let mut out = Vec::new();
                values.read(step, &mut out).unwrap();
                assert_eq!(out, expected[at..at + step]);
            }
            at += step;
            assert_eq!(values.end().unwrap(), end);
        }
        assert_eq!(values.left(), 0);
        assert!(values.skip(1).is_err());
    }

    #[test]
    fn blocks_are_as_the_format_says() {
        // The format's second example, in a block of 128 and miniblocks of 32: 7, 5, 3, 1, 2, 3, 4, 5. The widths of the three
        // miniblocks that are not needed can be anything.
        let header = [0x80, 1, 4, 8, 14];
        let block = [3, 2, 0xff, 7, 99, 0b1100_0000, 0b1111_1111];
        let page = [&header[..], &block].concat();
        let mut out = Vec::new();
        let mut values = Delta::<u32>::try_new(page.clone().into()).unwrap();
        values.read(8, &mut out).unwrap();
        assert_eq!(out, [7, 5, 3, 1, 2, 3, 4, 5]);
        // The miniblock is eight bytes, of which six are missing here.
        assert!(is_early(&values.end().unwrap_err()));
        let mut values = Delta::<u32>::try_new([&page[..], &[0; 9]].concat().into()).unwrap();
        assert_eq!(values.end().unwrap(), page.len() + 6);
        values.skip(8).unwrap();
        assert_eq!(values.end().unwrap(), page.len() + 6);
    }

    #[test]
    fn no_bytes_are_no_numbers() {
        let mut values = Delta::<u64>::try_new(Bytes::new()).unwrap();
        assert_eq!((values.left(), values.end().unwrap()), (0, 0));
        values.read(0, &mut Vec::new()).unwrap();
        assert!(values.read(1, &mut Vec::new()).is_err());
    }

    #[test]
    fn damaged_headers_are_errors() {
        let refused: [&[u8]; 8] = [
            &[0x80],
            &[0x80, 1, 0, 0, 0],
            &[0, 1, 1, 0],
            &[0, 0, 1, 0],
            &[0x80, 1, 3, 1, 0],
            &[0x80, 1, 8, 1, 0],
            &[0xc0, 1, 1, 1, 0],
            &[0x80, 1, 4, 1],
        ];
        for bytes in refused {
            assert!(
                Delta::<u64>::try_new(Bytes::from_static(bytes)).is_err(),
                "{bytes:?}"
            );
        }
        // The first value is 2^31.
        let large = [0x80, 1, 4, 1, 0x80, 0x80, 0x80, 0x80, 0x10];
        assert!(Delta::<u32>::try_new(large.to_vec().into()).is_err());
        assert!(Delta::<u64>::try_new(large.to_vec().into()).is_ok());
    }

    #[test]
    fn a_claim_allocates_nothing() {
        // 2^62 values, in blocks of 2^32.
        let mut page = vec![0x80, 0x80, 0x80, 0x80, 0x10, 1];
        page.extend([0x80; 8]);
        page.extend([0x40, 0]);
        let mut values = Delta::<u64>::try_new(page.into()).unwrap();
        let mut out = Vec::new();
        assert!(values.left() > 1 << 60);
        assert!(values.read(usize::MAX, &mut out).is_err());
        assert_eq!(out.capacity(), 0);
        values.read(1, &mut out).unwrap();
        assert!(values.read(1, &mut out).is_err());
        assert!(values.end().is_err());
    }

    proptest! {
        #[test]
        fn what_is_encoded_is_read(
            seed in prop::collection::vec((any::<i64>(), 0..64u32), 0..50), times in 1..20usize,
            steps in prop::collection::vec((1..300usize, any::<bool>()), 1..9)
        ) {
            let values: Vec<i64> = seed.iter().map(|&(value, shift)| value >> shift).collect();
            let values = values.repeat(times);
            let bits: Vec<u64> = values.iter().map(|value| value.cast_unsigned()).collect();
            check(page64(&values), &bits, &steps);
            let narrow: Vec<i32> = values.iter().map(|&value| value as i32).collect();
            let bits: Vec<u32> = narrow.iter().map(|value| value.cast_unsigned()).collect();
            check(page32(&narrow), &bits, &steps);
        }

        #[test]
        fn any_bytes_are_values_or_an_error(
            bytes in prop::collection::vec(any::<u8>(), 0..60), miniblocks in 0..5u8, count in 0..100u8, n in 0..600usize
        ) {
            for head in [&[][..], &[0x80, 1, miniblocks, count]] {
                let page = Bytes::from([head, &bytes].concat());
                if let Ok(mut values) = Delta::<u32>::try_new(page.clone()) {
                    let skipped = values.clone().skip(n).is_ok();
                    let _ = values.end();
                    let mut out = Vec::new();
                    prop_assert_eq!(values.read(n, &mut out).is_ok(), skipped);
                    prop_assert!(out.capacity() <= n.max(4));
                }
                if let Ok(mut values) = Delta::<u64>::try_new(page) {
                    let read = values.read(n, &mut Vec::new());
                    prop_assert!(read.is_ok() || n > 0);
                }
            }
        }
    }
}
