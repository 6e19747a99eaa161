//! DELTA_BINARY_PACKED: blocks of differences, bit-packed above the smallest of them.
//!
//! Blocks and miniblocks are as large as the parquet crate's, so a page has the same bytes. What is
//! held is the values of the block at hand, and the finished blocks; the header, which knows how many
//! values there are, is written when the page is finished.

use std::cmp;

use super::block::{Integer, MINIBLOCKS};
use super::memory::Growth;
use super::varint;

/// Encodes integers as DELTA_BINARY_PACKED.
pub(crate) struct DeltaBinaryPacked<T> {
    /// The values of the block at hand after the one that they start from; empty before the first value.
    pending: Vec<T>,
    /// The page's first value, once there is a whole block.
    first: T,
    /// Whole blocks so far.
    blocks: usize,
    /// The whole blocks.
    bytes: Vec<u8>,
}

impl<T: Integer> DeltaBinaryPacked<T> {
    /// Values that [`pending`](Self::pending) takes: a block is whole when they are there.
    const SLOTS: usize = T::BLOCK + 1;

    /// The longest header: block size and number of miniblocks, number of values, first value.
    const MAX_HEADER: usize =
        varint::max_len(16) + 1 + varint::max_len(64) + varint::max_len(T::BITS);

    /// An encoder that holds nothing but what `growth` gives it at birth.
    pub(crate) fn new(growth: &Growth) -> Self {
        Self {
            pending: Vec::new(),
            first: T::default(),
            blocks: 0,
            bytes: growth.birth_delta(),
        }
    }

    /// Bytes that the page has at most if `values` more are put and it is finished then.
    pub(crate) fn max_len_with(&self, values: usize) -> usize {
        self.max_len_at(values, T::BITS)
    }

    /// As [`max_len_with`](Self::max_len_with), given that no difference needs more than `width` bits.
    fn max_len_at(&self, values: usize, width: u32) -> usize {
        let deltas = (self.pending.len() + values).saturating_sub(1);
        let (blocks, rest) = (deltas / T::BLOCK, deltas % T::BLOCK);
        let last = if rest == 0 {
            0
        } else {
            let miniblock = T::BLOCK / MINIBLOCKS;
            Self::max_block(rest.next_multiple_of(miniblock), width)
        };
        Self::MAX_HEADER + self.bytes.len() + blocks * Self::max_block(T::BLOCK, width) + last
    }

    /// Bytes that a block with `deltas` differences of `width` bits has at most.
    fn max_block(deltas: usize, width: u32) -> usize {
        varint::max_len(T::BITS) + MINIBLOCKS + deltas * width as usize / 8
    }

    /// Makes room for so many `values` that are about to be put.
    pub(crate) fn reserve(&mut self, growth: &Growth, values: usize) {
        self.reserve_at(growth, values, T::BITS);
    }

    fn reserve_at(&mut self, growth: &Growth, values: usize, width: u32) {
        let pending = cmp::min(self.pending.len() + values, Self::SLOTS);
        if self.pending.capacity() < pending {
            // Once more values come than fit, more will come; till then a short column stays small.
            let first = self.pending.capacity() == 0;
            let slots = if first { pending } else { Self::SLOTS };
            self.pending.reserve_exact(slots - self.pending.len());
        }
        let blocks = (self.pending.len() + values).saturating_sub(1) / T::BLOCK;
        growth.reserve(&mut self.bytes, blocks * Self::max_block(T::BLOCK, width));
    }

    /// Encodes `values`.
    pub(crate) fn put(&mut self, values: &[T]) {
        let wanted = Self::SLOTS - self.pending.len();
        let Some((head, _)) = values.split_at_checked(wanted) else {
            self.pending.extend_from_slice(values);
            return;
        };
        self.pending.extend_from_slice(head);
        self.put_pending();
        let mut at = wanted;
        // A block starts from the value before it.
        while let Some(block) = values.get(at - 1..at + T::BLOCK) {
            T::put_block(block, &mut self.bytes);
            self.blocks += 1;
            at += T::BLOCK;
        }
        self.pending.clear();
        self.pending.extend_from_slice(&values[at - 1..]);
    }

    /// Encodes one value.
    #[inline]
    pub(crate) fn push(&mut self, value: T) {
        self.pending.push(value);
        if self.pending.len() == Self::SLOTS {
            self.put_pending();
        }
    }

    /// Encodes the block at hand, which is whole; the next one starts from its last value.
    #[inline(never)]
    fn put_pending(&mut self) {
        if self.blocks == 0 {
            self.first = self.pending[0];
        }
        T::put_block(&self.pending, &mut self.bytes);
        self.blocks += 1;
        self.pending.swap_remove(0);
        self.pending.truncate(1);
    }

    /// Appends the page to `out` and starts the next one.
    pub(crate) fn finish(&mut self, growth: &Growth, out: &mut Vec<u8>) {
        growth.reserve(out, self.max_len_with(0));
        self.append(growth, out);
    }

    /// As [`finish`](Self::finish), into a buffer that has the room.
    pub(super) fn append(&mut self, growth: &Growth, out: &mut Vec<u8>) {
        let first = match self.pending.first() {
            Some(&first) if self.blocks == 0 => first,
            _ => self.first,
        };
        let values = self.blocks * T::BLOCK + self.pending.len();
        varint::put(out, T::BLOCK as u64);
        varint::put(out, MINIBLOCKS as u64);
        varint::put(out, values as u64);
        varint::put_zigzag(out, first.widen());
        out.extend_from_slice(&self.bytes);
        if self.pending.len() > 1 {
            // The last block cannot be continued, so it need not be held.
            T::put_block(&self.pending, out);
        }
        growth.page_done(&mut self.bytes);
        self.pending.clear();
        self.first = T::default();
        self.blocks = 0;
    }

    /// Bytes of heap that are held.
    pub(crate) fn heap_bytes(&self) -> usize {
        self.bytes.capacity() + self.pending.capacity() * size_of::<T>()
    }
}

impl DeltaBinaryPacked<i32> {
    /// As [`max_len_with`](Self::max_len_with), for lengths of which none is above `largest`.
    pub(super) fn max_len_of_lengths(&self, values: usize, largest: usize) -> usize {
        self.max_len_at(values, self.width_of_lengths(largest))
    }

    /// As [`reserve`](Self::reserve), for lengths of which none is above `largest`.
    pub(super) fn reserve_lengths(&mut self, growth: &Growth, values: usize, largest: usize) {
        self.reserve_at(growth, values, self.width_of_lengths(largest));
    }

    /// Bits that a difference takes at most if no length is negative or above `largest`: two of them
    /// differ by less than `largest` either way.
    fn width_of_lengths(&self, largest: usize) -> u32 {
        let pending = self
            .pending
            .iter()
            .max()
            .map_or(0, |&length| length as usize);
        let spread = 2 * cmp::max(pending, largest);
        cmp::min(usize::BITS - spread.leading_zeros(), i32::BITS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::strategy::Encode;
    use crate::write::encode::reference::{Reference, page};
    use proptest::prelude::*;

    /// The page of `pieces`, put one after the other; `push` puts them value by value.
    fn encode<T: Integer>(pieces: &[&[T]], push: bool) -> Vec<u8> {
        let growth = Growth::new(Encode::Exact);
        let mut encoder = DeltaBinaryPacked::new(&growth);
        for piece in pieces {
            let bound = encoder.max_len_with(piece.len());
            encoder.reserve(&growth, piece.len());
            let reserved = encoder.bytes.capacity();
            if push {
                piece.iter().for_each(|&value| encoder.push(value));
            } else {
                encoder.put(piece);
            }
            assert_eq!(encoder.bytes.capacity(), reserved, "more than was reserved");
            assert!(encoder.max_len_with(0) <= bound);
        }
        let bound = encoder.max_len_with(0);
        let mut out = vec![1, 2, 3];
        encoder.finish(&growth, &mut out);
        assert_eq!(out[..3], [1, 2, 3]);
        assert!(out.len() - 3 <= bound, "{} > {bound}", out.len());
        assert_eq!((encoder.bytes.len(), encoder.pending.len()), (0, 0));
        out.split_off(3)
    }

    fn check<T: Integer + Reference>(values: &[T], cut: usize) {
        let (head, tail) = values.split_at(cut.min(values.len()));
        let expected = page(values, parquet::basic::Encoding::DELTA_BINARY_PACKED);
        assert_eq!(encode(&[values], false), expected);
        assert_eq!(encode(&[head, tail], false), expected);
        assert_eq!(encode(&[head, &[], tail], true), expected);
    }

    /// Values of a type, from steps that are mostly of one size.
    fn walk(steps: &[i64], shift: u32) -> Vec<i64> {
        let mut at = 0i64;
        steps
            .iter()
            .map(|step| {
                at = at.wrapping_add(step >> shift);
                at
            })
            .collect()
    }

    #[test]
    fn pages_of_all_lengths_equal_the_parquet_crates() {
        for count in (1..=40)
            .chain(120..140)
            .chain(250..264)
            .chain([384, 385, 386, 512, 513, 514])
        {
            let values: Vec<i64> = (0..count).map(|i| i * i % 1000 - 300).collect();
            check(&values, 100);
            check(
                &values.iter().map(|&value| value as i32).collect::<Vec<_>>(),
                100,
            );
        }
    }

    #[test]
    fn a_page_without_values_is_a_header() {
        assert_eq!(encode::<i32>(&[], false), [128, 1, 4, 0, 0]);
        assert_eq!(encode::<i64>(&[&[]], true), [128, 2, 4, 0, 0]);
    }

    #[test]
    fn extremes_wrap_around() {
        let wide: Vec<i64> = [i64::MIN, i64::MAX, 0, -1, i64::MAX, i64::MIN].repeat(100);
        let narrow: Vec<i32> = [i32::MIN, i32::MAX, 0, -1, i32::MAX, i32::MIN].repeat(100);
        check(&wide, 257);
        check(&narrow, 129);
        check(&[i64::MIN], 0);
        check(&[i32::MAX], 1);
    }

    #[test]
    fn an_encoder_is_used_again() {
        let growth = Growth::new(Encode::Pooled);
        let mut encoder = DeltaBinaryPacked::new(&growth);
        let mut pages = [Vec::new(), Vec::new()];
        for page in &mut pages {
            let values: Vec<i32> = (0..1000).map(|i| i * 7 % 5).collect();
            encoder.reserve(&growth, values.len());
            encoder.put(&values);
            encoder.finish(&growth, page);
        }
        assert_eq!(pages[0], pages[1]);
        assert!(growth.heap_bytes() > 0);
        assert_eq!(encoder.heap_bytes(), 129 * 4);
    }

    #[test]
    fn an_encoder_without_values_holds_nothing() {
        for (encode, bytes) in [
            (Encode::Eager, 1 << 20),
            (Encode::Grow, 0),
            (Encode::Exact, 0),
        ] {
            let growth = Growth::new(encode);
            assert_eq!(DeltaBinaryPacked::<i32>::new(&growth).heap_bytes(), bytes);
        }
        assert!(size_of::<DeltaBinaryPacked<i64>>() <= 64);
    }

    #[test]
    fn a_short_column_holds_little() {
        let growth = Growth::new(Encode::Exact);
        let mut encoder = DeltaBinaryPacked::<i64>::new(&growth);
        for (values, slots) in [(3, 3), (4, 257), (300, 257)] {
            encoder.reserve(&growth, values);
            encoder.put(&vec![7; values]);
            assert_eq!(encoder.pending.capacity(), slots);
        }
    }

    #[test]
    fn lengths_have_a_lower_bound() {
        let growth = Growth::new(Encode::Exact);
        let mut encoder = DeltaBinaryPacked::<i32>::new(&growth);
        encoder.reserve_lengths(&growth, 129, 100);
        assert_eq!(encoder.bytes.capacity(), 5 + 4 + 128);
        let lengths: Vec<i32> = (0..129).map(|i| if i % 2 == 0 { 100 } else { 0 }).collect();
        encoder.put(&lengths);
        assert!(encoder.bytes.len() <= 5 + 4 + 128);
        assert!(encoder.max_len_of_lengths(100, 50) < encoder.max_len_with(100));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn pages_equal_the_parquet_crates(
            steps in prop::collection::vec(any::<i64>(), 1..1100), shift in 0..64u32, cut in 0..1100usize
        ) {
            let values = walk(&steps, shift);
            check(&values, cut);
            check(&values.iter().map(|&value| value as i32).collect::<Vec<_>>(), cut);
            check(&values.iter().map(|&value| (value >> 32) as i32).collect::<Vec<_>>(), cut);
        }
    }
}
