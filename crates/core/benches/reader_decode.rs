//! Times of reading one column in each encoding: the control, the parquet crate's decoders on pooled pages, and direct decoding.
//!
//! ```sh
//! cargo bench -p alloquet-core --bench reader_decode -- int32
//! ```

mod reading;

use std::cell::OnceCell;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};

const ROWS: u64 = 1 << 20;

fn reader_decode(criterion: &mut Criterion) {
    for case in reading::cases() {
        // Made for the first lane that is not filtered out.
        let file = OnceCell::new();
        let mut group = criterion.benchmark_group(&case.id);
        group.throughput(Throughput::Elements(ROWS));
        for lane in reading::LANES {
            let strategy = lane.parse().expect("a lane is a preset");
            group.bench_function(lane, |bencher| {
                let file = file.get_or_init(|| case.file(ROWS));
                bencher.iter(|| reading::read(file, strategy));
            });
        }
        group.finish();
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(20);
    targets = reader_decode
}
criterion_main!(benches);
