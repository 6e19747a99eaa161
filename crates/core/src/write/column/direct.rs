//! The values of a page that are not in a dictionary, under encoding.

use std::ops::Range;

use arrow_buffer::{BooleanBuffer, BooleanBufferBuilder, NullBuffer};
use parquet::basic::Encoding;

use super::super::encode::ByteStreamSplit;
use super::super::encode::DefinitionLevels;
use super::super::encode::DeltaBinaryPacked;
use super::super::encode::DeltaByteArray;
use super::super::encode::DeltaLengthByteArray;
use super::super::encode::Growth;
use super::plan::{ColumnPlan, Physical};
use super::source::{ByteValues, valid_runs};

/// A fixed-width number.
pub(crate) trait Number: Copy + Send + 'static {
    /// Bytes, as PLAIN stores it.
    const WIDTH: usize;
    /// What is hashed: numbers of one kind are equal where these are.
    fn bits(self) -> u64;
    /// The number as PLAIN stores it.
    fn stored(self) -> impl AsRef<[u8]>;
    /// Puts numbers into an encoder of deltas; into any other, nothing.
    fn put_delta(values: &[Self], encoder: &mut Direct, growth: &Growth);
    /// Appends numbers as PLAIN stores them.
    fn store_all(values: &[Self], out: &mut Vec<u8>);
}

macro_rules! number {
    ($type:ty, $bits:ty, $to_bits:expr $(, $delta:ident)?) => {
        impl Number for $type {
            const WIDTH: usize = size_of::<$type>();
            #[inline]
            fn bits(self) -> u64 {
                let to_bits: fn($type) -> $bits = $to_bits;
                u64::from(to_bits(self))
            }
            #[inline]
            fn stored(self) -> impl AsRef<[u8]> {
                self.to_le_bytes()
            }
            #[expect(
                clippy::allow_attributes,
                reason = "only some of the types have an encoder of deltas"
            )]
            #[allow(unused_variables)]
            fn put_delta(values: &[Self], encoder: &mut Direct, growth: &Growth) {
                $(
                    if let Direct::$delta(encoder) = encoder {
                        encoder.reserve(growth, values.len());
                        encoder.put(values);
                    }
                )?
            }
            fn store_all(values: &[Self], out: &mut Vec<u8>) {
                let start = out.len();
                out.resize(start + values.len() * Self::WIDTH, 0);
                let places = out[start..].chunks_exact_mut(Self::WIDTH);
                for (place, value) in places.zip(values) {
                    place.copy_from_slice(&value.to_le_bytes());
                }
            }
        }
    };
}

number!(i32, u32, |v| v as u32, DeltaI32);
number!(i64, u64, |v| v as u64, DeltaI64);
number!(f32, u32, f32::to_bits);
number!(f64, u64, f64::to_bits);

/// An encoder with the values of one page in it.
pub(crate) enum Direct {
    /// PLAIN of anything but booleans.
    Plain(Vec<u8>),
    /// Booleans, packed. Under RLE they are encoded when the page ends.
    Bits(BooleanBufferBuilder, Encoding),
    DeltaI32(DeltaBinaryPacked<i32>),
    DeltaI64(DeltaBinaryPacked<i64>),
    DeltaLength(DeltaLengthByteArray),
    DeltaBytes(DeltaByteArray),
    Split(ByteStreamSplit),
}

impl Direct {
    /// The encoder of a column.
    pub(crate) fn new(plan: &ColumnPlan, growth: &Growth) -> Self {
        match (plan.encoding, plan.physical) {
            (encoding, Physical::Bool) => Self::Bits(BooleanBufferBuilder::new(0), encoding),
            (Encoding::DELTA_BINARY_PACKED, Physical::I32) => {
                Self::DeltaI32(DeltaBinaryPacked::new(growth))
            }
            (Encoding::DELTA_BINARY_PACKED, _) => Self::DeltaI64(DeltaBinaryPacked::new(growth)),
            (Encoding::DELTA_LENGTH_BYTE_ARRAY, _) => {
                Self::DeltaLength(DeltaLengthByteArray::new(growth))
            }
            (Encoding::DELTA_BYTE_ARRAY, _) => Self::DeltaBytes(DeltaByteArray::new(growth)),
            (Encoding::BYTE_STREAM_SPLIT, physical) => {
                Self::Split(ByteStreamSplit::new(match physical {
                    Physical::I32 | Physical::F32 => 4,
                    Physical::I64 | Physical::F64 => 8,
                    Physical::Fixed(width) => width,
                    Physical::Bool | Physical::Bytes => 1,
                }))
            }
            _ => Self::Plain(Vec::new()),
        }
    }

    /// Bytes that the page's values take at most if `values` more come, which have `bytes` bytes (as
    /// numbers, or as byte arrays without their lengths).
    pub(crate) fn max_len_with(&self, values: usize, bytes: usize, plan: &ColumnPlan) -> usize {
        match self {
            Self::Plain(buffer) => {
                let lengths = if plan.physical == Physical::Bytes {
                    values * 4
                } else {
                    0
                };
                buffer.len() + lengths + bytes
            }
            Self::Bits(bits, Encoding::PLAIN) => (bits.len() + values).div_ceil(8),
            Self::Bits(bits, _) => 4 + DefinitionLevels::new().max_len_with(bits.len() + values),
            Self::DeltaI32(encoder) => encoder.max_len_with(values),
            Self::DeltaI64(encoder) => encoder.max_len_with(values),
            Self::DeltaLength(encoder) => encoder.max_len_with(values, bytes),
            Self::DeltaBytes(encoder) => encoder.max_len_with(values, bytes),
            Self::Split(encoder) => encoder.max_len_with(values),
        }
    }

    /// The same for one value at hand, where that tells more.
    pub(crate) fn max_len_with_value(&self, value: &[u8], plan: &ColumnPlan) -> usize {
        match self {
            Self::DeltaBytes(encoder) => encoder.max_len_with_value(value),
            _ => self.max_len_with(1, value.len(), plan),
        }
    }

    /// Bytes that the page's values take so far, at most.
    pub(crate) fn max_len(&self, plan: &ColumnPlan) -> usize {
        self.max_len_with(0, 0, plan)
    }

    pub(crate) fn put_numbers<T: Number>(&mut self, values: &[T], growth: &Growth) {
        match self {
            Self::Plain(buffer) => {
                growth.reserve(buffer, size_of_val(values));
                T::store_all(values, buffer);
            }
            Self::Split(encoder) => {
                encoder.reserve(growth, values.len());
                for value in values {
                    encoder.put(value.stored().as_ref());
                }
            }
            _ => T::put_delta(values, self, growth),
        }
    }

    /// Takes the values of `rows`, which are `count` and none of them null.
    pub(crate) fn put_bytes(
        &mut self,
        values: &impl ByteValues,
        rows: impl ExactSizeIterator<Item = usize> + Clone,
        plan: &ColumnPlan,
        growth: &Growth,
    ) {
        match self {
            Self::Plain(buffer) => {
                let prefix = if plan.physical == Physical::Bytes {
                    4
                } else {
                    0
                };
                let bytes: usize = rows
                    .clone()
                    .map(|row| values.value(row).len() + prefix)
                    .sum();
                growth.reserve(buffer, bytes);
                for row in rows {
                    let value = values.value(row);
                    if prefix > 0 {
                        buffer.extend_from_slice(&(value.len() as u32).to_le_bytes());
                    }
                    buffer.extend_from_slice(value);
                }
            }
            Self::DeltaLength(encoder) => {
                let bytes = rows.clone().map(|row| values.value(row).len()).sum();
                encoder.reserve(growth, rows.len(), bytes);
                rows.for_each(|row| encoder.put(values.value(row)));
            }
            Self::DeltaBytes(encoder) => {
                let bytes = rows.clone().map(|row| values.value(row).len()).sum();
                encoder.reserve(growth, rows.len(), bytes);
                encoder.put(rows.map(|row| values.value(row)));
            }
            Self::Split(encoder) => {
                encoder.reserve(growth, rows.len());
                rows.for_each(|row| encoder.put(values.value(row)));
            }
            Self::Bits(..) | Self::DeltaI32(_) | Self::DeltaI64(_) => {}
        }
    }

    /// Takes those of `rows` that are not null.
    pub(crate) fn put_bits(
        &mut self,
        values: &BooleanBuffer,
        rows: Range<usize>,
        nulls: Option<&NullBuffer>,
    ) {
        let Self::Bits(bits, _) = self else {
            return;
        };
        match nulls {
            None => bits.append_buffer(&values.slice(rows.start, rows.len())),
            Some(nulls) => {
                for run in valid_runs(nulls, rows.clone()) {
                    bits.append_buffer(&values.slice(rows.start + run.start, run.len()));
                }
            }
        }
    }

    /// Appends the page's values to `out` and begins a new page.
    pub(crate) fn finish(&mut self, growth: &Growth, out: &mut Vec<u8>) {
        match self {
            Self::Plain(buffer) => {
                out.extend_from_slice(buffer);
                growth.page_done(buffer);
            }
            Self::Bits(bits, Encoding::PLAIN) => {
                out.extend_from_slice(bits.as_slice());
                bits.truncate(0);
            }
            Self::Bits(bits, _) => {
                let mut levels = DefinitionLevels::new();
                levels.put_validity(growth, bits.as_slice(), 0, bits.len());
                bits.truncate(0);
                let start = out.len();
                out.extend_from_slice(&[0; 4]);
                levels.finish(growth, out);
                let len = (out.len() - start - 4) as u32;
                out[start..start + 4].copy_from_slice(&len.to_le_bytes());
            }
            Self::DeltaI32(encoder) => encoder.finish(growth, out),
            Self::DeltaI64(encoder) => encoder.finish(growth, out),
            Self::DeltaLength(encoder) => encoder.finish(growth, out),
            Self::DeltaBytes(encoder) => encoder.finish(growth, out),
            Self::Split(encoder) => encoder.finish(growth, out),
        }
    }

    /// The page's values where they lie as they will be stored; `None` where they have to be put
    /// together by [`finish`](Self::finish).
    pub(crate) fn in_place(&self) -> Option<&[u8]> {
        match self {
            Self::Plain(buffer) => Some(buffer),
            _ => None,
        }
    }

    /// Begins a new page after [`in_place`](Self::in_place).
    pub(crate) fn page_done(&mut self, growth: &Growth) {
        if let Self::Plain(buffer) = self {
            growth.page_done(buffer);
        }
    }

    /// Bytes in the heap.
    pub(crate) fn heap_bytes(&self) -> usize {
        match self {
            Self::Plain(buffer) => buffer.capacity(),
            Self::Bits(bits, _) => bits.capacity() / 8,
            Self::DeltaI32(encoder) => encoder.heap_bytes(),
            Self::DeltaI64(encoder) => encoder.heap_bytes(),
            Self::DeltaLength(encoder) => encoder.heap_bytes(),
            Self::DeltaBytes(encoder) => encoder.heap_bytes(),
            Self::Split(encoder) => encoder.heap_bytes(),
        }
    }
}
