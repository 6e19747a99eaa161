//! From column chunks to pages: [`chunk`] walks one chunk, [`reader`] shows it to the parquet crate's
//! decoders page by page, [`row_groups`] hands the chunks of a file to its array readers, and
//! [`owners`] says which buffers they use. [`info`] is what a header tells of a page,
//! [`file`] what all columns know of their file; [`counts`] holds numbers inside pages against the pages, and [`trusted`] what only the parquet crate's decoders do not.

pub(crate) mod chunk;
pub(crate) mod counts;
pub(crate) mod file;
pub(crate) mod info;
pub(crate) mod owners;
pub(crate) mod reader;
pub(crate) mod row_groups;
mod trusted;
