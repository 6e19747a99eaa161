//! Times cases with criterion.

use std::cell::OnceCell;

use criterion::{Criterion, Throughput};

use crate::common::Case;

/// Times every case in every lane that can write it.
pub(crate) fn time(criterion: &mut Criterion, cases: impl Iterator<Item = Case>) {
    for case in cases {
        // Made for the first lane that is not filtered out, and gone with the case.
        let batch = OnceCell::new();
        let mut group = criterion.benchmark_group(&case.id);
        if let Some(throughput) = throughput(&case) {
            group.throughput(throughput);
        }
        for lane in case.lanes(|_| true) {
            group.bench_function(lane.name, |bencher| {
                let batch = batch.get_or_init(|| case.batch());
                bencher.iter(|| case.write(batch, &lane));
            });
        }
        group.finish();
    }
}

/// In bytes where all values have as many, else in rows; none where there are next to no rows.
fn throughput(case: &Case) -> Option<Throughput> {
    match (case.rows, case.value_bytes) {
        (..1024, 0) => None,
        (rows, 0) => Some(Throughput::Elements(rows as u64)),
        (rows, bytes) => Some(Throughput::Bytes((rows * bytes) as u64)),
    }
}
