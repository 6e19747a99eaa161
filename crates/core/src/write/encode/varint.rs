//! Variable-length integers: seven bits a byte, least significant first.

/// Bytes that the longest variable-length integer of `bits` bits takes.
pub(super) const fn max_len(bits: u32) -> usize {
    bits.div_ceil(7) as usize
}

/// Appends `value`.
pub(super) fn put(out: &mut Vec<u8>, mut value: u64) {
    while value > 0x7f {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends `value` in the zigzag order, in which small magnitudes are short whatever their sign.
pub(super) fn put_zigzag(out: &mut Vec<u8>, value: i64) {
    put(out, ((value << 1) ^ (value >> 63)) as u64);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_bounded() {
        for (value, bits) in [
            (0, 1),
            (127, 7),
            (128, 8),
            (u32::MAX as u64, 32),
            (u64::MAX, 64),
        ] {
            let mut out = Vec::new();
            put(&mut out, value);
            assert_eq!(out.len(), max_len(bits), "{value}");
        }
    }

    #[test]
    fn zigzag_alternates() {
        for (value, expected) in [(0, 0), (-1, 1), (1, 2), (-64, 127)] {
            let mut out = Vec::new();
            put_zigzag(&mut out, value);
            assert_eq!(out, [expected]);
        }
    }
}
