//! Batches of one column as upstream's `arrow_writer` has them: shapes and sizes are the same, random values are
//! drawn from another generator.

use std::sync::Arc;

use arrow_array::types::Int32Type;
use arrow_array::{
    ArrayRef, GenericStringArray, Int32Array, OffsetSizeTrait, RecordBatch, RunArray, StringArray,
};
use arrow_schema::{DataType, Field, Schema};

/// Bytes of the counter that makes strings differ.
const COUNTER: usize = 8;

/// Strings that differ in their last bytes only.
pub(super) fn shared_prefix(rows: usize, bytes: usize) -> RecordBatch {
    let prefix = "x".repeat(bytes - COUNTER);
    strings((0..rows).map(|row| format!("{prefix}{row:08}")))
}

/// Strings that have their first `shared` bytes in common, differ in the next, and end alike.
pub(super) fn partial_prefix(rows: usize, bytes: usize, shared: usize) -> RecordBatch {
    let prefix = "x".repeat(shared);
    let tail = "y".repeat(bytes - shared - COUNTER);
    strings((0..rows).map(|row| format!("{prefix}{row:08}{tail}")))
}

/// Strings that differ in their first bytes.
pub(super) fn distinct(rows: usize, bytes: usize) -> RecordBatch {
    let rest = "x".repeat(bytes - COUNTER);
    strings((0..rows).map(|row| format!("{row:08}{rest}")))
}

/// Where nulls are.
#[derive(Clone, Copy)]
pub(super) enum Nulls {
    /// The last of every so many rows.
    Every(usize),
    /// So many at the end.
    Trailing(usize),
}

/// Strings with nulls among them that differ in their last bytes only, or in their first.
pub(super) fn nullable(rows: usize, bytes: usize, shared: bool, nulls: Nulls) -> RecordBatch {
    let rest = "x".repeat(bytes - COUNTER);
    let is_null = |row: usize| match nulls {
        Nulls::Every(step) => row % step == step - 1,
        Nulls::Trailing(count) => row + count >= rows,
    };
    let values = (0..rows).map(|row| {
        (!is_null(row)).then(|| {
            if shared {
                format!("{rest}{row:08}")
            } else {
                format!("{row:08}{rest}")
            }
        })
    });
    one(Arc::new(StringArray::from_iter(values)))
}

/// Two columns, with 32 and with 64 bit offsets, of random strings of up to 399 bytes; a quarter is null.
pub(super) fn random_strings(rows: usize) -> RecordBatch {
    let schema = Schema::new(vec![
        Field::new("_1", DataType::Utf8, true),
        Field::new("_2", DataType::LargeUtf8, true),
    ]);
    let columns: Vec<ArrayRef> = vec![
        Arc::new(random_string_array::<i32>(rows)),
        Arc::new(random_string_array::<i64>(rows)),
    ];
    RecordBatch::try_new(Arc::new(schema), columns).expect("columns of the schema")
}

fn random_string_array<O: OffsetSizeTrait>(rows: usize) -> GenericStringArray<O> {
    const LETTERS: &[u8; 62] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
    let mut random = Random(42);
    let mut value = String::new();
    let mut builder = arrow_array::builder::GenericStringBuilder::<O>::new();
    for _ in 0..rows {
        if random.below(4) == 0 {
            builder.append_null();
            continue;
        }
        value.clear();
        for _ in 0..random.below(400) {
            value.push(char::from(LETTERS[random.below(62)]));
        }
        builder.append_value(&value);
    }
    builder.finish()
}

/// Runs of 8 to 32 rows of one random integer, 95 % of the runs null.
pub(super) fn runs(rows: usize) -> RecordBatch {
    let mut random = Random(42);
    let mut ends = Vec::new();
    let mut end = 0;
    while end < rows {
        end = (end + 8 + random.below(25)).min(rows);
        ends.push(i32::try_from(end).expect("few rows"));
    }
    let values: Int32Array = (0..ends.len())
        .map(|_| (random.below(100) >= 95).then(|| random.next() as i32))
        .collect();
    let runs = RunArray::<Int32Type>::try_new(&Int32Array::from(ends), &values)
        .expect("ends that rise, one value each");
    let field = Field::new("_1", arrow_array::Array::data_type(&runs).clone(), true);
    RecordBatch::try_new(Arc::new(Schema::new(vec![field])), vec![Arc::new(runs)])
        .expect("a column of the schema")
}

fn strings(values: impl Iterator<Item = String>) -> RecordBatch {
    one(Arc::new(StringArray::from_iter_values(values)))
}

fn one(column: ArrayRef) -> RecordBatch {
    RecordBatch::try_from_iter([("col", column)]).expect("one column")
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        ((u128::from(self.next()) * bound as u128) >> 64) as usize
    }
}
