//! Writes the cases that `arrow_writer` and `writer_overhead` time once each, for a tool that counts instructions:
//! they repeat where times do not. `scripts/count-instructions.sh` runs it under callgrind and prints ratios.

mod common;

use std::hint::black_box;

fn main() {
    let parts: Vec<String> = std::env::args()
        .skip(1)
        .filter(|argument| !argument.starts_with('-'))
        .collect();
    // All of them would take minutes, and counting them an hour.
    if parts.is_empty() {
        println!("name the lanes to run, such as writer_overhead/1000_cols/upstream");
        return;
    }
    let cases = common::cases_of("arrow_writer").chain(common::cases_of("writer_overhead"));
    for case in cases {
        let lanes = case.lanes(|name| parts.iter().any(|part| part == name));
        if lanes.is_empty() {
            continue;
        }
        let batch = case.batch();
        for lane in lanes {
            println!(
                "{}/{} {}",
                case.id,
                lane.name,
                write_once(&case, &batch, &lane)
            );
        }
    }
}

/// What is counted.
#[inline(never)]
fn write_once(case: &common::Case, batch: &arrow_array::RecordBatch, lane: &common::Lane) -> u64 {
    black_box(case.write(black_box(batch), lane))
}
