//! Strategies: who owns the buffers of reading ([`ReadStrategy`]) and of writing ([`WriteStrategy`]).
//!
//! A strategy is written as a preset (`pooled`), as a preset with parts replaced
//! (`temp-both,codec=shared`), or as all of its parts (`fetch=temporary,decrypt=…`).

mod parts;
mod read;
mod write;

pub use parts::StrategyError;
pub use read::{
    Arrays, BufferOwners, Decode, Decrypt, Fetch, PageBuffer, READ_PRESETS, ReadStrategy,
};
pub use write::{Encode, EncoderBuffers, Fallback, Order, PageSink, WRITE_PRESETS, WriteStrategy};

/// Owner of the contexts of a codec. It makes a difference for zstd; the other codecs keep nothing
/// from page to page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CodecContext {
    /// One context per column.
    PerColumn,
    /// One context for all columns of the reader or writer.
    Shared,
}
