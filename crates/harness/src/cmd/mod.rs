//! The commands, one file each: parse, load, compute, show.

pub(crate) mod env;
pub(crate) mod worker;
