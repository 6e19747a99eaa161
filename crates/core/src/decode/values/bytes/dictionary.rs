//! RLE_DICTIONARY of byte arrays: a page's values are indices into the chunk's dictionary.

use std::sync::Arc;

use arrow_array::OffsetSizeTrait;
use bytes::Bytes;
use parquet::errors::Result;

use super::super::dictionary::{indices, out_of_range};
use super::plain::{self, LEN};
use super::{BATCH, ByteArrays, ByteValues, check_text, copy, grow};
use crate::decode::ends_early;
use crate::decode::hybrid::Hybrid;

/// The byte arrays of a dictionary page, which is kept as it is.
#[derive(Debug)]
pub(crate) struct ByteDictionary {
    page: Bytes,
    /// Where each value starts in the page, and its length.
    values: Vec<(u32, u32)>,
}

impl ByteDictionary {
    /// The first `count` values of `page`, which are PLAIN.
    ///
    /// # Errors
    /// Where there are fewer, or, with `is_text`, one of them is no UTF-8.
    pub(crate) fn try_new(page: Bytes, count: usize, is_text: bool) -> Result<Self> {
        // An empty value takes its length; positions are 32 bits, as sizes of pages are.
        if count > page.len() / LEN || u32::try_from(page.len()).is_err() {
            return Err(ends_early());
        }
        let mut at = 0;
        let mut values = Vec::with_capacity(count);
        for _ in 0..count {
            let start = at + LEN;
            let len = plain::next(&page, &mut at)?;
            if is_text {
                check_text::<i64>(&page[start..at], &[0])?;
            }
            values.push((start as u32, len as u32));
        }
        Ok(Self { page, values })
    }

    /// How many values there are.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.values.len()
    }

    /// Bytes of heap that are held beside the page.
    pub(crate) fn heap_bytes(&self) -> usize {
        self.values.capacity() * size_of::<(u32, u32)>()
    }
}

/// A position in values that are indices into a dictionary of byte arrays.
#[derive(Debug)]
pub(crate) struct BytesDictionary {
    indices: Hybrid,
    dictionary: Arc<ByteDictionary>,
}

impl BytesDictionary {
    /// The values of a page whose bytes after the levels are `bytes`.
    ///
    /// # Errors
    /// Where the page says that indices have more than 32 bits.
    pub(crate) fn try_new(bytes: Bytes, dictionary: Arc<ByteDictionary>) -> Result<Self> {
        Ok(Self {
            indices: indices(bytes)?,
            dictionary,
        })
    }
}

impl<O: OffsetSizeTrait> ByteValues<O> for BytesDictionary {
    /// As the trait says; the text was checked with the dictionary.
    fn read(&mut self, n: usize, out: &mut ByteArrays<O>) -> Result<()> {
        let ByteDictionary { page, values } = &*self.dictionary;
        let (start, base) = (out.offsets.len(), out.values.len());
        out.offsets.reserve(n);
        // First the indices, in place of the offsets: so it is known how many bytes there will be, and nothing else is held.
        let mut total = 0usize;
        let mut indices = [0; BATCH];
        let mut left = n;
        while left > 0 {
            let indices = &mut indices[..left.min(BATCH)];
            self.indices.read(indices)?;
            for &index in &*indices {
                let value = values.get(index as usize);
                let (_, len) = value.ok_or_else(|| out_of_range(values.len()))?;
                total = total.saturating_add(*len as usize);
            }
            let indices = indices.iter().map(|&index| O::usize_as(index as usize));
            out.offsets.extend(indices);
            left -= left.min(BATCH);
        }
        let slots = grow(&mut out.values, total, O::MAX_OFFSET)?;
        let mut at = 0;
        for offset in &mut out.offsets[start..] {
            let (from, len) = values[offset.as_usize()];
            copy(slots, at, page, from as usize, len as usize);
            at += len as usize;
            *offset = O::usize_as(base + at);
        }
        Ok(())
    }

    fn skip(&mut self, n: usize) -> Result<()> {
        self.indices.skip(n)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{check, some_steps, some_values};
    use super::*;
    use crate::write::encode::encode_indices;
    use proptest::prelude::*;

    fn dictionary(values: &[Vec<u8>], is_text: bool) -> Result<Arc<ByteDictionary>> {
        let value = |value: &Vec<u8>| [&(value.len() as u32).to_le_bytes(), &value[..]].concat();
        let page = values.iter().flat_map(value).collect();
        ByteDictionary::try_new(page, values.len(), is_text).map(Arc::new)
    }

    #[test]
    fn a_dictionary_is_checked_when_it_is_read() {
        let values = [b"a".to_vec(), b"\xff".to_vec()];
        let read = dictionary(&values, false).unwrap();
        assert_eq!((read.len(), read.heap_bytes()), (2, 16));
        assert!(dictionary(&values, true).is_err());
        assert!(dictionary(&values[..1], true).is_ok());
        let page = Bytes::from_static(b"\x01\0\0\0a\x02\0\0\0b");
        assert!(ByteDictionary::try_new(page.clone(), 1, true).is_ok());
        for count in [2, 3, usize::MAX] {
            assert!(ByteDictionary::try_new(page.clone(), count, true).is_err());
        }
    }

    #[test]
    fn an_index_beyond_the_dictionary_is_an_error() {
        let dictionary = dictionary(&[b"a".to_vec()], true).unwrap();
        for (index, in_range) in [(0, true), (1, false)] {
            let page = Bytes::from([1, 3 << 1, index].to_vec());
            let mut decoder = BytesDictionary::try_new(page, Arc::clone(&dictionary)).unwrap();
            let read = decoder.read(3, &mut ByteArrays::<i32>::new(3, true));
            assert_eq!(read.is_ok(), in_range);
        }
    }

    #[test]
    fn values_that_offsets_do_not_reach_are_an_error() {
        let dictionary = dictionary(&[vec![0; 1 << 20]], false).unwrap();
        let page = Bytes::from_static(&[0, 0x80, 0x80, 1]);
        let mut decoder = BytesDictionary::try_new(page, dictionary).unwrap();
        let mut out = ByteArrays::<i32>::new(0, false);
        assert!(decoder.read(1 << 12, &mut out).is_err());
        assert_eq!(out.values.capacity(), 0);
    }

    proptest! {
        #[test]
        fn values_are_those_of_the_indices(
            values in some_values(), picks in prop::collection::vec((any::<u16>(), 1..20usize), 0..60), steps in some_steps()
        ) {
            prop_assume!(!values.is_empty());
            let pick = |&(seed, count): &(u16, usize)| vec![u32::from(seed) % values.len() as u32; count];
            let indices: Vec<u32> = picks.iter().flat_map(pick).collect();
            let mut page = vec![9];
            encode_indices(&indices, 9, &mut page);
            let expected: Vec<_> = indices.iter().map(|&index| values[index as usize].clone()).collect();
            let decoder = BytesDictionary::try_new(page.into(), dictionary(&values, false).unwrap());
            check(decoder.unwrap(), &expected, &steps);
        }
    }
}
