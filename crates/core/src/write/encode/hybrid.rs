//! Dictionary indices as runs: RLE where one repeats, bit-packed elsewhere.
//!
//! A page's indices are at hand when it is finished, so they are encoded in one go, with no state. The
//! byte that says how wide indices are goes before them and is not written here.

use super::pack::{GROUP, Pack};
use super::varint;

/// Groups of a bit-packed run at most: its header is one byte then.
pub(super) const MAX_GROUPS: usize = 63;

/// An integer that indices are kept in.
pub(crate) trait Index: Copy + PartialEq + Into<u64> + Pack + Default {}

impl Index for u8 {}
impl Index for u16 {}
impl Index for u32 {}

/// Bytes that `count` indices of `width` bits take at most.
pub(crate) fn max_indices_len(count: usize, width: u32) -> usize {
    let groups = count.div_ceil(GROUP);
    // An RLE run is only made where it is not longer than the groups that it replaces, and the header
    // of the bit-packed run that it parts.
    groups * width as usize + groups / MAX_GROUPS + 2
}

/// Appends `indices`, none of which has more than `width` bits (32 at most).
pub(crate) fn encode_indices<T: Index>(indices: &[T], width: u32, out: &mut Vec<u8>) {
    let shortest = shortest_run(width);
    let mut rest = indices;
    while !rest.is_empty() {
        let packed = until_run(rest, shortest);
        let (values, after) = rest.split_at(packed);
        put_packed(values, width, out);
        let run = run_len(after);
        if let Some(&value) = after.first() {
            varint::put(out, (run as u64) << 1);
            let value: u64 = value.into();
            out.extend_from_slice(&value.to_le_bytes()[..width.div_ceil(8) as usize]);
        }
        rest = &after[run..];
    }
}

/// The shortest run of one value that is worth an RLE run: a header, the value, and the header of the
/// bit-packed run that goes on after it.
fn shortest_run(width: u32) -> usize {
    let rle = 2 + width.div_ceil(8);
    let groups = if width == 0 { 1 } else { rle.div_ceil(width) };
    GROUP * groups as usize
}

/// How many of `values` come before the first run of at least `shortest`: a multiple of a group, or all.
fn until_run<T: Index>(values: &[T], shortest: usize) -> usize {
    let mut at = 0;
    while let Some(group) = values[at..].first_chunk::<GROUP>() {
        // After a run that reaches the end nothing has to go on.
        let enough = shortest.min(values.len() - at);
        if group.iter().all(|value| *value == group[0]) && are_alike(&values[at..at + enough]) {
            return at;
        }
        at += GROUP;
    }
    // Fewer than a group are left: as an RLE run, if they are alike, they are not filled up.
    let tail = &values[at..];
    if are_alike(tail) { at } else { values.len() }
}

/// Whether all of `values` are the same.
fn are_alike<T: Index>(values: &[T]) -> bool {
    values.iter().all(|value| *value == values[0])
}

/// How many of the first values are alike.
fn run_len<T: Index>(values: &[T]) -> usize {
    let Some(&first) = values.first() else {
        return 0;
    };
    let (groups, _) = values.as_chunks::<GROUP>();
    // Whole groups are compared without a branch for each value.
    let same = |group: &&[T; GROUP]| {
        group
            .iter()
            .fold(true, |all, value| all & (*value == first))
    };
    let whole = GROUP * groups.iter().take_while(same).count();
    let rest = values[whole..].iter().take_while(|value| **value == first);
    whole + rest.count()
}

/// Appends `values` as bit-packed runs; the last group is filled up with zeros.
fn put_packed<T: Index>(values: &[T], width: u32, out: &mut Vec<u8>) {
    for run in values.chunks(MAX_GROUPS * GROUP) {
        let groups = run.len().div_ceil(GROUP);
        out.push((groups as u8) << 1 | 1);
        let start = out.len();
        out.resize(start + groups * width as usize, 0);
        let (whole, rest) = run.as_chunks::<GROUP>();
        let (packed, last) = out[start..].split_at_mut(whole.len() * width as usize);
        T::pack(whole.as_flattened(), width, packed);
        if !rest.is_empty() {
            let mut group = [T::default(); GROUP];
            group[..rest.len()].copy_from_slice(rest);
            T::pack(&group, width, last);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::write::encode::reference::decode_runs;
    use proptest::prelude::*;

    fn check<T: Index>(indices: &[T], width: u32) -> usize {
        let mut out = Vec::new();
        encode_indices(indices, width, &mut out);
        let expected: Vec<u64> = indices.iter().map(|&index| index.into()).collect();
        assert_eq!(decode_runs(&out, width, indices.len()), expected);
        assert!(
            out.len() <= max_indices_len(indices.len(), width),
            "{} at {width}",
            out.len()
        );
        out.len()
    }

    #[test]
    fn one_value_is_one_run() {
        for count in [1, 7, 8, 9, 63, 64, 1000, 1_000_003] {
            for width in [0, 1, 2, 8] {
                let header = varint_len(count << 1);
                let len = check(&vec![0u8; count], width);
                assert_eq!(len, header + usize::from(width > 0), "{count} at {width}");
            }
        }
    }

    fn varint_len(value: usize) -> usize {
        let mut out = Vec::new();
        varint::put(&mut out, value as u64);
        out.len()
    }

    #[test]
    fn no_indices_are_no_bytes() {
        assert_eq!(check::<u16>(&[], 9), 0);
    }

    #[test]
    fn short_runs_are_packed_where_that_is_shorter() {
        let indices: Vec<u8> = (0..800).map(|i| (i / 8 % 2) as u8).collect();
        assert!(check(&indices, 1) <= 103);
        assert!(check(&indices, 8) <= 200);
    }

    #[test]
    fn a_width_may_exceed_the_type() {
        check(&[1u8, 2, 3, 4, 5, 6, 7, 255, 9], 13);
    }

    proptest! {
        /// Runs of any length between values of any width.
        #[test]
        fn what_is_encoded_can_be_decoded(
            pieces in prop::collection::vec((any::<u32>(), 1..40usize, any::<bool>()), 0..60), width in 1..=32u32
        ) {
            let mut indices: Vec<u32> = Vec::new();
            for (seed, count, repeat) in pieces {
                indices.extend((0..count).map(|i| {
                    let step = if repeat { 0 } else { i as u32 };
                    seed.wrapping_mul(step.wrapping_mul(77_777).wrapping_add(1)) >> (32 - width)
                }));
            }
            check(&indices, width);
            if width <= 16 {
                check(&indices.iter().map(|&index| index as u16).collect::<Vec<_>>(), width);
            }
            if width <= 8 {
                check(&indices.iter().map(|&index| index as u8).collect::<Vec<_>>(), width);
            }
        }

        /// Runs as short as they can be, which cost the most.
        #[test]
        fn the_bound_holds(lens in prop::collection::vec(1..40usize, 0..200), width in 1..=9u32) {
            let indices: Vec<u16> = lens.iter().enumerate().flat_map(|(i, &len)| vec![(i % 2) as u16; len]).collect();
            check(&indices, width);
        }
    }
}
