//! The peak heap of arrow-rs #11149, counted by `dhat`, which is this test's allocator: 100 columns of three
//! short strings, format 2, DELTA_BYTE_ARRAY after the dictionary.
//!
//! One test, because the count is of the whole process.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::sync::Arc;

use alloquet_upstream_eager::{Encoding, Options, Table, WriterVersion};
use arrow_array::{ArrayRef, RecordBatch, StringArray};
use arrow_ipc::writer::StreamWriter;

#[global_allocator]
static HEAP: dhat::Alloc = dhat::Alloc;

/// The file of #11149's report with so many columns.
fn table(columns: usize) -> Table {
    let column: ArrayRef = Arc::new(StringArray::from(vec!["a", "b", "a"]));
    let columns = (0..columns).map(|n| (format!("s{n}"), Arc::clone(&column)));
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let mut stream = Vec::new();
    let mut writer = StreamWriter::try_new(&mut stream, &batch.schema()).unwrap();
    writer.write(&batch).unwrap();
    writer.finish().unwrap();
    drop(writer);
    Table::from_ipc(&stream).unwrap()
}

#[test]
fn a_hundred_columns_reserve_210_megabytes() {
    let mut options = Options {
        writer_version: WriterVersion::PARQUET_2_0,
        ..Options::default()
    };
    options.every_column.encoding = Some(Encoding::DELTA_BYTE_ARRAY);
    let properties = options.properties();
    let table = table(100);

    let profiler = dhat::Profiler::builder().testing().build();
    let before = dhat::HeapStats::get().curr_bytes;
    let bytes = table.write(std::io::sink(), &properties).unwrap();
    let peak = dhat::HeapStats::get().max_bytes - before;
    drop(profiler);

    println!("peak heap {:.1} MB, file {bytes} bytes", peak as f64 / 1e6);
    assert!(
        (peak as f64 / 210.3e6 - 1.0).abs() <= 0.01,
        "{:.1} MB",
        peak as f64 / 1e6
    );
}
