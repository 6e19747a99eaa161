//! Streams of random numbers that are the same on every machine and in every
//! release of the rand family.
//!
//! Only the generator itself (`Pcg64Mcg`, whose output is specified) comes from
//! there. How its 64 bits become a value is written out here, because `rand`
//! may change its distributions between versions.

use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::{Rng, SeedableRng};
use sha2::{Digest, Sha256};

/// What a stream is for. A column's values do not change when its nulls do.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Purpose {
    Values,
    Nulls,
    Lengths,
    /// The pool of distinct values, the same for every row group.
    Pool,
    /// A shared prefix, the same for every row group.
    Prefix,
}

impl Purpose {
    fn tag(self) -> &'static str {
        match self {
            Self::Values => "values",
            Self::Nulls => "nulls",
            Self::Lengths => "lengths",
            Self::Pool => "pool",
            Self::Prefix => "prefix",
        }
    }
}

/// One independent stream: of one column, one row group and one purpose.
#[derive(Debug)]
pub(crate) struct Stream(Pcg64Mcg);

impl Stream {
    /// Seeds by the column's name, not its place, so that a dataset with fewer
    /// columns keeps the values of those that stay.
    pub(crate) fn new(seed: u64, column: &str, row_group: usize, purpose: Purpose) -> Self {
        let mut hash = Sha256::new();
        hash.update(b"alloquet-datagen stream\0");
        hash.update(seed.to_le_bytes());
        hash.update((row_group as u64).to_le_bytes());
        hash.update(purpose.tag().as_bytes());
        hash.update(b"\0");
        hash.update(column.as_bytes());
        let digest = hash.finalize();
        let mut state = [0_u8; 16];
        state.copy_from_slice(&digest[..16]);
        Self(Pcg64Mcg::from_seed(state))
    }

    #[inline]
    pub(crate) fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A number in `0..bound`. The bias (below `bound` / 2^64) does not matter
    /// to test data; the missing retry loop keeps streams in step.
    #[inline]
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(bound)) >> 64) as u64
    }

    /// A number in `0.0..1.0`, with all 53 bits of the mantissa random.
    #[inline]
    pub(crate) fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 * (1.0 / (1_u64 << 53) as f64)
    }

    pub(crate) fn fill(&mut self, bytes: &mut [u8]) {
        self.0.fill_bytes(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_is_the_same_everywhere() {
        let mut stream = Stream::new(42, "f0", 1, Purpose::Values);
        let got: Vec<u64> = (0..3).map(|_| stream.bits()).collect();
        // Computed from the paper's formula, not by rand_pcg.
        assert_eq!(
            got,
            [
                9_884_295_781_920_003_165,
                11_093_255_352_160_458_107,
                16_542_841_627_678_541_272
            ]
        );
    }

    #[test]
    fn streams_differ_by_seed_column_row_group_and_purpose() {
        let first =
            |seed, column, row_group, purpose| Stream::new(seed, column, row_group, purpose).bits();
        let base = first(1, "a", 0, Purpose::Values);
        assert_ne!(base, first(2, "a", 0, Purpose::Values));
        assert_ne!(base, first(1, "b", 0, Purpose::Values));
        assert_ne!(base, first(1, "a", 1, Purpose::Values));
        assert_ne!(base, first(1, "a", 0, Purpose::Nulls));
    }

    #[test]
    fn bounded_numbers_stay_in_bounds() {
        let mut stream = Stream::new(7, "x", 0, Purpose::Values);
        for _ in 0..10_000 {
            assert!(stream.below(3) < 3);
            let unit = stream.unit();
            assert!((0.0..1.0).contains(&unit));
        }
    }
}
