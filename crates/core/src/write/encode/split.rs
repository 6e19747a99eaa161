//! BYTE_STREAM_SPLIT: the first bytes of all values, then all second bytes, and so on.

use super::memory::Growth;

/// Encodes values of one width as BYTE_STREAM_SPLIT.
pub(crate) struct ByteStreamSplit {
    /// Bytes of a value.
    width: usize,
    /// The values as they came: where the second bytes go is known when there are no more values.
    data: Vec<u8>,
}

impl ByteStreamSplit {
    /// An encoder for values of `width` bytes, at least one.
    pub(crate) fn new(width: usize) -> Self {
        Self {
            width,
            data: Vec::new(),
        }
    }

    /// Bytes that the page has if `values` more are put.
    pub(crate) fn max_len_with(&self, values: usize) -> usize {
        self.data.len() + values * self.width
    }

    /// Makes room for `values` that are about to be put.
    pub(crate) fn reserve(&mut self, growth: &Growth, values: usize) {
        growth.reserve(&mut self.data, values * self.width);
    }

    /// Encodes the values whose bytes lie side by side in `values`, each little-endian.
    pub(crate) fn put(&mut self, values: &[u8]) {
        debug_assert!(values.len().is_multiple_of(self.width));
        self.data.extend_from_slice(values);
    }

    /// Appends the page to `out` and starts the next one.
    pub(crate) fn finish(&mut self, growth: &Growth, out: &mut Vec<u8>) {
        growth.reserve(out, self.data.len());
        let start = out.len();
        out.resize(start + self.data.len(), 0);
        let page = &mut out[start..];
        match self.width {
            4 => split_words::<1>(&self.data, page),
            8 => split_words::<2>(&self.data, page),
            12 => split_words::<3>(&self.data, page),
            16 => split_words::<4>(&self.data, page),
            width => split_any(&self.data, page, width),
        }
        growth.page_done(&mut self.data);
    }

    /// Bytes of heap that are held.
    pub(crate) fn heap_bytes(&self) -> usize {
        self.data.capacity()
    }
}

/// Values whose bytes are distributed before the next ones are looked at, so that they are in cache.
const TILE: usize = 256;

/// Splits values of `WORDS` times four bytes, in words: of these the compiler takes many at once.
fn split_words<const WORDS: usize>(data: &[u8], page: &mut [u8]) {
    let (words, _) = data.as_chunks::<4>();
    let (values, _) = words.as_chunks::<WORDS>();
    let mut numbers = [0; TILE];
    for (tile, of_tile) in values.chunks(TILE).enumerate() {
        for word in 0..WORDS {
            for (number, value) in numbers.iter_mut().zip(of_tile) {
                *number = u32::from_le_bytes(value[word]);
            }
            for byte in 0..4 {
                let start = (4 * word + byte) * values.len() + tile * TILE;
                let stream = &mut page[start..start + of_tile.len()];
                for (out, number) in stream.iter_mut().zip(&numbers) {
                    *out = (number >> (8 * byte)) as u8;
                }
            }
        }
    }
}

/// Splits values of any `width`.
fn split_any(data: &[u8], page: &mut [u8], width: usize) {
    let count = data.len() / width;
    for (tile, values) in data.chunks(TILE * width).enumerate() {
        for byte in 0..width {
            let start = byte * count + tile * TILE;
            let stream = &mut page[start..start + values.len() / width];
            for (out, value) in stream.iter_mut().zip(values.chunks_exact(width)) {
                *out = value[byte];
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::strategy::Encode;
    use crate::write::encode::reference::{Reference, page};
    use parquet::basic::Encoding;
    use proptest::prelude::*;

    fn check<T: Reference>(values: &[T], bytes: &[u8]) {
        let growth = Growth::new(Encode::Exact);
        let width = size_of::<T>();
        let mut encoder = ByteStreamSplit::new(width);
        let (head, tail) = bytes.split_at(values.len() / 3 * width);
        for piece in [head, tail] {
            let expected = encoder.max_len_with(piece.len() / width);
            encoder.reserve(&growth, piece.len() / width);
            encoder.put(piece);
            assert_eq!(encoder.max_len_with(0), expected);
        }
        assert_eq!(encoder.heap_bytes(), bytes.len());
        let mut out = vec![9];
        encoder.finish(&growth, &mut out);
        assert_eq!(out[1..], page(values, Encoding::BYTE_STREAM_SPLIT));
        assert_eq!(encoder.max_len_with(0), 0);
    }

    fn check_fixed<const N: usize>(seed: &[u8]) {
        let values: Vec<[u8; N]> = seed.as_chunks().0.to_vec();
        if !values.is_empty() {
            check(&values, values.as_flattened());
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        #[test]
        fn pages_equal_the_parquet_crates(seed in prop::collection::vec(any::<u8>(), 20..6000)) {
            let narrow: Vec<i32> = seed.as_chunks().0.iter().map(|&b| i32::from_le_bytes(b)).collect();
            check(&narrow, &seed[..narrow.len() * 4]);
            let wide: Vec<i64> = seed.as_chunks().0.iter().map(|&b| i64::from_le_bytes(b)).collect();
            check(&wide, &seed[..wide.len() * 8]);
            check_fixed::<1>(&seed);
            check_fixed::<2>(&seed);
            check_fixed::<5>(&seed);
            check_fixed::<12>(&seed);
            check_fixed::<16>(&seed);
            check_fixed::<17>(&seed);
        }
    }
}
