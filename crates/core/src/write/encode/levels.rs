//! Definition levels of a column that is optional and not nested: a bit a row, 1 where it has a value.
//!
//! They are taken from validity bitmaps, 64 rows at once and at any bit offset, and go into the same
//! hybrid of RLE and bit-packed runs as dictionary indices do. A column without nulls costs a few bytes.

use super::hybrid::MAX_GROUPS;
use super::memory::Growth;
use super::varint;

/// Rows in a group: what one byte of a bit-packed run tells.
const GROUP: usize = 8;

/// Groups alike from which an RLE run is not longer than they are, counting its header and value and
/// the header of the bit-packed run that goes on after it.
const SHORTEST_RUN: usize = 4;

/// Collects the definition levels of a page.
#[derive(Default)]
pub(crate) struct DefinitionLevels {
    /// Finished runs, and the bit-packed run at hand.
    bytes: Vec<u8>,
    /// Where the header of the bit-packed run at hand is.
    packed_at: usize,
    /// Groups of the bit-packed run at hand; 0 if there is none.
    packed_groups: usize,
    /// What the groups at hand that are all alike look like: 0x00 or 0xff.
    alike: u8,
    /// Those groups, which come after what is in `bytes`.
    alike_groups: usize,
    /// Rows of the group at hand, the first in the lowest bit.
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
        // However long it is, an RLE run takes no more than that.
        let alike = self.alike_groups.min(varint::max_len(u64::BITS) + 1);
        let groups = alike + (self.partial_rows + rows).div_ceil(GROUP);
        let headers = (self.packed_groups + groups).div_ceil(MAX_GROUPS);
        self.bytes.len() + groups + headers - usize::from(self.packed_groups > 0)
    }

    /// Puts `rows` rows that all have a value, or are all null.
    pub(crate) fn put_run(&mut self, growth: &Growth, valid: bool, rows: usize) {
        let mut rest = rows;
        let word = if valid { u64::MAX } else { 0 };
        if self.partial_rows > 0 {
            let head = rest.min(GROUP - self.partial_rows);
            self.put_word(growth, word, head, rest);
            rest -= head;
        }
        if rest >= GROUP {
            self.put_alike(growth, word as u8, rest / GROUP, rest);
            rest %= GROUP;
        }
        self.put_word(growth, word, rest, rest);
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
        let mut valid = 0;
        let mut rest = rows;
        let mut at = 0;
        while rest >= 64 {
            let mut word = word_at(bytes, at) >> shift;
            if shift > 0 {
                word |= u64::from(bytes[at + 8]) << (64 - shift);
            }
            valid += word.count_ones() as usize;
            self.put_word(growth, word, 64, rest);
            rest -= 64;
            at += 8;
        }
        if rest > 0 {
            // The last rows may be spread over nine bytes, of which none is beyond the bitmap.
            let mut tail = [0; 16];
            tail[..bytes.len() - at].copy_from_slice(&bytes[at..]);
            let word = (u128::from_le_bytes(tail) >> shift) as u64 & ((1 << rest) - 1);
            valid += word.count_ones() as usize;
            self.put_word(growth, word, rest, rest);
        }
        valid
    }

    /// Puts the `rows` lowest bits of `word`, 64 at most. `rest` is how many rows the caller has at
    /// hand, these included.
    #[inline]
    fn put_word(&mut self, growth: &Growth, word: u64, rows: usize, rest: usize) {
        let held = self.partial_rows;
        let joined = u128::from(self.partial) | u128::from(word) << held;
        let total = held + rows;
        let groups = total / GROUP;
        if groups == 8 && (joined as u64 == 0 || joined as u64 == u64::MAX) {
            self.put_alike(growth, joined as u8, 8, rest);
        } else {
            for byte in &joined.to_le_bytes()[..groups] {
                match byte {
                    0 | 0xff => self.put_alike(growth, *byte, 1, rest),
                    _ => {
                        self.put_alike_groups(growth, rest);
                        self.pack(growth, *byte, rest);
                    }
                }
            }
        }
        self.partial_rows = total % GROUP;
        self.partial = (joined >> (groups * GROUP)) as u64 & ((1 << self.partial_rows) - 1);
    }

    /// Puts `groups` groups that look like `alike`: 0x00 or 0xff.
    #[inline]
    fn put_alike(&mut self, growth: &Growth, alike: u8, groups: usize, rest: usize) {
        if self.alike != alike {
            self.put_alike_groups(growth, rest);
            self.alike = alike;
        }
        self.alike_groups += groups;
    }

    /// Writes the groups at hand that are alike.
    #[inline]
    fn put_alike_groups(&mut self, growth: &Growth, rest: usize) {
        if self.alike_groups >= SHORTEST_RUN {
            self.put_rle(growth, self.alike_groups * GROUP, rest);
        } else {
            for _ in 0..self.alike_groups {
                self.pack(growth, self.alike, rest);
            }
        }
        self.alike_groups = 0;
    }

    /// Writes an RLE run of `rows` rows.
    fn put_rle(&mut self, growth: &Growth, rows: usize, rest: usize) {
        self.make_room(growth, rest);
        self.packed_groups = 0;
        varint::put(&mut self.bytes, (rows as u64) << 1);
        self.bytes.push(self.alike & 1);
    }

    /// Writes a group to the bit-packed run at hand.
    #[inline]
    fn pack(&mut self, growth: &Growth, byte: u8, rest: usize) {
        if self.packed_groups.is_multiple_of(MAX_GROUPS) {
            self.make_room(growth, rest);
            self.packed_at = self.bytes.len();
            self.packed_groups = 0;
            self.bytes.push(0);
        }
        self.packed_groups += 1;
        self.bytes[self.packed_at] = (self.packed_groups as u8) << 1 | 1;
        self.bytes.push(byte);
    }

    /// Makes room before a run for it and for all rows at hand, if there is not enough for the run alone:
    /// so levels that turn out to be one run hold no more than that takes.
    fn make_room(&mut self, growth: &Growth, rest: usize) {
        if self.bytes.capacity() - self.bytes.len() <= MAX_GROUPS {
            let groups = SHORTEST_RUN + rest.div_ceil(GROUP);
            growth.reserve(&mut self.bytes, groups + groups.div_ceil(MAX_GROUPS) + 1);
        }
    }

    /// Appends the levels to `out`, without their length, and starts the next page.
    pub(crate) fn finish(&mut self, growth: &Growth, out: &mut Vec<u8>) {
        growth.reserve(out, self.max_len_with(0));
        let rows = self.partial_rows;
        let like_before = (u64::from(self.alike) ^ self.partial) & ((1 << rows) - 1) == 0;
        let unpacked = rows > 0 || self.packed_groups == 0;
        if self.alike_groups > 0 && like_before && unpacked {
            // The run at hand reaches the end: no group has to be filled up, no run has to go on.
            self.put_rle(growth, self.alike_groups * GROUP + rows, 0);
        } else {
            self.put_alike_groups(growth, 0);
            if rows > 0 {
                self.pack(growth, self.partial as u8, 0);
            }
        }
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

/// The eight bytes of `bytes` from `at` on.
#[inline]
fn word_at(bytes: &[u8], at: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(word)
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
