//! DELTA_BYTE_ARRAY: how much of the value before each one starts with, as DELTA_BINARY_PACKED, then
//! the rest of each, as DELTA_LENGTH_BYTE_ARRAY.

use std::cell::Cell;

use super::delta::DeltaBinaryPacked;
use super::delta_length::DeltaLengthByteArray;
use super::memory::Growth;

/// Lengths that are put at once: one by one would cost more than finding them.
const BATCH: usize = 64;

/// Encodes byte arrays as DELTA_BYTE_ARRAY.
pub(crate) struct DeltaByteArray {
    prefixes: DeltaBinaryPacked<i32>,
    suffixes: DeltaLengthByteArray,
    /// The last value that was put: what is encoded of it does not tell.
    previous: Vec<u8>,
    /// What the next value begins with as that one does, if it was looked at already: values can be long.
    looked_at: Cell<Option<usize>>,
}

impl DeltaByteArray {
    /// An encoder that holds nothing but what `growth` gives its two kinds of lengths at birth.
    pub(crate) fn new(growth: &Growth) -> Self {
        Self {
            prefixes: DeltaBinaryPacked::new(growth),
            suffixes: DeltaLengthByteArray::new(growth),
            previous: Vec::new(),
            looked_at: Cell::new(None),
        }
    }

    /// Bytes that the page has at most if `values` more of `bytes` bytes together are put and it is
    /// finished then.
    pub(crate) fn max_len_with(&self, values: usize, bytes: usize) -> usize {
        self.prefixes.max_len_of_lengths(values, bytes) + self.suffixes.max_len_with(values, bytes)
    }

    /// The same for one value that is known, of which what it begins with as the last one does is not stored. It is the next
    /// one that is put, unless the page is finished before.
    pub(crate) fn max_len_with_value(&self, value: &[u8]) -> usize {
        let prefix = common_prefix(&self.previous, value);
        self.looked_at.set(Some(prefix));
        self.prefixes.max_len_of_lengths(1, value.len())
            + self.suffixes.max_len_with(1, value.len() - prefix)
    }

    /// Makes room for `values` of `bytes` bytes together that are about to be put.
    pub(crate) fn reserve(&mut self, growth: &Growth, values: usize, bytes: usize) {
        self.prefixes.reserve_lengths(growth, values, bytes);
        self.suffixes.reserve(growth, values, bytes);
    }

    /// Encodes values, each of which is shorter than 2 GiB. Only the last one is copied as a whole, so
    /// the values at hand should come in one call.
    pub(crate) fn put<'a>(&mut self, values: impl IntoIterator<Item = &'a [u8]>) {
        let mut values = values.into_iter();
        let mut last = None;
        let (mut prefixes, mut suffixes) = ([0; BATCH], [0; BATCH]);
        loop {
            let mut count = 0;
            for (prefix_len, suffix_len) in prefixes.iter_mut().zip(&mut suffixes) {
                let Some(value) = values.next() else {
                    break;
                };
                let prefix = match self.looked_at.take() {
                    Some(prefix) => prefix,
                    None => common_prefix(last.unwrap_or(&self.previous), value),
                };
                let suffix = &value[prefix..];
                self.suffixes.data.extend_from_slice(suffix);
                (*prefix_len, *suffix_len) = (prefix as i32, suffix.len() as i32);
                last = Some(value);
                count += 1;
            }
            self.prefixes.put(&prefixes[..count]);
            self.suffixes.lengths.put(&suffixes[..count]);
            if count < BATCH {
                break;
            }
        }
        if let Some(last) = last {
            self.previous.clear();
            self.previous.reserve_exact(last.len());
            self.previous.extend_from_slice(last);
        }
    }

    /// Appends the page to `out` and starts the next one.
    pub(crate) fn finish(&mut self, growth: &Growth, out: &mut Vec<u8>) {
        growth.reserve(out, self.max_len_with(0, 0));
        self.prefixes.append(growth, out);
        self.suffixes.append(growth, out);
        // A page can be read on its own: its first value starts with nothing of the page before. The buffer does not come from the
        // pool, so it does not go there.
        self.looked_at.set(None);
        self.previous.clear();
    }

    /// Bytes of heap that are held.
    pub(crate) fn heap_bytes(&self) -> usize {
        self.prefixes.heap_bytes() + self.suffixes.heap_bytes() + self.previous.capacity()
    }
}

/// Bytes that `a` and `b` start with alike.
#[inline]
fn common_prefix(a: &[u8], b: &[u8]) -> usize {
    const BLOCK: usize = 32;
    const WORD: usize = size_of::<u64>();
    let len = a.len().min(b.len());
    let (a, b) = (&a[..len], &b[..len]);
    // Long prefixes block by block, which are compared in vector registers; the block that differs word by word.
    let blocks = a.as_chunks::<BLOCK>().0.iter();
    let alike = blocks
        .zip(b.as_chunks::<BLOCK>().0)
        .take_while(|(a, b)| a == b)
        .count();
    let at = alike * BLOCK;
    let (a, b) = (&a[at..], &b[at..]);
    let (a_words, a_rest) = a.as_chunks::<WORD>();
    let (b_words, b_rest) = b.as_chunks::<WORD>();
    for (i, (a, b)) in a_words.iter().zip(b_words).enumerate() {
        let different = u64::from_le_bytes(*a) ^ u64::from_le_bytes(*b);
        if different != 0 {
            return at + i * WORD + different.trailing_zeros() as usize / 8;
        }
    }
    let rest = a_rest.iter().zip(b_rest).take_while(|(a, b)| a == b);
    at + a_words.len() * WORD + rest.count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::strategy::Encode;
    use crate::write::encode::reference::page;
    use parquet::basic::Encoding;
    use proptest::prelude::*;

    /// The page of `values`, put in two pieces.
    fn encode<T: AsRef<[u8]>>(values: &[T], cut: usize) -> Vec<u8> {
        let growth = Growth::new(Encode::Exact);
        let mut encoder = DeltaByteArray::new(&growth);
        for piece in [&values[..cut], &values[cut..]] {
            let bytes = piece.iter().map(|value| value.as_ref().len()).sum();
            let bound = encoder.max_len_with(piece.len(), bytes);
            encoder.reserve(&growth, piece.len(), bytes);
            encoder.put(piece.iter().map(AsRef::as_ref));
            assert!(encoder.max_len_with(0, 0) <= bound);
        }
        let bound = encoder.max_len_with(0, 0);
        let mut out = Vec::new();
        encoder.finish(&growth, &mut out);
        assert!(out.len() <= bound && out.capacity() == bound);
        let empty = DeltaByteArray::new(&growth);
        assert_eq!(encoder.max_len_with(0, 0), empty.max_len_with(0, 0));
        out
    }

    #[test]
    fn prefixes_of_all_lengths_are_found() {
        for len in 0..40 {
            for other in len..40 {
                for differs in 0..=len {
                    let a = vec![b'a'; len];
                    let mut b = vec![b'a'; other];
                    if differs < len {
                        b[differs] = b'b';
                    }
                    assert_eq!(common_prefix(&a, &b), differs);
                    assert_eq!(common_prefix(&b, &a), differs);
                }
            }
        }
    }

    #[test]
    fn a_page_does_not_lean_on_the_one_before() {
        let growth = Growth::new(Encode::Pooled);
        let mut encoder = DeltaByteArray::new(&growth);
        let mut pages = [Vec::new(), Vec::new()];
        for page in &mut pages {
            encoder.put([&b"alike"[..], b"alike too"]);
            encoder.finish(&growth, page);
        }
        assert_eq!(pages[0], pages[1]);
    }

    #[test]
    fn birth_costs_what_the_strategy_says() {
        for (encode, bytes) in [
            (Encode::Eager, 2 << 20),
            (Encode::Grow, 0),
            (Encode::Pooled, 0),
        ] {
            assert_eq!(
                DeltaByteArray::new(&Growth::new(encode)).heap_bytes(),
                bytes
            );
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn pages_equal_the_parquet_crates(
            values in prop::collection::vec(prop::collection::vec(0..3u8, 0..40), 1..300),
            cut in any::<prop::sample::Index>()
        ) {
            let expected = page(&values, Encoding::DELTA_BYTE_ARRAY);
            prop_assert_eq!(encode(&values, cut.index(values.len())), expected);
        }

        #[test]
        fn fixed_width_pages_equal_the_parquet_crates(
            values in prop::collection::vec(prop::array::uniform12(0..3u8), 1..300),
            cut in any::<prop::sample::Index>()
        ) {
            let expected = page(&values, Encoding::DELTA_BYTE_ARRAY);
            prop_assert_eq!(encode(&values, cut.index(values.len())), expected);
        }
    }
}
