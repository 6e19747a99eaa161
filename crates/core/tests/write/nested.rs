//! Nested columns, which the parquet crate's own writer encodes into the same file.

use std::sync::Arc;

use alloquet_core::{Purpose, Writer};
use arrow_array::builder::{Int32Builder, ListBuilder, MapBuilder, StringBuilder};
use arrow_array::{Array, ArrayRef, Int64Array, RecordBatch, StringArray, StructArray};
use arrow_schema::{DataType, Field};
use parquet::file::properties::{WriterProperties, WriterVersion};

use crate::support::{STRATEGIES, assert_same, metadata, read, write, write_upstream};

/// Flat columns between nested ones: a list, a map, a struct with nulls.
fn nested(rows: usize, seed: usize) -> RecordBatch {
    let mut list = ListBuilder::new(StringBuilder::new());
    let mut map = MapBuilder::new(None, StringBuilder::new(), Int32Builder::new());
    for row in seed..seed + rows {
        for item in 0..row % 4 {
            list.values()
                .append_option((row % 5 != 0).then(|| format!("item {item} of {row}")));
            map.keys().append_value(format!("key {item}"));
            map.values()
                .append_option((row % 3 != 0).then_some(row as i32));
        }
        list.append(row % 7 != 0);
        map.append(row % 6 != 0).unwrap();
    }
    let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(
        (seed..seed + rows).map(|r| r as i64),
    ));
    let names: ArrayRef = Arc::new(
        (seed..seed + rows)
            .map(|r| (r % 2 == 0).then(|| format!("name {}", r % 10)))
            .collect::<StringArray>(),
    );
    let both = StructArray::new(
        vec![
            Arc::new(Field::new("id", DataType::Int64, false)),
            Arc::new(Field::new("name", DataType::Utf8, true)),
        ]
        .into(),
        vec![Arc::clone(&ids), Arc::clone(&names)],
        Some((0..rows).map(|r| r % 4 != 1).collect::<Vec<_>>().into()),
    );
    let (list, map) = (list.finish(), map.finish());
    RecordBatch::try_from_iter_with_nullable([
        ("first", ids, false),
        ("list", Arc::new(list) as ArrayRef, true),
        ("middle", names, true),
        ("struct", Arc::new(both) as ArrayRef, true),
        ("map", Arc::new(map) as ArrayRef, true),
        (
            "last",
            Arc::new(Int64Array::from(vec![None; rows])) as ArrayRef,
            true,
        ),
    ])
    .unwrap()
}

#[test]
fn nested_columns_come_back_among_flat_ones() {
    let batches: Vec<_> = (0..4).map(|i| nested(700, i * 700)).collect();
    for version in [WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0] {
        let properties = WriterProperties::builder()
            .set_writer_version(version)
            .set_max_row_group_row_count(Some(1000))
            .set_data_page_row_count_limit(300)
            .set_bloom_filter_enabled(true)
            .build();
        let theirs = metadata(&write_upstream(&batches, &properties));
        for strategy in STRATEGIES {
            let file = write(&batches, &properties, strategy);
            assert_same(&batches, &read(&file, true), strategy);
            let ours = metadata(&file);
            for (a, b) in ours.row_groups().iter().zip(theirs.row_groups()) {
                for (x, y) in a.columns().iter().zip(b.columns()) {
                    assert_eq!(x.statistics(), y.statistics());
                    assert_eq!(x.num_values(), y.num_values());
                    assert!(x.bloom_filter_offset().is_some());
                }
            }
        }
    }
}

#[test]
fn the_ledger_says_what_the_parquet_crate_holds() {
    let batch = nested(5000, 0);
    let mut writer = Writer::try_new(std::io::sink(), batch.schema(), None)
        .unwrap()
        .with_strategy("grow".parse().unwrap())
        .unwrap();
    writer.write(&batch).unwrap();
    let ledger = writer.ledger();
    assert!(ledger.live(Purpose::Upstream) > 0);
    let list = batch.schema().index_of("list").unwrap();
    writer.close().unwrap();
    assert_eq!(ledger.live_bytes(), 0);
    assert!(ledger.peak().column_bytes(list, Purpose::Upstream) > 0);
    let first = batch.schema().index_of("first").unwrap();
    assert_eq!(ledger.peak().column_bytes(first, Purpose::Upstream), 0);
    assert!(!batch.column(list).is_empty());
}
