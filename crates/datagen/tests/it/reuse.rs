//! When a file is the same as another, and when it is used again.

use std::fs;
use std::path::Path;

use alloquet_datagen::generate;
use arrow_array::RecordBatch;
use sha2::{Digest, Sha256};

use crate::support::{files, kitchen_sink, read, with};

fn sha256(path: &Path) -> String {
    let digest = Sha256::digest(fs::read(path).unwrap());
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn the_same_definition_gives_the_same_bytes() {
    let (a, b) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let dataset = kitchen_sink(1, "snappy");
    let first = generate(&dataset, a.path(), &()).unwrap();
    let second = generate(&dataset, b.path(), &()).unwrap();
    assert!(!first.reused && !second.reused);
    assert_eq!(sha256(&first.path), sha256(&second.path));
    // Recorded: if this changes, so did the bytes of every dataset, and
    // GENERATOR_VERSION must be raised.
    assert_eq!(
        sha256(&first.path),
        "8e7f6f983fcefd9da7140c334e3a876ddd52cf2b6f0f4386c0264111386a61c4"
    );
}

#[test]
fn an_existing_file_is_used_again_only_if_it_is_the_one() {
    let folder = tempfile::tempdir().unwrap();
    let dataset = kitchen_sink(1, "none");
    let first = generate(&dataset, folder.path(), &()).unwrap();
    let again = generate(&dataset, folder.path(), &()).unwrap();
    assert!(!first.reused && again.reused);
    assert_eq!(first.report, again.report);
    assert_eq!(files(&folder).len(), 2, "{:?}", files(&folder));

    let sidecar = first.path.with_extension("parquet.json");
    let text = fs::read_to_string(&sidecar).unwrap();
    let bytes = fs::read(&first.path).unwrap();
    let reused = || generate(&dataset, folder.path(), &()).unwrap().reused;

    fs::write(
        &sidecar,
        text.replace("alloquet-datagen 1", "alloquet-datagen 0"),
    )
    .unwrap();
    assert!(!reused(), "another generator");
    fs::write(
        &sidecar,
        text.replace("definition_sha256\": \"", "definition_sha256\": \"0"),
    )
    .unwrap();
    assert!(!reused(), "another definition");
    fs::write(&sidecar, "{}").unwrap();
    assert!(!reused(), "no sidecar to speak of");
    fs::remove_file(&sidecar).unwrap();
    assert!(!reused(), "no sidecar");
    fs::write(&first.path, &bytes[..bytes.len() - 1]).unwrap();
    assert!(!reused(), "truncated");
    let mut odd = bytes.clone();
    odd[0] = b'X';
    fs::write(&first.path, &odd).unwrap();
    assert!(!reused(), "no magic at the start");
    let mut odd = bytes.clone();
    *odd.last_mut().unwrap() = b'X';
    fs::write(&first.path, &odd).unwrap();
    assert!(!reused(), "no magic at the end");
    assert!(reused());
    assert_eq!(fs::read(&first.path).unwrap(), bytes);
}

const ONE_COLUMN: &str = "row_groups = 1\nrows_per_row_group = 5_000\npage_bytes = 4096\ncompression = 'none'\n[[columns]]\nname = 'a'\ntype = 'float32'\n";

#[test]
fn a_page_with_a_flipped_bit_is_not_used_again() {
    for encryption in ["", "[encryption]\nfooter_key = 'text:0123456789012345'\n"] {
        let folder = tempfile::tempdir().unwrap();
        let dataset = with(ONE_COLUMN, encryption);
        let first = generate(&dataset, folder.path(), &()).unwrap();
        let values = read(&dataset, &first);
        // The header before the first page takes far less.
        assert!(first.report.data_pages.stored_bytes.max >= 4_096);
        let mut bytes = fs::read(&first.path).unwrap();
        bytes[1_000] ^= 1;
        fs::write(&first.path, &bytes).unwrap();

        let again = generate(&dataset, folder.path(), &()).unwrap();
        assert!(!again.reused, "{encryption}");
        assert!(read(&dataset, &again) == values, "{encryption}");
        assert!(generate(&dataset, folder.path(), &()).unwrap().reused);
    }
}

#[test]
fn a_sidecar_without_the_contents_hash_is_not_enough() {
    let folder = tempfile::tempdir().unwrap();
    let dataset = with(ONE_COLUMN, "");
    let first = generate(&dataset, folder.path(), &()).unwrap();
    let sidecar = first.path.with_extension("parquet.json");
    let text = fs::read_to_string(&sidecar).unwrap();
    let older: Vec<&str> = text
        .lines()
        .filter(|line| !line.contains("content_xxh64"))
        .collect();
    assert_eq!(older.len() + 1, text.lines().count());
    fs::write(&sidecar, older.join("\n")).unwrap();
    assert!(!generate(&dataset, folder.path(), &()).unwrap().reused);
    assert_eq!(fs::read_to_string(&sidecar).unwrap(), text);
}

#[test]
fn two_at_once_leave_one_whole_file() {
    let folder = tempfile::tempdir().unwrap();
    let dataset = kitchen_sink(2, "snappy");
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let generated = generate(&dataset, folder.path(), &()).unwrap();
                assert_eq!(
                    read(&dataset, &generated)
                        .iter()
                        .map(RecordBatch::num_rows)
                        .sum::<usize>(),
                    6_000
                );
            });
        }
    });
    assert_eq!(files(&folder).len(), 2, "{:?}", files(&folder));
    assert!(generate(&dataset, folder.path(), &()).unwrap().reused);
}
