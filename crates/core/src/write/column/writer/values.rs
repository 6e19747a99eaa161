//! Values into the dictionary or the encoder, and into the page's statistics.

use std::ops::Range;

use arrow_buffer::NullBuffer;
use parquet::data_type::AsBytes;
use parquet::file::properties::EnabledStatistics;

use super::super::super::encode::Growth;
use super::super::context::Context;
use super::super::direct::Number;
use super::super::plan::{Physical, ValueOrder};
use super::super::source::{ByteValues, Numbers, Source, Strided, valid_runs};
use super::super::statistics::{
    Extremes, Value, compare_bytes, extremes_f32, extremes_f64, extremes_i32, extremes_i64,
    is_nan16,
};
use super::ColumnWriter;

impl ColumnWriter {
    /// Puts the values of `rows` into the dictionary or the encoder, and takes them into the statistics;
    /// returns how many of them it took.
    pub(super) fn put_values(
        &mut self,
        source: &Source<'_>,
        nulls: Option<&NullBuffer>,
        rows: Range<usize>,
        valid: usize,
        context: &mut Context<'_>,
    ) -> usize {
        let growth = context.growth;
        let scratch = &mut *context.scratch;
        match source {
            Source::Null => 0,
            Source::Bool(values) => {
                if let Some(direct) = &mut self.direct {
                    direct.put_bits(values, rows.clone(), nulls);
                }
                let counted = self.plan.statistics != EnabledStatistics::None;
                if (counted || self.bloom.is_some()) && valid > 0 {
                    let trues = match nulls {
                        None => values.slice(rows.start, rows.len()).count_set_bits(),
                        Some(nulls) => valid_runs(nulls, rows.clone())
                            .map(|run| {
                                values
                                    .slice(rows.start + run.start, run.len())
                                    .count_set_bits()
                            })
                            .sum(),
                    };
                    if let Some(bloom) = &mut self.bloom {
                        for (value, count) in [(true, trues), (false, valid - trues)] {
                            if count > 0 {
                                bloom.insert(&value);
                            }
                        }
                    }
                    let extremes = Extremes {
                        min: Value::Bool(trues == valid),
                        max: Value::Bool(trues > 0),
                    };
                    if counted {
                        Extremes::merge(&mut self.page.extremes, extremes, self.plan.order);
                    }
                }
                valid
            }
            Source::I32(numbers) => {
                let order = self.plan.order;
                self.put_numbers(numbers, rows, nulls, &mut scratch.i32s, growth, |values| {
                    extremes_i32(values, order).map(|extremes| (extremes, 0))
                })
            }
            Source::I64(numbers) => {
                let order = self.plan.order;
                self.put_numbers(numbers, rows, nulls, &mut scratch.i64s, growth, |values| {
                    extremes_i64(values, order).map(|extremes| (extremes, 0))
                })
            }
            Source::F32(numbers) => self.put_numbers(
                numbers,
                rows,
                nulls,
                &mut scratch.f32s,
                growth,
                extremes_f32,
            ),
            Source::F64(numbers) => self.put_numbers(
                numbers,
                rows,
                nulls,
                &mut scratch.f64s,
                growth,
                extremes_f64,
            ),
            Source::Small(values) => {
                self.put_byte_rows(values, rows, nulls, &mut scratch.rows, growth)
            }
            Source::Large(values) => {
                self.put_byte_rows(values, rows, nulls, &mut scratch.rows, growth)
            }
            Source::TextView(values) => {
                self.put_byte_rows(values, rows, nulls, &mut scratch.rows, growth)
            }
            Source::BytesView(values) => {
                self.put_byte_rows(values, rows, nulls, &mut scratch.rows, growth)
            }
            Source::Fixed(data) => {
                let values = Strided {
                    data,
                    width: fixed_width(self.plan.physical),
                };
                self.put_byte_rows(&values, rows, nulls, &mut scratch.rows, growth)
            }
            Source::ConvertFixed(array, fill) => {
                let width = fixed_width(self.plan.physical);
                scratch.bytes.clear();
                fill(*array, rows.clone(), &mut scratch.bytes, width);
                let nulls = nulls.map(|nulls| nulls.slice(rows.start, rows.len()));
                let values = Strided {
                    data: &scratch.bytes,
                    width,
                };
                let rows = 0..rows.len();
                self.put_byte_rows(&values, rows, nulls.as_ref(), &mut scratch.rows, growth)
            }
        }
    }

    fn put_numbers<T: Number + AsBytes>(
        &mut self,
        numbers: &Numbers<'_, T>,
        rows: Range<usize>,
        nulls: Option<&NullBuffer>,
        scratch: &mut Vec<T>,
        growth: &Growth,
        extremes: impl Fn(&[T]) -> Option<(Extremes, u64)>,
    ) -> usize {
        let values = numbers.valid(rows, nulls, scratch);
        let taken = match (&mut self.dictionary, &mut self.direct) {
            (Some(dictionary), _) => dictionary.put_numbers(values),
            (None, Some(direct)) => {
                direct.put_numbers(values, growth);
                values.len()
            }
            (None, None) => 0,
        };
        let values = &values[..taken];
        if self.dictionary.is_none()
            && let Some(bloom) = &mut self.bloom
        {
            for value in values {
                bloom.insert(value);
            }
        }
        if self.plan.statistics != EnabledStatistics::None
            && let Some((extremes, nans)) = extremes(values)
        {
            self.page.nans += nans;
            Extremes::merge(&mut self.page.extremes, extremes, self.plan.order);
        }
        taken
    }

    fn put_byte_rows(
        &mut self,
        values: &impl ByteValues,
        rows: Range<usize>,
        nulls: Option<&NullBuffer>,
        scratch: &mut Vec<u32>,
        growth: &Growth,
    ) -> usize {
        let Some(nulls) = nulls else {
            return self.put_bytes(values, rows, growth);
        };
        scratch.clear();
        for run in valid_runs(nulls, rows.clone()) {
            scratch.extend(run.map(|row| row as u32));
        }
        let start = rows.start;
        self.put_bytes(
            values,
            scratch.iter().map(move |row| start + *row as usize),
            growth,
        )
    }

    fn put_bytes(
        &mut self,
        values: &impl ByteValues,
        rows: impl ExactSizeIterator<Item = usize> + Clone,
        growth: &Growth,
    ) -> usize {
        let taken = match (&mut self.dictionary, &mut self.direct) {
            (Some(dictionary), _) => dictionary.put_bytes(values, rows.clone()),
            (None, Some(direct)) => {
                direct.put_bytes(values, rows.clone(), &self.plan, growth);
                rows.len()
            }
            (None, None) => 0,
        };
        if self.dictionary.is_none()
            && let Some(bloom) = &mut self.bloom
        {
            for row in rows.clone().take(taken) {
                bloom.insert(values.value(row));
            }
        }
        let rows = rows.take(taken);
        if self.plan.physical == Physical::Bytes {
            let bytes: usize = rows.clone().map(|row| values.value(row).len()).sum();
            self.page.variable_bytes += bytes as u64;
        }
        if self.plan.statistics != EnabledStatistics::None && self.plan.order != ValueOrder::None {
            self.byte_extremes(rows.map(|row| values.value(row)));
        }
        taken
    }

    fn byte_extremes<'v>(&mut self, mut values: impl Iterator<Item = &'v [u8]>) {
        let order = self.plan.order;
        let mut least = None;
        if order == ValueOrder::Float16 {
            // NaN is no extreme, unless there is nothing else.
            let (mut nan_least, mut nans) = (None, 0);
            for value in values {
                let into = if is_nan16(value) {
                    nans += 1;
                    &mut nan_least
                } else {
                    &mut least
                };
                widen(into, value, order);
            }
            self.page.nans += nans;
            least = least.or(nan_least);
        } else if let Some(first) = values.next() {
            let (mut min, mut max) = (first, first);
            for value in values {
                if compare_bytes(value, min, order).is_lt() {
                    min = value;
                } else if compare_bytes(value, max, order).is_gt() {
                    max = value;
                }
            }
            least = Some((min, max));
        }
        if let Some((min, max)) = least {
            Extremes::merge_bytes(&mut self.page.extremes, min, max, order);
        }
    }
}

fn widen<'v>(extremes: &mut Option<(&'v [u8], &'v [u8])>, value: &'v [u8], order: ValueOrder) {
    match extremes {
        None => *extremes = Some((value, value)),
        Some((min, max)) => {
            if compare_bytes(value, min, order).is_lt() {
                *min = value;
            }
            if compare_bytes(value, max, order).is_gt() {
                *max = value;
            }
        }
    }
}

fn fixed_width(physical: Physical) -> usize {
    match physical {
        Physical::Fixed(width) => width,
        _ => 0,
    }
}

/// How many of `rows` have a value.
pub(super) fn count_valid(
    source: &Source<'_>,
    nulls: Option<&NullBuffer>,
    rows: &Range<usize>,
) -> usize {
    match (source, nulls) {
        (Source::Null, _) => 0,
        (_, None) => rows.len(),
        (_, Some(nulls)) => rows.len() - nulls.slice(rows.start, rows.len()).null_count(),
    }
}

/// The number of `rows` that stand before the one whose value is number `value`, counted from 0.
pub(super) fn rows_before(
    source: &Source<'_>,
    nulls: Option<&NullBuffer>,
    rows: &Range<usize>,
    value: usize,
) -> usize {
    match (source, nulls) {
        (Source::Null, _) => rows.len(),
        (_, None) => value,
        (_, Some(nulls)) => nulls
            .inner()
            .slice(rows.start, rows.len())
            .set_indices()
            .nth(value)
            .unwrap_or(rows.len()),
    }
}

/// The value of `rows`, if they are one row of byte arrays.
pub(super) fn one_value<'s>(source: &'s Source<'_>, rows: &Range<usize>) -> Option<&'s [u8]> {
    if rows.len() != 1 {
        return None;
    }
    Some(match source {
        Source::Small(values) => values.value(rows.start),
        Source::Large(values) => values.value(rows.start),
        Source::TextView(values) => ByteValues::value(values, rows.start),
        Source::BytesView(values) => ByteValues::value(values, rows.start),
        _ => return None,
    })
}

/// Bytes of the values of `rows`, at most; of byte arrays without their lengths.
pub(super) fn source_bytes(
    source: &Source<'_>,
    rows: &Range<usize>,
    valid: usize,
    physical: Physical,
) -> usize {
    match source {
        Source::Null | Source::Bool(_) => 0,
        Source::I32(_) | Source::F32(_) => valid * 4,
        Source::I64(_) | Source::F64(_) => valid * 8,
        Source::Small(values) => values.bytes_of(rows.clone()),
        Source::Large(values) => values.bytes_of(rows.clone()),
        Source::TextView(values) => values.bytes_of(rows.clone()),
        Source::BytesView(values) => values.bytes_of(rows.clone()),
        Source::Fixed(_) | Source::ConvertFixed(..) => valid * fixed_width(physical),
    }
}
