//! Generating takes little memory, however long the file: counted by `dhat`,
//! which is this test's allocator.
//!
//! One test, because the count is of the whole process.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::path::Path;

use alloquet_datagen::{Dataset, Scale, generate};

#[global_allocator]
static HEAP: dhat::Alloc = dhat::Alloc;

const MIB: f64 = 1_048_576.0;

/// The most bytes that were live at once while `columns` of the 453 encrypted
/// columns were generated, above what was live before.
fn peak(columns: f64) -> (usize, usize) {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../bench-data/datasets/wide-float-encrypted.toml");
    let dataset = Dataset::load(&path)
        .unwrap()
        .scaled(&Scale {
            rows: 1.0,
            columns: columns / 453.0,
        })
        .unwrap();
    let profiler = dhat::Profiler::builder().testing().build();
    let before = dhat::HeapStats::get().curr_bytes;
    let generated = generate(&dataset, folder.path(), &()).unwrap();
    let peak = dhat::HeapStats::get().max_bytes - before;
    drop(profiler);
    assert_eq!(generated.report.rows, 2 << 20);
    println!(
        "{} columns of {} rows, {:.1} MiB: {:.2} MiB of heap",
        generated.report.columns,
        generated.report.rows,
        generated.report.file_bytes as f64 / MIB,
        peak as f64 / MIB,
    );
    (generated.report.columns, peak)
}

#[test]
fn the_peak_does_not_grow_with_columns_but_by_their_metadata() {
    let (few, low) = peak(10.0);
    let (many, high) = peak(40.0);
    let each = (high as f64 - low as f64) / (many - few) as f64;
    // Two chunks' metadata, with their place in the page index.
    assert!(each < 16_384.0, "{each} bytes a column");
    let full = low as f64 + each.max(0.0) * 453.0;
    assert!(
        full < 128.0 * MIB,
        "453 columns would take {} MiB",
        full / MIB
    );
}

/// The figure itself; writes 3,624 MiB.
#[test]
#[ignore = "writes 3,624 MiB; run by itself: cargo test -p alloquet-datagen --test peak_heap -- --ignored --nocapture"]
fn the_full_shape_takes_less_than_128_mib() {
    let (columns, peak) = peak(453.0);
    assert_eq!(columns, 453);
    assert!(peak as f64 <= 128.0 * MIB);
}
