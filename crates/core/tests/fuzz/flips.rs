//! Every change of a single byte of every small file.

use std::time::Instant;

use arrow_array::RecordBatch;

use crate::engine::{Case, Findings, Outcome, Target, alone};
use crate::mutate::Random;
use crate::seeds;
use crate::targets::{WholeFile, read_whole, strategies};

/// A whole file that must be read as it was, if at all, where all of it is authenticated.
struct Flipped {
    expected: Vec<RecordBatch>,
    authenticated: bool,
}

impl Target for Flipped {
    fn name(&self) -> &'static str {
        "flips"
    }

    fn default_runs(&self) -> u64 {
        SAMPLE
    }

    fn case(&self, random: &mut Random) -> Case {
        WholeFile.case(random)
    }

    fn run(&self, case: &Case) -> Outcome {
        let mut outcome = Outcome::default();
        let mut expected = self.expected.iter();
        let result = read_whole(case, &mut outcome, |batch| {
            assert!(
                !self.authenticated || expected.next() == Some(&batch),
                "a change of an encrypted file was read as data"
            );
        });
        assert!(
            !self.authenticated || result.is_err() || expected.next().is_none(),
            "a changed encrypted file ended early"
        );
        outcome.error = result.err();
        outcome
    }

    fn original(&self, case: &Case) -> (&'static [u8], &'static str) {
        WholeFile.original(case)
    }
}

/// Changes of a byte: each bit, and to all zeros and ones.
fn changes(byte: u8) -> impl Iterator<Item = u8> {
    let bits = (0..8).map(move |bit| byte ^ (1 << bit));
    bits.chain([0, 0xff].into_iter().filter(move |to| {
        // Where that is no single bit, and a change at all.
        (*to ^ byte).count_ones() > 1
    }))
}

/// Changes that are tried without `ALLOQUET_FUZZ_FLIPS=all`.
const SAMPLE: u64 = 20_000;

#[test]
fn every_byte() {
    alone(|| {
        let all = seeds::all();
        let total: usize = all.iter().map(|seed| seed.bytes.len() * 9).sum();
        let step = match std::env::var("ALLOQUET_FUZZ_FLIPS").as_deref() {
            Ok("all") => 1,
            _ => (total as u64 / SAMPLE).max(1),
        };
        let strategies = strategies();
        let start = Instant::now();
        let mut findings = Findings::default();
        let mut number = 0u64;
        for (i, seed) in all.iter().enumerate() {
            let mut case = Case {
                seed: i,
                bytes: seed.bytes.clone(),
                strategy: strategies[0],
                batch_size: 1024,
                verify_checksums: false,
                select: false,
                choice: 0,
            };
            let mut target = Flipped {
                expected: Vec::new(),
                authenticated: false,
            };
            let mut expected = Vec::new();
            // One real file is damaged as it is.
            let whole = read_whole(&case, &mut Outcome::default(), |batch| expected.push(batch));
            assert!(
                whole.is_ok() || seed.name.contains("malformed"),
                "{}: {whole:?}",
                seed.name
            );
            target.expected = expected;
            target.authenticated = seed.authenticated;
            for at in 0..seed.bytes.len() {
                for to in changes(seed.bytes[at]) {
                    number += 1;
                    if !number.is_multiple_of(step) {
                        continue;
                    }
                    case.bytes[at] = to;
                    case.strategy = strategies[(number / step) as usize % strategies.len()];
                    findings.add(&target, &case, || "flips".to_owned());
                    case.bytes[at] = seed.bytes[at];
                }
            }
        }
        findings.report("flips", start.elapsed());
    });
}
