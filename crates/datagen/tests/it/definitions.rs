//! The definitions that come with the project, and what bad ones are told.

use std::path::Path;

use alloquet_datagen::{Dataset, Error, Scale};

use crate::support::{datasets, project, scaled};

#[test]
fn every_definition_of_the_project_loads() {
    let mut count = 0;
    for entry in std::fs::read_dir(datasets()).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "toml") {
            continue;
        }
        let dataset = Dataset::load(&path).unwrap_or_else(|error| panic!("{error}"));
        assert!(!dataset.description().is_empty(), "{}", path.display());
        dataset.writer_properties().unwrap();
        count += 1;
    }
    assert!(count >= 8, "{count}");
}

#[test]
fn the_example_in_the_readme_is_a_definition() {
    let readme = std::fs::read_to_string(datasets().join("README.md")).unwrap();
    let (_, rest) = readme.split_once("```toml\n").unwrap();
    let (example, _) = rest.split_once("```").unwrap();
    let dataset = Dataset::parse("example", example).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(dataset.column_count(), 451);
    assert!(dataset.is_encrypted());
}

#[test]
fn the_wide_ones_have_the_shape_of_gh_46971() {
    for name in [
        "wide-float",
        "wide-float-optional",
        "wide-float-encrypted",
        "wide-float-encrypted-optional",
        "int32-nulls-delta",
    ] {
        let dataset = project(name);
        assert_eq!(dataset.column_count(), 453, "{name}");
        assert_eq!(dataset.rows(), 2 << 20, "{name}");
        assert_eq!(dataset.is_encrypted(), name.contains("encrypted"), "{name}");
    }
}

#[test]
fn required_and_encrypted_variants_hold_the_same_values() {
    // Streams are seeded by definition seed and column name.
    assert_eq!(
        project("wide-float").seed(),
        project("wide-float-encrypted").seed()
    );
    assert_eq!(
        project("wide-float").schema(),
        project("wide-float-encrypted").schema()
    );
}

#[test]
fn scaling_keeps_at_least_one_of_everything() {
    let tiny = scaled("wide-float", 1e-9, 1e-9);
    assert_eq!(tiny.column_count(), 3);
    assert_eq!(tiny.layout().rows_per_row_group, 1);
    let half = scaled("wide-float", 0.25, 0.5);
    assert_eq!(half.column_count(), 226 + 1 + 1);
    assert_eq!(half.layout().rows_per_row_group, 262_144);
}

#[test]
fn a_scale_outside_0_to_1_is_refused() {
    for factor in [0.0, -1.0, 1.5, f64::NAN, f64::INFINITY] {
        let scale = Scale {
            rows: factor,
            columns: 1.0,
        };
        assert!(matches!(
            project("wide-float").scaled(&scale),
            Err(Error::Scale { what: "rows", .. })
        ));
    }
}

#[test]
fn the_file_name_changes_with_what_bears_on_the_bytes_only() {
    let text = std::fs::read_to_string(datasets().join("wide-float.toml")).unwrap();
    let name = |text: &str| Dataset::parse("d", text).unwrap().file_name();
    let base = name(&text);
    assert!(base.starts_with("d-") && base.ends_with(".parquet") && base.len() == 2 + 12 + 8);
    assert_eq!(base, name(&text.replace("all required", "reworded")));
    assert_ne!(base, name(&text.replace("seed = 46971", "seed = 1")));
    assert_ne!(base, name(&text.replace("snappy\"\n", "zstd\"\n")));
    assert_ne!(base, name(&text.replace("count = 451", "count = 450")));
    let scaled = scaled("wide-float", 0.5, 1.0);
    assert_ne!(project("wide-float").file_name(), scaled.file_name());
}

/// A definition with one column, which ends in `rest`.
fn with(rest: &str) -> String {
    format!(
        "description = \"d\"\nseed = 1\n[file]\nrow_groups = 1\nrows_per_row_group = 10\npage_bytes = 1024\ncompression = \"snappy\"\n[[columns]]\n{rest}"
    )
}

#[test]
fn mistakes_are_named_with_file_line_and_what_is_allowed() {
    // The [[columns]] header is line 8.
    let int = "name = 'a'\ntype = 'int32'\n";
    let cases: &[(&str, &[&str])] = &[
        (
            "name = 'a'\ntype = 'float'\n",
            &["line 10", "`float`", "float32, float64"],
        ),
        (
            "name = 'a'\ntyp = 'int32'\n",
            &["line 10", "`typ`", "`type`"],
        ),
        (
            &format!("{int}encoding = 'delta'\n"),
            &["line 11", "`delta`", "`delta_binary_packed`"],
        ),
        (
            &format!("{int}encoding = 'delta_byte_array'\n"),
            &[
                "line 8",
                "does not fit type int32",
                "plain, delta_binary_packed, byte_stream_split",
            ],
        ),
        (
            &format!("{int}nulls = 0.5\n"),
            &["line 8", "optional = true"],
        ),
        (
            &format!("{int}optional = true\nnulls = 1.5\n"),
            &["line 8", "0.0 to 1.0"],
        ),
        (&format!("{int}count = 0\n"), &["line 8", "count is 0"]),
        (&format!("{int}count = 2\n"), &["line 8", "`a{n}`"]),
        (&format!("{int}distinct = 0\n"), &["distinct is 0"]),
        (
            &format!("{int}distinct = 5\nvalues = {{ kind = 'uniform', min = 1, max = 3 }}\n"),
            &["only 3 values"],
        ),
        (
            &format!("{int}values = {{ kind = 'uniform', min = 3, max = 1 }}\n"),
            &["min is above max"],
        ),
        (
            &format!("{int}values = {{ kind = 'uniform', min = 3, max = 1.5 }}\n"),
            &["max is not a value of type int32"],
        ),
        (
            &format!("{int}values = {{ kind = 'uniform', min = 0, max = 3_000_000_000 }}\n"),
            &["max is not a value of type int32"],
        ),
        (
            &format!("{int}values = {{ kind = 'normal' }}\n"),
            &["`normal`", "`uniform`"],
        ),
        (
            &format!("{int}values = {{ kind = 'constant', value = 1, extra = 2 }}\n"),
            &["`extra`"],
        ),
        (
            &format!("{int}values = {{ kind = 'text', min_length = 1, max_length = 2 }}\n"),
            &["only string and binary"],
        ),
        (
            &format!("{int}values = {{ kind = 'choices', values = [1, 2], weights = [1] }}\n"),
            &["2 values and 1 weights"],
        ),
        (
            &format!("{int}values = {{ kind = 'cycle', values = [] }}\n"),
            &["values of kind cycle need at least one value"],
        ),
        (
            &format!("{int}values = {{ kind = 'cycle', values = [1, 'b'] }}\n"),
            &["a value is not a value of type int32"],
        ),
        (
            &format!("{int}distinct = 2\nvalues = {{ kind = 'cycle', values = [1, 2] }}\n"),
            &["the others say themselves"],
        ),
        (
            &format!(
                "{int}values = {{ kind = 'cycle', values = [1, 2] }}\nlist = {{ min_items = 1, max_items = 2 }}\n"
            ),
            &["kind cycle go by row", "use choices"],
        ),
        (
            &format!("{int}[[columns]]\n{int}"),
            &["two columns named `a`"],
        ),
        ("name = 'a.b'\ntype = 'int32'\n", &["`a.b`", "dot"]),
        (
            "name = 'a'\ntype = 'string'\nvalues = { kind = 'text', min_length = 5, max_length = 2 }\n",
            &["min_length is 5, it must be 0 to 2"],
        ),
        (
            "name = 'a'\ntype = 'boolean'\ndictionary = true\n",
            &["no dictionary"],
        ),
        (
            "name = 'a'\ntype = 'int32'\nlist = { min_items = 1, max_items = 0 }\n",
            &["max_items is 0"],
        ),
        (
            "name = 'l'\ntype = 'string'\nvalues = { kind = 'text', min_length = 0, max_length = 65_537 }\nlist = { min_items = 0, max_items = 1_024 }\n",
            &[
                "line 8",
                "column `l`: a row of up to 1024 items of up to 65537 bytes would take 67109888 bytes, more than 67108864",
            ],
        ),
        (
            "name = 'l'\ntype = 'fixed-binary(65)'\nlist = { min_items = 0, max_items = 1_048_576 }\n",
            &["column `l`: a row of up to 1048576 items of up to 65 bytes"],
        ),
        (
            "name = 's'\ntype = 'binary'\nvalues = { kind = 'text', min_length = 0, max_length = 16_777_217 }\n",
            &["max_length is 16777217, it must be 0 to 16777216"],
        ),
        (
            &format!(
                "name = 's'\ntype = 'string'\nvalues = {{ kind = 'constant', value = '{}' }}\n",
                "x".repeat(65_537)
            ),
            &["the length of value is 65537, it must be 0 to 65536"],
        ),
        (
            &format!("{int}[encryption]\nfooter_key = 'text:short'\n"),
            &["footer_key: the key is 5 bytes"],
        ),
        (
            &format!(
                "{int}[encryption]\nfooter_key = 'text:0123456789012345'\ncolumn_keys = {{ b = 'text:0123456789012345' }}\n"
            ),
            &["not a column of this dataset"],
        ),
        (
            &format!("{int}[encryption]\nfooter_key = 'env:SOME_KEY'\nkey_metadata = 'test-kms'\n"),
            &["test keys that stand in the definition"],
        ),
        (
            &format!(
                "{int}[encryption]\nfooter_key = 'text:0123456789012345'\nstore_aad_prefix = true\n"
            ),
            &["needs an aad_prefix"],
        ),
    ];
    for (rest, parts) in cases {
        let error = Dataset::parse("bad", &with(rest)).unwrap_err().to_string();
        assert!(error.starts_with("dataset bad"), "{error}");
        for part in *parts {
            assert!(error.contains(part), "{part:?} is not in: {error}");
        }
    }
}

#[test]
fn absurd_sizes_are_refused() {
    let text = with("name = 'a'\ntype = 'int32'\n");
    for (from, to, part) in [
        ("row_groups = 1", "row_groups = 0", "row_groups is 0"),
        (
            "row_groups = 1",
            "row_groups = 40_000",
            "row_groups is 40000",
        ),
        ("= 10\n", "= 0\n", "rows_per_row_group is 0"),
        (
            "= 10\n",
            "= 3_000_000_000\n",
            "rows_per_row_group is 3000000000",
        ),
        ("page_bytes = 1024", "page_bytes = 1", "page_bytes is 1"),
        ("page_bytes = 1024", "page_bytes = -1", "line 6"),
        (
            "page_bytes = 1024",
            "page_bytes = 1024\npage_row_limit = 0",
            "page_row_limit is 0",
        ),
        (
            "page_bytes = 1024",
            "page_bytes = 1024\ndata_page_version = 3",
            "expected 1 or 2",
        ),
        ("\"snappy\"", "\"lzo\"", "expected one of none, snappy"),
        ("\"snappy\"", "\"snappy\"\nstatistics = \"all\"", "`chunk`"),
        (
            "type = 'int32'",
            "type = 'int32'\ncount = 100_000",
            "count is 100000",
        ),
    ] {
        let bad = text.replacen(from, to, 1);
        let error = Dataset::parse("bad", &bad).unwrap_err().to_string();
        assert!(error.contains(part), "{part:?} is not in: {error}");
    }
    let huge = text
        .replace("row_groups = 1", "row_groups = 30_000")
        .replace("= 10\n", "= 2_000_000_000\n");
    assert!(
        Dataset::parse("bad", &huge)
            .unwrap_err()
            .to_string()
            .contains("fewer rows")
    );
}

#[test]
fn no_error_repeats_a_key() {
    let secret = "hunter2hunter2hunter2";
    for section in [
        format!("footer_key = '{secret}'\n"),
        format!("footer_key = 'text:{secret}'\n"),
        format!("footer_key = 'hex:{secret}'\n"),
        format!("footer_key = ['{secret}']\n"),
        format!("footer_key = 'text:0123456789012345'\naad_prefix = '{secret}'\n"),
        format!("footer_key = 'text:0123456789012345'\ncolumn_keys = {{ a = '{secret}' }}\n"),
        format!("footer_key = 'text:0123456789012345'\ncolumn_keys = {{ '{secret}' = 'a' }}\n"),
        format!(
            "footer_key = 'text:0123456789012345'\ncolumn_keys = {{ 'text:{secret}' = 'text:0123456789012345' }}\n"
        ),
        format!("footer_key = 'text:0123456789012345'\ncolumn_keys = '{secret}'\n"),
        format!("footer_key = 'text:{secret}\n"),
        format!("footer_key = {secret}\n"),
        format!("'text:{secret}' = 'footer_key'\n"),
        format!("footer_key = 'text:0123456789012345'\nplaintext_footer = '{secret}'\n"),
        "footer_key = 7777777777777777\n".replace("7777777777777777", "1212121212121212"),
    ] {
        let text = with(&format!(
            "name = 'a'\ntype = 'int32'\n[encryption]\n{section}"
        ));
        let error = Dataset::parse("bad", &text).unwrap_err();
        for text in [error.to_string(), format!("{error:?}")] {
            assert!(
                !text.contains("hunter2") && !text.contains("1212"),
                "{text}"
            );
        }
    }
}

#[test]
fn a_key_in_place_of_a_name_is_not_repeated() {
    for secret in [
        "abcdefghijklmnop",
        "abcdefghijklmnop_abcdefghijklmno",
        "ABCDEFGHIJKLMNOPQ",
        "hunter2",
        "MDEyMzQ1Njc4OTAxMjM0NQ==",
        "a`, expected S3CRET",
        "a`S3CRET",
    ] {
        for section in [
            format!("'{secret}' = 'footer_key'\n"),
            format!("footer_key.'{secret}' = 1\n"),
            format!("footer_key = 'text:0123456789012345'\nkey_metadata = '{secret}'\n"),
            format!("footer_key = 'text:0123456789012345'\nkey_metadata.'{secret}' = 1\n"),
            format!("footer_key = 'text:0123456789012345'\n[encryption.\"{secret}\"]\n"),
            format!(
                "footer_key = 'text:0123456789012345'\n[encryption.column_keys.\"{secret}\"]\na = 'x'\n"
            ),
            format!("footer_key = 'text:0123456789012345'\n[\"{secret}\"]\n"),
            format!("footer_key = 'text:0123456789012345'\n[[\"{secret}\"]]\n"),
        ] {
            let text = with(&format!(
                "name = 'a'\ntype = 'int32'\n[encryption]\n{section}"
            ));
            let error = Dataset::parse("bad", &text).unwrap_err();
            for text in [error.to_string(), format!("{error:?}")] {
                assert!(
                    !text.contains(secret) && !text.contains("S3CRET"),
                    "{section}{text}"
                );
            }
        }
    }
    let mistyped =
        with("name = 'a'\ntype = 'int32'\n[encryption]\nfooterkey = 'text:0123456789012345'\n");
    let error = Dataset::parse("bad", &mistyped).unwrap_err().to_string();
    assert!(
        error.contains("line 12: unknown field `footerkey`, expected one of `footer_key`"),
        "{error}"
    );
}

#[test]
fn debug_of_a_dataset_shows_no_key() {
    let text = format!("{:?}", project("wide-float-encrypted"));
    assert!(
        text.contains("inline, 16 bytes") && !text.contains("012345"),
        "{text}"
    );
}

#[test]
fn a_missing_definition_names_the_file() {
    let error = Dataset::load(Path::new("no/such.toml"))
        .unwrap_err()
        .to_string();
    assert!(
        error.starts_with("cannot read the dataset definition no/such.toml: "),
        "{error}"
    );
}

#[test]
fn every_shape_users_ask_for_can_be_written_down() {
    for columns in [
        // constant-wide
        "name = 'c{n}'\ncount = 1000\ntype = 'float64'\ndictionary = true\nvalues = { kind = 'constant', value = 1.5 }\n",
        // dictionary-overflow
        "name = 's'\ntype = 'string'\ndictionary = true\nvalues = { kind = 'text', min_length = 8, max_length = 64 }\n",
        // lists
        "name = 'u'\ntype = 'uint64'\n[[columns]]\nname = 'l{n}'\ncount = 3\ntype = 'float32'\nlist = { min_items = 25_000, max_items = 25_000 }\n[[columns]]\nname = 'b'\ntype = 'uint8'\noptional = true\nlist = { min_items = 0, max_items = 25_000, optional_items = true }\n",
        // skewed-strings
        "name = 'huge'\ntype = 'string'\nvalues = { kind = 'text', min_length = 10_000, max_length = 20_000 }\n[[columns]]\nname = 'small{n}'\ncount = 396\ntype = 'int32'\n",
        // lineitem
        "name = 'l_quantity'\ntype = 'decimal(15,2)'\nvalues = { kind = 'uniform', min = 100, max = 5000 }\n[[columns]]\nname = 'l_returnflag'\ntype = 'string'\ndictionary = true\nvalues = { kind = 'choices', values = ['A', 'N', 'R'], weights = [1, 2, 1] }\n[[columns]]\nname = 'l_orderkey'\ntype = 'int64'\nvalues = { kind = 'sequence', start = 1, repeat = 4 }\n",
        // big-values
        "name = 'v'\ntype = 'binary'\nvalues = { kind = 'text', min_length = 65_536, max_length = 65_536 }\n",
    ] {
        Dataset::parse("shape", &with(columns)).unwrap_or_else(|error| panic!("{error}"));
    }
}
