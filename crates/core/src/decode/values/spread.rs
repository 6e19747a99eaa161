//! Values that were decoded one after the other are moved apart to their rows, where some rows are null.
//!
//! That is done from the back, in place: no value's row is before it.

use arrow_buffer::BooleanBufferBuilder;

use crate::decode::validity::Validity;

/// Rows that are looked at at once.
const WORD: usize = u64::BITS as usize;

/// Moves the values of `out` after the first `start` to their rows, the last `rows` of `validity`. There is one for each row
/// that has a value; null rows get `T::default()`.
pub(crate) fn spread<T: Copy + Default>(
    out: &mut Vec<T>,
    start: usize,
    validity: &Validity,
    rows: usize,
) {
    let dense = out.len() - start;
    out.resize(start + rows, T::default());
    if let Some(rows) = Rows::last(validity, rows) {
        spread_slots(&mut out[start..], dense, rows);
    }
}

/// As [`spread`], for values of `width` bytes each; `start` counts bytes. Null rows are zeros.
pub(crate) fn spread_rows(
    out: &mut Vec<u8>,
    start: usize,
    width: usize,
    validity: &Validity,
    rows: usize,
) {
    let bytes = out.len() - start;
    out.resize(start + rows * width, 0);
    let Some(rows) = Rows::last(validity, rows) else {
        return;
    };
    let slots = &mut out[start..];
    match width {
        0 => {}
        2 => spread_slots::<[u8; 2]>(slots.as_chunks_mut().0, bytes / 2, rows),
        12 => spread_slots::<[u8; 12]>(slots.as_chunks_mut().0, bytes / 12, rows),
        16 => spread_slots::<[u8; 16]>(slots.as_chunks_mut().0, bytes / 16, rows),
        _ => spread_any(slots, bytes / width, width, rows),
    }
}

/// As [`spread`], for booleans; null rows are `false`.
pub(crate) fn spread_bits(
    out: &mut BooleanBufferBuilder,
    start: usize,
    validity: &Validity,
    rows: usize,
) {
    let dense = out.len() - start;
    out.resize(start + rows);
    let Some(rows) = Rows::last(validity, rows) else {
        return;
    };
    let bits = out.as_slice_mut();
    rows.for_words(
        dense,
        |row,
         dense,
         valid,
         Word {
             bits: mut to,
             count,
         }| {
            let mut from = word(bits, start + dense, valid);
            let mut spread = 0;
            while to != 0 {
                let lowest = to & to.wrapping_neg();
                spread |= lowest * (from & 1);
                from >>= 1;
                to ^= lowest;
            }
            put_word(bits, start + row, count, spread);
        },
    );
}

/// A part of a validity bitmap.
#[derive(Clone, Copy)]
struct Rows<'a> {
    bits: &'a [u8],
    first: usize,
    len: usize,
}

/// The validity of up to 64 rows; bits beyond them are 0.
#[derive(Clone, Copy)]
struct Word {
    bits: u64,
    count: usize,
}

impl<'a> Rows<'a> {
    /// The last `len` rows of `validity`, if any row of it is null.
    fn last(validity: &'a Validity, len: usize) -> Option<Self> {
        Some(Self {
            bits: validity.bits()?,
            first: validity.len().checked_sub(len)?,
            len,
        })
    }

    /// Calls `f` for the rows, up to 64 at once and from the back: with the first of them, the first of their values, how many
    /// values they have, and their validity. `dense` values there are in all. Ends where all rows that are left have one, since
    /// these are where they should be.
    #[inline(always)]
    fn for_words(self, mut dense: usize, mut f: impl FnMut(usize, usize, usize, Word)) {
        let mut row = self.len;
        while dense < row {
            let count = (row - 1) % WORD + 1;
            row -= count;
            let bits = word(self.bits, self.first + row, count);
            let valid = bits.count_ones() as usize;
            let Some(before) = dense.checked_sub(valid) else {
                return;
            };
            dense = before;
            f(row, dense, valid, Word { bits, count });
        }
    }
}

/// The `count` bits of `bits` from `at` on, 64 at most; those that are not there are 0.
#[inline]
fn word(bits: &[u8], at: usize, count: usize) -> u64 {
    let from = bits.get(at / 8..).unwrap_or_default();
    let mask = u64::MAX.unbounded_shr((WORD - count) as u32);
    if at.is_multiple_of(8)
        && let Some(word) = from.first_chunk()
    {
        return u64::from_le_bytes(*word) & mask;
    }
    let mut bytes = [0; 16];
    for (byte, &from) in bytes.iter_mut().zip(from).take(9) {
        *byte = from;
    }
    (u128::from_le_bytes(bytes) >> (at % 8)) as u64 & mask
}

/// Makes the `count` bits of `bits` from `at` on, 64 at most, those of `word`.
fn put_word(bits: &mut [u8], at: usize, count: usize, word: u64) {
    let shift = at % 8;
    let mask = u128::from(u64::MAX.unbounded_shr((WORD - count) as u32)) << shift;
    let word = u128::from(word) << shift;
    let to = bits.get_mut(at / 8..).unwrap_or_default();
    let bytes = word.to_le_bytes().into_iter().zip(mask.to_le_bytes());
    for (to, (byte, mask)) in to.iter_mut().zip(bytes).take(9) {
        *to = *to & !mask | byte & mask;
    }
}

/// Moves the first `dense` of `slots` to their rows. A null row gets `T::default()`.
#[inline]
fn spread_slots<T: Copy + Default>(slots: &mut [T], dense: usize, rows: Rows<'_>) {
    let null = T::default();
    rows.for_words(dense, |row, dense, valid, word| {
        if valid == word.count {
            slots.copy_within(dense..dense + valid, row);
            return;
        }
        let mut values = [T::default(); WORD];
        values[..valid].copy_from_slice(&slots[dense..dense + valid]);
        let slots = &mut slots[row..row + word.count];
        if valid == 0 {
            slots.fill(null);
            return;
        }
        let (mut bits, mut at) = (word.bits, 0);
        for slot in slots {
            let value = values[at % WORD];
            let is_valid = bits & 1;
            *slot = if is_valid == 1 { value } else { null };
            at += is_valid as usize;
            bits >>= 1;
        }
    });
}

/// As [`spread_slots`], for slots of any `width`.
fn spread_any(slots: &mut [u8], dense: usize, width: usize, rows: Rows<'_>) {
    rows.for_words(dense, |row, dense, valid, word| {
        let mut at = dense + valid;
        for i in (0..word.count).rev() {
            let slot = (row + i) * width;
            if word.bits >> i & 1 == 1 {
                at -= 1;
                slots.copy_within(at * width..(at + 1) * width, slot);
            } else {
                slots[slot..slot + width].fill(0);
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The rows before those that are spread, and those.
    fn validity(before: usize, rows: &[bool]) -> Validity {
        let mut validity = Validity::new(0);
        validity.append_valid(before);
        for &row in rows {
            if row {
                validity.append_valid(1);
            } else {
                validity.append_null(1);
            }
        }
        validity
    }

    fn check(before: usize, rows: &[bool]) {
        let validity = validity(before, rows);
        let count = rows.iter().filter(|&&row| row).count();
        let mut next = 0;
        let numbers: Vec<u32> = rows
            .iter()
            .map(|&row| {
                next += u32::from(row);
                next * u32::from(row)
            })
            .collect();

        let mut out = vec![99; before];
        out.extend(1..=count as u32);
        spread(&mut out, before, &validity, rows.len());
        assert_eq!(out[..before], vec![99; before]);
        assert_eq!(out[before..], numbers);

        for width in [0, 1, 2, 3, 12, 16, 33] {
            let row = |number: &u32| vec![*number as u8; width];
            let expected: Vec<u8> = [99]
                .into_iter()
                .chain(numbers.iter().flat_map(row))
                .collect();
            let mut out = vec![99];
            out.extend((1..=count as u32).flat_map(|number| row(&number)));
            spread_rows(&mut out, 1, width, &validity, rows.len());
            assert_eq!(out, expected);
        }

        let bit = |number: u32| number % 3 == 1;
        let mut bits = BooleanBufferBuilder::new(0);
        bits.append_n(before, true);
        (1..=count as u32).for_each(|number| bits.append(bit(number)));
        spread_bits(&mut bits, before, &validity, rows.len());
        let bits: Vec<bool> = bits.finish().iter().collect();
        assert_eq!(bits[..before], vec![true; before]);
        assert_eq!(
            bits[before..],
            numbers
                .iter()
                .map(|&number| bit(number))
                .collect::<Vec<_>>()
        );
    }

    #[test]
    fn fewer_values_than_rows_have_do_not_panic() {
        let validity = validity(0, &[true, false, true, true]);
        let mut out = vec![1u8];
        spread(&mut out, 0, &validity, 4);
        assert_eq!(out.len(), 4);
        spread(&mut out, 4, &validity, 400);
        assert_eq!(out.len(), 404);
    }

    proptest! {
        #[test]
        fn each_value_is_in_its_row(
            pieces in prop::collection::vec((any::<u64>(), 0..150usize), 0..6), before in 0..70usize
        ) {
            let row = |&(seed, len): &(u64, usize)| (0..len).map(move |at| match seed % 4 {
                0 => false,
                1 => true,
                _ => seed >> (at % 64) & 1 == 1,
            });
            let rows: Vec<bool> = pieces.iter().flat_map(row).collect();
            check(before, &rows);
        }
    }
}
