//! The reader against hostile files: random changes of real and of generated files, and every single byte of small ones.
//!
//! Whatever the bytes, there are batches or an error; nothing panics; and memory stays under a bound that follows from the
//! file's size and its metadata ([`bounds`]). The changes follow from a number, so a failure can be repeated: it names the
//! seed and the run.
//!
//! | variable | meaning |
//! |---|---|
//! | `ALLOQUET_FUZZ_RUNS` | runs of each target, instead of some that take seconds |
//! | `ALLOQUET_FUZZ_SEED` | another number to begin with (1) |
//! | `ALLOQUET_FUZZ_ONLY` | one run alone, by its number |
//! | `ALLOQUET_FUZZ_FLIPS` | `all`: every change of every byte, not a sample |
//! | `ALLOQUET_FUZZ_TRACE` | a file that always names the run in progress, for runs that end the process |
//!
//! `cargo test -p alloquet-core --test fuzz -- --nocapture` shows the figures, with the panics of the parquet crate
//! that became errors.
//!
//! The control `upstream` is left out: the parquet crate's own page reader believes lengths, and one that is a lie ends the process
//! where memory does.

#![forbid(unsafe_code)]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod bounds;
mod engine;
mod flips;
mod footers;
mod mutate;
mod seeds;
mod targets;

/// Counts what is allocated; the C heap of zstd's contexts is not.
#[global_allocator]
static HEAP: peak_alloc::PeakAlloc = peak_alloc::PeakAlloc;
