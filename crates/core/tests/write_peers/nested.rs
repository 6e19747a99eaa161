//! Nested columns, put among a batch's flat ones.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::TimestampMillisecondType;
use arrow_array::{
    Array, ArrayRef, FixedSizeListArray, Float64Array, Int32Array, Int64Array, LargeListArray,
    ListArray, MapArray, RecordBatch, StringArray, StructArray, TimestampMillisecondArray,
};
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_schema::{DataType, Field, FieldRef};

use crate::support::{Nulls, Random};

/// Makes arrays with nulls as told.
struct Maker {
    random: Random,
    nulls: Nulls,
}

impl Maker {
    fn validity(&mut self, len: usize) -> Option<NullBuffer> {
        match self.nulls {
            Nulls::Required | Nulls::None => None,
            Nulls::Some => Some((0..len).map(|_| self.random.below(10) >= 3).collect()),
            Nulls::All => Some(NullBuffer::new_null(len)),
        }
    }

    fn field(&self, name: &str, data_type: &DataType) -> FieldRef {
        let nullable = self.nulls != Nulls::Required;
        Arc::new(Field::new(name, data_type.clone(), nullable))
    }

    fn i32s(&mut self, len: usize) -> ArrayRef {
        let values = (0..len)
            .map(|_| self.random.below(1_000) as i32 - 500)
            .collect();
        Arc::new(Int32Array::new(values, self.validity(len)))
    }

    fn i64s(&mut self, len: usize) -> ArrayRef {
        let values = (0..len).map(|_| self.random.next() as i64 >> 20).collect();
        Arc::new(Int64Array::new(values, self.validity(len)))
    }

    fn f64s(&mut self, len: usize) -> ArrayRef {
        let values = (0..len)
            .map(|_| self.random.below(999) as f64 / 8.0)
            .collect();
        Arc::new(Float64Array::new(values, self.validity(len)))
    }

    fn texts(&mut self, len: usize) -> ArrayRef {
        let texts = (0..len).map(|_| "äb🦀 ".repeat(self.random.below(5) as usize));
        let texts = StringArray::from_iter_values(texts);
        let (offsets, values, _) = texts.into_parts();
        Arc::new(StringArray::new(offsets, values, self.validity(len)))
    }

    /// Lengths of lists, empty ones among them; a list that is null has one all the same.
    fn lengths(&mut self, len: usize) -> Vec<usize> {
        (0..len).map(|_| self.random.below(4) as usize).collect()
    }

    fn list(&mut self, len: usize, items: fn(&mut Self, usize) -> ArrayRef) -> ArrayRef {
        let lengths = self.lengths(len);
        let items = items(self, lengths.iter().sum());
        let item = self.field("item", items.data_type());
        let offsets = OffsetBuffer::from_lengths(lengths);
        Arc::new(ListArray::new(item, offsets, items, self.validity(len)))
    }

    fn large_list(&mut self, len: usize) -> ArrayRef {
        let lengths = self.lengths(len);
        let items = self.i64s(lengths.iter().sum());
        let item = self.field("item", items.data_type());
        let offsets = OffsetBuffer::from_lengths(lengths);
        Arc::new(LargeListArray::new(
            item,
            offsets,
            items,
            self.validity(len),
        ))
    }

    fn fixed_list(&mut self, len: usize) -> ArrayRef {
        let items = self.f64s(len * 3);
        let item = self.field("item", items.data_type());
        Arc::new(FixedSizeListArray::new(item, 3, items, self.validity(len)))
    }

    fn structs(&mut self, len: usize) -> ArrayRef {
        let children = [("a", self.i64s(len)), ("b", self.texts(len))];
        self.structs_of(len, &children)
    }

    fn structs_of(&mut self, len: usize, children: &[(&str, ArrayRef)]) -> ArrayRef {
        let fields: Vec<_> = children
            .iter()
            .map(|(name, array)| self.field(name, array.data_type()))
            .collect();
        let arrays = children
            .iter()
            .map(|(_, array)| Arc::clone(array))
            .collect();
        Arc::new(StructArray::new(fields.into(), arrays, self.validity(len)))
    }

    fn map(&mut self, len: usize) -> ArrayRef {
        let lengths = self.lengths(len);
        let entries: usize = lengths.iter().sum();
        // Keys are never null, and here no two of one map are the same.
        let keys = lengths
            .iter()
            .flat_map(|&n| (0..n).map(|i| format!("key {i}")));
        let keys: ArrayRef = Arc::new(StringArray::from_iter_values(keys));
        let values = self.i64s(entries);
        let key = Arc::new(Field::new("key", DataType::Utf8, false));
        let value = self.field("value", values.data_type());
        let entries = StructArray::new(vec![key, value].into(), vec![keys, values], None);
        let entry = Arc::new(Field::new("entries", entries.data_type().clone(), false));
        let offsets = OffsetBuffer::from_lengths(lengths);
        Arc::new(MapArray::new(
            entry,
            offsets,
            entries,
            self.validity(len),
            false,
        ))
    }
}

/// Milliseconds that stay what they are in microseconds, which is what DuckDB makes of them.
fn within_reach(array: &ArrayRef) -> ArrayRef {
    match array.as_primitive_opt::<TimestampMillisecondType>() {
        Some(ms) => {
            let ms: TimestampMillisecondArray = ms.unary(|ms| ms % (1 << 50));
            Arc::new(ms)
        }
        None => Arc::clone(array),
    }
}

/// The batch with nested columns first, last and in between.
pub(crate) fn with_nested(flat: &RecordBatch, nulls: Nulls, seed: u64) -> RecordBatch {
    let rows = flat.num_rows();
    let random = Random::new(seed + 1_000);
    let mut make = Maker { random, nulls };
    let inner = [("c", make.texts(rows)), ("d", make.list(rows, Maker::f64s))];
    let outer = [
        ("a", make.i64s(rows)),
        ("inner", make.structs_of(rows, &inner)),
    ];
    let mut nested = vec![
        ("list", make.list(rows, Maker::texts)),
        ("large_list", make.large_list(rows)),
        ("fixed_list", make.fixed_list(rows)),
        (
            "lists",
            make.list(rows, |make, len| make.list(len, Maker::i32s)),
        ),
        ("list_of_structs", make.list(rows, Maker::structs)),
        ("struct", make.structs_of(rows, &outer)),
        ("map", make.map(rows)),
    ]
    .into_iter();

    let schema = flat.schema();
    let mut columns: Vec<(&str, ArrayRef, bool)> = Vec::new();
    for (i, (field, array)) in schema.fields().iter().zip(flat.columns()).enumerate() {
        // Those of more than one leaf come last: DuckDB's `parquet_bloom_probe` takes a column's number
        // for that of its leaf.
        if i % 12 == 0 {
            columns.extend(nested.next().map(|(n, a)| (n, a, nulls != Nulls::Required)));
        }
        columns.push((field.name(), within_reach(array), field.is_nullable()));
    }
    columns.extend(nested.map(|(n, a)| (n, a, nulls != Nulls::Required)));
    RecordBatch::try_from_iter_with_nullable(columns).unwrap()
}
