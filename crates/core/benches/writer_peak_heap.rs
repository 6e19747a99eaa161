//! Peak heap of the cases that `arrow_writer` and `writer_overhead` time, above the batch that is written, counted by
//! `dhat`. Not in those benches: a heap that counts is slower, and how much so depends on the strategy.
//!
//! One run each, because the peak of work on one thread repeats exactly. Arguments are parts of names, as for the
//! others, which may be given together with theirs:
//!
//! ```sh
//! cargo bench -p alloquet-core --bench writer_peak_heap -- large_string
//! cargo bench -p alloquet-core --benches -- writer_overhead/1000_cols --save-baseline before
//! ```

mod common;

use alloquet_report::format::{count, mib};

#[global_allocator]
static HEAP: dhat::Alloc = dhat::Alloc;

/// Options of criterion that have a value, so that the value is not taken for a part of a name.
const OPTIONS: [&str; 16] = [
    "-b",
    "-c",
    "-s",
    "--baseline",
    "--baseline-lenient",
    "--color",
    "--colour",
    "--confidence-level",
    "--load-baseline",
    "--measurement-time",
    "--noise-threshold",
    "--nresamples",
    "--output-format",
    "--sample-size",
    "--save-baseline",
    "--warm-up-time",
];

fn main() {
    let mut parts = Vec::new();
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        if OPTIONS.contains(&argument.as_str()) {
            arguments.next();
        } else if !argument.starts_with('-') {
            parts.push(argument);
        }
    }
    let is_wanted = |name: &str| parts.is_empty() || parts.iter().any(|part| name.contains(part));

    let cases = common::cases_of("arrow_writer").chain(common::cases_of("writer_overhead"));
    for case in cases {
        let lanes = case.lanes(is_wanted);
        if lanes.is_empty() {
            continue;
        }
        let batch = case.batch();
        for lane in lanes {
            let profiler = dhat::Profiler::builder().testing().build();
            let file = case.write(&batch, &lane);
            let peak = dhat::HeapStats::get().max_bytes as u64;
            drop(profiler);
            println!(
                "{}/{}: peak heap {} ({} bytes), file {}",
                case.id,
                lane.name,
                mib(peak),
                count(peak),
                mib(file)
            );
        }
    }
}
