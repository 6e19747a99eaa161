//! The hybrid of RLE and bit-packed runs (RLE = 3): levels, dictionary indices, and booleans.
//!
//! A run is a header, whose lowest bit says which kind it is, and then either one value, or whole groups of packed ones.

use bytes::Bytes;
use parquet::errors::Result;

use super::unpack::{GROUP, map_values};
use super::{damaged, ends_early, varint};

/// Values of a run at most, as the format has it.
const MAX_RUN: u64 = i32::MAX as u64;

/// A part of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Run<'a> {
    /// `len` times `value`.
    Repeated { value: u32, len: usize },
    /// The `len` values of `bytes` after the `first` ones, which are less than a group. The last group can be cut short behind
    /// them.
    Packed {
        bytes: &'a [u8],
        first: usize,
        len: usize,
    },
}

/// The kind of the run at hand.
#[derive(Debug, Clone, Copy)]
enum Kind {
    /// All values are this one.
    Repeated(u32),
    /// The packed values start at this byte, and so many of them were taken.
    Packed { start: usize, taken: usize },
}

/// A position in runs of values that have at most 32 bits.
#[derive(Debug, Clone)]
pub(crate) struct Hybrid {
    bytes: Bytes,
    bit_width: u8,
    /// Where the next run starts.
    next: usize,
    /// Values of the run at hand that were not taken yet.
    left: usize,
    kind: Kind,
}

impl Hybrid {
    /// The runs of values of `bit_width` bits that all of `bytes` are.
    ///
    /// # Errors
    /// Where `bit_width` is above 32.
    pub(crate) fn try_new(bytes: Bytes, bit_width: u8) -> Result<Self> {
        if u32::from(bit_width) > u32::BITS {
            return Err(damaged(format!(
                "runs of values of {bit_width} bits: 32 is the most"
            )));
        }
        Ok(Self {
            bytes,
            bit_width,
            next: 0,
            left: 0,
            kind: Kind::Repeated(0),
        })
    }

    /// One packed run without a header: as many values of one bit as `bytes` have.
    pub(super) fn bits(bytes: Bytes) -> Self {
        Self {
            next: bytes.len(),
            left: bytes.len() * GROUP,
            kind: Kind::Packed { start: 0, taken: 0 },
            bit_width: 1,
            bytes,
        }
    }

    /// Bits of a value.
    pub(crate) fn bit_width(&self) -> u32 {
        self.bit_width.into()
    }

    /// Takes up to `most` values, at least one, that are in the same run. `None` where there are no more runs, or `most` is 0.
    ///
    /// # Errors
    /// Where a run is longer than the format allows, its value is missing or has more bits than values have here.
    #[inline]
    pub(crate) fn next_run(&mut self, most: usize) -> Result<Option<Run<'_>>> {
        if most == 0 || self.left == 0 && !self.start_run()? {
            return Ok(None);
        }
        let len = self.left.min(most);
        self.left -= len;
        Ok(Some(match &mut self.kind {
            Kind::Repeated(value) => Run::Repeated { value: *value, len },
            Kind::Packed { start, taken } => {
                let width = usize::from(self.bit_width);
                let (group, first) = (*taken / GROUP, *taken % GROUP);
                *taken += len;
                let from = *start + group * width;
                let to = self.next.min(from + (first + len).div_ceil(GROUP) * width);
                let bytes = self.bytes.get(from..to).unwrap_or_default();
                Run::Packed { bytes, first, len }
            }
        }))
    }

    /// Reads the header of the next run that is not empty. Says whether there is one.
    fn start_run(&mut self) -> Result<bool> {
        while self.next < self.bytes.len() {
            let header = varint::read(&self.bytes, &mut self.next)?;
            if header == 0 {
                // An empty run is none that the format allows; fastparquet fills pages up with them.
                self.next = self.bytes.len();
                return Ok(false);
            }
            let packed = header & 1 == 1;
            let unit = if packed { GROUP as u64 } else { 1 };
            let len = (header >> 1).saturating_mul(unit);
            if len > MAX_RUN {
                return Err(damaged(format!(
                    "a run of {len} values: {MAX_RUN} is the most"
                )));
            }
            self.left = len as usize;
            if packed {
                self.start_packed();
            } else {
                self.kind = Kind::Repeated(self.repeated_value()?);
            }
            if self.left > 0 {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The run at hand is packed, from here on.
    fn start_packed(&mut self) {
        let start = self.next;
        let width = usize::from(self.bit_width);
        if width == 0 {
            self.kind = Kind::Repeated(0);
            return;
        }
        self.kind = Kind::Packed { start, taken: 0 };
        let len = self.left / GROUP * width;
        let there = self.bytes.len() - start;
        if len <= there {
            self.next = start + len;
        } else {
            // Some writers leave out what fills up the last run: what is there counts.
            self.next = self.bytes.len();
            self.left = self.left.min(there * 8 / width);
        }
    }

    /// The value of an RLE run, in whole bytes.
    fn repeated_value(&mut self) -> Result<u32> {
        let len = usize::from(self.bit_width).div_ceil(8);
        let end = self.next + len;
        let bytes = self.bytes.get(self.next..end).ok_or_else(ends_early)?;
        self.next = end;
        let value = bytes
            .iter()
            .rev()
            .fold(0, |value, &byte| value << 8 | u64::from(byte));
        if value >> self.bit_width != 0 {
            return Err(damaged(format!(
                "a run of the value {value}, which has more than {} bits",
                self.bit_width
            )));
        }
        Ok(value as u32)
    }

    /// Fills `out` with the next values.
    ///
    /// # Errors
    /// Where there are fewer, or a run is damaged.
    pub(crate) fn read(&mut self, mut out: &mut [u32]) -> Result<()> {
        let width = self.bit_width();
        while !out.is_empty() {
            let run = self.next_run(out.len())?.ok_or_else(ends_early)?;
            let (now, rest) = match run {
                Run::Repeated { value, len } => {
                    let (now, rest) = out.split_at_mut(len);
                    now.fill(value);
                    (now, rest)
                }
                Run::Packed { bytes, first, len } => {
                    let (now, rest) = out.split_at_mut(len);
                    map_values(bytes, width, first, now, |group: [u32; GROUP]| group);
                    (now, rest)
                }
            };
            debug_assert!(!now.is_empty());
            out = rest;
        }
        Ok(())
    }

    /// Passes over `n` values.
    ///
    /// # Errors
    /// Where there are fewer, or a run is damaged.
    pub(crate) fn skip(&mut self, mut n: usize) -> Result<()> {
        while n > 0 {
            n -= match self.next_run(n)?.ok_or_else(ends_early)? {
                Run::Repeated { len, .. } | Run::Packed { len, .. } => len,
            };
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::is_early;
    use crate::write::encode::encode_indices;
    use proptest::prelude::*;

    fn read(bytes: &[u8], bit_width: u8, count: usize) -> Result<Vec<u32>> {
        let mut out = vec![9; count];
        Hybrid::try_new(Bytes::copy_from_slice(bytes), bit_width)?.read(&mut out)?;
        Ok(out)
    }

    #[test]
    fn runs_are_as_the_format_says() {
        // Five times 4 (of 3 bits, so one byte), then 0 to 7 packed as in the format's example, then 0 twice.
        let bytes = [
            5 << 1,
            4,
            1 << 1 | 1,
            0b1000_1000,
            0b1100_0110,
            0b1111_1010,
            2 << 1,
            0,
        ];
        let expected = [4, 4, 4, 4, 4, 0, 1, 2, 3, 4, 5, 6, 7, 0, 0];
        assert_eq!(read(&bytes, 3, 15).unwrap(), expected);
        assert!(is_early(&read(&bytes, 3, 16).unwrap_err()));
        // A value of 9 bits takes two bytes; 200 times is a header of two.
        assert_eq!(read(&[0x90, 3, 1, 1], 9, 200).unwrap(), [257; 200]);
        // No bits: no bytes but the headers.
        assert_eq!(read(&[3 << 1, 1 << 1 | 1], 0, 11).unwrap(), [0; 11]);
    }

    #[test]
    fn a_last_run_that_is_not_filled_up_counts_as_far_as_it_is_there() {
        let bytes = [2 << 1 | 1, 1, 2, 3];
        assert_eq!(read(&bytes, 8, 3).unwrap(), [1, 2, 3]);
        assert!(is_early(&read(&bytes, 8, 4).unwrap_err()));
        assert_eq!(read(&bytes, 12, 2).unwrap(), [0x201, 0x030]);
    }

    #[test]
    fn empty_runs_end_a_page_or_are_passed_over() {
        assert!(is_early(&read(&[0, 0, 2 << 1, 1], 1, 1).unwrap_err()));
        assert_eq!(read(&[1, 2 << 1, 1], 1, 2).unwrap(), [1, 1]);
    }

    #[test]
    fn damaged_runs_are_errors() {
        assert!(Hybrid::try_new(Bytes::new(), 33).is_err());
        // A value of more than one bit, a value that is missing, a run of 2^31.
        assert!(read(&[4, 2], 1, 1).is_err());
        assert!(read(&[4, 2], 9, 1).is_err());
        assert!(read(&[0x80, 0x80, 0x80, 0x80, 0x10, 0], 1, 1).is_err());
    }

    proptest! {
        #[test]
        fn what_is_encoded_is_read(
            pieces in prop::collection::vec((any::<u32>(), 1..40usize, any::<bool>()), 0..60),
            width in 0..=32u32, steps in prop::collection::vec((1..100usize, any::<bool>()), 1..20)
        ) {
            let mask = 1u64.unbounded_shl(width).wrapping_sub(1) as u32;
            let mut indices: Vec<u32> = Vec::new();
            for (seed, count, repeat) in pieces {
                indices.extend((0..count as u32).map(|i| {
                    let step = if repeat { 0 } else { i };
                    seed.wrapping_mul(step.wrapping_mul(77_777).wrapping_add(1)) & mask
                }));
            }
            let mut bytes = Vec::new();
            encode_indices(&indices, width, &mut bytes);
            let mut hybrid = Hybrid::try_new(bytes.into(), width as u8).unwrap();
            let mut at = 0;
            for &(step, skip) in steps.iter().cycle() {
                let step = step.min(indices.len() - at);
                if step == 0 {
                    break;
                }
                if skip {
                    hybrid.skip(step).unwrap();
                } else {
                    let mut out = vec![0; step];
                    hybrid.read(&mut out).unwrap();
                    prop_assert_eq!(&out, &indices[at..at + step]);
                }
                at += step;
            }
        }

        #[test]
        fn any_bytes_are_values_or_an_error(
            bytes in prop::collection::vec(any::<u8>(), 0..60), width in 0..=40u8, count in 0..600usize
        ) {
            let values = read(&bytes, width, count);
            if let (Ok(values), 0..32) = (&values, width) {
                prop_assert!(values.iter().all(|value| value >> width == 0));
            }
            if let Ok(mut hybrid) = Hybrid::try_new(bytes.into(), width) {
                prop_assert_eq!(hybrid.skip(count).is_ok(), values.is_ok());
            }
        }
    }
}
