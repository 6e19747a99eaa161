//! Integration tests of the reader, in one binary: each module is one theme.

#![forbid(unsafe_code)]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod damaged;
mod direct;
mod encrypted;
mod fetching;
mod generated;
mod ledger;
mod limits;
mod parquet_testing;
mod pyarrow;
#[path = "../python/mod.rs"]
mod python;
mod secrets;
mod support;
mod threads;
