//! DELTA_LENGTH_BYTE_ARRAY: the lengths as DELTA_BINARY_PACKED, then the bytes of all values in a row.

use super::delta::DeltaBinaryPacked;
use super::memory::Growth;

/// Encodes byte arrays as DELTA_LENGTH_BYTE_ARRAY.
pub(crate) struct DeltaLengthByteArray {
    pub(super) lengths: DeltaBinaryPacked<i32>,
    /// The bytes of all values, which are that part of the page.
    pub(super) data: Vec<u8>,
}

impl DeltaLengthByteArray {
    /// An encoder that holds nothing but what `growth` gives its lengths at birth.
    pub(crate) fn new(growth: &Growth) -> Self {
        Self {
            lengths: DeltaBinaryPacked::new(growth),
            data: Vec::new(),
        }
    }

    /// Bytes that the page has at most if `values` more of `bytes` bytes together are put and it is
    /// finished then.
    pub(crate) fn max_len_with(&self, values: usize, bytes: usize) -> usize {
        self.lengths.max_len_of_lengths(values, bytes) + self.data.len() + bytes
    }

    /// Makes room for `values` of `bytes` bytes together that are about to be put.
    pub(crate) fn reserve(&mut self, growth: &Growth, values: usize, bytes: usize) {
        self.lengths.reserve_lengths(growth, values, bytes);
        growth.reserve(&mut self.data, bytes);
    }

    /// Encodes one value, which is shorter than 2 GiB.
    #[inline]
    pub(crate) fn put(&mut self, value: &[u8]) {
        self.lengths.push(value.len() as i32);
        self.data.extend_from_slice(value);
    }

    /// Appends the page to `out` and starts the next one.
    pub(crate) fn finish(&mut self, growth: &Growth, out: &mut Vec<u8>) {
        growth.reserve(out, self.max_len_with(0, 0));
        self.append(growth, out);
    }

    /// As [`finish`](Self::finish), into a buffer that has the room.
    pub(super) fn append(&mut self, growth: &Growth, out: &mut Vec<u8>) {
        self.lengths.append(growth, out);
        out.extend_from_slice(&self.data);
        growth.page_done(&mut self.data);
    }

    /// Bytes of heap that are held.
    pub(crate) fn heap_bytes(&self) -> usize {
        self.lengths.heap_bytes() + self.data.capacity()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::strategy::Encode;
    use crate::write::encode::reference::page;
    use parquet::basic::Encoding;
    use proptest::prelude::*;

    /// The page of `values`, put in two pieces.
    fn encode(values: &[Vec<u8>], cut: usize) -> Vec<u8> {
        let growth = Growth::new(Encode::Exact);
        let mut encoder = DeltaLengthByteArray::new(&growth);
        for piece in [&values[..cut], &values[cut..]] {
            let bytes = piece.iter().map(Vec::len).sum();
            let bound = encoder.max_len_with(piece.len(), bytes);
            encoder.reserve(&growth, piece.len(), bytes);
            let reserved = encoder.lengths.heap_bytes().max(129 * 4) + encoder.data.capacity();
            piece.iter().for_each(|value| encoder.put(value));
            assert!(
                encoder.heap_bytes() <= reserved + 129 * 4,
                "more than was reserved"
            );
            assert!(encoder.max_len_with(0, 0) <= bound);
        }
        let bound = encoder.max_len_with(0, 0);
        let mut out = Vec::new();
        encoder.finish(&growth, &mut out);
        assert!(out.len() <= bound && out.capacity() == bound);
        let empty = DeltaLengthByteArray::new(&growth);
        assert_eq!(encoder.max_len_with(0, 0), empty.max_len_with(0, 0));
        out
    }

    #[test]
    fn birth_costs_what_the_strategy_says() {
        for (encode, bytes) in [
            (Encode::Eager, 1 << 20),
            (Encode::Grow, 0),
            (Encode::Pooled, 0),
        ] {
            assert_eq!(
                DeltaLengthByteArray::new(&Growth::new(encode)).heap_bytes(),
                bytes
            );
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn pages_equal_the_parquet_crates(
            values in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 1..300),
            cut in any::<prop::sample::Index>()
        ) {
            let expected = page(&values, Encoding::DELTA_LENGTH_BYTE_ARRAY);
            prop_assert_eq!(encode(&values, cut.index(values.len())), expected);
        }
    }
}
