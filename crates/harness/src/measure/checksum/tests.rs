//! The same content in other batches and other layouts has the same checksum; other content has
//! another.

use std::sync::Arc;

use arrow_array::builder::{Int32Builder, ListBuilder, MapBuilder, StringBuilder};
use arrow_array::types::{Int8Type, Int32Type};
use arrow_array::{
    Array, ArrayRef, BinaryArray, BinaryViewArray, BooleanArray, Decimal256Array, DictionaryArray,
    FixedSizeListArray, Float32Array, Float64Array, Int32Array, Int64Array,
    IntervalMonthDayNanoArray, LargeListArray, LargeStringArray, ListArray, ListViewArray,
    NullArray, RunArray, StringArray, StringViewArray, StructArray, TimestampMicrosecondArray,
};
use arrow_buffer::{IntervalMonthDayNano, OffsetBuffer, ScalarBuffer, i256};
use arrow_schema::Field;

use super::*;

fn checksum_of(batches: &[RecordBatch]) -> u64 {
    let mut checksum = Checksum::new(&batches[0].schema()).unwrap();
    for batch in batches {
        checksum.add(batch).unwrap();
    }
    checksum.finish()
}

fn column(array: impl Array + 'static) -> u64 {
    named("a", Arc::new(array))
}

fn named(name: &str, array: ArrayRef) -> u64 {
    checksum_of(&[RecordBatch::try_from_iter_with_nullable([(name, array, true)]).unwrap()])
}

fn int_item() -> Arc<Field> {
    Arc::new(Field::new_list_field(DataType::Int32, true))
}

fn offsets(offsets: &[i32]) -> OffsetBuffer<i32> {
    OffsetBuffer::new(ScalarBuffer::from(offsets.to_vec()))
}

/// A column of every kind, 100 rows, with nulls at every level.
pub(in crate::measure) fn everything() -> RecordBatch {
    const ROWS: i32 = 100;
    let valid = |row: &i32| row % 7 != 0;
    let ints = Int32Array::from_iter((0..ROWS).map(|row| valid(&row).then_some(row)));
    let strings =
        || (0..ROWS).map(|row| valid(&row).then(|| format!("{row}").repeat(row as usize % 9)));
    let dictionary: DictionaryArray<Int8Type> = (0..ROWS)
        .map(|row| valid(&row).then_some(["x", "yy", ""][row as usize % 3]))
        .collect();
    let mut lists = ListBuilder::new(Int32Builder::new());
    let mut maps = MapBuilder::new(None, StringBuilder::new(), Int32Builder::new());
    for row in 0..ROWS {
        lists.append_option(
            valid(&row).then(|| (0..row % 5).map(|item| (item != 2).then_some(item))),
        );
        for key in 0..row % 3 {
            maps.keys().append_value(format!("{key}"));
            maps.values().append_option(valid(&key).then_some(row));
        }
        maps.append(valid(&row)).unwrap();
    }
    let run_ends = Int32Array::from_iter_values((1..=ROWS / 4).map(|run| run * 4));
    let runs = RunArray::<Int32Type>::try_new(
        &run_ends,
        &Int32Array::from_iter((0..ROWS / 4).map(|run| valid(&run).then_some(run))),
    )
    .unwrap();
    let columns: [(&str, ArrayRef); 16] = [
        ("null", Arc::new(NullArray::new(ROWS as usize))),
        (
            "boolean",
            Arc::new(BooleanArray::from_iter(
                (0..ROWS).map(|row| valid(&row).then_some(row % 2 == 0)),
            )),
        ),
        ("int", Arc::new(ints.clone())),
        (
            "required",
            Arc::new(Float64Array::from_iter_values((0..ROWS).map(f64::from))),
        ),
        (
            "decimal",
            Arc::new(Decimal256Array::from_iter_values(
                (0..ROWS).map(|row| i256::from_i128(i128::from(row))),
            )),
        ),
        (
            "interval",
            Arc::new(IntervalMonthDayNanoArray::from_iter_values(
                (0..ROWS).map(|row| IntervalMonthDayNano::new(row, 1, 2)),
            )),
        ),
        (
            "timestamp",
            Arc::new(
                TimestampMicrosecondArray::from_iter_values((0..ROWS).map(i64::from))
                    .with_timezone("UTC"),
            ),
        ),
        ("string", Arc::new(StringArray::from_iter(strings()))),
        ("large", Arc::new(LargeStringArray::from_iter(strings()))),
        ("view", Arc::new(StringViewArray::from_iter(strings()))),
        ("binary", Arc::new(BinaryViewArray::from_iter(strings()))),
        ("dictionary", Arc::new(dictionary)),
        ("runs", Arc::new(runs)),
        ("list", Arc::new(lists.finish())),
        ("map", Arc::new(maps.finish())),
        (
            "struct",
            Arc::new(StructArray::new(
                vec![Field::new("x", DataType::Int32, true)].into(),
                vec![Arc::new(ints)],
                Some((0..ROWS).map(|row| row % 3 != 0).collect::<Vec<_>>().into()),
            )),
        ),
    ];
    RecordBatch::try_from_iter_with_nullable(columns.map(|(name, array)| (name, array, true)))
        .unwrap()
}

#[test]
fn batch_sizes_do_not_matter() {
    let whole = everything();
    for rows in [1, 3, 8, 64, 99] {
        let starts = (0..whole.num_rows()).step_by(rows);
        let batches: Vec<_> = starts
            .map(|start| whole.slice(start, rows.min(whole.num_rows() - start)))
            .collect();
        assert_eq!(
            checksum_of(&batches),
            checksum_of(std::slice::from_ref(&whole)),
            "{rows} rows a batch"
        );
    }
}

#[test]
fn the_layout_of_strings_does_not_matter() {
    let values = vec![
        Some("a"),
        None,
        Some("a string that no view holds inline"),
        Some(""),
        Some("a"),
    ];
    let expected = column(StringArray::from(values.clone()));
    assert_eq!(column(LargeStringArray::from(values.clone())), expected);
    assert_eq!(column(StringViewArray::from(values.clone())), expected);
    assert_eq!(
        column(
            values
                .iter()
                .copied()
                .collect::<DictionaryArray<Int32Type>>()
        ),
        expected
    );
    assert_eq!(
        column(
            values
                .iter()
                .copied()
                .collect::<DictionaryArray<Int8Type>>()
        ),
        expected
    );
    assert_eq!(
        column(values.iter().copied().collect::<RunArray<Int32Type>>()),
        expected
    );
}

#[test]
fn the_layout_of_lists_does_not_matter() {
    let items: ArrayRef = Arc::new(Int32Array::from(vec![1, 2, 3]));
    let list = column(ListArray::new(
        int_item(),
        offsets(&[0, 2, 2, 3]),
        Arc::clone(&items),
        None,
    ));
    let large = OffsetBuffer::new(ScalarBuffer::from(vec![0_i64, 2, 2, 3]));
    assert_eq!(
        column(LargeListArray::new(
            int_item(),
            large,
            Arc::clone(&items),
            None
        )),
        list
    );
    let moved: ArrayRef = Arc::new(Int32Array::from(vec![3, 9, 1, 2]));
    let view = ListViewArray::new(
        int_item(),
        vec![2, 0, 0].into(),
        vec![2, 0, 1].into(),
        moved,
        None,
    );
    assert_eq!(column(view), list);
}

#[test]
fn what_lies_under_nulls_does_not_matter() {
    let valid = Some(vec![true, false, true].into());
    let one = column(Int32Array::new(vec![1, 2, 3].into(), valid.clone()));
    assert_eq!(
        column(Int32Array::new(vec![1, 7, 3].into(), valid.clone())),
        one
    );

    let items: ArrayRef = Arc::new(Int32Array::from(vec![1, 2, 3]));
    let empty = column(ListArray::new(
        int_item(),
        offsets(&[0, 1, 1, 2]),
        items.slice(0, 2),
        valid.clone(),
    ));
    let shifted: ArrayRef = Arc::new(Int32Array::from(vec![1, 9, 2]));
    assert_eq!(
        column(ListArray::new(
            int_item(),
            offsets(&[0, 1, 2, 3]),
            shifted,
            valid.clone()
        )),
        empty
    );

    let nested = |child: Int32Array| {
        let fields = vec![Field::new("x", DataType::Int32, true)].into();
        column(StructArray::new(
            fields,
            vec![Arc::new(child)],
            valid.clone(),
        ))
    };
    assert_eq!(
        nested(Int32Array::from(vec![Some(1), None, Some(3)])),
        nested(Int32Array::from(vec![1, 2, 3]))
    );
}

#[test]
fn each_value_counts() {
    let original: Vec<i32> = (0..50).collect();
    let expected = column(Int32Array::from(original.clone()));
    for place in 0..original.len() {
        let mut changed = original.clone();
        changed[place] ^= 1 << 31;
        assert_ne!(column(Int32Array::from(changed)), expected, "value {place}");
    }
}

#[test]
fn each_null_counts() {
    let original: Vec<Option<i32>> = vec![Some(0); 50];
    let mut seen = vec![column(Int32Array::from(original.clone()))];
    for place in 0..original.len() {
        let mut changed = original.clone();
        changed[place] = None;
        seen.push(column(Int32Array::from(changed)));
    }
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen.len(), original.len() + 1);
}

#[test]
fn order_counts() {
    assert_ne!(
        column(Int32Array::from(vec![1, 2])),
        column(Int32Array::from(vec![2, 1]))
    );
    assert_ne!(
        column(BooleanArray::from(vec![true, false])),
        column(BooleanArray::from(vec![false, true]))
    );
}

#[test]
fn where_a_string_ends_counts() {
    assert_ne!(
        column(StringArray::from(vec!["ab", "c"])),
        column(StringArray::from(vec!["a", "bc"]))
    );
    assert_ne!(
        column(StringArray::from(vec![Some(""), None])),
        column(StringArray::from(vec![None, Some("")]))
    );
    assert_ne!(
        column(StringViewArray::from(vec!["ab", "c"])),
        column(StringViewArray::from(vec!["a", "bc"]))
    );
}

#[test]
fn where_a_list_ends_counts() {
    let items: ArrayRef = Arc::new(Int32Array::from(vec![1, 2, 3]));
    let list = |ends: &[i32]| {
        column(ListArray::new(
            int_item(),
            offsets(ends),
            Arc::clone(&items),
            None,
        ))
    };
    assert_ne!(list(&[0, 1, 3]), list(&[0, 2, 3]));
    assert_ne!(list(&[0, 3]), list(&[0, 3, 3]));
}

#[test]
fn an_empty_list_is_not_a_null_one() {
    let empty = ListArray::new(
        int_item(),
        offsets(&[0, 0]),
        Arc::new(Int32Array::from(Vec::<i32>::new())),
        None,
    );
    assert_ne!(column(empty), column(ListArray::new_null(int_item(), 1)));
}

#[test]
fn a_null_struct_is_not_a_struct_of_nulls() {
    let fields: arrow_schema::Fields = vec![Field::new("x", DataType::Int32, true)].into();
    let null = StructArray::new_null(fields.clone(), 1);
    let of_nulls = StructArray::new(fields, vec![Arc::new(Int32Array::new_null(1))], None);
    assert_ne!(column(null), column(of_nulls));
}

#[test]
fn rows_without_columns_count() {
    let rows = |rows| {
        let options = arrow_array::RecordBatchOptions::new().with_row_count(Some(rows));
        checksum_of(&[RecordBatch::try_new_with_options(
            Arc::new(Schema::empty()),
            vec![],
            &options,
        )
        .unwrap()])
    };
    assert_ne!(rows(1), rows(2));
}

#[test]
fn floats_count_by_their_bits() {
    assert_ne!(
        column(Float32Array::from(vec![0.0])),
        column(Float32Array::from(vec![-0.0]))
    );
    assert_eq!(
        column(Float32Array::from(vec![f32::NAN])),
        column(Float32Array::from(vec![f32::NAN]))
    );
    let other_nan = f32::from_bits(f32::NAN.to_bits() | 1);
    assert_ne!(
        column(Float32Array::from(vec![f32::NAN])),
        column(Float32Array::from(vec![other_nan]))
    );
}

#[test]
fn names_and_types_count() {
    let ints: ArrayRef = Arc::new(Int64Array::from(vec![1]));
    assert_ne!(named("a", Arc::clone(&ints)), named("b", Arc::clone(&ints)));
    let timestamps = TimestampMicrosecondArray::from(vec![1]);
    assert_ne!(
        column(Int64Array::from(vec![1])),
        column(timestamps.clone())
    );
    assert_ne!(
        column(timestamps.clone()),
        column(timestamps.with_timezone("UTC"))
    );
    assert_ne!(
        column(StringArray::from(vec!["a"])),
        column(BinaryArray::from_vec(vec![b"a"]))
    );
    let pairs = |size| {
        FixedSizeListArray::new(
            int_item(),
            size,
            Arc::new(Int32Array::from(vec![1, 2, 3, 4])),
            None,
        )
    };
    assert_ne!(column(pairs(2)), column(pairs(4)));
}

#[test]
fn a_batch_of_another_width_is_refused() {
    let batch = everything();
    let mut checksum = Checksum::new(&batch.schema()).unwrap();
    assert!(checksum.add(&batch.project(&[0]).unwrap()).is_err());
}

#[test]
fn a_type_that_parquet_does_not_yield_is_refused() {
    let union = DataType::Union(
        arrow_schema::UnionFields::empty(),
        arrow_schema::UnionMode::Dense,
    );
    assert!(Checksum::new(&Schema::new(vec![Field::new("u", union, false)])).is_err());
}

#[test]
fn columns_one_after_the_other_have_the_checksum_of_batches() {
    let batch = everything();
    let mut apart = Checksum::new(&batch.schema()).unwrap();
    for (index, column) in batch.columns().iter().enumerate().rev() {
        let middle = column.len() / 2;
        for slice in [
            column.slice(0, middle),
            column.slice(middle, column.len() - middle),
        ] {
            apart.add_column(index, &slice).unwrap();
        }
    }
    assert_eq!(apart.finish(), checksum_of(&[batch]));
    let array = Int32Array::from(vec![1]);
    assert!(apart.add_column(1000, &array).is_err());
}
