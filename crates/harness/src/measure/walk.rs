//! Walks an array's logical content: what a reader of its values would see, in order.
//!
//! It hands contiguous runs of valid values to a [`Visitor`], so that sums and hashes run over
//! slices. It never shows what lies under a null, at whatever level the null is, nor how a value is
//! stored: dictionaries, views and run ends are resolved. It allocates nothing.

use std::ops::Range;

use anyhow::{Result, bail};
use arrow_array::cast::AsArray;
use arrow_array::types::{ArrowPrimitiveType, ByteArrayType, ByteViewType, RunEndIndexType};
use arrow_array::{
    Array, GenericByteArray, GenericByteViewArray, GenericListArray, GenericListViewArray,
    OffsetSizeTrait, PrimitiveArray, RunArray, downcast_integer_array, downcast_primitive_array,
    downcast_run_array,
};
use arrow_buffer::{ArrowNativeType, BooleanBuffer, NullBuffer};
use arrow_schema::DataType;

/// Receives the content of a node of the type tree and, through [`Visitor::child`], of the nodes
/// below.
pub(super) trait Visitor {
    /// The visitor of this node's child `index`.
    fn child(&mut self, index: usize) -> &mut Self;

    /// `count` slots are null.
    fn nulls(&mut self, count: usize);

    /// `count` slots are valid and have their content in the children alone.
    fn entered(&mut self, count: usize);

    /// `count` valid values of `width` bytes each.
    fn fixed(&mut self, width: usize, count: usize, values: &[u8]);

    /// A valid slot for each value of `width` bytes, but for those which `nulls` has as null.
    fn fixed_with_nulls(&mut self, width: usize, values: &[u8], nulls: &NullBuffer) {
        runs(Some(nulls), 0..nulls.len(), |run| {
            match run {
                Run::Null(count) => self.nulls(count),
                Run::Valid(range) => {
                    let bytes = &values[range.start * width..range.end * width];
                    self.fixed(width, range.len(), bytes);
                }
            }
            Ok(())
        })
        .unwrap_or_default();
    }

    /// Valid booleans, but for those which `nulls` has as null.
    fn booleans(&mut self, values: &BooleanBuffer, nulls: Option<&NullBuffer>);

    /// A valid value of any length.
    fn bytes(&mut self, value: &[u8]);

    /// Valid values that lie one after the other: value `i` is `data[offsets[i]..offsets[i + 1]]`.
    fn bytes_run<O: OffsetSizeTrait>(&mut self, offsets: &[O], data: &[u8]);

    /// A valid list of `length` items, which follow in child 0.
    fn list(&mut self, length: usize);
}

/// Slots in a row that are alike.
enum Run {
    Valid(Range<usize>),
    Null(usize),
}

/// Shows `visitor` the slots `range` of `array`.
///
/// # Errors
///
/// The array has a type that Parquet does not yield.
pub(super) fn walk<V: Visitor>(
    array: &dyn Array,
    range: Range<usize>,
    visitor: &mut V,
) -> Result<()> {
    if range.is_empty() {
        return Ok(());
    }
    downcast_primitive_array!(
        array => primitive(array, range, visitor),
        DataType::Null => visitor.nulls(range.len()),
        DataType::Boolean => {
            let array = array.as_boolean();
            let nulls = slice(array.nulls(), &range);
            visitor.booleans(&array.values().slice(range.start, range.len()), nulls.as_ref());
        }
        DataType::Utf8 => byte_array(array.as_string::<i32>(), range, visitor),
        DataType::LargeUtf8 => byte_array(array.as_string::<i64>(), range, visitor),
        DataType::Binary => byte_array(array.as_binary::<i32>(), range, visitor),
        DataType::LargeBinary => byte_array(array.as_binary::<i64>(), range, visitor),
        DataType::Utf8View => byte_view_array(array.as_string_view(), range, visitor),
        DataType::BinaryView => byte_view_array(array.as_binary_view(), range, visitor),
        DataType::FixedSizeBinary(width) => {
            let array = array.as_fixed_size_binary();
            fixed(array.value_data(), width.as_usize(), array.nulls(), range, visitor);
        }
        DataType::List(_) => return list(array.as_list::<i32>(), range, visitor),
        DataType::LargeList(_) => return list(array.as_list::<i64>(), range, visitor),
        DataType::ListView(_) => return list_view(array.as_list_view::<i32>(), range, visitor),
        DataType::LargeListView(_) => return list_view(array.as_list_view::<i64>(), range, visitor),
        DataType::FixedSizeList(_, size) => {
            let (array, size) = (array.as_fixed_size_list(), size.as_usize());
            return runs(array.nulls(), range, |run| match run {
                Run::Null(count) => { visitor.nulls(count); Ok(()) }
                Run::Valid(run) => {
                    visitor.entered(run.len());
                    walk(array.values(), run.start * size..run.end * size, visitor.child(0))
                }
            });
        }
        DataType::Map(_, _) => {
            let array = array.as_map();
            return lists(array.offsets(), array.entries(), array.nulls(), range, visitor);
        }
        DataType::Struct(_) => {
            let array = array.as_struct();
            return runs(array.nulls(), range, |run| match run {
                Run::Null(count) => { visitor.nulls(count); Ok(()) }
                Run::Valid(run) => {
                    visitor.entered(run.len());
                    let mut columns = array.columns().iter().enumerate();
                    columns.try_for_each(|(index, column)| walk(column, run.clone(), visitor.child(index)))
                }
            });
        }
        DataType::Dictionary(_, _) => {
            let dictionary = array.as_any_dictionary();
            let keys = dictionary.keys();
            downcast_integer_array!(
                keys => return dictionary_keys(keys, dictionary.values(), range, visitor),
                kind => bail!("dictionary keys of type {kind} are not supported")
            );
        }
        DataType::RunEndEncoded(_, _) => downcast_run_array!(
            array => return run_array(array, range, visitor),
            kind => bail!("run ends of type {kind} are not supported")
        ),
        kind => bail!("columns of type {kind} are not supported: Parquet does not yield them")
    );
    Ok(())
}

/// The validity of `range`, if anything in it is null.
fn slice(nulls: Option<&NullBuffer>, range: &Range<usize>) -> Option<NullBuffer> {
    let nulls = nulls.filter(|nulls| nulls.null_count() > 0)?;
    let nulls = nulls.slice(range.start, range.len());
    (nulls.null_count() > 0).then_some(nulls)
}

/// Splits `range` in runs of valid and of null slots, in order.
fn runs(
    nulls: Option<&NullBuffer>,
    range: Range<usize>,
    mut each: impl FnMut(Run) -> Result<()>,
) -> Result<()> {
    let Some(nulls) = slice(nulls, &range) else {
        return each(Run::Valid(range));
    };
    let mut done = 0;
    for (start, end) in nulls.valid_slices() {
        if start > done {
            each(Run::Null(start - done))?;
        }
        each(Run::Valid(range.start + start..range.start + end))?;
        done = end;
    }
    if done < range.len() {
        each(Run::Null(range.len() - done))
    } else {
        Ok(())
    }
}

fn primitive<T: ArrowPrimitiveType, V: Visitor>(
    array: &PrimitiveArray<T>,
    range: Range<usize>,
    visitor: &mut V,
) {
    fixed(
        array.values().inner(),
        size_of::<T::Native>(),
        array.nulls(),
        range,
        visitor,
    );
}

fn fixed<V: Visitor>(
    values: &[u8],
    width: usize,
    nulls: Option<&NullBuffer>,
    range: Range<usize>,
    visitor: &mut V,
) {
    let values = &values[range.start * width..range.end * width];
    match slice(nulls, &range) {
        None => visitor.fixed(width, range.len(), values),
        Some(nulls) => visitor.fixed_with_nulls(width, values, &nulls),
    }
}

fn byte_array<T: ByteArrayType, V: Visitor>(
    array: &GenericByteArray<T>,
    range: Range<usize>,
    visitor: &mut V,
) {
    runs(array.nulls(), range, |run| {
        match run {
            Run::Null(count) => visitor.nulls(count),
            Run::Valid(run) => visitor.bytes_run(
                &array.value_offsets()[run.start..=run.end],
                array.value_data(),
            ),
        }
        Ok(())
    })
    .unwrap_or_default();
}

fn byte_view_array<T: ByteViewType, V: Visitor>(
    array: &GenericByteViewArray<T>,
    range: Range<usize>,
    visitor: &mut V,
) {
    runs(array.nulls(), range, |run| {
        match run {
            Run::Null(count) => visitor.nulls(count),
            Run::Valid(run) => run.for_each(|index| visitor.bytes(array.value(index).as_ref())),
        }
        Ok(())
    })
    .unwrap_or_default();
}

fn list<O: OffsetSizeTrait, V: Visitor>(
    array: &GenericListArray<O>,
    range: Range<usize>,
    visitor: &mut V,
) -> Result<()> {
    lists(
        array.value_offsets(),
        array.values(),
        array.nulls(),
        range,
        visitor,
    )
}

fn lists<O: OffsetSizeTrait, V: Visitor>(
    offsets: &[O],
    items: &dyn Array,
    nulls: Option<&NullBuffer>,
    range: Range<usize>,
    visitor: &mut V,
) -> Result<()> {
    runs(nulls, range, |run| match run {
        Run::Null(count) => {
            visitor.nulls(count);
            Ok(())
        }
        Run::Valid(run) => {
            let offsets = &offsets[run.start..=run.end];
            for pair in offsets.windows(2) {
                visitor.list(pair[1].as_usize() - pair[0].as_usize());
            }
            walk(
                items,
                offsets[0].as_usize()..offsets[run.len()].as_usize(),
                visitor.child(0),
            )
        }
    })
}

fn list_view<O: OffsetSizeTrait, V: Visitor>(
    array: &GenericListViewArray<O>,
    range: Range<usize>,
    visitor: &mut V,
) -> Result<()> {
    runs(array.nulls(), range, |run| match run {
        Run::Null(count) => {
            visitor.nulls(count);
            Ok(())
        }
        Run::Valid(mut run) => run.try_for_each(|index| {
            let start = array.value_offset(index).as_usize();
            let length = array.value_size(index).as_usize();
            visitor.list(length);
            walk(array.values(), start..start + length, visitor.child(0))
        }),
    })
}

fn dictionary_keys<K: ArrowPrimitiveType, V: Visitor>(
    keys: &PrimitiveArray<K>,
    values: &dyn Array,
    range: Range<usize>,
    visitor: &mut V,
) -> Result<()> {
    match values.data_type() {
        DataType::Utf8 if values.null_count() == 0 => {
            let values = values.as_string::<i32>();
            each_key(keys, range, visitor, |visitor, key| {
                visitor.bytes(values.value(key).as_bytes());
                Ok(())
            })
        }
        _ => each_key(keys, range, visitor, |visitor, key| {
            walk(values, key..key + 1, visitor)
        }),
    }
}

fn each_key<K: ArrowPrimitiveType, V: Visitor>(
    keys: &PrimitiveArray<K>,
    range: Range<usize>,
    visitor: &mut V,
    mut each: impl FnMut(&mut V, usize) -> Result<()>,
) -> Result<()> {
    runs(keys.nulls(), range, |run| match run {
        Run::Null(count) => {
            visitor.nulls(count);
            Ok(())
        }
        Run::Valid(run) => keys.values()[run]
            .iter()
            .try_for_each(|key| each(visitor, key.as_usize())),
    })
}

fn run_array<R: RunEndIndexType, V: Visitor>(
    array: &RunArray<R>,
    range: Range<usize>,
    visitor: &mut V,
) -> Result<()> {
    let ends = array.run_ends();
    let mut physical = ends.get_physical_index(range.start);
    for logical in range {
        while ends.values()[physical].as_usize() <= logical + ends.offset() {
            physical += 1;
        }
        walk(array.values(), physical..physical + 1, visitor)?;
    }
    Ok(())
}
