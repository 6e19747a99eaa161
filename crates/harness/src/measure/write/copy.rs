//! Deep copies of batches: buffers of their own, as large as what they hold.
//!
//! What arrives somewhere shares nothing with the table that it was taken from, so that dropping it frees it, and
//! holding it costs all of it. Views are copied with the bytes they show, dictionaries with their values.

use anyhow::Result;
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, OffsetSizeTrait, RecordBatch, RecordBatchOptions, make_array};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer};
use arrow_data::ArrayData;
use arrow_data::transform::{Capacities, MutableArrayData};
use arrow_schema::DataType;

/// A copy of a batch that may be a slice of something larger, or hold more than it shows.
///
/// # Errors
///
/// A column has a type that arrow cannot copy.
pub(super) fn compact(batch: &RecordBatch) -> Result<RecordBatch> {
    copied(batch, true)
}

/// A copy of a batch that [`compact`] made, which takes no more memory than the copy itself (views aside, which are
/// copied twice).
///
/// # Errors
///
/// As [`compact`].
pub(super) fn copy(batch: &RecordBatch) -> Result<RecordBatch> {
    copied(batch, false)
}

fn copied(batch: &RecordBatch, normalise: bool) -> Result<RecordBatch> {
    let column = |column: &ArrayRef| Ok(make_array(data_of(&column.to_data(), normalise)?));
    let columns = batch
        .columns()
        .iter()
        .map(column)
        .collect::<Result<Vec<_>>>()?;
    let rows = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    Ok(RecordBatch::try_new_with_options(
        batch.schema(),
        columns,
        &rows,
    )?)
}

fn data_of(data: &ArrayData, normalise: bool) -> Result<ArrayData> {
    match data.data_type() {
        DataType::Utf8View => {
            let shown = make_array(data.clone()).as_string_view().gc();
            flat(&shown.into_data())
        }
        DataType::BinaryView => {
            let shown = make_array(data.clone()).as_binary_view().gc();
            flat(&shown.into_data())
        }
        _ if data.child_data().is_empty() => flat(data),
        _ if normalise => with_children(&flat(data)?, true),
        _ => with_children(data, false),
    }
}

/// What arrow makes of a selection of all rows: it copies everything but dictionaries and what views show.
fn flat(data: &ArrayData) -> Result<ArrayData> {
    let rows = data.len();
    // Without the number of bytes, those of strings would be gathered in a buffer that doubles.
    let capacities = match data.data_type() {
        DataType::Utf8 | DataType::Binary => Capacities::Binary(rows, Some(bytes::<i32>(data))),
        DataType::LargeUtf8 | DataType::LargeBinary => {
            Capacities::Binary(rows, Some(bytes::<i64>(data)))
        }
        _ => Capacities::Array(rows),
    };
    let mut copy = MutableArrayData::try_with_capacities(vec![data], false, capacities)?;
    copy.try_extend(0, 0, rows)?;
    Ok(copy.freeze())
}

/// Bytes that the strings of an array are long together.
fn bytes<O: OffsetSizeTrait>(data: &ArrayData) -> usize {
    let offsets = data.buffer::<O>(0);
    match (offsets.first(), offsets.get(data.len())) {
        (Some(first), Some(last)) => (*last - *first).as_usize(),
        _ => 0,
    }
}

/// A copy of an array that has children and is no slice.
fn with_children(data: &ArrayData, normalise: bool) -> Result<ArrayData> {
    let copied = |buffer: &Buffer| Buffer::from_slice_ref(buffer.as_slice());
    let nulls = data.nulls().map(|nulls| {
        let bits = copied(&nulls.inner().sliced());
        NullBuffer::new(BooleanBuffer::new(bits, 0, nulls.len()))
    });
    let children = data.child_data().iter();
    let children = children.map(|child| data_of(child, normalise));
    Ok(ArrayData::builder(data.data_type().clone())
        .len(data.len())
        .offset(data.offset())
        .nulls(nulls)
        .buffers(data.buffers().iter().map(copied).collect())
        .child_data(children.collect::<Result<_>>()?)
        .build()?)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use arrow_array::types::Int32Type;
    use arrow_array::{DictionaryArray, Int32Array, RunArray, StringArray, StringViewArray};

    use super::super::super::checksum::Checksum;
    use super::super::super::checksum::tests::everything;
    use super::*;

    /// Every buffer, children's too, by address; with its capacity.
    fn buffers(data: &ArrayData, found: &mut BTreeMap<usize, usize>) {
        let nulls = data.nulls().map(NullBuffer::buffer);
        for buffer in data.buffers().iter().chain(nulls) {
            // An empty one has no memory.
            if buffer.capacity() > 0 {
                found.insert(buffer.data_ptr().as_ptr() as usize, buffer.capacity());
            }
        }
        for child in data.child_data() {
            buffers(child, found);
        }
    }

    fn all(batch: &RecordBatch) -> BTreeMap<usize, usize> {
        let mut found = BTreeMap::new();
        for column in batch.columns() {
            buffers(&column.to_data(), &mut found);
        }
        found
    }

    fn checksum(batch: &RecordBatch) -> u64 {
        let mut checksum = Checksum::new(&batch.schema()).unwrap();
        checksum.add(batch).unwrap();
        checksum.finish()
    }

    #[test]
    fn a_copy_is_equal_and_shares_nothing() {
        let batch = everything();
        for source in [batch.clone(), batch.slice(3, 50), batch.slice(7, 0)] {
            let compact = compact(&source).unwrap();
            let copy = copy(&compact).unwrap();
            for other in [&compact, &copy] {
                assert_eq!(checksum(other), checksum(&source));
                assert_eq!(other.schema(), source.schema());
                assert_eq!(other.columns(), source.columns());
            }
            let (source, compact, copy) = (all(&source), all(&compact), all(&copy));
            assert!(compact.keys().all(|buffer| !source.contains_key(buffer)));
            assert!(copy.keys().all(|buffer| !compact.contains_key(buffer)));
            assert_eq!(
                copy.values().sum::<usize>(),
                compact.values().sum::<usize>()
            );
        }
    }

    fn bytes_of(array: ArrayRef) -> usize {
        let batch = RecordBatch::try_from_iter([("a", array)]).unwrap();
        let once = compact(&batch).unwrap();
        all(&copy(&once).unwrap()).values().sum()
    }

    #[test]
    fn what_a_slice_does_not_show_is_left_behind() {
        let numbers: ArrayRef = Arc::new(Int32Array::from_iter_values(0..100_000));
        assert_eq!(bytes_of(numbers.slice(50_000, 16)), 64);
        let long = "x".repeat(1000);
        let strings: ArrayRef = Arc::new(StringArray::from_iter_values((0..1000).map(|_| &long)));
        assert!((1000..1200).contains(&bytes_of(strings.slice(9, 1))));
        let views: ArrayRef = Arc::new(StringViewArray::from_iter_values((0..1000).map(|_| &long)));
        assert!((1000..1200).contains(&bytes_of(views.slice(9, 1))));
    }

    #[test]
    fn dictionaries_and_runs_come_with_their_values() {
        let long = "y".repeat(10_000);
        let words: DictionaryArray<Int32Type> =
            [Some("x"), None, Some(&*long)].into_iter().collect();
        assert!((10_000..10_500).contains(&bytes_of(Arc::new(words))));
        let runs: RunArray<Int32Type> = [long.as_str(), &long, "x"].into_iter().collect();
        assert!((10_000..10_500).contains(&bytes_of(Arc::new(runs))));
    }
}
