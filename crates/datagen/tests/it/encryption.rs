//! Encrypted files: that they read back, and where keys do not go.

use std::fs;

use alloquet_datagen::{Dataset, generate};

use crate::support::{read, scaled, with};

#[test]
fn encrypted_optional_and_plain_files_hold_the_same_values() {
    let folder = tempfile::tempdir().unwrap();
    let values = |name: &str| {
        let dataset = scaled(name, 0.01, 0.01);
        let generated = generate(&dataset, folder.path(), &()).unwrap();
        read(&dataset, &generated)
            .iter()
            .map(|batch| batch.columns().to_vec())
            .collect::<Vec<_>>()
    };
    let plain = values("wide-float");
    assert_eq!(
        plain.iter().map(|columns| columns[0].len()).sum::<usize>(),
        2 * 10_486
    );
    for name in [
        "wide-float-optional",
        "wide-float-encrypted",
        "wide-float-encrypted-optional",
    ] {
        assert!(values(name) == plain, "{name}");
    }
}

const SMALL: &str =
    "row_groups = 2\nrows_per_row_group = 5_000\npage_bytes = 4096\ncompression = 'snappy'";

#[test]
fn encryption_in_all_its_forms_reads_back() {
    let folder = tempfile::tempdir().unwrap();
    let columns = "[[columns]]\nname = 'a'\ntype = 'float32'\n[[columns]]\nname = 's'\ntype = 'string'\ndictionary = true\ndistinct = 5\n[[columns]]\nname = 'l'\ntype = 'int32'\nlist = { min_items = 1, max_items = 3 }\n";
    let plain = with(SMALL, columns);
    let expected = read(&plain, &generate(&plain, folder.path(), &()).unwrap());
    for section in [
        "footer_key = 'text:0123456789012345'",
        "footer_key = 'text:01234567890123450123456789012345'",
        "footer_key = 'text:0123456789012345'\nplaintext_footer = true",
        "footer_key = 'text:0123456789012345'\naad_prefix = 'text:tester'",
        "footer_key = 'text:0123456789012345'\naad_prefix = 'text:tester'\nstore_aad_prefix = true\nplaintext_footer = true",
        "footer_key = 'text:0123456789012345'\nkey_metadata = 'test-kms'\ncolumn_keys = { a = 'hex:31323334353637383930313233343530', 'l.list.element' = 'base64:MDEyMzQ1Njc4OTAxMjM0NQ==' }",
        "footer_key = 'text:0123456789012345'\nplaintext_footer = true\ncolumn_keys = { s = 'text:1234567890123450' }",
    ] {
        let dataset = with(SMALL, &format!("{columns}[encryption]\n{section}\n"));
        let generated = generate(&dataset, folder.path(), &())
            .unwrap_or_else(|error| panic!("{section}: {error}"));
        assert!(read(&dataset, &generated) == expected, "{section}");
        assert!(
            generate(&dataset, folder.path(), &()).unwrap().reused,
            "{section}"
        );
        let bytes = fs::read(&generated.path).unwrap();
        let holds_key = bytes
            .windows(24)
            .any(|window| window == b"MDEyMzQ1Njc4OTAxMjM0NQ==");
        assert_eq!(holds_key, section.contains("test-kms"), "{section}");
    }
}

#[test]
fn a_key_from_a_file_is_looked_for_beside_the_definition_and_not_written() {
    let folder = tempfile::tempdir().unwrap();
    let definition = folder.path().join("secret.toml");
    let text = format!(
        "description = ''\nseed = 7\n[file]\n{SMALL}\n[[columns]]\nname = 'a'\ntype = 'float32'\n[encryption]\nfooter_key = 'file:key'\n"
    );
    fs::write(&definition, text).unwrap();
    let dataset = Dataset::load(&definition).unwrap();
    let error = generate(&dataset, folder.path(), &())
        .unwrap_err()
        .to_string();
    assert!(error.contains("footer_key: cannot read"), "{error}");

    fs::write(
        folder.path().join("key"),
        "hex:30313233343536373839303132333435\n",
    )
    .unwrap();
    let generated = generate(&dataset, folder.path(), &()).unwrap();
    assert_eq!(read(&dataset, &generated).len(), 1);
    for path in [
        &generated.path,
        &generated.path.with_extension("parquet.json"),
    ] {
        let bytes = fs::read(path).unwrap();
        for form in [&b"0123456789012345"[..], b"MDEyMzQ1Njc4", b"303132333435"] {
            assert!(!bytes.windows(form.len()).any(|window| window == form));
        }
    }

    // Another key under the same definition: the old file does not open any more.
    fs::write(folder.path().join("key"), "text:another-key-0123\n").unwrap();
    assert!(!generate(&dataset, folder.path(), &()).unwrap().reused);
}

#[test]
fn a_file_is_not_used_again_under_another_column_key_or_prefix() {
    let folder = tempfile::tempdir().unwrap();
    let definition = folder.path().join("secret.toml");
    let text = format!(
        "description = ''\nseed = 7\n[file]\n{SMALL}\n[[columns]]\nname = 'a'\ntype = 'float32'\n[encryption]\nfooter_key = 'text:0123456789012345'\naad_prefix = 'file:prefix'\ncolumn_keys = {{ a = 'file:column' }}\n"
    );
    fs::write(&definition, text).unwrap();
    fs::write(folder.path().join("column"), "1234567890123450").unwrap();
    fs::write(folder.path().join("prefix"), "tester").unwrap();
    let dataset = Dataset::load(&definition).unwrap();
    let reused = || generate(&dataset, folder.path(), &()).unwrap().reused;
    assert!(!reused());
    assert!(reused());
    fs::write(folder.path().join("column"), "another-key-0123").unwrap();
    assert!(!reused(), "another column key");
    assert!(reused());
    fs::write(folder.path().join("prefix"), "another").unwrap();
    assert!(!reused(), "another prefix");
}
