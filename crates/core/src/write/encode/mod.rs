//! Encoders: values become the bytes of a page, in buffers whose owner is a [`Growth`].
//!
//! Each encoder takes values as they come and appends the page to a buffer of the caller's when it is
//! finished. Between pages it holds what its [`Growth`] lets it hold, and before the first value next
//! to nothing. Plain values and dictionaries are not here, nor are page headers, levels of nested
//! columns and compression.
//!
//! Room is made with each encoder's `reserve` before the values at hand are put. A put without it is
//! right too, but then its buffer doubles whatever the strategy says.

mod block;
mod delta;
mod delta_bytes;
mod delta_length;
mod hybrid;
mod levels;
mod memory;
mod pack;
#[cfg(test)]
mod reference;
mod split;
mod varint;

pub(crate) use delta::DeltaBinaryPacked;
pub(crate) use delta_bytes::DeltaByteArray;
pub(crate) use delta_length::DeltaLengthByteArray;
pub(crate) use hybrid::{encode_indices, max_indices_len};
pub(crate) use levels::DefinitionLevels;
pub(crate) use memory::Growth;
pub(crate) use split::ByteStreamSplit;
