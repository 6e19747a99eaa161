//! What the writer holds, by the heap's own count: `memory_size` tells the truth, and each strategy
//! holds what it is for.
//!
//! One test, because the count is of the whole process.

#![forbid(unsafe_code)]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;

use alloquet_core::{WriteStrategy, Writer};
use arrow_array::{ArrayRef, Int32Array, Int64Array, RecordBatch, StringArray};
use parquet::basic::{Compression, Encoding};
use parquet::file::properties::{WriterProperties, WriterPropertiesBuilder, WriterVersion};

#[global_allocator]
static HEAP: dhat::Alloc = dhat::Alloc;

/// Bytes live now.
fn live() -> usize {
    dhat::HeapStats::get().curr_bytes
}

/// The most bytes live at once while `work` ran, above those before.
fn peak(work: impl FnOnce()) -> usize {
    let profiler = dhat::Profiler::builder().testing().build();
    work();
    let peak = dhat::HeapStats::get().max_bytes;
    drop(profiler);
    peak
}

fn v2() -> WriterPropertiesBuilder {
    WriterProperties::builder().set_writer_version(WriterVersion::PARQUET_2_0)
}

/// The table of arrow-rs #11149: string columns of `["a", "b", "a"]`.
fn seed(columns: usize) -> RecordBatch {
    let column: ArrayRef = Arc::new(StringArray::from(vec!["a", "b", "a"]));
    RecordBatch::try_from_iter((0..columns).map(|i| (format!("c{i}"), Arc::clone(&column))))
        .unwrap()
}

fn writer(
    batch: &RecordBatch,
    properties: WriterPropertiesBuilder,
    strategy: &str,
) -> Writer<std::io::Sink> {
    let strategy: WriteStrategy = strategy.parse().unwrap();
    Writer::try_new(std::io::sink(), batch.schema(), Some(properties.build()))
        .unwrap()
        .with_strategy(strategy)
        .unwrap()
}

/// Int32, strings, and int64 with nulls.
fn mixed(columns: usize, rows: usize, seed: usize) -> RecordBatch {
    let mut state = seed as u64 * 7919 + 1;
    let mut next = move || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        state >> 33
    };
    RecordBatch::try_from_iter_with_nullable((0..columns).map(|i| {
        let array: ArrayRef = match i % 3 {
            0 => Arc::new(Int32Array::from_iter_values(
                (0..rows).map(|_| next() as i32),
            )),
            1 => Arc::new(StringArray::from_iter_values(
                (0..rows).map(|_| format!("value {:09}", next() % 100_000)),
            )),
            _ => Arc::new(
                (0..rows)
                    .map(|_| (next() % 5 > 0).then(|| next() as i64))
                    .collect::<Int64Array>(),
            ),
        };
        (format!("c{i}"), array, i % 3 == 2)
    }))
    .unwrap()
}

#[test]
fn the_heap_agrees() {
    seed_of_11149();
    memory_size_is_the_heap();
}

fn seed_of_11149() {
    let batch = seed(100);
    let peak_of = |strategy: &str| {
        let batch = batch.clone();
        peak(|| {
            let properties = v2().set_encoding(Encoding::DELTA_BYTE_ARRAY);
            let mut writer = writer(&batch, properties, strategy);
            writer.write(&batch).unwrap();
            writer.close().unwrap();
        })
    };
    let eager = peak_of("eager");
    let grow = peak_of("grow");
    let lazy = peak_of("grow,fallback=lazy");
    println!("peak heap: eager {eager}, grow {grow}, grow with lazy fallback {lazy}");
    for strategy in [
        "exact",
        "bounded",
        "pooled",
        "upstream",
        "upstream-column-wise",
        "upstream-exact-store",
    ] {
        println!("peak heap: {strategy} {}", peak_of(strategy));
    }
    assert!(eager >= 200_000_000, "{eager}");
    assert!(grow < 1_000_000, "{grow}");
    assert!(lazy < grow, "{lazy} {grow}");
}

/// At every moment at which it can be asked, `memory_size` is within 5 % of the heap.
fn memory_size_is_the_heap() {
    let strategies = [
        "eager",
        "grow",
        "exact",
        "bounded",
        "pooled",
        "grow,sink=spill",
        "exact,order=column-wise",
        "encode=pooled,fallback=eager,order=interleaved,sink=chunk,codec=shared",
    ];
    for strategy in strategies {
        for (dictionary, codec) in [
            (true, Compression::ZSTD(Default::default())),
            (false, Compression::SNAPPY),
        ] {
            for (columns, rows, batches) in
                [(40, 1000, 23), (6, 10_000, 3), (65, 200, 2), (600, 10, 3)]
            {
                let what = format!("{strategy} {codec} dictionary={dictionary} {columns} × {rows}");
                let properties = || {
                    v2().set_dictionary_enabled(dictionary)
                        .set_compression(codec)
                        .set_max_row_group_row_count(Some(20 * rows))
                };
                check_memory_size(&what, columns, rows, batches, properties, strategy);
            }
        }
    }
}

fn check_memory_size(
    what: &str,
    columns: usize,
    rows: usize,
    batches: usize,
    properties: impl Fn() -> WriterPropertiesBuilder,
    strategy: &str,
) {
    let profiler = dhat::Profiler::builder().testing().build();
    let first = mixed(columns, rows, 0);
    let schema = first.schema();
    drop(first);
    let strategy: WriteStrategy = strategy.parse().unwrap();
    let properties = properties().build();
    let before = live();
    let mut writer = Writer::try_new(std::io::sink(), Arc::clone(&schema), Some(properties))
        .unwrap()
        .with_strategy(strategy)
        .unwrap();
    for i in 0..batches {
        // The batch comes and is dropped, so what the writer keeps of it is the writer's.
        let batch = {
            let made = mixed(columns, rows, i);
            RecordBatch::try_new(Arc::clone(&schema), made.columns().to_vec()).unwrap()
        };
        writer.write(&batch).unwrap();
        drop(batch);
        let (says, is) = (writer.memory_size(), live() - before);
        let off = says.abs_diff(is) as f64 / is as f64;
        assert!(
            off <= 0.05,
            "{what}: after batch {i} memory_size is {says}, the heap {is} ({:.1} % off)",
            100.0 * off
        );
    }
    writer.flush().unwrap();
    let (says, is) = (writer.memory_size(), live() - before);
    assert!(
        says.abs_diff(is) as f64 <= 0.05 * is as f64,
        "{what}: after the row group memory_size is {says}, the heap {is}"
    );
    writer.close().unwrap();
    drop(profiler);
}
