//! What is generated, read back by the parquet crate: values, page sizes, bytes.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::HashSet;
use std::fs::{self, File};
use std::path::Path;

use alloquet_datagen::{Dataset, Error, Generated, Progress, Scale, Spread, generate};
use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Int32Type};
use arrow_array::{Array, RecordBatch};
use parquet::arrow::arrow_reader::{ArrowReaderOptions, ParquetRecordBatchReaderBuilder};
use sha2::{Digest, Sha256};
use tempfile::TempDir;

fn project(name: &str) -> Dataset {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench-data/datasets");
    Dataset::load(&folder.join(format!("{name}.toml"))).unwrap()
}

fn with(file: &str, rest: &str) -> Dataset {
    Dataset::parse(
        "t",
        &format!("description = ''\nseed = 7\n[file]\n{file}\n{rest}"),
    )
    .unwrap_or_else(|error| panic!("{error}"))
}

fn read(dataset: &Dataset, generated: &Generated) -> Vec<RecordBatch> {
    let mut options = ArrowReaderOptions::new();
    if let Some(keys) = dataset.keys().unwrap() {
        options = options.with_file_decryption_properties(keys.decryption_properties().unwrap());
    }
    let file = File::open(&generated.path).unwrap();
    let builder = ParquetRecordBatchReaderBuilder::try_new_with_options(file, options).unwrap();
    assert_eq!(*builder.schema(), dataset.schema());
    builder
        .with_batch_size(10_000)
        .build()
        .unwrap()
        .collect::<Result<_, _>>()
        .unwrap()
}

fn files(folder: &TempDir) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn pages_of_wide_float_have_one_mebibyte_exactly() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["wide-float", "wide-float-encrypted"] {
        let dataset = project(name)
            .scaled(&Scale {
                rows: 0.5,
                columns: 0.004,
            })
            .unwrap();
        let report = generate(&dataset, folder.path(), &()).unwrap().report;
        assert_eq!(report.columns, 4, "{name}");
        assert_eq!(report.data_pages.count, 4 * 2 * 2, "{name}");
        let exactly = |value| Spread {
            min: value,
            median: value,
            max: value,
        };
        assert_eq!(report.data_pages.page_bytes, exactly(1 << 20), "{name}");
        assert_eq!(report.data_pages.rows, exactly(262_144), "{name}");
        assert!(report.dictionary_pages.is_none());
    }
}

#[test]
fn encryption_adds_its_framing_to_each_stored_page() {
    let folder = tempfile::tempdir().unwrap();
    let stored = |name: &str| {
        let dataset = project(name)
            .scaled(&Scale {
                rows: 0.1,
                columns: 0.01,
            })
            .unwrap();
        generate(&dataset, folder.path(), &()).unwrap().report
    };
    let (plain, encrypted) = (stored("wide-float"), stored("wide-float-encrypted"));
    for (plain, encrypted) in plain.column_pages.iter().zip(&encrypted.column_pages) {
        assert_eq!(plain.column, encrypted.column);
        assert_eq!(plain.largest_page_bytes, encrypted.largest_page_bytes);
        assert_eq!(
            plain.largest_stored_page_bytes + 32,
            encrypted.largest_stored_page_bytes
        );
    }
}

#[test]
fn encrypted_optional_and_plain_files_hold_the_same_values() {
    let folder = tempfile::tempdir().unwrap();
    let scale = Scale {
        rows: 0.01,
        columns: 0.01,
    };
    let values = |name: &str| {
        let dataset = project(name).scaled(&scale).unwrap();
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

#[test]
fn floats_are_finite_and_do_not_compress() {
    let folder = tempfile::tempdir().unwrap();
    let dataset = project("wide-float")
        .scaled(&Scale {
            rows: 0.05,
            columns: 0.001,
        })
        .unwrap();
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
    let dataset = project("wide-float")
        .scaled(&Scale {
            rows: 0.01,
            columns: 0.001,
        })
        .unwrap();
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
    let dataset = project("int32-nulls-delta")
        .scaled(&Scale {
            rows: 0.1,
            columns: 0.01,
        })
        .unwrap();
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
    let dataset = project("small-dictionaries")
        .scaled(&Scale {
            rows: 0.02,
            columns: 0.02,
        })
        .unwrap();
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
fn delta_strings_begin_as_they_say() {
    let folder = tempfile::tempdir().unwrap();
    let dataset = project("delta-strings")
        .scaled(&Scale {
            rows: 0.05,
            columns: 0.1,
        })
        .unwrap();
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

/// Everything that a definition can say, in one small file.
const KITCHEN_SINK: &str = r#"
[[columns]]
name = "b"
type = "boolean"
optional = true
nulls = 0.5
[[columns]]
name = "u{n}"
count = 2
type = "uint32"
[[columns]]
name = "d"
type = "decimal(15,2)"
values = { kind = "uniform", min = -5, max = 100_000 }
[[columns]]
name = "d9"
type = "decimal(7,2)"
[[columns]]
name = "t"
type = "timestamp-micros"
encoding = "delta_binary_packed"
values = { kind = "sequence", start = 1_700_000_000_000_000, step = 1000, repeat = 3 }
[[columns]]
name = "flag"
type = "string"
dictionary = true
values = { kind = "choices", values = ["A", "N", "R"], weights = [1, 0, 3] }
[[columns]]
name = "x"
type = "fixed-binary(5)"
encoding = "byte_stream_split"
[[columns]]
name = "bin"
type = "binary"
optional = true
nulls = 0.1
encoding = "delta_length_byte_array"
[[columns]]
name = "c"
type = "float64"
dictionary = true
values = { kind = "constant", value = 1.5 }
[[columns]]
name = "l"
type = "float32"
list = { min_items = 0, max_items = 5 }
[[columns]]
name = "lo"
type = "uint8"
optional = true
nulls = 0.3
dictionary = true
list = { min_items = 0, max_items = 3, optional_items = true }
[[columns]]
name = "i8"
type = "int8"
distinct = 200
"#;

fn kitchen_sink(version: u8, compression: &str) -> Dataset {
    with(
        &format!(
            "row_groups = 2\nrows_per_row_group = 3_000\npage_bytes = 1024\npage_row_limit = 700\ndata_page_version = {version}\ncompression = '{compression}'\nstatistics = 'page'"
        ),
        KITCHEN_SINK,
    )
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

/// Stops after some values.
struct StopAfter(std::cell::Cell<u64>);

impl Progress for StopAfter {
    fn advance(&self, values: u64) {
        self.0.set(self.0.get().saturating_sub(values));
    }
    fn is_cancelled(&self) -> bool {
        self.0.get() == 0
    }
}

#[test]
fn stopping_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let stop = StopAfter(std::cell::Cell::new(40_000));
    let error = generate(&kitchen_sink(1, "none"), folder.path(), &stop).unwrap_err();
    assert!(matches!(error, Error::Cancelled { .. }), "{error}");
    assert!(files(&folder).is_empty(), "{:?}", files(&folder));
}

#[test]
fn an_unwritable_folder_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let error = generate(&kitchen_sink(1, "none"), &file, &())
        .unwrap_err()
        .to_string();
    assert!(
        error.starts_with(&format!("cannot write {}", file.display())),
        "{error}"
    );
}

#[test]
fn progress_counts_every_value() {
    struct Count(std::cell::Cell<(u64, u64)>);
    impl Progress for Count {
        fn start(&self, total: u64) {
            self.0.set((total, 0));
        }
        fn advance(&self, values: u64) {
            let (total, so_far) = self.0.get();
            self.0.set((total, so_far + values));
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let count = Count(Default::default());
    generate(&kitchen_sink(1, "none"), folder.path(), &count).unwrap();
    assert_eq!(count.0.get(), (6_000 * 13, 6_000 * 13));
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
