//! The parts of the Parquet format that the parquet crate keeps private: Thrift's compact protocol,
//! page headers, the encryption algorithm in a file's footer, and a check of the footer's schema.

pub(crate) mod compact_writer;
pub(crate) mod footer;
pub(crate) mod page_header;
mod schema;
pub(crate) mod thrift;
