//! Bit packing: the lowest bits of integers side by side, the first in the lowest bits of the first byte.
//!
//! Eight values of any width fill whole bytes, so they are packed eight at a time, in 64-bit words.
//! There is one function for each width: its shifts are constants, and it has no branches.

/// Values that are packed at once.
pub(super) const GROUP: usize = 8;

/// An unsigned integer that can be packed.
pub(crate) trait Pack: Copy {
    /// Packs whole groups of `values` at `width` bits each into `out`, which is as long as that takes:
    /// `width` bytes a group. No value has more than `width` bits, and `width` is 64 at most.
    fn pack(values: &[Self], width: u32, out: &mut [u8]);
}

/// Packs `values` at `W` bits each.
#[inline]
fn pack_width<T: Copy + Into<u64>, const W: usize>(values: &[T], out: &mut [u8]) {
    let (groups, _) = values.as_chunks::<GROUP>();
    let (packed, _) = out.as_chunks_mut::<W>();
    for (group, packed) in groups.iter().zip(packed) {
        let mut words = [0u64; GROUP];
        for (i, &value) in group.iter().enumerate() {
            let value: u64 = value.into();
            let (word, bit) = (i * W / 64, i * W % 64);
            words[word] |= value << bit;
            if bit + W > 64 {
                words[word + 1] |= value >> (64 - bit);
            }
        }
        let (whole, rest) = packed.as_chunks_mut::<8>();
        for (bytes, word) in whole.iter_mut().zip(words) {
            *bytes = word.to_le_bytes();
        }
        if let Some(word) = words.get(W / 8) {
            rest.copy_from_slice(&word.to_le_bytes()[..W % 8]);
        }
    }
}

macro_rules! pack {
    ($integer:ty: $($width:literal)*) => {
        impl Pack for $integer {
            fn pack(values: &[Self], width: u32, out: &mut [u8]) {
                match width {
                    0 => {}
                    $($width => pack_width::<Self, $width>(values, out),)*
                    _ => pack_wide(values, width, out),
                }
            }
        }
    };
}

pack!(u8: 1 2 3 4 5 6 7 8);
pack!(u16: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16);
pack!(u32: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32);
pack!(u64: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32
    33 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56 57 58 59 60 61 62 63 64);

/// Packs `values` at more bits than their type has.
#[cold]
fn pack_wide<T: Copy + Into<u64>>(values: &[T], width: u32, out: &mut [u8]) {
    let (groups, _) = values.as_chunks::<GROUP>();
    for (group, packed) in groups.iter().zip(out.chunks_exact_mut(width as usize)) {
        u64::pack(&group.map(Into::into), width, packed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::write::encode::reference::unpack;
    use proptest::prelude::*;

    fn check<T: Pack + Into<u64>>(values: &[T], width: u32) {
        let mut out = vec![0xaa; values.len() / GROUP * width as usize];
        T::pack(values, width, &mut out);
        let expected: Vec<u64> = values.iter().map(|&value| value.into()).collect();
        assert_eq!(
            unpack(&out, width, values.len()),
            expected,
            "at {width} bits"
        );
    }

    proptest! {
        #[test]
        fn what_is_packed_can_be_unpacked(seed in prop::collection::vec(any::<u64>(), 0..20)) {
            let values: Vec<u64> = seed.iter().cycle().take(seed.len() / GROUP * GROUP).copied().collect();
            for width in 1..=64 {
                let values: Vec<u64> = values.iter().map(|value| value >> (64 - width)).collect();
                check(&values, width);
                if width <= 32 {
                    check(&values.iter().map(|&value| value as u32).collect::<Vec<_>>(), width);
                }
                if width <= 16 {
                    check(&values.iter().map(|&value| value as u16).collect::<Vec<_>>(), width);
                }
                if width <= 8 {
                    check(&values.iter().map(|&value| value as u8).collect::<Vec<_>>(), width);
                }
            }
        }
    }

    #[test]
    fn a_width_may_exceed_the_type() {
        check(&[0u8, 1, 2, 3, 252, 253, 254, 255], 11);
        check(&[u32::MAX; 16], 33);
    }
}
