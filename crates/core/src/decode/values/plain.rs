//! PLAIN numbers: little-endian, one after the other, at any address.

use std::marker::PhantomData;

use bytes::Bytes;
use parquet::errors::Result;

use super::{Native, Values};
use crate::decode::ends_early;

/// A position in PLAIN numbers.
#[derive(Debug)]
pub(crate) struct Plain<T> {
    bytes: Bytes,
    of: PhantomData<T>,
}

impl<T: Native> Plain<T> {
    /// The numbers that `bytes` are.
    pub(crate) fn new(bytes: Bytes) -> Self {
        Self {
            bytes,
            of: PhantomData,
        }
    }

    /// Whether the next number is where an array can have it.
    pub(crate) fn is_aligned(&self) -> bool {
        self.bytes.as_ptr().cast::<T>().is_aligned()
    }

    /// The bytes of the next `n` numbers.
    ///
    /// # Errors
    /// Where there are fewer.
    pub(crate) fn take(&mut self, n: usize) -> Result<Bytes> {
        take(&mut self.bytes, n, size_of::<T>())
    }
}

impl<T: Native> Values<T> for Plain<T> {
    fn read(&mut self, n: usize, out: &mut Vec<T>) -> Result<()> {
        out.extend(T::from_plain(&self.take(n)?));
        Ok(())
    }

    fn skip(&mut self, n: usize) -> Result<()> {
        self.take(n).map(drop)
    }
}

/// Takes the next `n` values of `width` bytes off the front of `bytes`.
pub(super) fn take(bytes: &mut Bytes, n: usize, width: usize) -> Result<Bytes> {
    match n.checked_mul(width) {
        Some(len) if len <= bytes.len() => Ok(bytes.split_to(len)),
        _ => Err(ends_early()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_little_endian_at_any_address() {
        let bytes = Bytes::from_static(&[9, 1, 0, 0, 0, 2, 0, 0, 0x80, 3, 0, 0, 0, 4]);
        let mut values = Plain::<u32>::new(bytes.slice(1..));
        let mut out = vec![7];
        values.read(2, &mut out).unwrap();
        assert_eq!(out, [7, 1, 0x8000_0002]);
        assert!(values.skip(2).is_err());
        values.skip(1).unwrap();
        assert!(values.read(1, &mut out).is_err());
        assert!(values.read(usize::MAX / 2, &mut out).is_err());
        let mut wide = Vec::new();
        Plain::<u64>::new(bytes.slice(1..))
            .read(1, &mut wide)
            .unwrap();
        assert_eq!(wide, [0x8000_0002_0000_0001]);
    }
}
