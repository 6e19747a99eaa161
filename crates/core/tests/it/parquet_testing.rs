//! Every file of apache/parquet-testing: each strategy gives the batches that the stock reader gives.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use alloquet_core::ReaderBuilder;
use parquet::encryption::decrypt::FileDecryptionProperties;

use crate::support::{Batches, files, options, stock, strategies, test_data, with_strategy};

/// The keys of the encrypted files, from the README of apache/parquet-testing.
fn keys(path: &Path) -> Arc<FileDecryptionProperties> {
    let name = path.file_name().unwrap().to_string_lossy().into_owned();
    let builder = if path.parent().unwrap().ends_with("aes256") {
        let column_key = |last: &str| format!("123456789012345678901234567890{last}").into_bytes();
        let columns = [
            ("double_field", "12"),
            ("float_field", "13"),
            ("boolean_field", "14"),
            ("int32_field", "15"),
            ("ba_field", "16"),
            ("flba_field", "17"),
            ("int64_field.list.element", "18"),
            ("int96_field", "19"),
        ];
        columns.into_iter().fold(
            FileDecryptionProperties::builder(b"01234567890123456789012345678901".to_vec()),
            |builder, (column, last)| builder.with_column_key(column, column_key(last)),
        )
    } else {
        FileDecryptionProperties::builder(b"0123456789012345".to_vec())
            .with_column_key("double_field", b"1234567890123450".to_vec())
            .with_column_key("float_field", b"1234567890123451".to_vec())
    };
    let builder = if name.contains("disable_aad_storage") {
        builder.with_aad_prefix(b"tester".to_vec())
    } else {
        builder
    };
    builder.build().unwrap()
}

/// Compares every strategy with the stock reader; returns whether the stock reader reads the file.
fn compare(path: &Path, keys: Option<&Arc<FileDecryptionProperties>>) -> bool {
    let mut readable = false;
    for batch_size in [7, 1024] {
        let expected = stock(path, options(keys), batch_size);
        for strategy in strategies() {
            let found = with_strategy(path, options(keys), batch_size, strategy);
            match (&expected, found) {
                (Some(Ok(expected)), Ok(found)) => {
                    assert!(
                        *expected == found,
                        "{} differs with {strategy}",
                        path.display()
                    );
                    readable = true;
                }
                (Some(Ok(_)), Err(error)) => panic!(
                    "{} is readable, but with {strategy}: {error}",
                    path.display()
                ),
                (None | Some(Err(_)), Ok(_)) => panic!(
                    "{} is not readable, but it was read with {strategy}",
                    path.display()
                ),
                (None | Some(Err(_)), Err(_)) => {}
            }
        }
    }
    readable
}

#[test]
fn every_plain_file_reads_as_with_the_stock_reader() {
    let Some(folder) = test_data() else { return };
    let files = files(&folder, |name| {
        name.ends_with(".parquet") && name != TWO_GIB && !CORRUPT.contains(&name)
    });
    let unreadable: Vec<_> = files
        .iter()
        .filter(|path| !compare(path, None))
        .map(|path| path.file_name().unwrap().to_string_lossy().into_owned())
        .collect();
    assert!(files.len() >= 72, "{} files found", files.len());
    // What the stock reader refuses, so that a file which nothing reads cannot pass unnoticed.
    assert_eq!(unreadable, EXPECTED_UNREADABLE, "of {} files", files.len());
}

const EXPECTED_UNREADABLE: [&str; 2] = [
    "dict-page-offset-zero.parquet",
    "nation.dict-malformed.parquet",
];

/// A file of 2 GiB when decompressed: more than one array of 32-bit offsets holds.
const TWO_GIB: &str = "large_string_map.brotli.parquet";

#[test]
fn a_file_too_large_for_its_type_is_an_error_and_not_a_panic() {
    let Some(folder) = test_data() else { return };
    for strategy in ["temp-both", "pooled", "upstream"] {
        let path = folder.join(TWO_GIB);
        let error = with_strategy(&path, options(None), 1024, strategy.parse().unwrap());
        assert!(error.unwrap_err().contains("overflow"), "{strategy}");
    }
}

#[test]
fn checksums_are_verified_unless_told_otherwise() {
    let Some(folder) = test_data() else { return };
    let read = |name: &str, verify: bool| -> Batches {
        let builder = ReaderBuilder::try_new(File::open(folder.join(name)).unwrap()).unwrap();
        let builder = match verify {
            true => builder,
            false => builder.with_page_checksum_verification(false),
        };
        let reader = builder.build().unwrap();
        reader.map(|b| b.map_err(|e| e.to_string())).collect()
    };
    for name in [
        "datapage_v1-uncompressed-checksum.parquet",
        "datapage_v1-snappy-compressed-checksum.parquet",
        "plain-dict-uncompressed-checksum.parquet",
        "rle-dict-snappy-checksum.parquet",
    ] {
        assert!(read(name, true).is_ok(), "{name}");
    }
    for name in CORRUPT {
        assert!(read(name, false).is_ok(), "{name}");
        let error = read(name, true).unwrap_err();
        assert!(
            error.contains("checksum") && error.contains("column"),
            "{error}"
        );
    }
}

/// Files with pages that were changed after their checksums were made; the stock reader does not notice.
const CORRUPT: [&str; 2] = [
    "datapage_v1-corrupt-checksum.parquet",
    "rle-dict-uncompressed-corrupt-checksum.parquet",
];

#[test]
fn every_encrypted_file_reads_as_with_the_stock_reader() {
    let Some(folder) = test_data() else { return };
    let files = files(&folder, |name| name.ends_with(".parquet.encrypted"));
    let unreadable: Vec<_> = files
        .iter()
        .filter(|path| !compare(path, Some(&keys(path))))
        .map(|path| path.file_name().unwrap().to_string_lossy().into_owned())
        .collect();
    assert!(files.len() >= 12, "{} files found", files.len());
    // Two in AES_GCM_CTR_V1, which parquet refuses, and one whose keys are in a KMS.
    assert_eq!(
        unreadable,
        [
            "encrypt_columns_and_footer_ctr.parquet.encrypted",
            "encrypt_columns_and_footer_ctr.parquet.encrypted",
            "external_key_material_java.parquet.encrypted",
        ]
    );
}

#[test]
fn every_bad_file_is_an_error_or_what_the_stock_reader_gives() {
    let Some(folder) = test_data() else { return };
    let folder = folder.join("../bad_data");
    let files = files(&folder, |name| name.ends_with(".parquet"));
    assert!(files.len() >= 8, "{} files found", files.len());
    for path in &files {
        for batch_size in [7, 1024] {
            let expected = stock(path, options(None), batch_size);
            for strategy in strategies() {
                if let Ok(found) = with_strategy(path, options(None), batch_size, strategy) {
                    assert!(
                        matches!(&expected, Some(Ok(batches)) if *batches == found),
                        "{} was read with {strategy}, otherwise than by the stock reader",
                        path.display()
                    );
                }
            }
        }
    }
}
