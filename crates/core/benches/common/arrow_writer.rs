//! The cases of upstream's `benches/arrow_writer.rs` that bear on encoders and their buffers.

use arrow_array::RecordBatch;
use parquet::basic::Encoding;
use parquet::file::properties::{WriterProperties, WriterVersion};

use super::Case;
use super::data::{self, Nulls};

const KIB: usize = 1024;
const MIB: usize = 1024 * KIB;

/// The cases, in upstream's order.
pub(super) fn cases() -> Vec<Case> {
    vec![
        million("string", data::random_strings),
        million("int32_ree_95pct_null", data::runs),
        small("small_string_shared_prefix", data::shared_prefix),
        small("small_string_partial_prefix", |rows, bytes| {
            data::partial_prefix(rows, bytes, bytes / 2)
        }),
        small("small_string_distinct", data::distinct),
        large("large_string_shared_prefix", data::shared_prefix),
        large("large_string_distinct", data::distinct),
        large("large_string_shared_prefix_nullable", |rows, bytes| {
            data::nullable(rows, bytes, true, Nulls::Every(16))
        }),
        large(
            "large_string_shared_prefix_nullable_dense",
            |rows, bytes| data::nullable(rows, bytes, true, Nulls::Every(2)),
        ),
        large(
            "large_string_shared_prefix_nullable_trailing",
            |rows, bytes| data::nullable(rows, bytes, true, Nulls::Trailing(8)),
        ),
        large("large_string_distinct_nullable", |rows, bytes| {
            data::nullable(rows, bytes, false, Nulls::Every(16))
        }),
        delta_byte_array(
            "medium_string_shared_prefix_nullable",
            1024,
            256 * KIB,
            |rows, bytes| data::nullable(rows, bytes, true, Nulls::Every(16)),
        ),
    ]
}

/// 1,048,576 rows with the second version's encodings.
fn million(name: &str, make: impl Fn(usize) -> RecordBatch + 'static) -> Case {
    let rows = MIB;
    Case {
        id: format!("arrow_writer/{name}/parquet_2"),
        rows,
        value_bytes: 0,
        rows_for_test: 20_000,
        writes: 1,
        make: Box::new(move |rows, _| make(rows)),
        properties: WriterProperties::builder()
            .set_writer_version(WriterVersion::PARQUET_2_0)
            .build(),
    }
}

/// Values far below the size of a page.
fn small(name: &str, make: impl Fn(usize, usize) -> RecordBatch + 'static) -> Case {
    delta_byte_array(name, 8192, KIB, make)
}

/// Values that each overrun a page.
fn large(name: &str, make: impl Fn(usize, usize) -> RecordBatch + 'static) -> Case {
    delta_byte_array(name, 128, 2 * MIB, make)
}

fn delta_byte_array(
    name: &str,
    rows: usize,
    bytes: usize,
    make: impl Fn(usize, usize) -> RecordBatch + 'static,
) -> Case {
    Case {
        id: format!("arrow_writer/{name}/delta_byte_array"),
        rows,
        value_bytes: bytes,
        rows_for_test: rows / 32,
        writes: 1,
        make: Box::new(make),
        properties: WriterProperties::builder()
            .set_dictionary_enabled(false)
            .set_encoding(Encoding::DELTA_BYTE_ARRAY)
            .build(),
    }
}
