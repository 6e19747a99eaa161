//! Decoders of flat columns: the bytes of one decompressed page become values, without the parquet crate's decoders.
//!
//! [`kind`] says which columns are decoded here, [`column`] goes from their pages to the arrays of batches, and [`output`] is an
//! array under construction, or the slice of a page that it is already.
//!
//! A page of a flat column is definition levels of at most 1 ([`levels`]), and then the values that are not null
//! ([`values`]). A decoder holds the page's [`Bytes`](bytes::Bytes) and a position in it, and nothing that it would have to
//! allocate; values are appended to the caller's vector, and moved to their rows where there are nulls
//! ([`values::spread`]). Lengths and counts of a page are checked against its bytes, so damaged pages are errors.
//!
//! Source of all formats: <https://github.com/apache/parquet-format/blob/master/Encodings.md>.

pub(crate) mod column;
pub(crate) mod hybrid;
pub(crate) mod kind;
pub(crate) mod levels;
mod output;
#[cfg(test)]
mod stock;
pub(crate) mod unpack;
pub(crate) mod validity;
pub(crate) mod values;
mod varint;

use parquet::errors::ParquetError;

/// A page has fewer bytes than its values take.
#[cold]
pub(crate) fn ends_early() -> ParquetError {
    ParquetError::EOF("a page ends before its values do".into())
}

/// Whether `error` says that a page ends early.
#[cfg(test)]
pub(crate) fn is_early(error: &ParquetError) -> bool {
    error.to_string() == ends_early().to_string()
}

/// A page that no encoder makes, and what is wrong with it.
#[cold]
pub(crate) fn damaged(what: impl Into<String>) -> ParquetError {
    ParquetError::General(what.into())
}
