//! The parts of the Parquet format that the parquet crate keeps private: Thrift's compact protocol,
//! page headers, and the encryption algorithm in a file's footer.

pub(crate) mod compact_writer;
pub(crate) mod footer;
pub(crate) mod page_header;
pub(crate) mod thrift;
