//! Minimum, maximum and counts of a page and of a chunk, and how they are cut short.
//!
//! The rules are the format's (`Statistics` in parquet.thrift, PageIndex.md), in the parquet crate's reading:
//! floating point in IEEE 754 total order with NaN left out unless there is nothing else.

use std::cmp::Ordering;

use super::plan::{ColumnPlan, ValueOrder};

/// A value of a column, as statistics hold it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value {
    Bool(bool),
    I32(i32),
    I64(i64),
    F32(f32),
    F64(f64),
    Bytes(Box<[u8]>),
}

impl Value {
    /// Calls `f` with the value as PLAIN stores it, without the length of a byte array.
    pub(crate) fn with_bytes<T>(&self, f: impl FnOnce(&[u8]) -> T) -> T {
        match self {
            Self::Bool(v) => f(&[u8::from(*v)]),
            Self::I32(v) => f(&v.to_le_bytes()),
            Self::I64(v) => f(&v.to_le_bytes()),
            Self::F32(v) => f(&v.to_le_bytes()),
            Self::F64(v) => f(&v.to_le_bytes()),
            Self::Bytes(v) => f(v),
        }
    }

    fn is_nan(&self, order: ValueOrder) -> bool {
        match self {
            Self::F32(v) => v.is_nan(),
            Self::F64(v) => v.is_nan(),
            Self::Bytes(v) => order == ValueOrder::Float16 && is_nan16(v),
            _ => false,
        }
    }

    fn compare(&self, other: &Self, order: ValueOrder) -> Ordering {
        match (self, other) {
            (Self::Bool(a), Self::Bool(b)) => a.cmp(b),
            (Self::I32(a), Self::I32(b)) if order == ValueOrder::Unsigned => {
                (*a as u32).cmp(&(*b as u32))
            }
            (Self::I64(a), Self::I64(b)) if order == ValueOrder::Unsigned => {
                (*a as u64).cmp(&(*b as u64))
            }
            (Self::I32(a), Self::I32(b)) => a.cmp(b),
            (Self::I64(a), Self::I64(b)) => a.cmp(b),
            (Self::F32(a), Self::F32(b)) => a.total_cmp(b),
            (Self::F64(a), Self::F64(b)) => a.total_cmp(b),
            (Self::Bytes(a), Self::Bytes(b)) => compare_bytes(a, b, order),
            // A column has values of one kind.
            _ => Ordering::Equal,
        }
    }

    /// Bytes in the heap.
    pub(crate) fn heap_bytes(&self) -> usize {
        match self {
            Self::Bytes(v) => v.len(),
            _ => 0,
        }
    }
}

/// Compares two byte arrays by the order of their column.
pub(crate) fn compare_bytes(a: &[u8], b: &[u8], order: ValueOrder) -> Ordering {
    match order {
        ValueOrder::Decimal => compare_decimals(a, b),
        ValueOrder::Float16 => key16(a).cmp(&key16(b)),
        _ => a.cmp(b),
    }
}

/// A half-precision number as an integer in total order.
fn key16(bytes: &[u8]) -> i16 {
    let bits = i16::from_le_bytes([
        bytes.first().copied().unwrap_or_default(),
        bytes.get(1).copied().unwrap_or_default(),
    ]);
    bits ^ (((bits >> 15) as u16) >> 1) as i16
}

/// Whether a half-precision number is NaN.
pub(crate) fn is_nan16(bytes: &[u8]) -> bool {
    matches!(bytes, [low, high] if u16::from_le_bytes([*low, *high]) & 0x7fff > 0x7c00)
}

/// Compares big-endian two's complement numbers of any length.
fn compare_decimals(a: &[u8], b: &[u8]) -> Ordering {
    let negative = |v: &[u8]| v.first().is_some_and(|byte| byte & 0x80 != 0);
    match (negative(a), negative(b)) {
        (true, false) => return Ordering::Less,
        (false, true) => return Ordering::Greater,
        _ => {}
    }
    // Of one sign: as unsigned numbers, once both are as long.
    let fill = if negative(a) { 0xff } else { 0 };
    let len = a.len().max(b.len());
    let digits = |v: &[u8], i: usize| {
        (i + v.len())
            .checked_sub(len)
            .and_then(|at| v.get(at).copied())
            .unwrap_or(fill)
    };
    (0..len)
        .map(|i| digits(a, i).cmp(&digits(b, i)))
        .find(|order| order.is_ne())
        .unwrap_or(Ordering::Equal)
}

/// The least and the greatest value of some.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Extremes {
    pub(crate) min: Value,
    pub(crate) max: Value,
}

impl Extremes {
    /// Takes in the extremes of further values.
    pub(crate) fn merge(into: &mut Option<Self>, more: Self, order: ValueOrder) {
        let Some(have) = into else {
            *into = Some(more);
            return;
        };
        if better(&have.min, &more.min, order, Ordering::Greater) {
            have.min = more.min;
        }
        if better(&have.max, &more.max, order, Ordering::Less) {
            have.max = more.max;
        }
    }

    /// The same for byte arrays, which are copied only if they are extremes.
    pub(crate) fn merge_bytes(into: &mut Option<Self>, min: &[u8], max: &[u8], order: ValueOrder) {
        let boxed = |bytes: &[u8]| Value::Bytes(bytes.into());
        let Some(have) = into else {
            *into = Some(Self {
                min: boxed(min),
                max: boxed(max),
            });
            return;
        };
        if order == ValueOrder::Float16 {
            let more = Self {
                min: boxed(min),
                max: boxed(max),
            };
            Self::merge(into, more, order);
            return;
        }
        if let Value::Bytes(old) = &have.min
            && compare_bytes(old, min, order).is_gt()
        {
            have.min = boxed(min);
        }
        if let Value::Bytes(old) = &have.max
            && compare_bytes(old, max, order).is_lt()
        {
            have.max = boxed(max);
        }
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        self.min.heap_bytes() + self.max.heap_bytes()
    }
}

/// Whether `new` takes the place of `old`, which does if `old` compares to it as `when` or is NaN.
fn better(old: &Value, new: &Value, order: ValueOrder, when: Ordering) -> bool {
    match (old.is_nan(order), new.is_nan(order)) {
        (false, true) => false,
        (true, false) => true,
        _ => old.compare(new, order) == when,
    }
}

/// Whether extremes of pages that follow each other rise, fall, or neither.
#[derive(Debug, Clone)]
pub(crate) struct Boundary {
    ascending: bool,
    descending: bool,
    last: Option<Extremes>,
}

impl Default for Boundary {
    fn default() -> Self {
        Self {
            ascending: true,
            descending: true,
            last: None,
        }
    }
}

impl Boundary {
    pub(crate) fn add(&mut self, page: &Extremes, order: ValueOrder) {
        if let Some(last) = &self.last {
            let min = last.min.compare(&page.min, order);
            let max = last.max.compare(&page.max, order);
            self.ascending &= min.is_le() && max.is_le();
            self.descending &= min.is_ge() && max.is_ge();
        }
        self.last = Some(page.clone());
    }

    /// The number that the format has for it (`BoundaryOrder` in parquet.thrift).
    pub(crate) fn code(&self) -> i32 {
        match (self.ascending, self.descending) {
            (true, _) => 1,
            (false, true) => 2,
            (false, false) => 0,
        }
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        self.last.as_ref().map_or(0, Extremes::heap_bytes)
    }
}

/// A minimum of at most `limit` bytes that is not above `bytes`; `None` if `bytes` is short enough or has no such
/// prefix.
pub(crate) fn truncate_min(
    bytes: &[u8],
    limit: Option<usize>,
    plan: &ColumnPlan,
) -> Option<Vec<u8>> {
    let limit = limit.filter(|limit| bytes.len() > *limit && plan.can_truncate())?;
    match plan.utf8.then(|| std::str::from_utf8(bytes)) {
        Some(Ok(text)) => {
            let end = (1..=limit).rfind(|at| text.is_char_boundary(*at))?;
            Some(bytes[..end].to_vec())
        }
        _ => Some(bytes[..limit].to_vec()),
    }
}

/// A maximum of at most `limit` bytes that is above `bytes`; `None` if `bytes` is short enough or there is none.
pub(crate) fn truncate_max(
    bytes: &[u8],
    limit: Option<usize>,
    plan: &ColumnPlan,
) -> Option<Vec<u8>> {
    let limit = limit.filter(|limit| bytes.len() > *limit && plan.can_truncate())?;
    match plan.utf8.then(|| std::str::from_utf8(bytes)) {
        Some(Ok(text)) => {
            let end = (limit.saturating_sub(3)..=limit).rfind(|at| text.is_char_boundary(*at))?;
            next_text(&text[..end])
        }
        _ => {
            let mut cut = bytes[..limit].to_vec();
            let last = cut.iter().rposition(|byte| *byte != u8::MAX)?;
            cut[last] += 1;
            // What follows has wrapped to the smallest; as in the parquet crate, it stays.
            cut[last + 1..].fill(0);
            Some(cut)
        }
    }
}

/// A text as short or shorter that sorts after every text that begins with `text`.
fn next_text(text: &str) -> Option<Vec<u8>> {
    text.char_indices().rev().find_map(|(at, last)| {
        let next = char::from_u32(last as u32 + 1)?;
        // A longer character would make the limit wrong.
        (next.len_utf8() == last.len_utf8()).then(|| {
            let mut longer = text.as_bytes()[..at].to_vec();
            longer.extend_from_slice(next.encode_utf8(&mut [0; 4]).as_bytes());
            longer
        })
    })
}

macro_rules! integer_extremes {
    ($name:ident, $signed:ty, $unsigned:ty, $variant:ident) => {
        /// The extremes of `values`, or `None` if there are none.
        pub(crate) fn $name(values: &[$signed], order: ValueOrder) -> Option<Extremes> {
            let first = *values.first()?;
            let (min, max) = if order == ValueOrder::Unsigned {
                let (mut min, mut max) = (first as $unsigned, first as $unsigned);
                for value in values {
                    min = min.min(*value as $unsigned);
                    max = max.max(*value as $unsigned);
                }
                (min as $signed, max as $signed)
            } else {
                let (mut min, mut max) = (first, first);
                for value in values {
                    min = min.min(*value);
                    max = max.max(*value);
                }
                (min, max)
            };
            Some(Extremes {
                min: Value::$variant(min),
                max: Value::$variant(max),
            })
        }
    };
}

integer_extremes!(extremes_i32, i32, u32, I32);
integer_extremes!(extremes_i64, i64, u64, I64);

macro_rules! float_extremes {
    ($name:ident, $float:ty, $int:ty, $uint:ty, $variant:ident) => {
        /// The extremes of `values` and how many are NaN, or `None` if there are none.
        pub(crate) fn $name(values: &[$float]) -> Option<(Extremes, u64)> {
            // The order of these integers is the total order of the numbers.
            let key = |bits: $int| bits ^ (((bits >> (<$int>::BITS - 1)) as $uint) >> 1) as $int;
            let (mut min, mut max, mut nans) = (<$int>::MAX, <$int>::MIN, 0u64);
            for value in values {
                let nan = value.is_nan();
                let k = key(value.to_bits() as $int);
                min = min.min(if nan { <$int>::MAX } else { k });
                max = max.max(if nan { <$int>::MIN } else { k });
                nans += u64::from(nan);
            }
            if nans == values.len() as u64 {
                let keys = || values.iter().map(|value| key(value.to_bits() as $int));
                min = keys().min()?;
                max = keys().max()?;
            }
            let number = |k: $int| <$float>::from_bits(key(k) as $uint);
            let extremes = Extremes {
                min: Value::$variant(number(min)),
                max: Value::$variant(number(max)),
            };
            Some((extremes, nans))
        }
    };
}

float_extremes!(extremes_f32, f32, i32, u32, F32);
float_extremes!(extremes_f64, f64, i64, u64, F64);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn nan_is_left_out_unless_there_is_nothing_else() {
        let (extremes, nans) = extremes_f64(&[f64::NAN, -0.0, 0.0, f64::NAN]).unwrap();
        assert_eq!(nans, 2);
        assert_eq!(
            extremes.min.with_bytes(<[u8]>::to_vec),
            (-0.0f64).to_le_bytes()
        );
        assert_eq!(
            extremes.max.with_bytes(<[u8]>::to_vec),
            0.0f64.to_le_bytes()
        );
        let (extremes, nans) = extremes_f32(&[f32::NAN]).unwrap();
        assert_eq!(nans, 1);
        assert!(matches!(extremes.min, Value::F32(v) if v.is_nan()));
        let mut all = Some(extremes);
        let (more, _) = extremes_f32(&[3.0]).unwrap();
        Extremes::merge(&mut all, more, ValueOrder::Float);
        assert_eq!(all.unwrap().max, Value::F32(3.0));
    }

    proptest! {
        #[test]
        fn decimals_of_any_length_compare_as_numbers(a: i64, b: i64, cut_a in 0usize..7, cut_b in 0usize..7) {
            // Leading bytes that only repeat the sign can be left out.
            let bytes = |v: i64, cut: usize| {
                let all = v.to_be_bytes();
                let fill = if v < 0 { 0xff } else { 0 };
                let mut at = 0;
                while at < cut && all[at] == fill && (all[at + 1] & 0x80) == (fill & 0x80) {
                    at += 1;
                }
                all[at..].to_vec()
            };
            prop_assert_eq!(compare_decimals(&bytes(a, cut_a), &bytes(b, cut_b)), a.cmp(&b));
        }

        #[test]
        fn half_precision_sorts_as_single(a: u16, b: u16) {
            let order = |x: u16, y: u16| key16(&x.to_le_bytes()).cmp(&key16(&y.to_le_bytes()));
            let mapped = |x: u16| (x as i16) ^ (((x as i16 >> 15) as u16) >> 1) as i16;
            prop_assert_eq!(order(a, b), mapped(a).cmp(&mapped(b)));
        }
    }
}
