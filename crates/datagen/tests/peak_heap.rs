//! Generating takes little memory, however long the file: counted by `dhat`,
//! which is this test's allocator.
//!
//! One test, because the count is of the whole process. It generates two files
//! of a few columns and says what all 453 would take. With
//! `ALLOQUET_FULL_SHAPE=1` the second file has all 453, so that the figure is
//! counted and not worked out; that writes 3,624 MiB into the target folder,
//! and takes them away again:
//!
//! ```sh
//! ALLOQUET_FULL_SHAPE=1 cargo test -p alloquet-datagen --test peak_heap -- --nocapture
//! ```
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::path::Path;

use alloquet_datagen::{Dataset, Scale, generate};

#[global_allocator]
static HEAP: dhat::Alloc = dhat::Alloc;

const MIB: f64 = 1_048_576.0;
const ALL_COLUMNS: f64 = 453.0;

/// The number of columns, and the most bytes that were live at once while about
/// `columns` of the encrypted columns were generated, above what was live before.
fn peak(columns: f64) -> (f64, f64) {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../bench-data/datasets/wide-float-encrypted.toml");
    let dataset = Dataset::load(&path)
        .unwrap()
        .scaled(&Scale {
            rows: 1.0,
            columns: columns / ALL_COLUMNS,
        })
        .unwrap();
    let profiler = dhat::Profiler::builder().testing().build();
    let before = dhat::HeapStats::get().curr_bytes;
    let generated = generate(&dataset, folder.path(), &()).unwrap();
    let peak = (dhat::HeapStats::get().max_bytes - before) as f64;
    drop(profiler);
    assert_eq!(generated.report.rows, 2 << 20);
    println!(
        "{} columns of {} rows, {:.1} MiB: {:.2} MiB of heap",
        generated.report.columns,
        generated.report.rows,
        generated.report.file_bytes as f64 / MIB,
        peak / MIB,
    );
    (generated.report.columns as f64, peak)
}

#[test]
fn the_peak_does_not_grow_with_columns_but_by_their_metadata() {
    let full_shape = std::env::var_os("ALLOQUET_FULL_SHAPE").is_some_and(|value| value == "1");
    let (few, low) = peak(10.0);
    let (many, high) = peak(if full_shape { ALL_COLUMNS } else { 40.0 });
    assert_eq!(many == ALL_COLUMNS, full_shape, "{many} columns");
    let each = (high - low) / (many - few);
    // Two chunks' metadata, with their place in the page index.
    assert!(each < 16_384.0, "{each} bytes a column");
    // Of the full shape, `high` itself.
    let full = high + each.max(0.0) * (ALL_COLUMNS - many);
    assert!(
        full <= 128.0 * MIB,
        "453 columns would take {} MiB",
        full / MIB
    );
}
