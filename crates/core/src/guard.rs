//! Turns a panic of a decoder on damaged input into an error.
//!
//! The parquet crate's decoders index and slice by numbers that a file supplies, and some damaged
//! files make them panic. A service must not go down for that. The panic hook still runs, so the
//! place is not hidden; the reader is then fused.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs `f`; a panic becomes `Err` with its message.
pub(crate) fn catch<T>(f: impl FnOnce() -> T) -> Result<T, String> {
    // State that the panic may have torn is dropped or fused by each caller, never used again.
    catch_unwind(AssertUnwindSafe(f)).map_err(|payload| {
        format!(
            "the decoder panicked ({}): most likely the file is damaged",
            message(payload.as_ref())
        )
    })
}

fn message(payload: &(dyn Any + Send)) -> &str {
    payload
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| payload.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message")
}
