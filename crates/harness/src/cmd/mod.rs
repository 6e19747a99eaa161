//! The commands, one file each: parse, load, compute, show.

pub(crate) mod aa;
mod cells;
pub(crate) mod env;
pub(crate) mod explain;
pub(crate) mod fit;
pub(crate) mod generate;
mod keys;
pub(crate) mod list;
mod options;
pub(crate) mod plant;
pub(crate) mod read;
pub(crate) mod run;
mod session;
mod show;
pub(crate) mod table;
pub(crate) mod timeline;
pub(crate) mod worker;
pub(crate) mod write;
