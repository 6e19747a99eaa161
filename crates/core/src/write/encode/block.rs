//! A block of DELTA_BINARY_PACKED: the least difference between neighbours, and how far each is above it.
//!
//! A block is four miniblocks, each with a bit width of its own. All of it is arithmetic modulo 2^32 or
//! 2^64, so differences that overflow are right as well.

use super::pack::Pack;
use super::varint;

/// Miniblocks of a block.
pub(super) const MINIBLOCKS: usize = 4;

/// An integer that can be encoded: `i32` or `i64`.
pub(crate) trait Integer: Copy + Default + Ord {
    /// Differences in a block.
    const BLOCK: usize;
    /// Bits of a value, and so of a difference.
    const BITS: u32;

    /// As an `i64`, for the numbers that are written at variable length.
    fn widen(self) -> i64;

    /// Appends one block of the differences between neighbours of `values`: at least one of them, and
    /// at most [`BLOCK`](Self::BLOCK).
    fn put_block(values: &[Self], out: &mut Vec<u8>);
}

impl Integer for i32 {
    const BLOCK: usize = 32 * MINIBLOCKS;
    const BITS: u32 = Self::BITS;

    fn widen(self) -> i64 {
        self.into()
    }

    fn put_block(values: &[Self], out: &mut Vec<u8>) {
        let mut deltas = [[0; 32]; MINIBLOCKS];
        let mut least = Self::MAX;
        let flat = deltas.as_flattened_mut().iter_mut();
        for ((delta, before), after) in flat.zip(values).zip(&values[1..]) {
            let difference = after.wrapping_sub(*before);
            least = least.min(difference);
            *delta = difference.cast_unsigned();
        }
        put_deltas(&mut deltas, values.len() - 1, least.cast_unsigned(), out);
    }
}

impl Integer for i64 {
    const BLOCK: usize = 64 * MINIBLOCKS;
    const BITS: u32 = Self::BITS;

    fn widen(self) -> i64 {
        self
    }

    fn put_block(values: &[Self], out: &mut Vec<u8>) {
        let count = values.len() - 1;
        let mut deltas = [[0; 64]; MINIBLOCKS];
        let mut any = 0;
        let flat = deltas.as_flattened_mut().iter_mut();
        for ((delta, before), after) in flat.zip(values).zip(&values[1..]) {
            *delta = after.wrapping_sub(*before).cast_unsigned();
            any |= delta.wrapping_add(1 << 31);
        }
        if any >> 32 == 0 {
            // All of them are `i32`s, as those of most columns are. Processors compare and shift twice
            // as many of these at once.
            let mut narrow = [[0; 64]; MINIBLOCKS];
            for (narrow, delta) in narrow
                .as_flattened_mut()
                .iter_mut()
                .zip(deltas.as_flattened())
            {
                *narrow = *delta as u32;
            }
            let least = |least: i32, delta: &u32| least.min(delta.cast_signed());
            let least = narrow.as_flattened()[..count].iter().fold(i32::MAX, least);
            put_deltas(&mut narrow, count, least.cast_unsigned(), out);
        } else {
            let least = |least: Self, delta: &u64| least.min(delta.cast_signed());
            let least = deltas.as_flattened()[..count].iter().fold(Self::MAX, least);
            put_deltas(&mut deltas, count, least.cast_unsigned(), out);
        }
    }
}

/// A difference, and then how far it is above the least one.
trait Delta: Pack {
    /// As a signed number.
    fn widen(self) -> i64;

    /// Makes each of `deltas` how far it is above `least`. Says how many bits the largest has then.
    fn lower(deltas: &mut [Self], least: Self) -> u8;
}

macro_rules! delta {
    ($unsigned:ty) => {
        impl Delta for $unsigned {
            fn widen(self) -> i64 {
                self.cast_signed().into()
            }

            fn lower(deltas: &mut [Self], least: Self) -> u8 {
                let mut any = 0;
                for delta in deltas {
                    *delta = delta.wrapping_sub(least);
                    any |= *delta;
                }
                // The topmost bit of all of them together is that of the largest.
                (Self::BITS - any.leading_zeros()) as u8
            }
        }
    };
}

delta!(u32);
delta!(u64);

/// Appends the block whose first `count` differences are `deltas`, the smallest of them `least`.
fn put_deltas<D: Delta, const MINIBLOCK: usize>(
    deltas: &mut [[D; MINIBLOCK]; MINIBLOCKS],
    count: usize,
    least: D,
    out: &mut Vec<u8>,
) {
    // What fills up the last miniblock is zero above the least. Miniblocks of nothing else have no bits.
    deltas.as_flattened_mut()[count..].fill(least);
    let widths = deltas.each_mut().map(|deltas| D::lower(deltas, least));
    varint::put_zigzag(out, least.widen());
    out.extend_from_slice(&widths);
    let packed_at = out.len();
    let len = |width: u8| usize::from(width) * MINIBLOCK / 8;
    out.resize(
        packed_at + widths.iter().map(|&width| len(width)).sum::<usize>(),
        0,
    );
    let mut rest = &mut out[packed_at..];
    for (deltas, width) in deltas.iter().zip(widths) {
        let (packed, after) = rest.split_at_mut(len(width));
        D::pack(deltas, width.into(), packed);
        rest = after;
    }
}
