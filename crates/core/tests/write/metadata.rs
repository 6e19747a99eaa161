//! A file says the same of itself as one that the parquet crate writes of the same batches.

use bytes::Bytes;
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData};
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterVersion};

use crate::support::{Nulls, batch, metadata, write, write_upstream};

/// What must agree of a chunk: everything but where it lies and how large it is.
fn facts(chunk: &ColumnChunkMetaData) -> String {
    format!(
        "{:?}",
        (
            chunk.column_path(),
            chunk.encodings().collect::<Vec<_>>(),
            chunk.compression(),
            chunk.num_values(),
            chunk.statistics(),
            // What is printed of statistics leaves it out.
            chunk.statistics().map(|s| s.nan_count_opt()),
            chunk.page_encoding_stats_mask(),
            chunk.unencoded_byte_array_data_bytes(),
            chunk.definition_level_histogram(),
            chunk.repetition_level_histogram(),
            chunk.dictionary_page_offset().is_some(),
            chunk.bloom_filter_offset().is_some(),
        )
    )
}

fn assert_same_facts(ours: &Bytes, theirs: &Bytes, what: &str) {
    let (ours, theirs): (ParquetMetaData, ParquetMetaData) = (metadata(ours), metadata(theirs));
    assert_eq!(
        ours.file_metadata().schema(),
        theirs.file_metadata().schema()
    );
    assert_eq!(
        ours.file_metadata().version(),
        theirs.file_metadata().version()
    );
    assert_eq!(
        ours.file_metadata().created_by(),
        theirs.file_metadata().created_by()
    );
    assert_eq!(
        ours.file_metadata().column_orders(),
        theirs.file_metadata().column_orders()
    );
    assert_eq!(
        ours.file_metadata().key_value_metadata(),
        theirs.file_metadata().key_value_metadata()
    );
    assert_eq!(ours.num_row_groups(), theirs.num_row_groups(), "{what}");
    for group in 0..ours.num_row_groups() {
        let (a, b) = (ours.row_group(group), theirs.row_group(group));
        assert_eq!((a.num_rows(), a.ordinal()), (b.num_rows(), b.ordinal()));
        assert_eq!(a.sorting_columns(), b.sorting_columns());
        for (column, (x, y)) in a.columns().iter().zip(b.columns()).enumerate() {
            let name = x.column_path().string();
            assert_eq!(facts(x), facts(y), "{what}: {name}");
            let index = |m: &ParquetMetaData| {
                m.page_index_for_row_group(group)
                    .column_index(column)
                    .cloned()
            };
            assert_eq!(index(&ours), index(&theirs), "{what}: {name}: column index");
            let pages = |m: &ParquetMetaData| {
                m.page_index_for_row_group(group)
                    .offset_index(column)
                    .map(|index| {
                        let rows = index
                            .page_locations()
                            .iter()
                            .map(|page| page.first_row_index);
                        (
                            rows.collect::<Vec<_>>(),
                            index.unencoded_byte_array_data_bytes().cloned(),
                        )
                    })
            };
            assert_eq!(pages(&ours), pages(&theirs), "{what}: {name}: offset index");
        }
    }
}

#[test]
fn it_says_what_upstream_says() {
    for nulls in [Nulls::Required, Nulls::None, Nulls::Some, Nulls::All] {
        let batches: Vec<_> = (0..4).map(|i| batch(600, nulls, 200, i)).collect();
        for version in [WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0] {
            for statistics in [
                EnabledStatistics::None,
                EnabledStatistics::Chunk,
                EnabledStatistics::Page,
            ] {
                for dictionary in [true, false] {
                    // Both writers look at their limits at the same rows: every number here is a multiple of 150 or divides it.
                    let properties = WriterProperties::builder()
                        .set_writer_version(version)
                        .set_statistics_enabled(statistics)
                        .set_dictionary_enabled(dictionary)
                        .set_write_batch_size(50)
                        .set_data_page_row_count_limit(150)
                        .set_max_row_group_row_count(Some(1050))
                        .set_column_index_truncate_length(Some(9))
                        .set_statistics_truncate_length(Some(11))
                        .set_sorting_columns(Some(vec![parquet::file::metadata::SortingColumn {
                            column_idx: 3,
                            descending: true,
                            nulls_first: false,
                        }]))
                        .build();
                    let theirs = write_upstream(&batches, &properties);
                    for strategy in ["grow", "pooled"] {
                        let what =
                            format!("{nulls:?} {version:?} {statistics:?} {dictionary} {strategy}");
                        assert_same_facts(&write(&batches, &properties, strategy), &theirs, &what);
                    }
                }
            }
        }
    }
}

#[test]
fn bloom_filters_find_what_was_written() {
    use parquet::bloom_filter::Sbbf;
    let batches = [batch(2000, Nulls::Some, 500, 3)];
    for limit in [1 << 20, 3000] {
        let properties = WriterProperties::builder()
            .set_bloom_filter_enabled(true)
            .set_dictionary_page_size_limit(limit)
            .build();
        for strategy in ["grow", "bounded", "pooled"] {
            let file = write(&batches, &properties, strategy);
            let metadata = metadata(&file);
            let schema = batches[0].schema();
            for (column, name) in [("i64", 0), ("utf8", 1)] {
                let at = schema.index_of(column).unwrap();
                let chunk = metadata.row_group(0).column(at);
                let filter = Sbbf::read_from_column_chunk(chunk, &file).unwrap().unwrap();
                let array = batches[0].column(at);
                use arrow_array::{Array, cast::AsArray, types::Int64Type};
                for row in (0..array.len()).filter(|row| array.is_valid(*row)) {
                    let found = match name {
                        0 => filter.check(&array.as_primitive::<Int64Type>().value(row)),
                        _ => filter.check(array.as_string::<i32>().value(row)),
                    };
                    assert!(found, "{strategy} {limit} {column}");
                }
                assert!(!filter.check(&"not in there"));
            }
            let chunk = metadata
                .row_group(0)
                .column(schema.index_of("bool").unwrap());
            let filter = Sbbf::read_from_column_chunk(chunk, &file).unwrap().unwrap();
            assert!(filter.check(&true) && filter.check(&false));
        }
    }
}
