//! The values that files hold, read back by the parquet crate.

use std::collections::HashSet;

use alloquet_datagen::generate;
use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type, Int32Type};
use arrow_array::{Array, RecordBatch};

use crate::support::{kitchen_sink, project, read, scaled, with};

#[test]
fn floats_are_finite_and_do_not_compress() {
    let folder = tempfile::tempdir().unwrap();
    let dataset = scaled("wide-float", 0.05, 0.001);
    let generated = generate(&dataset, folder.path(), &()).unwrap();
    for batch in read(&dataset, &generated) {
        let floats = batch.column(0).as_primitive::<Float32Type>();
        assert!(
            floats
                .values()
                .iter()
                .all(|value| (-1000.0..=1000.0).contains(value))
        );
    }
    let pages = &generated.report.column_pages[0];
    assert!(
        pages.largest_stored_page_bytes * 100 >= pages.largest_page_bytes * 99,
        "{pages:?}"
    );
}

#[test]
fn ids_count_rows_of_the_whole_file() {
    let folder = tempfile::tempdir().unwrap();
    let dataset = scaled("wide-float", 0.01, 0.001);
    let generated = generate(&dataset, folder.path(), &()).unwrap();
    let mut expected = 0;
    for batch in read(&dataset, &generated) {
        for id in batch["id"].as_primitive::<Int32Type>().values() {
            assert_eq!(*id, expected);
            expected += 1;
        }
    }
    assert_eq!(expected, 2 * 10_486);
}

#[test]
fn a_fifth_of_int32_nulls_delta_is_null() {
    let folder = tempfile::tempdir().unwrap();
    let dataset = scaled("int32-nulls-delta", 0.1, 0.01);
    let generated = generate(&dataset, folder.path(), &()).unwrap();
    let (mut rows, mut nulls) = (0, 0);
    for batch in read(&dataset, &generated) {
        rows += batch.num_rows() * batch.num_columns();
        nulls += batch
            .columns()
            .iter()
            .map(|column| column.null_count())
            .sum::<usize>();
    }
    let fraction = nulls as f64 / rows as f64;
    assert!((0.198..0.202).contains(&fraction), "{fraction}");
}

#[test]
fn small_dictionaries_have_three_values_in_every_row_group() {
    let folder = tempfile::tempdir().unwrap();
    let dataset = scaled("small-dictionaries", 0.02, 0.02);
    let generated = generate(&dataset, folder.path(), &()).unwrap();
    for column in 0..2 {
        let mut seen = HashSet::new();
        for batch in read(&dataset, &generated) {
            seen.extend(
                batch
                    .column(column)
                    .as_string::<i32>()
                    .iter()
                    .map(|value| value.unwrap().to_owned()),
            );
        }
        assert_eq!(seen.len(), 3);
    }
    let dictionaries = generated.report.dictionary_pages.unwrap();
    assert_eq!(dictionaries.count, 4);
    assert_eq!((dictionaries.rows.min, dictionaries.rows.max), (3, 3));
}

#[test]
fn tiny_strings_are_a_b_a() {
    let folder = tempfile::tempdir().unwrap();
    for (name, columns) in [("tiny-strings", 100), ("tiny-strings-1000", 1_000)] {
        let dataset = project(name);
        let generated = generate(&dataset, folder.path(), &()).unwrap();
        let batches = read(&dataset, &generated);
        assert_eq!((batches.len(), batches[0].num_columns()), (1, columns));
        for column in batches[0].columns() {
            let strings: Vec<_> = column.as_string::<i32>().iter().flatten().collect();
            assert_eq!(strings, ["a", "b", "a"]);
        }
    }
}

#[test]
fn dictionary_overflow_falls_back() {
    let folder = tempfile::tempdir().unwrap();
    let dataset = scaled("dictionary-overflow", 1.0, 0.02);
    let generated = generate(&dataset, folder.path(), &()).unwrap();
    // Of each column, one page of indices and one of values.
    assert_eq!(generated.report.dictionary_pages.unwrap().count, 2);
    let pages = generated.report.data_pages;
    assert_eq!(pages.count, 4);
    assert!(
        pages.rows.min > 2_000 && pages.rows.max < 8_000,
        "{pages:?}"
    );
}

#[test]
fn cycles_go_by_row_of_the_whole_file() {
    let folder = tempfile::tempdir().unwrap();
    let dataset = with(
        "row_groups = 3\nrows_per_row_group = 70_001\npage_bytes = 4096\ncompression = 'none'",
        r#"
        [[columns]]
        name = "s"
        type = "string"
        dictionary = true
        values = { kind = "cycle", values = ["a", "b", "a", ""] }
        [[columns]]
        name = "i"
        type = "int32"
        optional = true
        nulls = 0.25
        values = { kind = "cycle", values = [7, -1, 0] }
        [[columns]]
        name = "f"
        type = "float64"
        values = { kind = "cycle", values = [0.5, 2] }
        [[columns]]
        name = "b"
        type = "boolean"
        values = { kind = "cycle", values = [true, true, false] }
        [[columns]]
        name = "x"
        type = "fixed-binary(2)"
        values = { kind = "cycle", values = ["xy"] }
        "#,
    );
    let generated = generate(&dataset, folder.path(), &()).unwrap();
    let (mut row, mut nulls) = (0, 0);
    for batch in read(&dataset, &generated) {
        let strings = batch["s"].as_string::<i32>();
        let integers = batch["i"].as_primitive::<Int32Type>();
        let floats = batch["f"].as_primitive::<Float64Type>();
        let booleans = batch["b"].as_boolean();
        let bytes = batch["x"].as_fixed_size_binary();
        for at in 0..batch.num_rows() {
            assert_eq!(strings.value(at), ["a", "b", "a", ""][row % 4], "row {row}");
            if integers.is_null(at) {
                nulls += 1;
            } else {
                assert_eq!(integers.value(at), [7, -1, 0][row % 3], "row {row}");
            }
            assert_eq!(floats.value(at), [0.5, 2.0][row % 2], "row {row}");
            assert_eq!(booleans.value(at), row % 3 != 2, "row {row}");
            assert_eq!(bytes.value(at), b"xy");
            row += 1;
        }
    }
    assert_eq!(row, 210_003);
    assert!((51_000..54_000).contains(&nulls), "{nulls}");
}

#[test]
fn delta_strings_begin_as_they_say() {
    let folder = tempfile::tempdir().unwrap();
    let dataset = scaled("delta-strings", 0.05, 0.1);
    let generated = generate(&dataset, folder.path(), &()).unwrap();
    let batches = read(&dataset, &generated);
    let common = |a: &str, b: &str| a.bytes().zip(b.bytes()).take_while(|(a, b)| a == b).count();
    let mean = |column: &str| {
        let strings: Vec<&str> = batches
            .iter()
            .flat_map(|batch| batch[column].as_string::<i32>().iter().map(Option::unwrap))
            .collect();
        assert!(
            strings
                .iter()
                .all(|string| (24..=40).contains(&string.len()))
        );
        let sum: usize = strings
            .windows(2)
            .map(|pair| common(pair[0], pair[1]))
            .sum();
        sum as f64 / (strings.len() - 1) as f64
    };
    for encoding in ["delta", "delta_length"] {
        assert!((16.0..16.1).contains(&mean(&format!("{encoding}_shared_0"))));
        assert!((11.0..13.0).contains(&mean(&format!("{encoding}_partial_0"))));
        assert!(mean(&format!("{encoding}_distinct_0")) < 0.1);
    }
}

#[test]
fn every_type_reads_back_under_every_codec_and_version() {
    let folder = tempfile::tempdir().unwrap();
    let mut first: Option<Vec<RecordBatch>> = None;
    for version in [1, 2] {
        for compression in ["none", "snappy", "lz4_raw", "zstd(3)", "gzip", "brotli"] {
            let dataset = kitchen_sink(version, compression);
            let generated = generate(&dataset, folder.path(), &()).unwrap();
            assert!(
                generated.report.data_pages.rows.max <= 700,
                "{:?}",
                generated.report.data_pages
            );
            let batches = read(&dataset, &generated);
            assert_eq!(
                batches.iter().map(RecordBatch::num_rows).sum::<usize>(),
                6_000
            );
            match &first {
                None => first = Some(batches),
                Some(first) => assert!(*first == batches, "v{version} {compression}"),
            }
        }
    }
}

#[test]
fn lists_have_the_lengths_and_nulls_they_say() {
    let folder = tempfile::tempdir().unwrap();
    let dataset = kitchen_sink(1, "none");
    let generated = generate(&dataset, folder.path(), &()).unwrap();
    let (mut nulls, mut lengths) = (0, HashSet::new());
    for batch in read(&dataset, &generated) {
        let required = batch["l"].as_list::<i32>();
        assert_eq!(required.null_count(), 0);
        lengths.extend((0..required.len()).map(|row| required.value_length(row)));
        nulls += batch["lo"].null_count();
    }
    assert_eq!(lengths, (0..=5).collect());
    assert!((1_600..2_000).contains(&nulls), "{nulls}");
}

#[test]
fn a_value_is_the_same_whether_other_rows_are_null() {
    let folder = tempfile::tempdir().unwrap();
    let column = |rest: &str| {
        let dataset = with(
            "row_groups = 1\nrows_per_row_group = 5_000\npage_bytes = 4096\ncompression = 'none'",
            &format!("[[columns]]\nname = 'a'\ntype = 'int32'\n{rest}"),
        );
        let generated = generate(&dataset, folder.path(), &()).unwrap();
        read(&dataset, &generated).remove(0).column(0).clone()
    };
    let (full, holes) = (column(""), column("optional = true\nnulls = 0.3\n"));
    let (full, holes) = (
        full.as_primitive::<Int32Type>(),
        holes.as_primitive::<Int32Type>(),
    );
    assert!(holes.null_count() > 1_000);
    for (full, hole) in full.iter().zip(holes) {
        assert!(hole.is_none() || hole == full);
    }
}
