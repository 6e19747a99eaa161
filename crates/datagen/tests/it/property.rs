//! Any definition: what is written reads back as the values that were drawn,
//! whatever the encoding, the pages, the codec and the encryption.
//!
//! Values depend on seed, name, type and distribution only. So a second file of the
//! same columns, laid out as plainly as can be, says what the first must hold.

use std::collections::HashSet;

use alloquet_datagen::generate;
use arrow_array::RecordBatch;
use proptest::prelude::*;

use crate::support::{read, with};

/// A column: what it holds, and how that is stored.
#[derive(Debug, Clone)]
struct Column {
    held: String,
    stored: String,
}

fn types() -> impl Strategy<Value = (&'static str, &'static [&'static str])> {
    let integers: &[_] = &["plain", "delta_binary_packed", "byte_stream_split"];
    let bytes: &[_] = &["plain", "delta_length_byte_array", "delta_byte_array"];
    prop_oneof![
        Just(("'boolean'", &["plain", "rle"][..])),
        Just(("'int8'", integers)),
        Just(("'uint32'", integers)),
        Just(("'int64'", integers)),
        Just(("'timestamp-nanos'", integers)),
        Just(("'decimal(9,3)'", integers)),
        Just(("'float32'", &["plain", "byte_stream_split"][..])),
        Just(("'float64'", &["plain", "byte_stream_split"][..])),
        Just((
            "'fixed-binary(3)'",
            &["plain", "delta_byte_array", "byte_stream_split"][..]
        )),
        Just(("'string'", bytes)),
        Just(("'binary'", bytes)),
        Just((
            "'string'\nvalues = { kind = 'text', min_length = 0, max_length = 300, prefix = 'partial', prefix_length = 200 }",
            bytes
        )),
        Just((
            "'int32'\nvalues = { kind = 'choices', values = [3, -1, 7], weights = [5, 1, 0] }",
            integers
        )),
    ]
}

fn column() -> impl Strategy<Value = Column> {
    let nulls = prop_oneof![
        Just(""),
        Just("optional = true\n"),
        Just("optional = true\nnulls = 0.3\n"),
        Just("optional = true\nnulls = 1.0\n"),
    ];
    let list = prop_oneof![
        4 => Just(""),
        1 => Just("list = { min_items = 0, max_items = 6 }\n"),
        1 => Just("list = { min_items = 2, max_items = 40, optional_items = true }\n"),
    ];
    (
        types(),
        nulls,
        list,
        any::<prop::sample::Index>(),
        any::<bool>(),
    )
        .prop_map(
            |((held, encodings), nulls, list, encoding, dictionary)| Column {
                stored: format!(
                    "encoding = '{}'\ndictionary = {}\n",
                    encodings[encoding.index(encodings.len())],
                    dictionary && held != "'boolean'",
                ),
                held: format!("{nulls}{list}type = {held}\n"),
            },
        )
}

fn definition(columns: &[Column], stored: bool) -> String {
    columns
        .iter()
        .enumerate()
        .map(|(number, column)| {
            let stored = if stored { column.stored.as_str() } else { "" };
            format!("[[columns]]\nname = 'c{number}'\n{stored}{}", column.held)
        })
        .collect()
}

fn rows(batches: &[RecordBatch]) -> usize {
    batches.iter().map(RecordBatch::num_rows).sum()
}

proptest! {
    #![proptest_config(ProptestConfig::default())]

    #[test]
    fn what_is_written_reads_back(
        columns in prop::collection::vec(column(), 1..5),
        row_groups in 1_usize..4,
        rows_per_row_group in 1_usize..4_000,
        page_bytes in 64_usize..20_000,
        page_row_limit in prop::option::of(1_usize..3_000),
        version in 1..=2,
        compression in prop::sample::select(vec!["none", "snappy", "lz4_raw", "zstd(2)"]),
        statistics in prop::sample::select(vec!["none", "chunk", "page"]),
        encrypted in any::<bool>(),
    ) {
        let shape = format!("row_groups = {row_groups}\nrows_per_row_group = {rows_per_row_group}\n");
        let plain = with(
            &format!("{shape}page_bytes = 1_048_576\ncompression = 'none'\n"),
            &definition(&columns, false),
        );
        let limit = page_row_limit.map(|rows| format!("page_row_limit = {rows}\n")).unwrap_or_default();
        let encryption = if encrypted {
            "[encryption]\nfooter_key = 'text:0123456789012345'\naad_prefix = 'text:p'\n"
        } else {
            ""
        };
        let dataset = with(
            &format!("{shape}page_bytes = {page_bytes}\n{limit}dictionary_page_bytes = 512\ndata_page_version = {version}\ncompression = '{compression}'\nstatistics = '{statistics}'\n"),
            &format!("{}{encryption}", definition(&columns, true)),
        );
        let folder = tempfile::tempdir().unwrap();
        let expected = read(&plain, &generate(&plain, folder.path(), &()).unwrap());
        let generated = generate(&dataset, folder.path(), &()).unwrap();
        let batches = read(&dataset, &generated);
        prop_assert_eq!(rows(&batches), row_groups * rows_per_row_group);
        prop_assert_eq!(generated.report.rows, dataset.rows());
        prop_assert!(batches == expected, "other values");
        // A page row limit is looked at every 1,024 values, but slices end at it.
        if let Some(limit) = page_row_limit {
            let most = generated.report.data_pages.rows.max;
            prop_assert!(most < limit as u64 + 1_024, "{most} rows");
        }
        let names: HashSet<_> = generated.report.column_pages.iter().map(|pages| &pages.column).collect();
        prop_assert_eq!(names.len(), columns.len());
    }
}
