//! One column chunk under construction: values come in as Arrow arrays, pages go out.

pub(super) mod chunk_metadata;
mod context;
mod dictionary;
mod direct;
pub(super) mod plan;
mod source;
mod statistics;
mod writer;

pub(super) use self::context::{Scratch, Shared};
pub(super) use self::writer::{ChunkHeap, ColumnWriter};
