//! Times of writing many columns with next to no data, in cases that carry the names and shapes of upstream's bench
//! `writer_overhead`, for the control and for the strategies. The heap of the same cases: `--bench writer_peak_heap`.

mod common;
mod timing;

use criterion::{Criterion, criterion_group, criterion_main};

fn writer_overhead(criterion: &mut Criterion) {
    timing::time(criterion, common::cases_of("writer_overhead"));
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(50);
    targets = writer_overhead
}
criterion_main!(benches);
