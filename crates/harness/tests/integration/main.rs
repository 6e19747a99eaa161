//! Drives the real binary with real files, one module a theme.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod answers;
mod env;
mod explain;
mod limits;
mod modes;
mod project;
mod read;
mod readme;
mod run;
mod support;
mod table;
mod trust;
mod worker;
mod write;
