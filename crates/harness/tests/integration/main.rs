//! Drives the real binary with real files, one module a theme.

mod env;
mod support;
mod worker;
