//! Definitions, and the files made of them, through the public interface.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod definitions;
mod encryption;
mod pages;
mod property;
mod reuse;
mod stop;
mod support;
mod values;
