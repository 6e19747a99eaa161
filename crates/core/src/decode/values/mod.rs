//! Values of a page that are not null, by encoding.
//!
//! Numbers are read as the bits that they have: `i32`, `f32` and dates as `u32`, `i64`, `f64` and timestamps as `u64`. Values
//! of FIXED_LEN_BYTE_ARRAY are rows of bytes, one after the other in a `Vec<u8>`.

pub(crate) mod bits;
pub(crate) mod delta;
pub(crate) mod dictionary;
pub(crate) mod fixed;
pub(crate) mod plain;
pub(crate) mod split;
pub(crate) mod spread;

use parquet::errors::Result;

use super::unpack::Unpack;

/// Values that room is made for at once: what is set to zero first is in cache when the values come.
const CHUNK: usize = 256;

/// A position in the values of a page.
pub(crate) trait Values<T> {
    /// Appends the next `n` values to `out`.
    ///
    /// # Errors
    /// Where there are fewer, or the page is damaged. What was appended until then means nothing.
    fn read(&mut self, n: usize, out: &mut Vec<T>) -> Result<()>;

    /// Passes over the next `n` values.
    ///
    /// # Errors
    /// Where there are fewer, or the page is damaged.
    fn skip(&mut self, n: usize) -> Result<()>;
}

/// The bits of a number: `u32` or `u64`.
pub(crate) trait Native: Unpack + 'static {
    /// The numbers that whole values in `bytes` are, little-endian.
    fn from_plain(bytes: &[u8]) -> impl ExactSizeIterator<Item = Self>;

    /// The bits of `number`, if the signed type has it.
    fn from_signed(number: i64) -> Option<Self>;

    /// The sum modulo 2^32 or 2^64.
    fn wrapping_add(self, other: Self) -> Self;

    /// The number whose bytes `k` are the `i`th of stream `k`; there are as many streams as it has bytes.
    fn from_streams(streams: &[&[u8]], out: &mut [Self]);
}

macro_rules! native {
    ($unsigned:ty, $signed:ty, $($byte:ident: $stream:literal),*) => {
        impl Native for $unsigned {
            fn from_plain(bytes: &[u8]) -> impl ExactSizeIterator<Item = Self> {
                let (values, _) = bytes.as_chunks();
                values.iter().map(|value| Self::from_le_bytes(*value))
            }

            fn from_signed(number: i64) -> Option<Self> {
                <$signed>::try_from(number).ok().map(<$signed>::cast_unsigned)
            }

            #[inline(always)]
            fn wrapping_add(self, other: Self) -> Self {
                self.wrapping_add(other)
            }

            fn from_streams(streams: &[&[u8]], out: &mut [Self]) {
                let &[$($byte),*] = streams else {
                    return;
                };
                // Of the same length each, so that one check is enough for all of them.
                let len = out.len();
                let ($(Some($byte),)*) = ($($byte.get(..len),)*) else {
                    return;
                };
                for (i, out) in out.iter_mut().enumerate() {
                    *out = $(Self::from($byte[i]) << (8 * $stream))|*;
                }
            }
        }
    };
}

/// Appends `n` values that are still to be set, and returns them.
#[inline]
fn append<T: Copy + Default>(out: &mut Vec<T>, n: usize) -> &mut [T] {
    let start = out.len();
    out.resize(start + n, T::default());
    &mut out[start..]
}

native!(u32, i32, a: 0, b: 1, c: 2, d: 3);
native!(u64, i64, a: 0, b: 1, c: 2, d: 3, e: 4, f: 5, g: 6, h: 7);
