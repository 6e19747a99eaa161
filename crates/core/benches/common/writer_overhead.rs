//! The cases of upstream's `benches/writer_overhead.rs`: many columns and next to no data, so that what columns
//! cost by being there is what is measured.

use std::sync::Arc;

use arrow_array::{ArrayRef, Float32Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema};
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;
use parquet::schema::types::ColumnPath;

use super::Case;

/// The cases, in upstream's order.
pub(super) fn cases() -> Vec<Case> {
    let once = [1_000, 5_000, 10_000].map(|columns| case(columns, "", 1, 1));
    let repeated = [1_000, 5_000].map(|columns| case(columns, "/repeated_batches", 32, 32));
    once.into_iter().chain(repeated).collect()
}

fn case(columns: usize, suffix: &str, rows: usize, writes: usize) -> Case {
    Case {
        id: format!("writer_overhead/{columns}_cols{suffix}"),
        rows,
        value_bytes: 0,
        rows_for_test: rows,
        writes,
        make: Box::new(move |rows, _| batch(columns, rows)),
        properties: properties(columns),
    }
}

fn batch(columns: usize, rows: usize) -> RecordBatch {
    let fields: Vec<Field> = (0..columns)
        .map(|column| Field::new(format!("c{column}"), DataType::Float32, false))
        .collect();
    let columns = (0..columns)
        .map(|_| Arc::new(Float32Array::from(vec![0.0; rows])) as ArrayRef)
        .collect();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).expect("columns of the schema")
}

/// Properties for every column by name, so that looking them up is part of the cost.
fn properties(columns: usize) -> WriterProperties {
    let builder = WriterProperties::builder().set_dictionary_enabled(false);
    (0..columns)
        .fold(builder, |builder, column| {
            builder.set_column_compression(
                ColumnPath::from(format!("c{column}")),
                Compression::UNCOMPRESSED,
            )
        })
        .build()
}
