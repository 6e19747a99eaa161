//! PLAIN byte arrays: each is its length in four bytes, little-endian, and its bytes.

use arrow_array::OffsetSizeTrait;
use bytes::Bytes;
use parquet::errors::Result;

use super::{ByteArrays, ByteValues, copy, grow};
use crate::decode::ends_early;

/// Bytes of a length.
pub(super) const LEN: usize = size_of::<u32>();

/// A position in PLAIN byte arrays.
#[derive(Debug)]
pub(crate) struct BytesPlain {
    bytes: Bytes,
    at: usize,
}

impl BytesPlain {
    /// The values that `bytes` are.
    pub(crate) fn new(bytes: Bytes) -> Self {
        Self { bytes, at: 0 }
    }
}

/// Passes over the value at `at`. Returns its length.
#[inline(always)]
pub(super) fn next(bytes: &[u8], at: &mut usize) -> Result<usize> {
    let rest = bytes.get(*at..).unwrap_or_default();
    let (len, rest) = rest.split_first_chunk::<LEN>().ok_or_else(ends_early)?;
    let len = u32::from_le_bytes(*len) as usize;
    if len > rest.len() {
        return Err(ends_early());
    }
    *at += LEN + len;
    Ok(len)
}

impl<O: OffsetSizeTrait> ByteValues<O> for BytesPlain {
    fn read(&mut self, n: usize, out: &mut ByteArrays<O>) -> Result<()> {
        let start = out.len();
        let base = out.values.len();
        if n > (self.bytes.len() - self.at) / LEN {
            return Err(ends_early());
        }
        out.offsets.reserve(n);
        // First where values end, so that room is made once; an offset that overflows is found out then.
        let mut from = self.at;
        let mut end = base;
        for _ in 0..n {
            end += next(&self.bytes, &mut self.at)?;
            out.offsets.push(O::usize_as(end));
        }
        let values = grow(&mut out.values, end - base, O::MAX_OFFSET)?;
        let mut at = 0;
        for end in &out.offsets[start + 1..] {
            let len = end.as_usize() - base - at;
            from += LEN;
            copy(values, at, &self.bytes, from, len);
            from += len;
            at += len;
        }
        out.check_text(start)
    }

    fn skip(&mut self, n: usize) -> Result<()> {
        for _ in 0..n {
            next(&self.bytes, &mut self.at)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{check, some_steps, some_values, values};
    use super::*;
    use proptest::prelude::*;

    pub(crate) fn page(values: &[Vec<u8>]) -> Bytes {
        let value = |value: &Vec<u8>| [&(value.len() as u32).to_le_bytes(), &value[..]].concat();
        values.iter().flat_map(value).collect()
    }

    #[test]
    fn values_are_as_the_format_says() {
        let page = Bytes::from_static(b"\x02\0\0\0ab\0\0\0\0\x01\0\0\0c\x02\0\0\0d");
        let mut out = ByteArrays::<i32>::new(0, true);
        let mut decoder = BytesPlain::new(page.clone());
        decoder.read(3, &mut out).unwrap();
        assert_eq!(values(&out), [&b"ab"[..], b"", b"c"]);
        assert!(decoder.read(1, &mut out).is_err());
        assert!(ByteValues::<i32>::skip(&mut BytesPlain::new(page), 4).is_err());
    }

    #[test]
    fn text_that_is_none_is_an_error() {
        for (value, is_utf8) in [(&b"\xff"[..], false), ("é".as_bytes(), true)] {
            let read = |is_text| {
                let mut out = ByteArrays::<i64>::new(0, is_text);
                BytesPlain::new(page(&[value.to_vec()]))
                    .read(1, &mut out)
                    .is_ok()
            };
            assert_eq!((read(false), read(true)), (true, is_utf8));
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(values in some_values(), steps in some_steps()) {
            check(BytesPlain::new(page(&values)), &values, &steps);
        }

        #[test]
        fn any_bytes_are_values_or_an_error(
            bytes in prop::collection::vec(prop_oneof![3 => 0..4u8, 1 => any::<u8>()], 0..90), n in 0..20usize
        ) {
            let mut out = ByteArrays::<i32>::new(0, false);
            let skipped = ByteValues::<i32>::skip(&mut BytesPlain::new(bytes.clone().into()), n);
            let read = BytesPlain::new(bytes.clone().into()).read(n, &mut out);
            prop_assert_eq!(read.is_ok(), skipped.is_ok());
            prop_assert!(out.values.capacity() <= bytes.len());
        }
    }
}
