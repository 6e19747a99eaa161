//! Times of writing, in cases that carry the names, shapes and sizes of upstream's bench `arrow_writer`, for the
//! control and for the strategies. The heap of the same cases: `--bench writer_peak_heap`.
//!
//! ```sh
//! cargo bench -p alloquet-core --bench arrow_writer -- small_string --save-baseline before
//! ```

mod common;
mod timing;

use criterion::{Criterion, criterion_group, criterion_main};

fn arrow_writer(criterion: &mut Criterion) {
    timing::time(criterion, common::cases_of("arrow_writer"));
}

criterion_group! {
    name = benches;
    // A file of 256 MiB takes long enough as it is; `--sample-size` asks for more.
    config = Criterion::default().sample_size(20);
    targets = arrow_writer
}
criterion_main!(benches);
