//! Values of BYTE_ARRAY, by encoding, and the arrays that they become: [`ByteArrays`].

pub(crate) mod delta_bytes;
pub(crate) mod delta_length;
pub(crate) mod dictionary;
pub(crate) mod plain;

use arrow_array::OffsetSizeTrait;
use parquet::errors::{ParquetError, Result};

use super::spread::spread_offsets;
use crate::decode::damaged;
use crate::decode::validity::Validity;

/// Lengths or indices that are looked at at once.
const BATCH: usize = 256;

/// Bytes of a value that are copied without asking how many it has.
const SHORT: usize = 16;

/// A position in the byte arrays of a page.
pub(crate) trait ByteValues<O: OffsetSizeTrait> {
    /// Appends the next `n` values to `out`.
    ///
    /// # Errors
    /// Where there are fewer, the page is damaged, offsets overflow, or, if `out` is text, it is no UTF-8. What was appended
    /// until then means nothing.
    fn read(&mut self, n: usize, out: &mut ByteArrays<O>) -> Result<()>;

    /// Passes over the next `n` values. Their text is not checked.
    ///
    /// # Errors
    /// Where there are fewer, or the page is damaged.
    fn skip(&mut self, n: usize) -> Result<()>;
}

/// Byte arrays as arrow has them: where each ends, and all their bytes.
#[derive(Debug)]
pub(crate) struct ByteArrays<O> {
    /// Where values start and end; one more than there are values.
    pub(crate) offsets: Vec<O>,
    /// The bytes of all values.
    pub(crate) values: Vec<u8>,
    /// Whether they are text, which must be UTF-8.
    is_text: bool,
}

impl<O: OffsetSizeTrait> ByteArrays<O> {
    /// No values yet, with room for `rows` offsets. `is_text` if they must be UTF-8.
    pub(crate) fn new(rows: usize, is_text: bool) -> Self {
        let mut offsets = Vec::with_capacity(rows.saturating_add(1));
        offsets.push(O::default());
        Self {
            offsets,
            values: Vec::new(),
            is_text,
        }
    }

    /// Values so far.
    pub(crate) fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Bytes of heap that are held.
    #[cfg(test)]
    pub(crate) fn heap_bytes(&self) -> usize {
        self.offsets.capacity() * size_of::<O>() + self.values.capacity()
    }

    /// Moves the values after the first `start` to their rows, the last `rows` of `validity`; null rows are empty.
    pub(crate) fn spread(&mut self, start: usize, validity: &Validity, rows: usize) {
        spread_offsets(&mut self.offsets, start + 1, validity, rows);
    }

    /// Checks the values after the first `start`, if they are text.
    fn check_text(&self, start: usize) -> Result<()> {
        if self.is_text {
            check_text(&self.values, &self.offsets[start..])?;
        }
        Ok(())
    }
}

/// Makes room for `additional` bytes of values, for exactly so many if they are the first. `most` is the largest offset.
///
/// # Errors
/// Where there would be more bytes than `most`, or there is no memory.
fn reserve(values: &mut Vec<u8>, additional: usize, most: usize) -> Result<()> {
    let end = values.len().saturating_add(additional);
    if end > most {
        return Err(ParquetError::General(format!(
            "a batch has {end} bytes of values, and offsets reach {most}: ask for fewer rows at once"
        )));
    }
    let capacity = values.capacity();
    if end > capacity {
        // A batch of many small pages must not move with each of them, and doubling would cost as much again.
        let least = end.max(capacity + capacity / 4) - values.len();
        let reserved = values.try_reserve_exact(least);
        reserved.map_err(|error| ParquetError::General(error.to_string()))?;
    }
    Ok(())
}

/// Appends `len` bytes to `values`, for [`copy`] to be put there. As [`reserve`] otherwise.
fn grow(values: &mut Vec<u8>, len: usize, most: usize) -> Result<&mut [u8]> {
    reserve(values, len, most)?;
    let start = values.len();
    values.resize(start + len, 0);
    Ok(&mut values[start..])
}

/// Checks that each value of `values` between neighbours of `offsets` is UTF-8; the last of them ends `values`.
fn check_text<O: OffsetSizeTrait>(values: &[u8], offsets: &[O]) -> Result<()> {
    let start = offsets.first().map_or(0, |start| start.as_usize());
    let text = values.get(start..).unwrap_or_default();
    if text.is_ascii() {
        return Ok(());
    }
    // If all of it is, and no value starts within a character, each of them is.
    let within = |offset: &O| {
        values
            .get(offset.as_usize())
            .is_some_and(|&byte| byte & 0xc0 == 0x80)
    };
    if simdutf8::basic::from_utf8(text).is_err() || offsets.iter().any(within) {
        return Err(damaged(
            "a page of text holds bytes that are no valid UTF-8",
        ));
    }
    Ok(())
}

/// Copies the `len` bytes of `from` after the first `start` to where `at` of `to` is. What follows there can be overwritten too.
///
/// # Panics
/// If either has fewer bytes.
#[inline(always)]
fn copy(to: &mut [u8], at: usize, from: &[u8], start: usize, len: usize) {
    // Most values are short. To copy a constant length is a few instructions, and a call for any other.
    if len <= SHORT
        && let Some(to) = to.get_mut(at..).and_then(<[u8]>::first_chunk_mut::<SHORT>)
        && let Some(from) = from.get(start..).and_then(<[u8]>::first_chunk)
    {
        *to = *from;
    } else {
        to[at..at + len].copy_from_slice(&from[start..start + len]);
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The values of `arrays`.
    pub(crate) fn values<O: OffsetSizeTrait>(arrays: &ByteArrays<O>) -> Vec<&[u8]> {
        let value = |ends: &[O]| &arrays.values[ends[0].as_usize()..ends[1].as_usize()];
        arrays.offsets.windows(2).map(value).collect()
    }

    /// Reads and skips `steps` again and again, until all of `expected` was; then there must be no more.
    pub(crate) fn check<D: ByteValues<i32> + ByteValues<i64>>(
        mut decoder: D,
        expected: &[Vec<u8>],
        steps: &[(usize, bool)],
    ) {
        let mut narrow = ByteArrays::<i32>::new(expected.len(), false);
        let mut wide = ByteArrays::<i64>::new(0, false);
        let (mut read_narrow, mut read_wide) = (Vec::new(), Vec::new());
        let mut at = 0;
        for (i, &(step, skip)) in steps.iter().cycle().enumerate() {
            let step = step.min(expected.len() - at);
            if step == 0 {
                break;
            }
            let now = expected[at..at + step].iter().map(Vec::as_slice);
            if skip {
                ByteValues::<i32>::skip(&mut decoder, step).unwrap();
            } else if i % 2 == 0 {
                decoder.read(step, &mut narrow).unwrap();
                read_narrow.extend(now);
            } else {
                decoder.read(step, &mut wide).unwrap();
                read_wide.extend(now);
            }
            at += step;
        }
        assert_eq!(values(&narrow), read_narrow);
        assert_eq!(values(&wide), read_wide);
        // Indices can have up to seven more, which fill the last group up.
        assert!(decoder.read(8, &mut wide).is_err());
        assert!(ByteValues::<i32>::skip(&mut decoder, 8).is_err());
    }

    /// Values that begin alike, most of them short.
    pub(crate) fn some_values() -> impl Strategy<Value = Vec<Vec<u8>>> {
        let value = prop_oneof![
            4 => prop::collection::vec(0..3u8, 0..24),
            1 => prop::collection::vec(0..2u8, 0..90),
        ];
        prop::collection::vec(value, 0..300)
    }

    /// Steps of reading (`false`) and skipping.
    pub(crate) fn some_steps() -> impl Strategy<Value = Vec<(usize, bool)>> {
        let some = prop::collection::vec((1..150usize, any::<bool>()), 0..6);
        some.prop_map(|steps| [&steps[..], &[(9, false)]].concat())
    }

    #[test]
    fn text_is_utf8_value_by_value() {
        let check = |text: &str, offsets: &[i32]| check_text(text.as_bytes(), offsets).is_ok();
        assert!(check("aé", &[0, 1, 3, 3]));
        assert!(!check("aé", &[0, 2, 3]));
        assert!(check("", &[0]));
        // What is before the first value is none of these.
        assert!(check_text(b"\xffabc", &[1, 2, 4]).is_ok());
        assert!(check_text(b"\xffabc", &[0, 4]).is_err());
        assert!(check_text("é".as_bytes(), &[1, 2]).is_err());
    }

    #[test]
    fn offsets_that_overflow_are_an_error() {
        let mut values = vec![0; 9];
        assert!(reserve(&mut values, 11, 19).is_err());
        reserve(&mut values, 10, 19).unwrap();
        assert!(reserve(&mut values, usize::MAX, 19).is_err());
        // There is no such memory, which is an error too.
        let most = i64::MAX as usize;
        assert!(reserve(&mut values, most - 9, most).is_err());
    }

    #[test]
    fn room_is_made_as_asked_at_first_and_by_a_quarter_at_least() {
        let mut arrays = ByteArrays::<i32>::new(3, false);
        assert_eq!(arrays.heap_bytes(), 16);
        grow(&mut arrays.values, 1000, 2000).unwrap();
        assert_eq!(arrays.heap_bytes(), 1016);
        grow(&mut arrays.values, 1, 2000).unwrap();
        assert_eq!(arrays.heap_bytes(), 1266);
    }

    #[test]
    fn null_rows_are_empty() {
        let mut validity = Validity::new(0);
        validity.append_valid(1);
        validity.append_packed(&[0b0010_0100], 1, 6);
        let mut arrays = ByteArrays::<i32> {
            offsets: vec![0, 2, 3, 7],
            values: b"aabcccc".to_vec(),
            is_text: false,
        };
        arrays.spread(1, &validity, 6);
        let expected: [&[u8]; 7] = [b"aa", b"", b"b", b"", b"", b"cccc", b""];
        assert_eq!(values(&arrays), expected);
    }
}
