//! Bit unpacking: integers that lie side by side at some bit width, the first in the lowest bits of the first byte.
//!
//! Eight values of any width fill whole bytes, so they are unpacked eight at a time. There is one function for each width:
//! its shifts are constants, it has no branches, and what is made of the values is inlined into it.

/// Values that are unpacked at once.
pub(crate) const GROUP: usize = 8;

/// An unsigned integer that can be unpacked: `u32` or `u64`.
pub(crate) trait Unpack: Copy + Default {
    /// Bits of a value, and so the largest width.
    const BITS: u32;

    /// The lowest bits of `word`.
    fn truncate(word: u64) -> Self;

    /// Makes each group of `out` what `f` makes of the group of `packed` at its place. `width` is at most
    /// [`BITS`](Self::BITS), and a group of `packed` is `width` bytes; what follows in the longer of the two is left alone.
    fn map_groups<U>(
        packed: &[u8],
        width: u32,
        out: &mut [[U; GROUP]],
        f: impl FnMut([Self; GROUP]) -> [U; GROUP],
    );
}

macro_rules! unpack {
    ($integer:ty: $($width:literal)*) => {
        impl Unpack for $integer {
            const BITS: u32 = Self::BITS;

            #[inline(always)]
            fn truncate(word: u64) -> Self {
                word as Self
            }

            #[inline]
            fn map_groups<U>(
                packed: &[u8],
                width: u32,
                out: &mut [[U; GROUP]],
                mut f: impl FnMut([Self; GROUP]) -> [U; GROUP],
            ) {
                match width {
                    0 => out.iter_mut().for_each(|out| *out = f([0; GROUP])),
                    $($width => map_width::<Self, U, $width>(packed, out, f),)*
                    _ => debug_assert!(false, "{width} bits are too many"),
                }
            }
        }
    };
}

unpack!(u32: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32);
unpack!(u64: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32
    33 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56 57 58 59 60 61 62 63 64);

#[inline(always)]
fn map_width<T: Unpack, U, const W: usize>(
    packed: &[u8],
    out: &mut [[U; GROUP]],
    mut f: impl FnMut([T; GROUP]) -> [U; GROUP],
) {
    let (groups, _) = packed.as_chunks::<W>();
    for (out, packed) in out.iter_mut().zip(groups) {
        let value = |i| T::truncate(value::<W>(packed, i));
        // Written out, so that each place is a constant.
        *out = f([
            value(0),
            value(1),
            value(2),
            value(3),
            value(4),
            value(5),
            value(6),
            value(7),
        ]);
    }
}

/// The value `i` of a group. All but the load, a shift and a mask is known when this is compiled.
#[inline(always)]
fn value<const W: usize>(packed: &[u8; W], i: usize) -> u64 {
    let bit = i * W;
    let mask = u64::MAX >> (64 - W);
    if W < 8 {
        return small(packed) >> bit & mask;
    }
    if W <= 57 {
        // A word that starts where the value does, or is the group's last one.
        let at = (bit / 8).min(W - 8);
        return word(packed, at) >> (bit - 8 * at) & mask;
    }
    // With up to 7 bits before it a value can be longer than a word.
    let at = (bit / 8).min(W - 16);
    let words = u128::from(word(packed, at)) | u128::from(word(packed, at + 8)) << 64;
    (words >> (bit - 8 * at)) as u64 & mask
}

/// A group of less than 8 bytes as one word.
#[inline(always)]
fn small<const W: usize>(packed: &[u8; W]) -> u64 {
    let byte = |at: usize| u64::from(packed[at]);
    let half = |at: usize| u64::from(u16::from_le_bytes([packed[at], packed[at + 1]]));
    let word = |at: usize| half(at) | half(at + 2) << 16;
    match W {
        1 => byte(0),
        2 => half(0),
        3 => half(0) | byte(2) << 16,
        4 => word(0),
        5 => word(0) | byte(4) << 32,
        6 => word(0) | half(4) << 32,
        _ => word(0) | word(3) << 24,
    }
}

#[inline(always)]
fn word<const W: usize>(packed: &[u8; W], at: usize) -> u64 {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&packed[at..at + 8]);
    u64::from_le_bytes(bytes)
}

/// The group `index` of `packed`; bytes that are missing are 0.
pub(crate) fn group<T: Unpack>(packed: &[u8], width: u32, index: usize) -> [T; GROUP] {
    let len = width as usize;
    let from = packed.get(index.saturating_mul(len)..).unwrap_or_default();
    let mut bytes = [0; 64];
    for (byte, packed) in bytes.iter_mut().zip(from.iter().take(len)) {
        *byte = *packed;
    }
    let mut out = [[T::default(); GROUP]];
    T::map_groups(&bytes, width, &mut out, |group| group);
    out[0]
}

/// Makes each of `out` what `f` makes of the value of `packed` at its place after the `first` ones, which are less than a
/// group. The last group of `packed` need only be there as far as its values are asked for.
///
/// Groups of which a part is asked for come to `f` moved to their front and filled up with zeros.
#[inline]
pub(crate) fn map_values<T: Unpack, U: Copy>(
    packed: &[u8],
    width: u32,
    first: usize,
    out: &mut [U],
    mut f: impl FnMut([T; GROUP]) -> [U; GROUP],
) {
    let head = if first == 0 { 0 } else { GROUP - first };
    let (head, rest) = out.split_at_mut(head.min(out.len()));
    if !head.is_empty() {
        put_part(group(packed, width, 0), first, head, &mut f);
    }
    let skipped = usize::from(first > 0) * width as usize;
    let packed = packed.get(skipped..).unwrap_or_default();
    let (groups, tail) = rest.as_chunks_mut();
    T::map_groups(packed, width, groups, &mut f);
    if !tail.is_empty() {
        put_part(group(packed, width, groups.len()), 0, tail, &mut f);
    }
}

/// Makes each of `out`, which is not a whole group, what `f` makes of the values of `group` after the `first` ones.
#[inline]
fn put_part<T: Unpack, U: Copy>(
    group: [T; GROUP],
    first: usize,
    out: &mut [U],
    mut f: impl FnMut([T; GROUP]) -> [U; GROUP],
) {
    let mut values = [T::default(); GROUP];
    for (value, &from) in values.iter_mut().zip(&group[first..]).take(out.len()) {
        *value = from;
    }
    let mapped = f(values);
    for (out, mapped) in out.iter_mut().zip(mapped) {
        *out = mapped;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The values, bit by bit.
    fn bit_by_bit(packed: &[u8], width: u32, first: usize, count: usize) -> Vec<u64> {
        let width = width as usize;
        let bit = |at: usize| u64::from(packed[at / 8] >> (at % 8) & 1);
        (first..first + count)
            .map(|i| (0..width).fold(0, |value, k| value | bit(i * width + k) << k))
            .collect()
    }

    fn check<T: Unpack + Into<u64>>(bytes: &[u8], first: usize, cut: usize) {
        for width in 0..=T::BITS {
            let held = (bytes.len() * 8)
                .checked_div(width as usize)
                .map_or(99, |held| held.min(99));
            let count = held.saturating_sub(first + cut);
            let mut out = vec![T::default(); count];
            map_values(bytes, width, first, &mut out, |group: [T; GROUP]| group);
            let out: Vec<u64> = out.into_iter().map(Into::into).collect();
            assert_eq!(out, bit_by_bit(bytes, width, first, count), "{width} bits");
        }
    }

    proptest! {
        #[test]
        fn all_widths_are_unpacked(
            bytes in prop::collection::vec(any::<u8>(), 0..600), first in 0..GROUP, cut in 0..20usize
        ) {
            check::<u32>(&bytes, first, cut);
            check::<u64>(&bytes, first, cut);
        }
    }

    #[test]
    fn what_is_not_asked_for_comes_as_zeros() {
        let mut seen = Vec::new();
        map_values(&[0xff; 3], 3, 2, &mut [0; 3], |group: [u32; GROUP]| {
            seen.push(group);
            group
        });
        assert_eq!(seen, [[7, 7, 7, 0, 0, 0, 0, 0]]);
    }
}
