//! Changes to bytes that follow from a number.

use std::ops::Range;

use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::{Rng, SeedableRng};

/// A stream of random numbers that is the same everywhere.
pub(crate) struct Random(Pcg64Mcg);

impl Random {
    /// The stream of one run of a campaign.
    pub(crate) fn new(seed: u64, run: u64) -> Self {
        Self(Pcg64Mcg::seed_from_u64(
            seed.rotate_left(32) ^ run.wrapping_mul(0x9e37_79b9_7f4a_7c15),
        ))
    }

    pub(crate) fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A number below `bound`, 0 where that is 0.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        (self.bits() % bound.max(1) as u64) as usize
    }

    pub(crate) fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }
}

/// Numbers at which something changes: limits of types, of windows and of framings.
const INTERESTING: [u64; 24] = [
    0,
    1,
    2,
    3,
    7,
    8,
    15,
    16,
    31,
    32,
    64,
    127,
    128,
    255,
    256,
    4096,
    0x7fff,
    0xffff,
    1 << 24,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_ffff,
    i64::MAX as u64,
    u64::MAX,
];

/// Changes `bytes` in one to some places inside `region`. `donor` is what splices come from. With `keep_len` nothing moves.
pub(crate) fn mutate(
    bytes: &mut Vec<u8>,
    region: Range<usize>,
    donor: &[u8],
    keep_len: bool,
    random: &mut Random,
) {
    // Most often one or two: one change reaches deeper than many.
    let changes = 1 + random.below(8) * random.below(2);
    for _ in 0..changes {
        let end = region.end.min(bytes.len());
        if region.start >= end {
            return;
        }
        let at = region.start + random.below(end - region.start);
        let left = end - at;
        match random.below(if keep_len { 8 } else { 13 }) {
            0 | 1 => bytes[at] ^= 1 << random.below(8),
            2 => bytes[at] = random.bits() as u8,
            3 => bytes[at] = *random.pick(&INTERESTING) as u8,
            4 => bytes[at] = bytes[at].wrapping_add(*random.pick(&[1, 2, 0xff, 0xfe])),
            5 => {
                let number = random.pick(&INTERESTING).to_le_bytes();
                let len = left.min(*random.pick(&[2, 4, 8]));
                bytes[at..at + len].copy_from_slice(&number[..len]);
            }
            6 => overwrite_varint(bytes, at..end, random),
            7 => {
                let len = left.min(1 + random.below(32));
                let from = random.below(donor.len().saturating_sub(len));
                if let Some(donated) = donor.get(from..from + len) {
                    bytes[at..at + len].copy_from_slice(donated);
                }
            }
            8 => bytes.truncate(at),
            9 => {
                let len = left.min(1 + random.below(64));
                drop(bytes.drain(at..at + len));
            }
            10 => {
                let len = left.min(1 + random.below(64));
                let again = bytes[at..at + len].to_vec();
                bytes.splice(at..at, again);
            }
            11 => {
                let new: Vec<u8> = (0..1 + random.below(16))
                    .map(|_| random.bits() as u8)
                    .collect();
                bytes.splice(at..at, new);
            }
            _ => {
                let mut number = Vec::new();
                write_varint(*random.pick(&INTERESTING), &mut number);
                let old = varint_len(&bytes[at..end]);
                bytes.splice(at..at + old, number);
            }
        }
    }
}

fn varint_len(bytes: &[u8]) -> usize {
    let last = bytes.iter().take(10).position(|byte| byte & 0x80 == 0);
    last.map_or(bytes.len().min(10), |last| last + 1)
}

fn write_varint(mut number: u64, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Replaces the varint at the start of `range` by another that takes as many bytes.
fn overwrite_varint(bytes: &mut [u8], range: Range<usize>, random: &mut Random) {
    let place = &mut bytes[range];
    let len = varint_len(place);
    let number = if random.below(2) == 0 {
        *random.pick(&INTERESTING)
    } else {
        random.bits() >> random.below(64)
    };
    for (i, byte) in place[..len].iter_mut().enumerate() {
        let more = if i + 1 < len { 0x80 } else { 0 };
        *byte = (number >> (7 * i)) as u8 & 0x7f | more;
    }
}

#[test]
fn changes_follow_from_their_number_and_stay_in_their_region() {
    let original: Vec<u8> = (0..200).collect();
    let changed = |run| {
        let mut bytes = original.clone();
        mutate(
            &mut bytes,
            50..100,
            &original,
            true,
            &mut Random::new(1, run),
        );
        bytes
    };
    let mut different = 0;
    for run in 0..2_000 {
        let bytes = changed(run);
        assert_eq!(bytes, changed(run));
        assert_eq!(bytes.len(), original.len());
        assert_eq!(
            (&bytes[..50], &bytes[100..]),
            (&original[..50], &original[100..])
        );
        different += usize::from(bytes != original);
        // And with all kinds of changes, any length is survived.
        let mut bytes = original[..run as usize % 40].to_vec();
        mutate(
            &mut bytes,
            0..usize::MAX,
            &original,
            false,
            &mut Random::new(2, run),
        );
    }
    assert!(different > 1_900, "{different}");
}
