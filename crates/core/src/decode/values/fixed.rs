//! FIXED_LEN_BYTE_ARRAY (and INT96) values: rows of bytes, all of one width. `n` counts rows in all of these, not bytes.

use std::sync::Arc;

use bytes::Bytes;
use parquet::errors::Result;

use super::Values;
use super::dictionary::{indices, out_of_range};
use super::plain::take;
use super::split::Streams;
use crate::decode::hybrid::Hybrid;
use crate::decode::{damaged, ends_early};

/// Indices that are read at once.
const INDICES: usize = 256;

/// Rows that are put together at once, so that they are in cache.
const TILE: usize = 256;

/// A position in PLAIN rows: one after the other.
#[derive(Debug)]
pub(crate) struct FixedPlain {
    bytes: Bytes,
    width: usize,
}

impl FixedPlain {
    /// The rows of `width` bytes that `bytes` are.
    pub(crate) fn new(bytes: Bytes, width: usize) -> Self {
        Self { bytes, width }
    }

    /// The bytes of the next `n` rows.
    ///
    /// # Errors
    /// Where there are fewer.
    pub(crate) fn take(&mut self, n: usize) -> Result<Bytes> {
        take(&mut self.bytes, n, self.width)
    }
}

impl Values<u8> for FixedPlain {
    fn read(&mut self, n: usize, out: &mut Vec<u8>) -> Result<()> {
        out.extend_from_slice(&self.take(n)?);
        Ok(())
    }

    fn skip(&mut self, n: usize) -> Result<()> {
        self.take(n).map(drop)
    }
}

/// A position in rows that are indices into a dictionary.
#[derive(Debug)]
pub(crate) struct FixedDictionary {
    indices: Hybrid,
    dictionary: Arc<[u8]>,
    width: usize,
}

impl FixedDictionary {
    /// The rows of a page whose bytes after the levels are `bytes`; rows of the dictionary are `width` bytes.
    ///
    /// # Errors
    /// Where the page says that indices have more than 32 bits, or the dictionary's last row is not whole.
    pub(crate) fn try_new(bytes: Bytes, dictionary: Arc<[u8]>, width: usize) -> Result<Self> {
        if dictionary.len().checked_rem(width) != Some(0) {
            return Err(damaged(format!(
                "a dictionary of {} bytes has no values of {width} bytes",
                dictionary.len()
            )));
        }
        Ok(Self {
            indices: indices(bytes)?,
            dictionary,
            width,
        })
    }
}

impl Values<u8> for FixedDictionary {
    fn read(&mut self, n: usize, out: &mut Vec<u8>) -> Result<()> {
        let len = n.checked_mul(self.width).ok_or_else(ends_early)?;
        let start = out.len();
        out.resize(start + len, 0);
        let mut indices = [0; INDICES];
        for rows in out[start..].chunks_mut(INDICES * self.width) {
            let indices = &mut indices[..rows.len() / self.width];
            self.indices.read(indices)?;
            match self.width {
                2 => look_up::<2>(&self.dictionary, indices, rows),
                12 => look_up::<12>(&self.dictionary, indices, rows),
                16 => look_up::<16>(&self.dictionary, indices, rows),
                width => look_up_any(&self.dictionary, indices, rows, width),
            }?;
        }
        Ok(())
    }

    fn skip(&mut self, n: usize) -> Result<()> {
        self.indices.skip(n)
    }
}

/// Makes each row of `rows` the one of `dictionary` that its index says.
fn look_up<const W: usize>(dictionary: &[u8], indices: &[u32], rows: &mut [u8]) -> Result<()> {
    let (dictionary, _) = dictionary.as_chunks::<W>();
    for (row, &index) in rows.as_chunks_mut::<W>().0.iter_mut().zip(indices) {
        let value = dictionary.get(index as usize);
        *row = *value.ok_or_else(|| out_of_range(dictionary.len()))?;
    }
    Ok(())
}

/// As [`look_up`], for rows of any `width`.
fn look_up_any(dictionary: &[u8], indices: &[u32], rows: &mut [u8], width: usize) -> Result<()> {
    for (row, &index) in rows.chunks_exact_mut(width).zip(indices) {
        let start = (index as usize).saturating_mul(width);
        let value = dictionary.get(start..start.saturating_add(width));
        row.copy_from_slice(value.ok_or_else(|| out_of_range(dictionary.len() / width))?);
    }
    Ok(())
}

/// A position in rows that are BYTE_STREAM_SPLIT.
#[derive(Debug)]
pub(crate) struct FixedSplit {
    streams: Streams,
}

impl FixedSplit {
    /// The rows of `width` bytes that `bytes` are.
    ///
    /// # Errors
    /// Where the last one is not whole, or `width` is 0.
    pub(crate) fn try_new(bytes: Bytes, width: usize) -> Result<Self> {
        let streams = Streams::try_new(bytes, width)?;
        Ok(Self { streams })
    }
}

impl Values<u8> for FixedSplit {
    fn read(&mut self, n: usize, out: &mut Vec<u8>) -> Result<()> {
        let from = self.streams.take(n)?;
        let width = self.streams.width();
        let start = out.len();
        // The page has so many bytes, so this does not overflow.
        out.resize(start + n * width, 0);
        for (tile, rows) in out[start..].chunks_mut(TILE * width).enumerate() {
            for k in 0..width {
                let stream = self
                    .streams
                    .bytes(k, from + tile * TILE, rows.len() / width);
                for (row, byte) in rows.chunks_exact_mut(width).zip(stream) {
                    row[k] = *byte;
                }
            }
        }
        Ok(())
    }

    fn skip(&mut self, n: usize) -> Result<()> {
        self.streams.take(n).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::strategy::Encode;
    use crate::write::encode::{ByteStreamSplit, Growth, encode_indices};
    use proptest::prelude::*;

    /// Reads `cut` rows, skips `skip`, and reads the rest.
    fn check(mut values: impl Values<u8>, expected: &[u8], width: usize, cut: usize, skip: usize) {
        let rows = expected.len() / width;
        let cut = cut.min(rows);
        let skip = skip.min(rows - cut);
        let mut out = vec![7];
        values.read(cut, &mut out).unwrap();
        values.skip(skip).unwrap();
        values.read(rows - cut - skip, &mut out).unwrap();
        assert_eq!(out[1..=cut * width], expected[..cut * width]);
        assert_eq!(out[1 + cut * width..], expected[(cut + skip) * width..]);
        // Indices can have up to seven more, which fill the last group up.
        assert!(values.read(8, &mut out).is_err());
    }

    #[test]
    fn a_row_that_is_not_whole_is_an_error() {
        let bytes = || Bytes::from_static(&[1, 2, 3, 4, 5]);
        assert!(
            FixedPlain::new(bytes(), 2)
                .read(3, &mut Vec::new())
                .is_err()
        );
        assert!(FixedSplit::try_new(bytes(), 2).is_err());
        assert!(FixedSplit::try_new(bytes(), 0).is_err());
        assert!(FixedDictionary::try_new(bytes(), Arc::from([1u8, 2, 3]), 2).is_err());
        assert!(FixedDictionary::try_new(bytes(), Arc::from([1u8, 2, 3]), 0).is_err());
    }

    #[test]
    fn an_index_beyond_the_dictionary_is_an_error() {
        for width in [2, 3, 12, 16] {
            let read = |rows: usize| {
                let page = Bytes::from_static(&[2, 4 << 1, 1]);
                let dictionary = vec![7; rows * width].into();
                let mut values = FixedDictionary::try_new(page, dictionary, width).unwrap();
                values.read(4, &mut Vec::new()).is_ok()
            };
            assert_eq!((read(1), read(2)), (false, true));
        }
    }

    proptest! {
        #[test]
        fn what_is_encoded_is_read(
            bytes in prop::collection::vec(any::<u8>(), 1..4000), width in prop::sample::select(vec![1, 2, 3, 12, 16, 17]),
            cut in 0..400usize, skip in 0..99usize
        ) {
            let rows = &bytes[..bytes.len() / width * width];
            check(FixedPlain::new(Bytes::copy_from_slice(rows), width), rows, width, cut, skip);

            let mut encoder = ByteStreamSplit::new(width);
            encoder.put(rows);
            let mut page = Vec::new();
            encoder.finish(&Growth::new(Encode::Exact), &mut page);
            check(FixedSplit::try_new(page.into(), width).unwrap(), rows, width, cut, skip);

            let count = (rows.len() / width) as u32;
            if count > 0 {
                let indices: Vec<u32> = bytes.iter().map(|&byte| u32::from(byte) * 7 % count).collect();
                let mut page = vec![12];
                encode_indices(&indices, 12, &mut page);
                let row = |&index: &u32| &rows[index as usize * width..][..width];
                let expected: Vec<u8> = indices.iter().flat_map(row).copied().collect();
                let values = FixedDictionary::try_new(page.into(), rows.into(), width).unwrap();
                check(values, &expected, width, cut, skip);
            }
        }
    }
}
