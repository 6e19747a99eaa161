//! Which bytes an array owns, and arrays that own all of theirs.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, make_array};
use arrow_buffer::Buffer;
use arrow_data::ArrayData;
use arrow_schema::{ArrowError, DataType};

/// Bytes of an array's own buffers. The data of byte-view arrays, nested ones too, are pages, which
/// count as pages.
pub(super) fn bytes(array: &dyn Array) -> u64 {
    fn of(data: &ArrayData) -> usize {
        let own = match data.data_type() {
            // The views come first, then the pages that they point into.
            DataType::Utf8View | DataType::BinaryView => &data.buffers()[..1],
            _ => data.buffers(),
        };
        let own: usize = own.iter().map(Buffer::capacity).sum();
        let nulls = data.nulls().map_or(0, |nulls| nulls.buffer().capacity());
        own + nulls + data.child_data().iter().map(of).sum::<usize>()
    }
    match array.data_type() {
        kind if kind.is_nested() || has_views(kind) => of(&array.to_data()) as u64,
        _ => array.get_buffer_memory_size() as u64,
    }
}

fn has_views(kind: &DataType) -> bool {
    matches!(kind, DataType::Utf8View | DataType::BinaryView)
}

/// Whether arrays of this type have views, or have arrays in them that do.
fn holds_views(kind: &DataType) -> bool {
    match kind {
        DataType::Struct(fields) => fields.iter().any(|field| holds_views(field.data_type())),
        DataType::List(field)
        | DataType::LargeList(field)
        | DataType::ListView(field)
        | DataType::LargeListView(field)
        | DataType::FixedSizeList(field, _)
        | DataType::Map(field, _) => holds_views(field.data_type()),
        _ => has_views(kind),
    }
}

/// The same values, none of which is in a page: those of views are copied.
///
/// # Errors
/// None where `array` is valid.
pub(super) fn owned(array: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    if !holds_views(array.data_type()) {
        return Ok(Arc::clone(array));
    }
    Ok(make_array(owned_data(array.to_data())?))
}

fn owned_data(data: ArrayData) -> Result<ArrayData, ArrowError> {
    match data.data_type() {
        DataType::Utf8View => Ok(make_array(data).as_string_view().gc().into_data()),
        DataType::BinaryView => Ok(make_array(data).as_binary_view().gc().into_data()),
        kind if kind.is_nested() => {
            let children = data.child_data().iter().cloned().map(owned_data);
            let children = children.collect::<Result<_, _>>()?;
            data.into_builder().child_data(children).build()
        }
        _ => Ok(data),
    }
}
