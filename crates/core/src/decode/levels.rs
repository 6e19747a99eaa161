//! Definition levels of a column that is optional and not nested: 1 where a row has a value, 0 where it is null.

use bytes::Bytes;
use parquet::basic::Encoding;
use parquet::errors::{ParquetError, Result};

use super::hybrid::{Hybrid, Run};
use super::validity::{Validity, count_ones};
use super::{damaged, ends_early};

/// A position in the definition levels of a page.
#[derive(Debug, Clone)]
pub(crate) struct Levels {
    runs: Hybrid,
    /// Levels that the page has, as its header says, and were not taken yet.
    left: usize,
    has_nulls: bool,
}

impl Levels {
    /// The levels that `page`, a data page of version 1 with `num_values` rows, starts with. Also says where its values start.
    ///
    /// # Errors
    /// Where the page is shorter than its levels, or `encoding` is none of levels.
    pub(crate) fn v1(page: &Bytes, num_values: usize, encoding: Encoding) -> Result<(Self, usize)> {
        match encoding {
            Encoding::RLE => {
                let (len, rest) = page.split_first_chunk().ok_or_else(ends_early)?;
                let start = size_of_val(len);
                let len = u32::from_le_bytes(*len) as usize;
                if len > rest.len() {
                    return Err(ends_early());
                }
                let end = start + len;
                Ok((Self::v2(page.slice(start..end), num_values)?, end))
            }
            #[expect(deprecated, reason = "old files have it")]
            Encoding::BIT_PACKED => {
                let end = num_values.div_ceil(8);
                let packed = page.get(..end).ok_or_else(ends_early)?;
                // The first level is in the highest bit here.
                let bytes: Vec<u8> = packed.iter().map(|byte| byte.reverse_bits()).collect();
                Ok((Self::new(Hybrid::bits(bytes.into()), num_values), end))
            }
            other => Err(ParquetError::NYI(format!(
                "definition levels encoded as {other}"
            ))),
        }
    }

    /// The levels of a data page of version 2, which are all of `levels`, of `num_values` rows.
    ///
    /// # Errors
    /// None yet; a page whose levels are damaged is found out when they are read.
    pub(crate) fn v2(levels: Bytes, num_values: usize) -> Result<Self> {
        Ok(Self::new(Hybrid::try_new(levels, 1)?, num_values))
    }

    fn new(runs: Hybrid, num_values: usize) -> Self {
        Self {
            has_nulls: !are_all_valid(runs.clone(), num_values),
            runs,
            left: num_values,
        }
    }

    /// Whether a row of the page is null. Also `true` if the levels are damaged, so that reading them tells.
    pub(crate) fn has_nulls(&self) -> bool {
        self.has_nulls
    }

    /// Appends the next `n` rows to `validity`. Returns how many of them have values.
    ///
    /// # Errors
    /// Where there are fewer, or they are damaged.
    pub(crate) fn read(&mut self, n: usize, validity: &mut Validity) -> Result<usize> {
        self.take(n, |run| match run {
            Run::Repeated { value: 0, len } => {
                validity.append_null(len);
                0
            }
            Run::Repeated { len, .. } => {
                validity.append_valid(len);
                len
            }
            Run::Packed { bytes, first, len } => validity.append_packed(bytes, first, len),
        })
    }

    /// Passes over the next `n` rows. Returns how many of them have values.
    ///
    /// # Errors
    /// Where there are fewer, or they are damaged.
    pub(crate) fn skip(&mut self, n: usize) -> Result<usize> {
        self.take(n, |run| match run {
            Run::Repeated { value: 0, .. } => 0,
            Run::Repeated { len, .. } => len,
            Run::Packed { bytes, first, len } => count_ones(bytes, first, len),
        })
    }

    /// Takes the next `n` levels; `valid` counts in each run. Where it is known that all are 1, no run is looked at.
    fn take(&mut self, n: usize, mut valid: impl FnMut(Run<'_>) -> usize) -> Result<usize> {
        self.left = self
            .left
            .checked_sub(n)
            .ok_or_else(|| damaged(format!("{n} rows are asked of a page with {}", self.left)))?;
        if !self.has_nulls {
            return Ok(valid(Run::Repeated { value: 1, len: n }));
        }
        let mut rows = 0;
        let mut sum = 0;
        while rows < n {
            let run = self.runs.next_run(n - rows)?.ok_or_else(ends_early)?;
            let (Run::Repeated { len, .. } | Run::Packed { len, .. }) = run;
            rows += len;
            sum += valid(run);
        }
        Ok(sum)
    }
}

/// Whether `runs` are at least `num_values` levels, of which the first so many are 1.
fn are_all_valid(mut runs: Hybrid, num_values: usize) -> bool {
    let mut left = num_values;
    while left > 0 {
        left -= match runs.next_run(left) {
            Ok(Some(Run::Repeated { value: 1, len })) => len,
            Ok(Some(Run::Packed { bytes, first, len })) if are_ones(bytes, first, len) => len,
            _ => return false,
        };
    }
    true
}

/// Whether the `len` bits of `bytes` after the `first` ones are all set.
fn are_ones(bytes: &[u8], first: usize, len: usize) -> bool {
    let end = first + len;
    let whole = bytes.get(first.div_ceil(8)..end / 8).unwrap_or_default();
    whole.iter().all(|&byte| byte == 0xff) && count_ones(bytes, first, len) == len
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::is_early;
    use crate::strategy::Encode;
    use crate::write::encode::{DefinitionLevels, Growth};
    use proptest::prelude::*;

    fn bits(validity: &mut Validity) -> Vec<bool> {
        let len = validity.len();
        let nulls = validity.finish();
        nulls.map_or_else(|| vec![true; len], |nulls| nulls.iter().collect())
    }

    fn v1(levels: &[u8]) -> Bytes {
        let len = (levels.len() as u32).to_le_bytes();
        Bytes::from([&len, levels, b"values"].concat())
    }

    #[test]
    fn one_run_is_no_nulls() {
        let (mut levels, at) = Levels::v1(&v1(&[0x90, 3, 1]), 200, Encoding::RLE).unwrap();
        assert_eq!((at, levels.has_nulls()), (7, false));
        let mut validity = Validity::new(200);
        assert_eq!(levels.read(150, &mut validity).unwrap(), 150);
        assert_eq!(levels.skip(49).unwrap(), 49);
        assert_eq!(validity.finish(), None);
        assert!(levels.read(2, &mut validity).is_err());
    }

    #[test]
    fn bits_behind_the_last_row_do_not_count() {
        let levels =
            |rows| Levels::v2(Bytes::from_static(&[2 << 1 | 1, 0xff, 0x7f]), rows).unwrap();
        assert!(!levels(15).has_nulls());
        assert!(levels(16).has_nulls());
        assert_eq!(levels(16).skip(16).unwrap(), 15);
    }

    #[test]
    #[expect(deprecated, reason = "old files have it")]
    fn old_levels_start_at_the_highest_bit() {
        let page = Bytes::from_static(&[0b1011_1111, 0b1110_0000, 7]);
        let (mut levels, at) = Levels::v1(&page, 11, Encoding::BIT_PACKED).unwrap();
        assert_eq!((at, levels.has_nulls()), (2, true));
        let mut validity = Validity::new(11);
        assert_eq!(levels.read(11, &mut validity).unwrap(), 10);
        let mut expected = vec![true; 11];
        expected[1] = false;
        assert_eq!(bits(&mut validity), expected);
        assert!(Levels::v1(&page, 25, Encoding::BIT_PACKED).is_err());
    }

    #[test]
    fn damaged_levels_are_errors() {
        let read = |levels: &'static [u8], rows| {
            let mut levels = Levels::v2(Bytes::from_static(levels), rows).unwrap();
            assert!(levels.has_nulls());
            assert_eq!(levels.clone().skip(rows).is_err(), levels.left == rows);
            levels.read(rows, &mut Validity::new(0)).unwrap_err()
        };
        // A level of 2, no levels, too few.
        read(&[8 << 1, 2], 8);
        assert!(is_early(&read(&[], 1)));
        assert!(is_early(&read(&[8 << 1, 1], 9)));
        for page in [&[1, 0, 0][..], &[2, 0, 0, 0, 7], &[0xff; 9]] {
            let page = Bytes::copy_from_slice(page);
            assert!(is_early(&Levels::v1(&page, 1, Encoding::RLE).unwrap_err()));
        }
        assert!(Levels::v1(&v1(&[2, 1]), 1, Encoding::PLAIN).is_err());
    }

    proptest! {
        #[test]
        fn what_is_encoded_is_read(
            pieces in prop::collection::vec((any::<u64>(), 0..200usize), 0..12), dense: bool,
            steps in prop::collection::vec((1..300usize, any::<bool>()), 1..20)
        ) {
            let growth = Growth::new(Encode::Exact);
            let mut encoder = DefinitionLevels::new();
            let mut rows = Vec::new();
            for (seed, len) in pieces {
                let run = seed % 3 == 0 || dense;
                let row = |at| run && (seed % 2 == 0 || dense) || !run && seed >> (at % 64) & 1 == 1;
                rows.extend((0..len).map(row));
                if run {
                    encoder.put_run(&growth, seed % 2 == 0 || dense, len);
                } else {
                    encoder.put_validity(&growth, &seed.to_le_bytes().repeat(4), 0, len);
                }
            }
            let mut bytes = Vec::new();
            encoder.finish(&growth, &mut bytes);
            let (mut levels, at) = Levels::v1(&v1(&bytes), rows.len(), Encoding::RLE).unwrap();
            prop_assert_eq!(at, bytes.len() + 4);
            prop_assert_eq!(levels.has_nulls(), rows.contains(&false));
            let (mut at, mut expected, mut validity) = (0, Vec::new(), Validity::new(rows.len()));
            for &(step, skip) in steps.iter().cycle() {
                let step = step.min(rows.len() - at);
                if step == 0 {
                    break;
                }
                let now = &rows[at..at + step];
                let valid = if skip {
                    levels.skip(step)
                } else {
                    expected.extend_from_slice(now);
                    levels.read(step, &mut validity)
                };
                prop_assert_eq!(valid.unwrap(), now.iter().filter(|&&row| row).count());
                at += step;
            }
            prop_assert_eq!(levels.left, 0);
            prop_assert_eq!(bits(&mut validity), expected);
        }

        #[test]
        fn any_bytes_are_levels_or_an_error(
            bytes in prop::collection::vec(any::<u8>(), 0..60), rows in 0..400usize, left in any::<usize>()
        ) {
            let mut levels = Levels::v2(bytes.into(), rows).unwrap();
            let skipped = levels.clone().skip(rows).ok();
            let mut validity = Validity::new(0);
            let read = levels.read(rows, &mut validity).ok();
            prop_assert_eq!(skipped, read);
            if read.is_some() {
                prop_assert_eq!(bits(&mut validity).contains(&false), levels.has_nulls());
            }
            prop_assert!(Levels::v2(Bytes::new(), left).unwrap().has_nulls() == (left > 0));
        }
    }
}
