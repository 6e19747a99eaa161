//! The commands, one file each: parse, load, compute, show.

pub(crate) mod env;
pub(crate) mod generate;
pub(crate) mod list;
pub(crate) mod read;
pub(crate) mod run;
mod show;
pub(crate) mod table;
pub(crate) mod worker;
