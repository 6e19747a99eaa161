//! Draws a column's values from its distribution, a slice at a time.
//!
//! A null's value is drawn too and then dropped, so that a row holds the same
//! value whether or not other rows are null.

use std::collections::HashSet;
use std::hash::Hash;
use std::mem;

use bytes::Bytes;
use parquet::data_type::{ByteArray, FixedLenByteArray};

use crate::column::ColumnGroup;
use crate::distribution::{Distribution, Prefix, Scalar};
use crate::random::Stream;
use crate::value_type::ValueType;

/// Text is of these, so that every byte is one character and six random bits.
const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// Values of one Rust type, in slices.
pub(crate) trait Source<T> {
    /// Appends `count` values to `out`.
    fn fill(&mut self, stream: &mut Stream, count: usize, out: &mut Vec<T>);
}

/// Replaces a source by one that draws from `distinct` of its values.
pub(crate) fn pool<T: Clone + 'static>(
    mut source: Box<dyn Source<T>>,
    mut stream: Stream,
    distinct: usize,
    key: impl Fn(&T) -> Vec<u8>,
) -> Result<Box<dyn Source<T>>, String> {
    // Drawing all of n values from exactly n takes n ln n draws on average:
    // below 15 n for the largest pool that validation lets through.
    let most_draws = distinct * 64 + 1024;
    let mut seen = HashSet::with_capacity(distinct);
    let mut values = Vec::with_capacity(distinct);
    let mut drawn = Vec::with_capacity(1);
    for _ in 0..most_draws {
        source.fill(&mut stream, 1, &mut drawn);
        for value in drawn.drain(..) {
            if seen.insert(key(&value)) {
                values.push(value);
            }
        }
        if values.len() == distinct {
            return Ok(Box::new(Choices::equally(values)));
        }
    }
    Err(format!(
        "only {} distinct values were found, {distinct} were asked for; widen the range or the lengths",
        values.len()
    ))
}

/// One of a few values, by weight.
struct Choices<T> {
    values: Vec<T>,
    /// Running sums of the weights; empty where all are equal.
    sums: Vec<u64>,
}

impl<T> Choices<T> {
    fn equally(values: Vec<T>) -> Self {
        Self {
            values,
            sums: Vec::new(),
        }
    }

    fn weighted(values: Vec<T>, weights: Option<&[u32]>) -> Self {
        let mut sum = 0_u64;
        let sums = weights.unwrap_or_default().iter().map(|weight| {
            sum += u64::from(*weight);
            sum
        });
        Self {
            sums: sums.collect(),
            values,
        }
    }
}

impl<T: Clone> Source<T> for Choices<T> {
    fn fill(&mut self, stream: &mut Stream, count: usize, out: &mut Vec<T>) {
        match (self.values.as_slice(), self.sums.last()) {
            ([only], _) => out.extend(std::iter::repeat_n(only, count).cloned()),
            (values, None) => out.extend(
                (0..count).map(|_| values[stream.below(values.len() as u64) as usize].clone()),
            ),
            (values, Some(total)) => out.extend((0..count).map(|_| {
                let at = stream.below(*total);
                values[self.sums.partition_point(|sum| *sum <= at)].clone()
            })),
        }
    }
}

/// The values in turn, by row of the file.
struct Cycle<T> {
    row: u64,
    values: Vec<T>,
}

impl<T: Clone> Source<T> for Cycle<T> {
    fn fill(&mut self, _: &mut Stream, count: usize, out: &mut Vec<T>) {
        let first = (self.row % self.values.len() as u64) as usize;
        out.extend(self.values.iter().cycle().skip(first).take(count).cloned());
        self.row += count as u64;
    }
}

/// The source of a column whose definition lists its values; `first_row` is where the row group
/// begins in the file.
fn given<T: Clone + 'static>(
    group: &ColumnGroup,
    first_row: u64,
    value: impl Fn(&Scalar) -> T,
) -> Option<Box<dyn Source<T>>> {
    match group.values.as_ref()? {
        Distribution::Constant { value: only } => {
            Some(Box::new(Choices::equally(vec![value(only)])))
        }
        Distribution::Choices { values, weights } => {
            let values = values.iter().map(value).collect();
            Some(Box::new(Choices::weighted(values, weights.as_deref())))
        }
        Distribution::Cycle { values } => {
            let values = values.iter().map(value).collect();
            Some(Box::new(Cycle {
                row: first_row,
                values,
            }))
        }
        Distribution::Uniform { .. }
        | Distribution::Sequence { .. }
        | Distribution::Text { .. } => None,
    }
}

/// An integer as the parquet crate stores it. Unsigned types keep their bits.
pub(crate) trait Integer: Copy + Eq + Hash + 'static {
    fn from_wide(value: i64) -> Self;
}

impl Integer for i32 {
    #[inline]
    fn from_wide(value: i64) -> Self {
        value as Self
    }
}

impl Integer for i64 {
    #[inline]
    fn from_wide(value: i64) -> Self {
        value
    }
}

struct UniformIntegers {
    min: i64,
    /// The number of values, or 0 for all of them.
    span: u64,
}

impl<T: Integer> Source<T> for UniformIntegers {
    fn fill(&mut self, stream: &mut Stream, count: usize, out: &mut Vec<T>) {
        let (min, span) = (self.min, self.span);
        out.extend((0..count).map(|_| {
            let offset = if span == 0 {
                stream.bits()
            } else {
                stream.below(span)
            };
            T::from_wide(min.wrapping_add(offset.cast_signed()))
        }));
    }
}

struct Sequence {
    row: u64,
    start: i64,
    step: i64,
    repeat: u64,
}

impl<T: Integer> Source<T> for Sequence {
    fn fill(&mut self, _: &mut Stream, count: usize, out: &mut Vec<T>) {
        let rows = self.row..self.row + count as u64;
        out.extend(rows.map(|row| {
            let steps = (row / self.repeat).cast_signed();
            T::from_wide(self.start.wrapping_add(self.step.wrapping_mul(steps)))
        }));
        self.row += count as u64;
    }
}

/// The source of a type that is stored as an integer; `first_row` as for [`given`].
pub(crate) fn integers<T: Integer>(
    group: &ColumnGroup,
    range: (i64, i64),
    first_row: u64,
) -> Box<dyn Source<T>> {
    let wide = |value: &Scalar| T::from_wide(value.integer().unwrap_or_default());
    if let Some(source) = given(group, first_row, wide) {
        return source;
    }
    let (min, max) = match &group.values {
        Some(Distribution::Sequence {
            start,
            step,
            repeat,
        }) => {
            return Box::new(Sequence {
                row: first_row,
                start: *start,
                step: *step,
                repeat: *repeat,
            });
        }
        Some(Distribution::Uniform { min, max }) => (
            min.integer().unwrap_or(range.0),
            max.integer().unwrap_or(range.1),
        ),
        _ => range,
    };
    Box::new(UniformIntegers {
        min,
        span: max.abs_diff(min).wrapping_add(1),
    })
}

pub(crate) struct UniformFloats {
    min: f64,
    width: f64,
}

impl Source<f32> for UniformFloats {
    fn fill(&mut self, stream: &mut Stream, count: usize, out: &mut Vec<f32>) {
        let (min, width) = (self.min, self.width);
        out.extend((0..count).map(|_| (min + stream.unit() * width) as f32));
    }
}

impl Source<f64> for UniformFloats {
    fn fill(&mut self, stream: &mut Stream, count: usize, out: &mut Vec<f64>) {
        let (min, width) = (self.min, self.width);
        out.extend((0..count).map(|_| min + stream.unit() * width));
    }
}

/// The source of a float column; `cast` makes a float of its type.
pub(crate) fn floats<T: Clone + 'static>(
    group: &ColumnGroup,
    first_row: u64,
    cast: impl Fn(f64) -> T,
) -> Box<dyn Source<T>>
where
    UniformFloats: Source<T>,
{
    let float = |value: &Scalar| value.float().unwrap_or_default();
    if let Some(source) = given(group, first_row, |value| cast(float(value))) {
        return source;
    }
    let (min, max) = match &group.values {
        Some(Distribution::Uniform { min, max }) => (float(min), float(max)),
        _ => (-1.0, 1.0),
    };
    Box::new(UniformFloats {
        min,
        width: max - min,
    })
}

struct Coin;

impl Source<bool> for Coin {
    fn fill(&mut self, stream: &mut Stream, count: usize, out: &mut Vec<bool>) {
        out.extend((0..count).map(|_| stream.bits() >> 63 == 1));
    }
}

pub(crate) fn booleans(group: &ColumnGroup, first_row: u64) -> Box<dyn Source<bool>> {
    let boolean = |value: &Scalar| value.boolean().unwrap_or_default();
    given(group, first_row, boolean).unwrap_or_else(|| Box::new(Coin))
}

/// A value made of bytes, as the parquet crate has them.
pub(crate) trait ByteValue: Clone + 'static {
    fn from_bytes(bytes: Bytes) -> Self;
    fn as_bytes(&self) -> &[u8];
}

impl ByteValue for ByteArray {
    fn from_bytes(bytes: Bytes) -> Self {
        bytes.into()
    }
    fn as_bytes(&self) -> &[u8] {
        self.data()
    }
}

impl ByteValue for FixedLenByteArray {
    fn from_bytes(bytes: Bytes) -> Self {
        ByteArray::from(bytes).into()
    }
    fn as_bytes(&self) -> &[u8] {
        self.data()
    }
}

struct Text {
    letters: bool,
    lengths: (usize, usize),
    prefix: Prefix,
    /// The shared prefix itself, or as long as a partial one can be.
    shared: Vec<u8>,
    previous: Vec<u8>,
}

impl Text {
    fn append_random(&self, stream: &mut Stream, bytes: &mut Vec<u8>, end: usize) {
        let start = bytes.len();
        bytes.resize(end, 0);
        if self.letters {
            for chunk in bytes[start..].chunks_mut(10) {
                let mut bits = stream.bits();
                for byte in chunk {
                    *byte = LETTERS[(bits & 63) as usize];
                    bits >>= 6;
                }
            }
        } else {
            stream.fill(&mut bytes[start..]);
        }
    }
}

impl<T: ByteValue> Source<T> for Text {
    /// All values of a slice share one allocation.
    fn fill(&mut self, stream: &mut Stream, count: usize, out: &mut Vec<T>) {
        let (least, most) = self.lengths;
        let mut bytes = Vec::with_capacity(count * (least + most).div_ceil(2));
        let mut ends = Vec::with_capacity(count);
        let mut previous = mem::take(&mut self.previous);
        for _ in 0..count {
            let length = least + stream.below((most - least) as u64 + 1) as usize;
            let start = bytes.len();
            match self.prefix {
                Prefix::Distinct => {}
                Prefix::Shared => bytes.extend_from_slice(&self.shared),
                Prefix::Partial => {
                    let bound = self.shared.len().min(previous.len()).min(length);
                    let kept = stream.below(bound as u64 + 1) as usize;
                    bytes.extend_from_slice(&previous[..kept]);
                }
            }
            self.append_random(stream, &mut bytes, start + length);
            if self.prefix == Prefix::Partial {
                previous.clear();
                previous.extend_from_slice(&bytes[start..]);
            }
            ends.push(bytes.len());
        }
        self.previous = previous;
        let bytes = Bytes::from(bytes);
        let mut start = 0;
        out.extend(ends.into_iter().map(|end| {
            let value = T::from_bytes(bytes.slice(start..end));
            start = end;
            value
        }));
    }
}

/// The source of a text or binary column; `shared` draws a shared prefix, the
/// same in every row group.
pub(crate) fn texts<T: ByteValue>(
    group: &ColumnGroup,
    first_row: u64,
    mut shared: Stream,
) -> Box<dyn Source<T>> {
    let text = |value: &Scalar| {
        T::from_bytes(Bytes::copy_from_slice(
            value.text().unwrap_or_default().as_bytes(),
        ))
    };
    if let Some(source) = given(group, first_row, text) {
        return source;
    }
    let (lengths, prefix, prefix_length) = match &group.values {
        Some(Distribution::Text {
            min_length,
            max_length,
            prefix,
            prefix_length,
        }) => ((*min_length, *max_length), *prefix, *prefix_length),
        _ => {
            let lengths = group
                .value_type
                .plain_width()
                .map_or(crate::distribution::DEFAULT_TEXT, |width| (width, width));
            (lengths, Prefix::Distinct, 0)
        }
    };
    let mut source = Text {
        letters: group.value_type == ValueType::String,
        lengths,
        prefix,
        shared: Vec::new(),
        previous: Vec::new(),
    };
    let mut bytes = Vec::new();
    source.append_random(&mut shared, &mut bytes, prefix_length);
    source.shared = bytes;
    Box::new(source)
}
