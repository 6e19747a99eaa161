//! Reads the cases that `reader_decode` times once each, for a tool that counts instructions: they repeat where times do not.
//! `scripts/count-instructions.sh` runs it under callgrind and prints ratios.

mod reading;

use std::hint::black_box;

use alloquet_core::ReadStrategy;
use bytes::Bytes;

/// Enough that decoding outweighs opening the file.
const ROWS: u64 = 1 << 20;
const ROWS_FOR_TEST: u64 = 1 << 17;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let is_test = arguments.iter().any(|argument| argument == "--test");
    let wanted = |name: &str| arguments.iter().any(|argument| argument == name);
    let mut found = false;
    for case in reading::cases() {
        for lane in reading::LANES {
            let name = format!("{}/{lane}", case.id);
            if wanted(&name) {
                let strategy = lane.parse().expect("a lane is a preset");
                let file = case.file(if is_test { ROWS_FOR_TEST } else { ROWS });
                println!("{name} {}", read_once(&file, strategy));
                found = true;
            }
        }
    }
    if !found {
        println!("name the lanes to run, such as reader/int32/delta/upstream");
    }
}

/// What is counted.
#[inline(never)]
fn read_once(file: &Bytes, strategy: ReadStrategy) -> usize {
    black_box(reading::read(black_box(file), strategy))
}
