//! Times of each stage that a page goes through: header, fetch, decrypt, decompress, and all of them with decoding.
//!
//! ```sh
//! cargo bench -p alloquet-core --bench reader_stages -- decompress
//! ```

mod reading;

use std::hint::black_box;
use std::io::Write;

use alloquet_core::stages::{Buffers, Decompressor, ModuleKind, Opener, parse_header};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use parquet::basic::Compression;

/// Bytes of a page.
const PAGE: usize = 1 << 20;

/// Floats of a walk in cents: they compress to about a half.
fn page() -> Vec<u8> {
    let mut state = 1u64;
    let mut cents = 100_000i64;
    let step = |_| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        cents += (state >> 60) as i64 - 7;
        (cents as f32 / 100.0).to_le_bytes()
    };
    (0..PAGE / 4).flat_map(step).collect()
}

fn header(criterion: &mut Criterion) {
    // Type data page, sizes, and a data page header of version 1: PLAIN with RLE levels.
    let bytes = [
        0x15, 0x00, 0x15, 0x80, 0x80, 0x80, 0x01, 0x15, 0x80, 0x80, 0x80, 0x01, 0x2c, 0x15, 0x80,
        0x80, 0x20, 0x15, 0x00, 0x15, 0x06, 0x15, 0x06, 0x00, 0x00,
    ];
    let parsed = parse_header(&bytes).expect("the header is valid");
    assert!(parsed.is_some(), "the header is whole");
    criterion.bench_function("stage/header", |bencher| {
        bencher.iter(|| parse_header(black_box(&bytes)));
    });
}

fn fetch(criterion: &mut Criterion) {
    let mut file = tempfile::tempfile().expect("there is room for a MiB");
    file.write_all(&page()).expect("there is room for a MiB");
    let mut group = criterion.benchmark_group("stage/fetch");
    group.throughput(Throughput::Bytes(PAGE as u64));
    for (name, buffers) in [
        ("temporary", Buffers::temporary()),
        ("pooled", Buffers::pooled()),
    ] {
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                let page = buffers.fetch(&file, 0, PAGE).expect("the file is whole");
                black_box(page.into_bytes());
            });
        });
    }
    group.finish();
}

fn decrypt(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("stage/decrypt");
    group.throughput(Throughput::Bytes(PAGE as u64));
    for bits in [128, 256] {
        let key = vec![7; bits / 8];
        let opener = Opener::new(&key, b"aad", 0, 0).expect("keys have such lengths");
        let kind = ModuleKind::DataPage;
        let module = opener
            .seal(&page(), kind, 0, [1; 12])
            .expect("a page is not too large");
        group.bench_function(format!("in_place/{bits}"), |bencher| {
            bencher.iter_batched_ref(
                || module.clone(),
                |module| {
                    opener
                        .open_in_place(module, kind, 0)
                        .expect("it is sealed so")
                },
                criterion::BatchSize::LargeInput,
            );
        });
        let buffers = Buffers::pooled();
        group.bench_function(format!("separate/{bits}"), |bencher| {
            bencher.iter(|| {
                let opened = opener.open_separate(&module, kind, 0, &buffers);
                black_box(opened.expect("it is sealed so").into_bytes());
            });
        });
    }
    group.finish();
}

fn decompress(criterion: &mut Criterion) {
    let page = page();
    let codecs = [
        (
            "snappy",
            Compression::SNAPPY,
            snap::raw::Encoder::new()
                .compress_vec(&page)
                .expect("a MiB is not too much"),
        ),
        (
            "lz4_raw",
            Compression::LZ4_RAW,
            lz4_flex::block::compress(&page),
        ),
        (
            "zstd",
            Compression::ZSTD(Default::default()),
            zstd::bulk::compress(&page, 1).expect("a MiB is not too much"),
        ),
    ];
    let mut group = criterion.benchmark_group("stage/decompress");
    group.throughput(Throughput::Bytes(PAGE as u64));
    let mut context = Decompressor::default();
    let mut out = vec![0; PAGE];
    for (name, codec, stored) in &codecs {
        group.bench_function(*name, |bencher| {
            bencher.iter(|| {
                let done = context.decompress(*codec, black_box(stored), &mut out);
                done.expect("it was compressed so");
            });
        });
    }
    group.finish();
}

/// Decoding in each encoding is timed by `reader_decode`; here the two extremes stand beside the other stages.
fn decode(criterion: &mut Criterion) {
    const ROWS: u64 = (PAGE / 4) as u64;
    let mut group = criterion.benchmark_group("stage/decode");
    group.throughput(Throughput::Elements(ROWS));
    for case in reading::cases() {
        if !["reader/float/plain", "reader/int32/delta_nulls"].contains(&case.id.as_str()) {
            continue;
        }
        let file = case.file(ROWS);
        for lane in reading::LANES {
            let strategy = lane.parse().expect("a lane is a preset");
            group.bench_function(format!("{}/{lane}", case.id), |bencher| {
                bencher.iter(|| reading::read(&file, strategy));
            });
        }
    }
    group.finish();
}

criterion_group!(benches, header, fetch, decrypt, decompress, decode);
criterion_main!(benches);
