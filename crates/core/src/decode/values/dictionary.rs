//! RLE_DICTIONARY: a byte that says how many bits an index has, and then indices into the chunk's dictionary, as runs.

use std::sync::Arc;

use bytes::Bytes;
use parquet::errors::{ParquetError, Result};

use super::{Native, Values, append};
use crate::decode::hybrid::{Hybrid, Run};
use crate::decode::unpack::{GROUP, map_values};
use crate::decode::{damaged, ends_early};

/// The indices that a page's values are. A page without bytes has none.
///
/// # Errors
/// Where the page says that they have more than 32 bits.
pub(super) fn indices(mut bytes: Bytes) -> Result<Hybrid> {
    if bytes.is_empty() {
        return Hybrid::try_new(bytes, 0);
    }
    let width = bytes.split_to(1);
    Hybrid::try_new(bytes, width[0])
}

/// An index is not below the dictionary's `len`.
#[cold]
pub(super) fn out_of_range(len: usize) -> ParquetError {
    damaged(format!(
        "a page has an index beyond its dictionary of {len} values"
    ))
}

/// A position in values that are indices into a dictionary of numbers.
#[derive(Debug)]
pub(crate) struct Dictionary<T> {
    indices: Hybrid,
    dictionary: Arc<[T]>,
}

impl<T: Native> Dictionary<T> {
    /// The values of a page whose bytes after the levels are `bytes`.
    ///
    /// # Errors
    /// Where the page says that indices have more than 32 bits.
    pub(crate) fn try_new(bytes: Bytes, dictionary: Arc<[T]>) -> Result<Self> {
        Ok(Self {
            indices: indices(bytes)?,
            dictionary,
        })
    }
}

impl<T: Native> Values<T> for Dictionary<T> {
    fn read(&mut self, n: usize, out: &mut Vec<T>) -> Result<()> {
        let dictionary = &*self.dictionary;
        let width = self.indices.bit_width();
        out.reserve(n);
        let end = out.len() + n;
        while out.len() < end {
            let left = end - out.len();
            match self.indices.next_run(left)?.ok_or_else(ends_early)? {
                Run::Repeated { value, len } => {
                    let value = dictionary.get(value as usize);
                    let value = value.ok_or_else(|| out_of_range(dictionary.len()))?;
                    out.resize(out.len() + len, *value);
                }
                Run::Packed { bytes, first, len } => {
                    look_up(dictionary, bytes, width, first, append(out, len))?;
                }
            }
        }
        Ok(())
    }

    fn skip(&mut self, n: usize) -> Result<()> {
        self.indices.skip(n)
    }
}

/// Makes each of `out` the value whose index is at its place in `packed` after the `first` ones.
fn look_up<T: Native>(
    dictionary: &[T],
    packed: &[u8],
    width: u32,
    first: usize,
    out: &mut [T],
) -> Result<()> {
    let mut all_in_range = true;
    map_values(packed, width, first, out, |group: [u32; GROUP]| {
        group.map(|index| match dictionary.get(index as usize) {
            Some(value) => *value,
            None => {
                all_in_range = false;
                T::default()
            }
        })
    });
    if all_in_range {
        Ok(())
    } else {
        Err(out_of_range(dictionary.len()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::write::encode::encode_indices;
    use proptest::prelude::*;

    /// The page of `indices`.
    fn page(indices: &[u32], width: u32) -> Bytes {
        let mut bytes = vec![width as u8];
        encode_indices(indices, width, &mut bytes);
        bytes.into()
    }

    fn read(bytes: Bytes, dictionary: &[u64], n: usize) -> Result<Vec<u64>> {
        let mut out = vec![1];
        Dictionary::try_new(bytes, dictionary.into())?.read(n, &mut out)?;
        assert_eq!(out.remove(0), 1);
        Ok(out)
    }

    #[test]
    fn an_index_beyond_the_dictionary_is_an_error() {
        for indices in [&[2, 2, 2, 2, 2, 2, 2, 2, 2][..], &[0, 1, 0, 1, 2]] {
            let page = page(indices, 2);
            assert!(read(page.clone(), &[5, 6], indices.len()).is_err());
            let values: Vec<u64> = indices.iter().map(|&index| u64::from(index) + 5).collect();
            assert_eq!(read(page, &[5, 6, 7], indices.len()).unwrap(), values);
        }
        // What fills up the last group is no index.
        let page = Bytes::from_static(&[1, 1 << 1 | 1, 0b1111_1000]);
        assert_eq!(read(page.clone(), &[5], 3).unwrap(), [5, 5, 5]);
        assert!(read(page, &[5], 4).is_err());
    }

    #[test]
    fn a_page_can_have_no_values() {
        assert!(read(Bytes::new(), &[], 0).unwrap().is_empty());
        assert!(read(Bytes::new(), &[5], 1).is_err());
        assert_eq!(read(page(&[0; 9], 0), &[5], 9).unwrap(), [5; 9]);
        assert!(read(page(&[0; 9], 0), &[], 9).is_err());
        assert!(read(Bytes::from_static(&[33, 2, 0]), &[5], 1).is_err());
    }

    proptest! {
        #[test]
        fn values_are_those_of_the_indices(
            dictionary in prop::collection::vec(any::<u64>(), 1..300),
            pieces in prop::collection::vec((any::<prop::sample::Index>(), 1..30usize, any::<bool>()), 0..40),
            steps in prop::collection::vec((1..100usize, any::<bool>()), 1..9)
        ) {
            let len = dictionary.len();
            let mut indices = Vec::new();
            for (at, count, repeat) in &pieces {
                let at = at.index(len);
                indices.extend((0..*count).map(|i| (at + if *repeat { 0 } else { i * 7 }) as u32 % len as u32));
            }
            let width = (len - 1).checked_ilog2().map_or(0, |log| log + 1);
            let page = page(&indices, width);
            let expected: Vec<u64> = indices.iter().map(|&index| dictionary[index as usize]).collect();
            prop_assert_eq!(&read(page.clone(), &dictionary, expected.len()).unwrap(), &expected);
            let mut values = Dictionary::try_new(page, dictionary.into()).unwrap();
            let mut at = 0;
            for &(step, skip) in steps.iter().cycle() {
                let step = step.min(expected.len() - at);
                if step == 0 {
                    break;
                }
                if skip {
                    values.skip(step).unwrap();
                } else {
                    let mut out = Vec::new();
                    values.read(step, &mut out).unwrap();
                    prop_assert_eq!(&out, &expected[at..at + step]);
                }
                at += step;
            }
        }

        #[test]
        fn any_bytes_are_values_or_an_error(
            bytes in prop::collection::vec(any::<u8>(), 0..60), len in 0..300u64, n in 0..600usize
        ) {
            let dictionary: Vec<u64> = (0..len).collect();
            if let Ok(values) = read(bytes.into(), &dictionary, n) {
                prop_assert_eq!(values.len(), n);
                prop_assert!(values.iter().all(|&value| value < len));
            }
        }
    }
}
