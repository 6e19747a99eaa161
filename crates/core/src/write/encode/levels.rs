//! Definition levels of a column that is optional and not nested: a bit a row, 1 where it has a value.
//!
//! They are taken from validity bitmaps, 64 rows at once and at any bit offset, and go into the same
//! hybrid of RLE and bit-packed runs as dictionary indices do. A column without nulls costs a few bytes.

use super::hybrid::MAX_GROUPS;
use super::memory::Growth;
use super::varint;

/// Rows in a group: what one byte of a bit-packed run tells.
const GROUP: usize = 8;

/// Rows alike that are not longer as an RLE run than bit-packed: it has a header and a value.
const RUN: usize = 2 * GROUP;

/// Rows alike that are not longer as an RLE run amid a bit-packed one, which needs another header then.
const RUN_AMID: usize = 3 * GROUP;

/// Room that is left for what comes before the rows at hand: the longest RLE run, or groups that are
/// alike and not worth one.
const LEFT_OVER: usize = 16;

/// Collects the definition levels of a page.
#[derive(Default)]
pub(crate) struct DefinitionLevels {
    /// Finished runs, and the bit-packed run at hand.
    bytes: Vec<u8>,
    /// Groups of the bit-packed run at hand, which ends `bytes`; 0 if there is none.
    packed_groups: usize,
    /// Rows at hand that are alike: at least a group of them, or 0.
    run_rows: usize,
    /// What a word of those rows looks like: no bits, or all.
    run_word: u64,
    /// Rows of the group at hand, the first in the lowest bit. There are none amid rows that are alike.
    partial: u64,
    /// How many rows the group at hand has: 7 at most.
    partial_rows: usize,
}

impl DefinitionLevels {
    /// Levels of no rows yet.
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Bytes that the levels have at most if those of `rows` more are put and they are finished then.
    pub(crate) fn max_len_with(&self, rows: usize) -> usize {
        // An RLE run is not longer than the groups that it replaces, and `LEFT_OVER` at most.
        let alike = self.run_rows.min(LEFT_OVER * GROUP);
        let groups = (alike + self.partial_rows + rows).div_ceil(GROUP);
        let headers = (self.packed_groups + groups).div_ceil(MAX_GROUPS);
        self.bytes.len() + groups + headers - usize::from(self.packed_groups > 0)
    }

    /// Puts `rows` rows that all have a value, or are all null.
    pub(crate) fn put_run(&mut self, growth: &Growth, valid: bool, rows: usize) {
        let word = if valid { u64::MAX } else { 0 };
        // After the rest of a group and one more the run is at hand.
        let head = rows.min(2 * GROUP);
        self.put_word(growth, word & low_bits(head), head, rows);
        if rows > head {
            self.run_rows += rows - head;
        }
    }

    /// Puts `rows` rows whose validity starts at bit `offset` of `bits`, and counts those that have a
    /// value.
    ///
    /// # Panics
    /// If `bits` is too short.
    pub(crate) fn put_validity(
        &mut self,
        growth: &Growth,
        bits: &[u8],
        offset: usize,
        rows: usize,
    ) -> usize {
        let bytes = &bits[offset / 8..(offset + rows).div_ceil(8)];
        let shift = offset % 8;
        let (words, _) = bytes.as_chunks::<8>();
        let words = &words[..rows / 64];
        let mut valid = 0;
        let mut rest = rows;
        for (i, word) in words.iter().enumerate() {
            let mut word = u64::from_le_bytes(*word) >> shift;
            if shift > 0 {
                word |= u64::from(bytes[8 * i + 8]) << (64 - shift);
            }
            valid += word.count_ones() as usize;
            self.put_word(growth, word, 64, rest);
            rest -= 64;
        }
        if rest > 0 {
            // The last rows may be spread over nine bytes, of which none is beyond the bitmap.
            let mut tail = [0; 16];
            let bytes = &bytes[words.len() * 8..];
            tail[..bytes.len()].copy_from_slice(bytes);
            let word = (u128::from_le_bytes(tail) >> shift) as u64 & low_bits(rest);
            valid += word.count_ones() as usize;
            self.put_word(growth, word, rest, rest);
        }
        valid
    }

    /// Puts the `rows` lowest bits of `word`, 64 at most; the others are 0. `rest` is how many rows the
    /// caller has at hand, these included.
    #[inline]
    fn put_word(&mut self, growth: &Growth, mut word: u64, mut rows: usize, rest: usize) {
        loop {
            if self.run_rows > 0 {
                let alike = rows.min((word ^ self.run_word).trailing_zeros() as usize);
                self.run_rows += alike;
                rows -= alike;
                if rows == 0 {
                    return;
                }
                word >>= alike;
                self.end_run(growth, rest);
            }
            if rows == 64 && self.put_groups(growth, word, rest) {
                return;
            }
            let taken = rows.min(GROUP - self.partial_rows);
            self.partial |= (word & low_bits(taken)) << self.partial_rows;
            self.partial_rows += taken;
            word >>= taken;
            rows -= taken;
            if self.partial_rows < GROUP {
                return;
            }
            if self.partial == 0 || self.partial == 0xff {
                self.run_rows = GROUP;
                self.run_word = 0u64.wrapping_sub(self.partial & 1);
            } else {
                self.pack(growth, self.partial as u8, rest);
            }
            self.partial = 0;
            self.partial_rows = 0;
        }
    }

    /// Packs eight groups at once, if none of them is all alike and they fit into the run at hand.
    #[inline]
    fn put_groups(&mut self, growth: &Growth, word: u64, rest: usize) -> bool {
        let groups = self.partial | word << self.partial_rows;
        let fits = (1..=MAX_GROUPS - 8).contains(&self.packed_groups);
        if !fits || has_zero_byte(groups) || has_zero_byte(!groups) {
            return false;
        }
        self.make_room(growth, rest);
        self.bytes.extend_from_slice(&groups.to_le_bytes());
        self.packed_groups += 8;
        if self.partial_rows > 0 {
            self.partial = word >> (64 - self.partial_rows);
        }
        true
    }

    /// Writes the rows at hand that are alike.
    fn end_run(&mut self, growth: &Growth, rest: usize) {
        let enough = if self.packed_groups > 0 {
            RUN_AMID
        } else {
            RUN
        };
        if self.run_rows >= enough {
            self.put_rle(growth, self.run_rows, rest);
        } else {
            for _ in 0..self.run_rows / GROUP {
                self.pack(growth, self.run_word as u8, rest);
            }
            self.partial_rows = self.run_rows % GROUP;
            self.partial = self.run_word & low_bits(self.partial_rows);
        }
        self.run_rows = 0;
    }

    /// Writes an RLE run of `rows` rows.
    fn put_rle(&mut self, growth: &Growth, rows: usize, rest: usize) {
        self.end_packed();
        self.make_room(growth, rest);
        varint::put(&mut self.bytes, (rows as u64) << 1);
        self.bytes.push(self.run_word as u8 & 1);
    }

    /// Writes a group to the bit-packed run at hand.
    #[inline]
    fn pack(&mut self, growth: &Growth, group: u8, rest: usize) {
        if self.packed_groups == MAX_GROUPS {
            self.end_packed();
        }
        self.make_room(growth, rest);
        if self.packed_groups == 0 {
            self.bytes.push(0);
        }
        self.bytes.push(group);
        self.packed_groups += 1;
    }

    /// Writes the header of the bit-packed run at hand, which is known now.
    fn end_packed(&mut self) {
        if self.packed_groups > 0 {
            let header = self.bytes.len() - self.packed_groups - 1;
            self.bytes[header] = (self.packed_groups as u8) << 1 | 1;
            self.packed_groups = 0;
        }
    }

    /// Makes room for all rows at hand, if there is not enough for a few of them: only once something
    /// is written, so levels that turn out to be one run hold no more than that takes.
    #[inline]
    fn make_room(&mut self, growth: &Growth, rest: usize) {
        if self.bytes.capacity() - self.bytes.len() < LEFT_OVER {
            let groups = rest.div_ceil(GROUP);
            let headers = groups.div_ceil(MAX_GROUPS);
            growth.reserve(&mut self.bytes, LEFT_OVER + groups + headers);
        }
    }

    /// Appends the levels to `out`, without their length, and starts the next page.
    pub(crate) fn finish(&mut self, growth: &Growth, out: &mut Vec<u8>) {
        growth.reserve(out, self.max_len_with(0));
        if self.packed_groups == 0 && self.run_rows == 0 {
            // A page of a few rows, or what is left after a run: alike or not.
            self.run_word = 0u64.wrapping_sub(self.partial & 1);
            if self.partial == self.run_word & low_bits(self.partial_rows) {
                self.run_rows = self.partial_rows;
                self.partial_rows = 0;
            }
        }
        // Nothing has to go on after a run that reaches the end.
        if self.run_rows >= RUN || self.run_rows > 0 && self.packed_groups == 0 {
            self.put_rle(growth, self.run_rows, 0);
        } else {
            if self.run_rows > 0 {
                self.end_run(growth, 0);
            }
            if self.partial_rows > 0 {
                self.pack(growth, self.partial as u8, 0);
            }
        }
        self.end_packed();
        out.extend_from_slice(&self.bytes);
        growth.page_done(&mut self.bytes);
        *self = Self {
            bytes: std::mem::take(&mut self.bytes),
            ..Self::default()
        };
    }

    /// Bytes of heap that are held.
    pub(crate) fn heap_bytes(&self) -> usize {
        self.bytes.capacity()
    }
}

/// A word of which the `count` lowest bits are set: 63 at most, or all for more.
#[inline]
fn low_bits(count: usize) -> u64 {
    1u64.checked_shl(count as u32)
        .map_or(u64::MAX, |bit| bit - 1)
}

/// Whether one of the bytes of `word` is 0.
#[inline]
fn has_zero_byte(word: u64) -> bool {
    const LOWEST: u64 = u64::from_le_bytes([1; 8]);
    word.wrapping_sub(LOWEST) & !word & (LOWEST << 7) != 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::strategy::Encode;
    use crate::write::encode::reference::decode_runs;
    use proptest::prelude::*;

    /// A piece of a column: rows of one kind, or a bitmap and the bit that it starts at.
    #[derive(Debug, Clone)]
    enum Piece {
        Run(bool, usize),
        Bitmap(Vec<u8>, usize),
    }

    fn piece() -> impl Strategy<Value = Piece> {
        let byte = prop_oneof![Just(0u8), Just(0xff), any::<u8>()];
        let bytes = prop::collection::vec((byte, 1..12usize), 0..30)
            .prop_map(|runs| runs.iter().flat_map(|&(byte, n)| vec![byte; n]).collect());
        prop_oneof![
            (any::<bool>(), 0..200usize).prop_map(|(valid, rows)| Piece::Run(valid, rows)),
            (bytes, any::<prop::sample::Index>()).prop_map(|(bytes, at): (Vec<u8>, _)| {
                let offset = at.index(bytes.len() * 8 + 1);
                Piece::Bitmap(bytes, offset)
            }),
        ]
    }

    /// Puts `pieces`, with `cut` rows missing at the end of bitmaps, and compares what is decoded.
    fn check(pieces: &[Piece], cut: usize) -> Vec<u8> {
        let growth = Growth::new(Encode::Exact);
        let mut levels = DefinitionLevels::new();
        let mut expected = Vec::new();
        for piece in pieces {
            match piece {
                Piece::Run(valid, rows) => {
                    let bound = levels.max_len_with(*rows);
                    levels.put_run(&growth, *valid, *rows);
                    assert!(levels.max_len_with(0) <= bound);
                    expected.extend(vec![u64::from(*valid); *rows]);
                }
                Piece::Bitmap(bits, offset) => {
                    let rows = (bits.len() * 8 - offset).saturating_sub(cut);
                    let bound = levels.max_len_with(rows);
                    let valid = levels.put_validity(&growth, bits, *offset, rows);
                    assert!(levels.max_len_with(0) <= bound);
                    let bit = |at: usize| u64::from(bits[at / 8] >> (at % 8) & 1);
                    let bits: Vec<u64> = (*offset..*offset + rows).map(bit).collect();
                    assert_eq!(valid as u64, bits.iter().sum::<u64>());
                    expected.extend(bits);
                }
            }
        }
        let bound = levels.max_len_with(0);
        let mut out = Vec::new();
        levels.finish(&growth, &mut out);
        assert!(out.len() <= bound, "{} > {bound}", out.len());
        assert!(out.len() <= DefinitionLevels::new().max_len_with(expected.len()));
        assert_eq!(decode_runs(&out, 1, expected.len()), expected);
        out
    }

    #[test]
    fn rows_alike_are_one_run() {
        for rows in [8, 9, 1000, 1_000_003] {
            let mut header = Vec::new();
            varint::put(&mut header, rows << 1);
            for valid in [false, true] {
                let run = check(&[Piece::Run(valid, rows as usize)], 0);
                assert_eq!(run, [&header[..], &[u8::from(valid)]].concat(), "{rows}");
            }
        }
    }

    #[test]
    fn a_column_without_nulls_holds_next_to_nothing() {
        let growth = Growth::new(Encode::Exact);
        let mut levels = DefinitionLevels::new();
        for _ in 0..1000 {
            levels.put_run(&growth, true, 1000);
            assert_eq!(levels.put_validity(&growth, &[0xff; 126], 3, 1000), 1000);
        }
        assert_eq!(levels.heap_bytes(), 0);
    }

    #[test]
    fn levels_are_used_again() {
        let growth = Growth::new(Encode::Grow);
        let mut levels = DefinitionLevels::new();
        let mut pages = [Vec::new(), Vec::new()];
        for page in &mut pages {
            levels.put_validity(&growth, &[0x5a; 100], 0, 797);
            levels.finish(&growth, page);
        }
        assert_eq!(pages[0], pages[1]);
        assert_eq!(levels.max_len_with(0), 0);
    }

    #[test]
    #[should_panic = "range end index"]
    fn a_short_bitmap_is_refused() {
        DefinitionLevels::new().put_validity(&Growth::new(Encode::Grow), &[0; 2], 3, 14);
    }

    proptest! {
        #[test]
        fn what_is_put_can_be_decoded(pieces in prop::collection::vec(piece(), 0..20), cut in 0..20usize) {
            check(&pieces, cut);
        }
    }
}
