//! [`Validity`]: which rows of a batch have a value, a bit a row, as arrow has it. Nothing is allocated before the first null.

use arrow_buffer::{BooleanBufferBuilder, NullBuffer};

/// Collects the validity of a batch's rows.
#[derive(Debug)]
pub(crate) struct Validity {
    /// Rows that there will be, as far as that is known: what the bitmap is allocated for.
    expected: usize,
    len: usize,
    /// The bits of all rows, once one of them is null; the first in the lowest bit of the first byte.
    bits: Option<BooleanBufferBuilder>,
}

impl Validity {
    /// No rows yet, of `expected`; more can come.
    pub(crate) fn new(expected: usize) -> Self {
        Self {
            expected,
            len: 0,
            bits: None,
        }
    }

    /// Rows so far.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Bytes of heap that are held.
    #[cfg(test)]
    fn heap_bytes(&self) -> usize {
        self.bits.as_ref().map_or(0, |bits| bits.capacity() / 8)
    }

    /// The bits of all rows, the first in the lowest bit of the first byte; `None` while no row is null.
    pub(crate) fn bits(&self) -> Option<&[u8]> {
        self.bits.as_ref().map(BooleanBufferBuilder::as_slice)
    }

    /// Appends `n` rows that have values.
    #[inline]
    pub(crate) fn append_valid(&mut self, n: usize) {
        self.len += n;
        if let Some(bits) = &mut self.bits {
            bits.append_n(n, true);
        }
    }

    /// Appends `n` rows that are null.
    pub(crate) fn append_null(&mut self, n: usize) {
        if n > 0 {
            self.allocated(n).append_n(n, false);
            self.len += n;
        }
    }

    /// Appends the `n` rows whose bits are those of `packed` after the `first` ones; they must be there. Returns how many have
    /// values.
    pub(crate) fn append_packed(&mut self, packed: &[u8], first: usize, n: usize) -> usize {
        let valid = count_ones(packed, first, n);
        if valid == n {
            self.append_valid(n);
        } else {
            let bits = self.allocated(n);
            match packed.get(first / 8..) {
                // Short runs are many, where there are any.
                Some(&[byte]) => bits.append_word(u64::from(byte) >> (first % 8), n),
                _ => bits.append_packed_range(first..first + n, packed),
            }
            self.len += n;
        }
        valid
    }

    /// The bitmap, which is allocated now if it was not, for `n` rows more at least.
    fn allocated(&mut self, n: usize) -> &mut BooleanBufferBuilder {
        let (len, expected) = (self.len, self.expected);
        self.bits.get_or_insert_with(|| {
            let mut bits = BooleanBufferBuilder::new(expected.max(len + n));
            bits.append_n(len, true);
            bits
        })
    }

    /// The validity of all rows, `None` if none is null. There are no rows then.
    pub(crate) fn finish(&mut self) -> Option<NullBuffer> {
        self.len = 0;
        let bits = self.bits.take()?;
        Some(NullBuffer::new(bits.build()))
    }
}

/// How many of the `n` bits of `packed` after the `first` ones are set.
pub(crate) fn count_ones(packed: &[u8], first: usize, n: usize) -> usize {
    let end = first + n;
    let bytes = packed.get(first / 8..end.div_ceil(8)).unwrap_or_default();
    let (words, rest) = bytes.as_chunks::<8>();
    let ones = |word: &[u8; 8]| u64::from_le_bytes(*word).count_ones() as usize;
    let whole: usize = words.iter().map(ones).sum();
    let rest: usize = rest.iter().map(|byte| byte.count_ones() as usize).sum();
    // What the first and the last byte have before and after the bits that count.
    let before = bytes
        .first()
        .map_or(0, |byte| byte & !(0xff << (first % 8)));
    let after = match (bytes.last(), end % 8) {
        (Some(byte), bits @ 1..) => byte & 0xff << bits,
        _ => 0,
    };
    whole + rest - before.count_ones() as usize - after.count_ones() as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn nothing_is_allocated_before_the_first_null() {
        let mut validity = Validity::new(100);
        validity.append_valid(10);
        assert_eq!(validity.append_packed(&[0xfe, 0xff, 0x01], 1, 16), 16);
        validity.append_null(0);
        assert_eq!((validity.len(), validity.heap_bytes()), (26, 0));
        assert_eq!(validity.finish(), None);
        validity.append_null(1);
        let held = validity.heap_bytes();
        validity.append_valid(99);
        assert_eq!(validity.heap_bytes(), held);
        assert_eq!(validity.finish().unwrap().null_count(), 1);
        assert_eq!((validity.len(), validity.heap_bytes()), (0, 0));
    }

    proptest! {
        #[test]
        fn bits_are_those_of_the_pieces(
            pieces in prop::collection::vec(
                (prop::collection::vec(prop_oneof![Just(0u8), Just(0xff), any::<u8>()], 0..40), 0..8usize, 0..9usize),
                0..12
            )
        ) {
            let mut validity = Validity::new(50);
            let mut expected: Vec<bool> = Vec::new();
            for (bytes, first, cut) in &pieces {
                let n = (bytes.len() * 8).saturating_sub(first + cut);
                let bits: Vec<bool> = (*first..first + n).map(|at| bytes[at / 8] >> (at % 8) & 1 == 1).collect();
                let valid = bits.iter().filter(|&&bit| bit).count();
                prop_assert_eq!(validity.append_packed(bytes, *first, n), valid);
                validity.append_valid(*first);
                validity.append_null(*cut);
                expected.extend(bits);
                expected.extend(vec![true; *first]);
                expected.extend(vec![false; *cut]);
                prop_assert_eq!(validity.len(), expected.len());
            }
            match validity.finish() {
                Some(nulls) => prop_assert_eq!(nulls.iter().collect::<Vec<_>>(), expected),
                None => prop_assert!(expected.iter().all(|&bit| bit)),
            }
        }
    }
}
