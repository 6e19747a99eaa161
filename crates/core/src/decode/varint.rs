//! Variable-length integers: seven bits a byte, least significant first.

use parquet::errors::Result;

use super::{damaged, ends_early};

/// Reads the integer at `at` of `bytes`, which is then behind it.
///
/// # Errors
/// Where `bytes` ends first, or the integer has more than 64 bits.
#[inline]
pub(super) fn read(bytes: &[u8], at: &mut usize) -> Result<u64> {
    match bytes.get(*at) {
        Some(&byte) if byte < 0x80 => {
            *at += 1;
            Ok(byte.into())
        }
        _ => read_long(bytes, at),
    }
}

fn read_long(bytes: &[u8], at: &mut usize) -> Result<u64> {
    let mut value = 0;
    for shift in (0..u64::BITS).step_by(7) {
        let byte = *bytes.get(*at).ok_or_else(ends_early)?;
        *at += 1;
        let bits = u64::from(byte & 0x7f);
        if bits << shift >> shift != bits {
            break;
        }
        value |= bits << shift;
        if byte < 0x80 {
            return Ok(value);
        }
    }
    Err(damaged("an integer in a page has more than 64 bits"))
}

/// As [`read`], for integers in the zigzag order.
#[inline]
pub(super) fn read_zigzag(bytes: &[u8], at: &mut usize) -> Result<i64> {
    let raw = read(bytes, at)?;
    Ok((raw >> 1).cast_signed() ^ (raw & 1).cast_signed().wrapping_neg())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::is_early;
    use proptest::prelude::*;

    #[test]
    fn a_long_or_short_integer_is_an_error() {
        assert!(is_early(&read(&[0xff; 9], &mut 0).unwrap_err()));
        assert!(read(&[0xff; 11], &mut 0).is_err());
        let mut most = [0xff; 10];
        most[9] = 1;
        assert_eq!(read(&most, &mut 0).unwrap(), u64::MAX);
        most[9] = 2;
        assert!(read(&most, &mut 0).is_err());
    }

    #[test]
    fn zigzag_alternates() {
        for (raw, value) in [(0, 0), (1, -1), (2, 1), (127, -64)] {
            assert_eq!(read_zigzag(&[raw], &mut 0).unwrap(), value);
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(value: u64, shift in 0..64u32) {
            let value = value >> shift;
            let mut bytes = Vec::new();
            let mut rest = value;
            while rest >= 0x80 {
                bytes.push(rest as u8 | 0x80);
                rest >>= 7;
            }
            bytes.push(rest as u8);
            let mut at = 0;
            prop_assert_eq!(read(&bytes, &mut at).unwrap(), value);
            prop_assert_eq!(at, bytes.len());
        }
    }
}
