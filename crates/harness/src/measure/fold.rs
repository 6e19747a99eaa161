//! The fold: one cheap sum over every value of a batch, the same code in all lanes.
//!
//! Data that nobody reads is no workload, so each lane spends this on each batch. The sum, modulo
//! 2^64, is of
//!
//! - each fixed-width value, cut in little-endian words of eight bytes, the last padded with zeros;
//! - each `true`, as 1;
//! - each byte of each string or binary value, and the square of the value's length;
//! - the square of each list's length;
//!
//! each times a factor of its top-level column: [`COLUMN_STEP`] to the power of the column's index.
//!
//! Being a sum, it does not depend on where batches end, on what lies under nulls, or on how values
//! are stored. It notices lost work and columns that got each other's pages, not swaps inside a
//! column or among the children of one: the checksum is for that.

use anyhow::Result;
use arrow_array::{Array, OffsetSizeTrait, RecordBatch};
use arrow_buffer::{BooleanBuffer, NullBuffer};

use super::walk::{Visitor, walk};

/// The factor from one column to the next. Odd, so that no bit of a column's sum is lost, and its powers differ from one
/// another for more columns than any file has.
const COLUMN_STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// The fold of all batches so far, with the counts that fall out of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Fold {
    sum: u64,
    rows: u64,
    valid: u64,
    nulls: u64,
    bits: u64,
}

impl Fold {
    /// Adds every value of `batch`.
    ///
    /// # Errors
    ///
    /// A column has a type that Parquet does not yield.
    pub(crate) fn add(&mut self, batch: &RecordBatch) -> Result<()> {
        self.rows += batch.num_rows() as u64;
        let mut factor = 1_u64;
        for column in batch.columns() {
            let others = std::mem::take(&mut self.sum);
            walk(column, 0..batch.num_rows(), self)?;
            self.sum = others.wrapping_add(self.sum.wrapping_mul(factor));
            factor = factor.wrapping_mul(COLUMN_STEP);
        }
        Ok(())
    }

    /// Adds values of column `index` alone. All columns must be added so, with the same rows.
    ///
    /// # Errors
    ///
    /// The column has a type that Parquet does not yield.
    pub(crate) fn add_column(&mut self, index: usize, values: &dyn Array) -> Result<()> {
        if index == 0 {
            self.rows += values.len() as u64;
        }
        let power = u32::try_from(index)?;
        let others = std::mem::take(&mut self.sum);
        walk(values, 0..values.len(), self)?;
        let of_column = self.sum.wrapping_mul(COLUMN_STEP.wrapping_pow(power));
        self.sum = others.wrapping_add(of_column);
        Ok(())
    }

    /// Adds what another has seen: a fold is a sum, so it makes no difference who read what.
    pub(crate) fn merge(&mut self, other: &Self) {
        self.add_to_sum(other.sum);
        self.rows += other.rows;
        self.valid += other.valid;
        self.nulls += other.nulls;
        self.bits += other.bits;
    }

    /// The sum.
    pub(crate) fn sum(&self) -> u64 {
        self.sum
    }

    /// Rows of the batches.
    pub(crate) fn rows(&self) -> u64 {
        self.rows
    }

    /// Values of the leaf columns and nulls at every level.
    pub(crate) fn values(&self) -> u64 {
        self.valid + self.nulls
    }

    /// Nulls at every level; what lies below a null is not counted.
    pub(crate) fn nulls(&self) -> u64 {
        self.nulls
    }

    /// Bytes that the values are long, a boolean an eighth; no offsets, validity or dictionaries,
    /// so that it is the same however values are stored.
    pub(crate) fn value_bytes(&self) -> u64 {
        self.bits.div_ceil(8)
    }

    fn add_to_sum(&mut self, value: u64) {
        self.sum = self.sum.wrapping_add(value);
    }

    fn count(&mut self, values: usize, width: usize) {
        self.valid += values as u64;
        self.bits += 8 * (values * width) as u64;
    }

    fn add_length(&mut self, length: usize) {
        self.add_to_sum((length as u64).wrapping_mul(length as u64));
    }
}

impl Visitor for Fold {
    fn child(&mut self, _index: usize) -> &mut Self {
        self
    }

    fn nulls(&mut self, count: usize) {
        self.nulls += count as u64;
    }

    fn entered(&mut self, _count: usize) {}

    fn fixed(&mut self, width: usize, count: usize, values: &[u8]) {
        self.count(count, width);
        self.add_to_sum(sum_fixed(width, values));
    }

    fn fixed_with_nulls(&mut self, width: usize, values: &[u8], nulls: &NullBuffer) {
        // Adding all slots in one sweep and taking back those under nulls (or the other way round)
        // costs far less than a step for every run of valid ones.
        let (null, valid) = (nulls.null_count(), nulls.len() - nulls.null_count());
        self.count(valid, width);
        self.nulls += null as u64;
        let slot = |index: usize| sum_fixed(width, &values[index * width..(index + 1) * width]);
        if null < valid {
            self.add_to_sum(sum_fixed(width, values).wrapping_sub(sum_of_nulls(nulls, slot)));
        } else {
            self.add_to_sum(nulls.valid_indices().map(slot).fold(0, u64::wrapping_add));
        }
    }

    fn booleans(&mut self, values: &BooleanBuffer, nulls: Option<&NullBuffer>) {
        let (set, null) = match nulls {
            None => (values.count_set_bits(), 0),
            Some(nulls) => {
                let pairs = values
                    .bit_chunks()
                    .iter_padded()
                    .zip(nulls.inner().bit_chunks().iter_padded());
                (
                    pairs
                        .map(|(value, valid)| (value & valid).count_ones() as usize)
                        .sum(),
                    nulls.null_count(),
                )
            }
        };
        self.valid += (values.len() - null) as u64;
        self.nulls += null as u64;
        self.bits += (values.len() - null) as u64;
        self.add_to_sum(set as u64);
    }

    fn bytes(&mut self, value: &[u8]) {
        self.count(1, value.len());
        self.add_to_sum(sum_bytes(value));
        self.add_length(value.len());
    }

    fn bytes_run<O: OffsetSizeTrait>(&mut self, offsets: &[O], data: &[u8]) {
        let data = &data[offsets[0].as_usize()..offsets[offsets.len() - 1].as_usize()];
        self.valid += (offsets.len() - 1) as u64;
        self.bits += 8 * data.len() as u64;
        self.add_to_sum(sum_bytes(data));
        for pair in offsets.windows(2) {
            self.add_length(pair[1].as_usize() - pair[0].as_usize());
        }
    }

    fn list(&mut self, length: usize) {
        self.add_length(length);
    }
}

/// The sum of `slot` of each null slot.
fn sum_of_nulls(nulls: &NullBuffer, slot: impl Fn(usize) -> u64) -> u64 {
    let mut sum = 0_u64;
    for (chunk, valid) in nulls.inner().bit_chunks().iter_padded().enumerate() {
        let start = chunk * 64;
        // The padding behind the last slot reads as null.
        let slots = nulls.len().saturating_sub(start).min(64);
        let mut null = if slots == 64 {
            !valid
        } else {
            !valid & ((1 << slots) - 1)
        };
        while null != 0 {
            sum = sum.wrapping_add(slot(start + null.trailing_zeros() as usize));
            null &= null - 1;
        }
    }
    sum
}

/// The sum of values of `width` bytes each.
fn sum_fixed(width: usize, values: &[u8]) -> u64 {
    match width {
        0 => 0,
        1 => sum_bytes(values),
        2 => sum_words(values, |word| u64::from(u16::from_le_bytes(*word))),
        4 => sum_words(values, |word| u64::from(u32::from_le_bytes(*word))),
        8 | 16 | 32 => sum_words(values, |word| u64::from_le_bytes(*word)),
        _ => values
            .chunks_exact(width)
            .map(sum_value)
            .fold(0, u64::wrapping_add),
    }
}

/// The sum of words of `N` bytes. A loop of a fixed width and without branches, so that it becomes
/// vector code.
fn sum_words<const N: usize>(values: &[u8], number: impl Fn(&[u8; N]) -> u64) -> u64 {
    values
        .as_chunks()
        .0
        .iter()
        .map(number)
        .fold(0, u64::wrapping_add)
}

/// The sum of the words of a value of any width.
fn sum_value(value: &[u8]) -> u64 {
    let (words, rest) = value.as_chunks();
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    words
        .iter()
        .map(|word| u64::from_le_bytes(*word))
        .fold(u64::from_le_bytes(last), u64::wrapping_add)
}

/// The sum of bytes, eight at a time.
fn sum_bytes(bytes: &[u8]) -> u64 {
    const EVEN: u64 = 0x00ff_00ff_00ff_00ff;
    // Each step adds at most 2 × 255 to a 16-bit lane, so this many cannot overflow it.
    const STEPS: usize = 128;
    let (words, rest) = bytes.as_chunks::<8>();
    let in_words = words.chunks(STEPS).map(|block| {
        let lanes = block
            .iter()
            .map(|word| u64::from_le_bytes(*word))
            .map(|word| (word & EVEN) + (word >> 8 & EVEN));
        let lanes: u64 = lanes.sum();
        (lanes & 0xffff) + (lanes >> 16 & 0xffff) + (lanes >> 32 & 0xffff) + (lanes >> 48)
    });
    in_words.sum::<u64>() + rest.iter().map(|&byte| u64::from(byte)).sum::<u64>()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::types::Int32Type;
    use arrow_array::{
        ArrayRef, BinaryArray, BooleanArray, Decimal128Array, DictionaryArray,
        FixedSizeBinaryArray, Float32Array, Int32Array, Int64Array, ListArray, StringArray,
        StringViewArray, StructArray,
    };
    use arrow_buffer::{OffsetBuffer, ScalarBuffer};
    use arrow_schema::{DataType, Field};

    use super::super::checksum::tests::everything;
    use super::*;

    fn fold(array: ArrayRef) -> Fold {
        let batch = RecordBatch::try_from_iter_with_nullable([("a", array, true)]).unwrap();
        let mut fold = Fold::default();
        fold.add(&batch).unwrap();
        fold
    }

    #[test]
    fn fixed_width_values_are_their_words() {
        assert_eq!(
            fold(Arc::new(Int32Array::from(vec![1, 2, -1]))).sum(),
            3 + u64::from(u32::MAX)
        );
        assert_eq!(fold(Arc::new(Int64Array::from(vec![-1, 3]))).sum(), 2);
        assert_eq!(
            fold(Arc::new(Float32Array::from(vec![1.0, -0.0]))).sum(),
            0x3f80_0000 + 0x8000_0000
        );
        assert_eq!(
            fold(Arc::new(Decimal128Array::from(vec![(1 << 64) + 5]))).sum(),
            6
        );
        let nine =
            FixedSizeBinaryArray::try_from_iter([[1_u8, 0, 0, 0, 0, 0, 0, 0, 7]].iter()).unwrap();
        assert_eq!(fold(Arc::new(nine)).sum(), 8);
    }

    #[test]
    fn values_under_nulls_are_left_out_however_many_there_are() {
        for null_one_in in [1, 2, 3, 7, 1000] {
            for length in [1, 63, 64, 65, 200] {
                let values: Vec<i32> = (0..length).map(|index| index * 1000 - 7).collect();
                let valid: Vec<bool> = (0..length).map(|index| index % null_one_in != 0).collect();
                let pairs = || values.iter().zip(&valid);
                let expected = pairs()
                    .filter(|(_, valid)| **valid)
                    .map(|(&value, _)| u64::from(value as u32));
                let expected = expected.fold(0, u64::wrapping_add);
                let null = valid.iter().filter(|valid| !**valid).count() as u64;
                let array = Int32Array::new(values.clone().into(), Some(valid.clone().into()));
                let fold = fold(Arc::new(array));
                assert_eq!(
                    (fold.sum(), fold.nulls(), fold.values()),
                    (expected, null, length as u64)
                );
                assert_eq!(fold.value_bytes(), 4 * (length as u64 - null));
            }
        }
    }

    #[test]
    fn a_slice_counts_its_own_slots_alone() {
        let array = Int32Array::from(
            (0..300)
                .map(|index| (index % 5 != 0).then_some(index))
                .collect::<Vec<_>>(),
        );
        for (start, length) in [(0, 300), (1, 64), (63, 130), (299, 1), (100, 0)] {
            let slice = array.slice(start, length);
            let expected: u64 = slice.iter().flatten().map(|value| value as u64).sum();
            assert_eq!(fold(Arc::new(slice)).sum(), expected, "{start} {length}");
        }
    }

    #[test]
    fn strings_are_their_bytes_and_lengths() {
        let expected = u64::from(b'a') + 1 + u64::from(b'b') + u64::from(b'c') + 4;
        let values = vec![Some("a"), None, Some(""), Some("bc")];
        assert_eq!(
            fold(Arc::new(StringArray::from(values.clone()))).sum(),
            expected
        );
        assert_eq!(
            fold(Arc::new(StringViewArray::from(values.clone()))).sum(),
            expected
        );
        let dictionary: DictionaryArray<Int32Type> = values.into_iter().collect();
        assert_eq!(fold(Arc::new(dictionary)).sum(), expected);
    }

    #[test]
    fn long_strings_do_not_overflow_the_lanes() {
        let bytes = vec![0xff_u8; 100_003];
        let expected = 255 * 100_003 + 100_003 * 100_003;
        assert_eq!(
            fold(Arc::new(BinaryArray::from_vec(vec![&bytes]))).sum(),
            expected
        );
    }

    #[test]
    fn booleans_count_what_is_true_and_valid() {
        let values: Vec<Option<bool>> = (0..200)
            .map(|index| (index % 3 != 0).then_some(index % 2 == 0))
            .collect();
        let expected = values.iter().flatten().filter(|value| **value).count() as u64;
        let array = BooleanArray::from(values);
        assert_eq!(fold(Arc::new(array.clone())).sum(), expected);
        assert_eq!(
            fold(Arc::new(array.clone())).value_bytes(),
            133_u64.div_ceil(8)
        );
        let slice = array.slice(70, 100);
        let expected = slice.iter().flatten().filter(|value| *value).count() as u64;
        assert_eq!(fold(Arc::new(slice)).sum(), expected);
    }

    #[test]
    fn items_of_null_lists_are_left_out() {
        let offsets = OffsetBuffer::new(ScalarBuffer::from(vec![0, 2, 4, 5]));
        let item = Arc::new(Field::new_list_field(DataType::Int32, true));
        let items = Arc::new(Int32Array::from(vec![1, 2, 100, 100, 3]));
        let array = ListArray::new(item, offsets, items, Some(vec![true, false, true].into()));
        let fold = fold(Arc::new(array));
        assert_eq!(
            (fold.sum(), fold.values(), fold.nulls()),
            (1 + 2 + 3 + 4 + 1, 4, 1)
        );
    }

    #[test]
    fn children_of_null_structs_are_left_out() {
        let child: ArrayRef = Arc::new(Int32Array::from(vec![Some(1), Some(100), None]));
        let fields = vec![Field::new("x", DataType::Int32, true)].into();
        let array = StructArray::new(fields, vec![child], Some(vec![true, false, true].into()));
        let fold = fold(Arc::new(array));
        assert_eq!((fold.sum(), fold.values(), fold.nulls()), (1, 3, 2));
    }

    #[test]
    fn columns_one_after_the_other_have_the_fold_of_batches() {
        let batch = everything();
        let (mut whole, mut apart) = (Fold::default(), Fold::default());
        whole.add(&batch).unwrap();
        for (index, column) in batch.columns().iter().enumerate().rev() {
            let middle = column.len() / 2;
            for slice in [
                column.slice(0, middle),
                column.slice(middle, column.len() - middle),
            ] {
                apart.add_column(index, &slice).unwrap();
            }
        }
        assert_eq!(whole, apart);
    }

    #[test]
    fn folds_of_parts_merge_to_that_of_the_whole() {
        let column = |from: i32| -> ArrayRef {
            let values = from..from + 100;
            Arc::new(Int32Array::from_iter(
                values.map(|i| (i % 3 != 0).then_some(i)),
            ))
        };
        let batches = [0, 100].map(|from| {
            let bits = BooleanArray::from_iter((0..100).map(|i| Some(i % 7 == 0)));
            let columns = [
                ("a", column(from)),
                ("b", column(-from)),
                ("c", Arc::new(bits) as _),
            ];
            RecordBatch::try_from_iter_with_nullable(
                columns.map(|(name, array)| (name, array, true)),
            )
            .unwrap()
        });
        let [mut whole, mut first, mut second] = [Fold::default(); 3];
        for (batch, part) in batches.iter().zip([&mut first, &mut second]) {
            whole.add(batch).unwrap();
            part.add(batch).unwrap();
        }
        first.merge(&second);
        assert_eq!(first, whole);
    }

    #[test]
    fn columns_that_swap_fold_otherwise() {
        let column = |from: i32| -> ArrayRef { Arc::new(Int32Array::from_iter(from..from + 100)) };
        let fold = |batches: &[[i32; 3]]| {
            let mut fold = Fold::default();
            for &columns in batches {
                let columns = ["a", "b", "c"].into_iter().zip(columns.map(column));
                fold.add(&RecordBatch::try_from_iter(columns).unwrap())
                    .unwrap();
            }
            fold
        };
        let right = fold(&[[0, 100, 200], [300, 400, 500]]);
        // All batches, and one page of one batch.
        for swapped in [
            [[100, 0, 200], [400, 300, 500]],
            [[0, 100, 200], [300, 500, 400]],
            [[200, 100, 0], [300, 400, 500]],
        ] {
            let swapped = fold(&swapped);
            assert_ne!(swapped.sum(), right.sum());
            assert_eq!(swapped.values(), right.values());
        }
        // Batches are no columns: their order makes no difference.
        assert_eq!(fold(&[[300, 400, 500], [0, 100, 200]]), right);
    }

    #[test]
    fn batches_of_any_size_fold_alike() {
        let batch = everything();
        let mut whole = Fold::default();
        whole.add(&batch).unwrap();
        for rows in [1, 3, 8, 64, 99] {
            let mut split = Fold::default();
            for start in (0..batch.num_rows()).step_by(rows) {
                let rows = rows.min(batch.num_rows() - start);
                split.add(&batch.slice(start, rows)).unwrap();
            }
            assert_eq!(whole, split, "{rows} rows a batch");
        }
    }
}
