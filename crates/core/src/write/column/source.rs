//! A column of a batch, as its physical values.
//!
//! Where Arrow's buffer is what Parquet stores, it is read in place; other types are converted some rows at
//! a time, so that no second copy of the column exists.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::{
    Array, ArrayRef, ArrowPrimitiveType, BinaryViewArray, StringViewArray, downcast_run_array,
};
use arrow_buffer::{BooleanBuffer, NullBuffer};
use arrow_schema::{DataType, IntervalUnit, TimeUnit};
use parquet::errors::{ParquetError, Result};

use super::plan::Physical;

/// Byte arrays by row.
pub(crate) trait ByteValues {
    /// The value of a row.
    fn value(&self, row: usize) -> &[u8];

    /// Bytes of the values of `rows`, those of null rows perhaps included.
    fn bytes_of(&self, rows: Range<usize>) -> usize {
        rows.map(|row| self.value(row).len()).sum()
    }
}

#[cfg(test)]
impl ByteValues for &[&[u8]] {
    fn value(&self, row: usize) -> &[u8] {
        self[row]
    }
}

/// Values between offsets of four or eight bytes.
pub(crate) struct Offset<'a, O> {
    offsets: &'a [O],
    data: &'a [u8],
}

impl<O: Copy + TryInto<usize>> Offset<'_, O> {
    #[inline]
    fn at(&self, row: usize) -> usize {
        // Offsets of a valid array are not negative.
        self.offsets[row].try_into().unwrap_or_default()
    }
}

impl<O: Copy + TryInto<usize>> ByteValues for Offset<'_, O> {
    #[inline]
    fn value(&self, row: usize) -> &[u8] {
        &self.data[self.at(row)..self.at(row + 1)]
    }

    fn bytes_of(&self, rows: Range<usize>) -> usize {
        self.at(rows.end) - self.at(rows.start)
    }
}

impl ByteValues for &StringViewArray {
    #[inline]
    fn value(&self, row: usize) -> &[u8] {
        StringViewArray::value(self, row).as_bytes()
    }

    fn bytes_of(&self, rows: Range<usize>) -> usize {
        view_bytes(&self.views()[rows])
    }
}

impl ByteValues for &BinaryViewArray {
    #[inline]
    fn value(&self, row: usize) -> &[u8] {
        BinaryViewArray::value(self, row)
    }

    fn bytes_of(&self, rows: Range<usize>) -> usize {
        view_bytes(&self.views()[rows])
    }
}

/// A view's low four bytes are its length.
fn view_bytes(views: &[u128]) -> usize {
    views.iter().map(|view| *view as u32 as usize).sum()
}

/// Values of a fixed width that lie one after the other.
pub(crate) struct Strided<'a> {
    pub(crate) data: &'a [u8],
    pub(crate) width: usize,
}

impl ByteValues for Strided<'_> {
    #[inline]
    fn value(&self, row: usize) -> &[u8] {
        &self.data[row * self.width..(row + 1) * self.width]
    }

    fn bytes_of(&self, rows: Range<usize>) -> usize {
        rows.len() * self.width
    }
}

/// Appends the physical values of some rows, null ones included.
type Fill<T> = fn(&dyn Array, Range<usize>, &mut Vec<T>);

/// Numbers, in place or to be converted.
pub(crate) enum Numbers<'a, T> {
    Slice(&'a [T]),
    Convert(&'a dyn Array, Fill<T>),
}

impl<T: Copy> Numbers<'_, T> {
    /// The values of those of `rows` that are not null, in place or in `scratch`.
    pub(crate) fn valid<'s>(
        &'s self,
        rows: Range<usize>,
        nulls: Option<&NullBuffer>,
        scratch: &'s mut Vec<T>,
    ) -> &'s [T] {
        match (self, nulls) {
            (Self::Slice(values), None) => return &values[rows],
            (Self::Slice(values), Some(nulls)) => {
                scratch.clear();
                let slice = &values[rows.clone()];
                for run in valid_runs(nulls, rows) {
                    scratch.extend_from_slice(&slice[run]);
                }
            }
            (Self::Convert(array, fill), nulls) => {
                scratch.clear();
                fill(*array, rows.clone(), scratch);
                if let Some(nulls) = nulls {
                    let mut kept = 0;
                    for run in valid_runs(nulls, rows) {
                        scratch.copy_within(run.clone(), kept);
                        kept += run.len();
                    }
                    scratch.truncate(kept);
                }
            }
        }
        scratch
    }
}

/// Ranges of valid rows within `rows`, counted from its start.
pub(crate) fn valid_runs(
    nulls: &NullBuffer,
    rows: Range<usize>,
) -> impl Iterator<Item = Range<usize>> + use<> {
    let bits = nulls.inner().slice(rows.start, rows.len());
    let runs: Vec<_> = bits.set_slices().map(|(from, to)| from..to).collect();
    runs.into_iter()
}

/// The physical values of an array.
pub(crate) enum Source<'a> {
    /// Every row is null.
    Null,
    Bool(&'a BooleanBuffer),
    I32(Numbers<'a, i32>),
    I64(Numbers<'a, i64>),
    F32(Numbers<'a, f32>),
    F64(Numbers<'a, f64>),
    Small(Offset<'a, i32>),
    Large(Offset<'a, i64>),
    TextView(&'a StringViewArray),
    BytesView(&'a BinaryViewArray),
    /// Bytes of a fixed width, in place.
    Fixed(&'a [u8]),
    /// The same, to be converted.
    ConvertFixed(&'a dyn Array, FillFixed),
}

/// Appends the bytes of some rows, as many a row as the last argument says, null ones included.
type FillFixed = fn(&dyn Array, Range<usize>, &mut Vec<u8>, usize);

fn slice<T: ArrowPrimitiveType>(array: &dyn Array) -> &[T::Native] {
    array.as_primitive::<T>().values()
}

fn fill<T: ArrowPrimitiveType, V: Copy>(
    array: &dyn Array,
    rows: Range<usize>,
    out: &mut Vec<V>,
    convert: impl Fn(T::Native) -> V,
) {
    out.extend(slice::<T>(array)[rows].iter().map(|v| convert(*v)));
}

const MILLISECONDS_IN_DAY: i64 = 86_400_000;

fn i32s(array: &dyn Array) -> Option<Numbers<'_, i32>> {
    use Numbers::{Convert, Slice};
    Some(match array.data_type() {
        DataType::Int32 => Slice(slice::<Int32Type>(array)),
        DataType::Date32 => Slice(slice::<Date32Type>(array)),
        DataType::Time32(TimeUnit::Second) => Slice(slice::<Time32SecondType>(array)),
        DataType::Time32(TimeUnit::Millisecond) => Slice(slice::<Time32MillisecondType>(array)),
        DataType::Decimal32(..) => Slice(slice::<Decimal32Type>(array)),
        // Unsigned numbers are stored as the signed ones of the same bits.
        DataType::UInt32 => Slice(
            array
                .as_primitive::<UInt32Type>()
                .values()
                .inner()
                .typed_data(),
        ),
        DataType::Int8 => Convert(array, |a, r, o| fill::<Int8Type, _>(a, r, o, i32::from)),
        DataType::Int16 => Convert(array, |a, r, o| fill::<Int16Type, _>(a, r, o, i32::from)),
        DataType::UInt8 => Convert(array, |a, r, o| fill::<UInt8Type, _>(a, r, o, i32::from)),
        DataType::UInt16 => Convert(array, |a, r, o| fill::<UInt16Type, _>(a, r, o, i32::from)),
        DataType::Date64 => Convert(array, |a, r, o| {
            fill::<Date64Type, _>(a, r, o, |v| (v / MILLISECONDS_IN_DAY) as i32);
        }),
        // A precision that takes four bytes leaves nothing in the others but the sign.
        DataType::Decimal64(..) => Convert(array, |a, r, o| {
            fill::<Decimal64Type, _>(a, r, o, |v| v as i32)
        }),
        DataType::Decimal128(..) => Convert(array, |a, r, o| {
            fill::<Decimal128Type, _>(a, r, o, |v| v as i32)
        }),
        DataType::Decimal256(..) => Convert(array, |a, r, o| {
            fill::<Decimal256Type, _>(a, r, o, |v| v.as_i128() as i32);
        }),
        _ => return None,
    })
}

fn i64s(array: &dyn Array) -> Option<Numbers<'_, i64>> {
    use Numbers::{Convert, Slice};
    Some(match array.data_type() {
        DataType::Int64 => Slice(slice::<Int64Type>(array)),
        DataType::Date64 => Slice(slice::<Date64Type>(array)),
        DataType::UInt64 => Slice(
            array
                .as_primitive::<UInt64Type>()
                .values()
                .inner()
                .typed_data(),
        ),
        DataType::Time64(TimeUnit::Microsecond) => Slice(slice::<Time64MicrosecondType>(array)),
        DataType::Time64(TimeUnit::Nanosecond) => Slice(slice::<Time64NanosecondType>(array)),
        DataType::Timestamp(unit, _) => Slice(match unit {
            TimeUnit::Second => slice::<TimestampSecondType>(array),
            TimeUnit::Millisecond => slice::<TimestampMillisecondType>(array),
            TimeUnit::Microsecond => slice::<TimestampMicrosecondType>(array),
            TimeUnit::Nanosecond => slice::<TimestampNanosecondType>(array),
        }),
        DataType::Duration(unit) => Slice(match unit {
            TimeUnit::Second => slice::<DurationSecondType>(array),
            TimeUnit::Millisecond => slice::<DurationMillisecondType>(array),
            TimeUnit::Microsecond => slice::<DurationMicrosecondType>(array),
            TimeUnit::Nanosecond => slice::<DurationNanosecondType>(array),
        }),
        DataType::Decimal64(..) => Slice(slice::<Decimal64Type>(array)),
        DataType::Decimal128(..) => Convert(array, |a, r, o| {
            fill::<Decimal128Type, _>(a, r, o, |v| v as i64)
        }),
        DataType::Decimal256(..) => Convert(array, |a, r, o| {
            fill::<Decimal256Type, _>(a, r, o, |v| v.as_i128() as i64);
        }),
        _ => return None,
    })
}

/// Appends the low `width` bytes of big-endian numbers.
fn fill_decimals<T: ArrowPrimitiveType, const N: usize>(
    array: &dyn Array,
    rows: Range<usize>,
    out: &mut Vec<u8>,
    width: usize,
    to_bytes: impl Fn(T::Native) -> [u8; N],
) {
    let skip = N.saturating_sub(width);
    for value in &slice::<T>(array)[rows] {
        out.extend_from_slice(&to_bytes(*value)[skip..]);
    }
}

fn fixed(array: &dyn Array) -> Option<Source<'_>> {
    use Source::{ConvertFixed, Fixed};
    Some(match array.data_type() {
        DataType::FixedSizeBinary(_) => Fixed(array.as_fixed_size_binary().value_data()),
        DataType::Float16 => ConvertFixed(array, |a, r, o, _| {
            for value in &slice::<Float16Type>(a)[r] {
                o.extend_from_slice(&value.to_le_bytes());
            }
        }),
        DataType::Decimal32(..) => ConvertFixed(array, |a, r, o, w| {
            fill_decimals::<Decimal32Type, 4>(a, r, o, w, i32::to_be_bytes);
        }),
        DataType::Decimal64(..) => ConvertFixed(array, |a, r, o, w| {
            fill_decimals::<Decimal64Type, 8>(a, r, o, w, i64::to_be_bytes);
        }),
        DataType::Decimal128(..) => ConvertFixed(array, |a, r, o, w| {
            fill_decimals::<Decimal128Type, 16>(a, r, o, w, i128::to_be_bytes);
        }),
        DataType::Decimal256(..) => ConvertFixed(array, |a, r, o, w| {
            fill_decimals::<Decimal256Type, 32>(a, r, o, w, arrow_buffer::i256::to_be_bytes);
        }),
        // INTERVAL is three little-endian numbers of four bytes: months, days, milliseconds.
        DataType::Interval(IntervalUnit::YearMonth) => ConvertFixed(array, |a, r, o, _| {
            for months in &slice::<IntervalYearMonthType>(a)[r] {
                o.extend_from_slice(&months.to_le_bytes());
                o.extend_from_slice(&[0; 8]);
            }
        }),
        DataType::Interval(IntervalUnit::DayTime) => ConvertFixed(array, |a, r, o, _| {
            for interval in &slice::<IntervalDayTimeType>(a)[r] {
                o.extend_from_slice(&[0; 4]);
                o.extend_from_slice(&interval.days.to_le_bytes());
                o.extend_from_slice(&interval.milliseconds.to_le_bytes());
            }
        }),
        _ => return None,
    })
}

impl<'a> Source<'a> {
    /// The values of `array` as the physical type of their column.
    ///
    /// # Errors
    /// The array's type does not go into such a column.
    pub(crate) fn new(array: &'a dyn Array, physical: Physical) -> Result<Self> {
        if array.data_type() == &DataType::Null {
            return Ok(Self::Null);
        }
        let source = match (physical, array.data_type()) {
            (Physical::Bool, DataType::Boolean) => Some(Self::Bool(array.as_boolean().values())),
            (Physical::I32, _) => i32s(array).map(Self::I32),
            (Physical::I64, _) => i64s(array).map(Self::I64),
            (Physical::F32, DataType::Float32) => {
                Some(Self::F32(Numbers::Slice(slice::<Float32Type>(array))))
            }
            (Physical::F64, DataType::Float64) => {
                Some(Self::F64(Numbers::Slice(slice::<Float64Type>(array))))
            }
            (Physical::Bytes, DataType::Utf8) => {
                let array = array.as_string::<i32>();
                Some(Self::Small(Offset {
                    offsets: array.value_offsets(),
                    data: array.value_data(),
                }))
            }
            (Physical::Bytes, DataType::Binary) => {
                let array = array.as_binary::<i32>();
                Some(Self::Small(Offset {
                    offsets: array.value_offsets(),
                    data: array.value_data(),
                }))
            }
            (Physical::Bytes, DataType::LargeUtf8) => {
                let array = array.as_string::<i64>();
                Some(Self::Large(Offset {
                    offsets: array.value_offsets(),
                    data: array.value_data(),
                }))
            }
            (Physical::Bytes, DataType::LargeBinary) => {
                let array = array.as_binary::<i64>();
                Some(Self::Large(Offset {
                    offsets: array.value_offsets(),
                    data: array.value_data(),
                }))
            }
            (Physical::Bytes, DataType::Utf8View) => Some(Self::TextView(array.as_string_view())),
            (Physical::Bytes, DataType::BinaryView) => {
                Some(Self::BytesView(array.as_binary_view()))
            }
            (Physical::Fixed(width), DataType::FixedSizeBinary(size)) => {
                if usize::try_from(*size) == Ok(width) {
                    fixed(array)
                } else {
                    None
                }
            }
            (Physical::Fixed(_), _) => fixed(array),
            _ => None,
        };
        source.ok_or_else(|| {
            ParquetError::General(format!(
                "an array of {} does not go into a column of {physical:?}",
                array.data_type()
            ))
        })
    }
}

/// Whether an array's values have to be looked up before they can be encoded.
pub(crate) fn is_indirect(array: &dyn Array) -> bool {
    matches!(
        array.data_type(),
        DataType::Dictionary(..) | DataType::RunEndEncoded(..)
    )
}

/// Some rows of a dictionary or run-end encoded array, as an array of its values.
///
/// # Errors
/// Those of arrow's `take`.
pub(crate) fn materialise(array: &dyn Array, rows: Range<usize>) -> Result<ArrayRef> {
    let taken = if let Some(dictionary) = array.as_any_dictionary_opt() {
        let keys = dictionary.keys().slice(rows.start, rows.len());
        arrow_select::take::take(dictionary.values().as_ref(), &keys, None)?
    } else {
        downcast_run_array! {
            array => {
                let ends = array.run_ends();
                let indices: arrow_array::UInt64Array = rows
                    .map(|row| ends.get_physical_index(row) as u64)
                    .collect();
                arrow_select::take::take(array.values().as_ref(), &indices, None)?
            },
            _ => array.slice(rows.start, rows.len())
        }
    };
    if is_indirect(taken.as_ref()) {
        return materialise(taken.as_ref(), 0..taken.len());
    }
    Ok(Arc::clone(&taken))
}
