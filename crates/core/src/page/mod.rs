//! From column chunks to pages: [`chunk`] walks one chunk and [`load`] fetches and opens its pages, [`reader`] shows it to the
//! parquet crate's decoders page by page, [`row_groups`] hands the chunks of a file to its array readers, and
//! [`owners`] says which buffers they use. [`info`] is what a header tells of a page,
//! [`file`] what all columns know of their file.
//!
//! [`header`] finds a page's header, [`index`] is the offset index, [`window`] what was read ahead. [`bounds`] holds headers against
//! the chunk and the limits, [`counts`] numbers inside pages against the pages, and
//! [`trusted`] what only the parquet crate's decoders do not check; [`place`] says where an error happened.

mod bounds;
pub(crate) mod chunk;
pub(crate) mod counts;
pub(crate) mod file;
mod header;
mod index;
pub(crate) mod info;
mod load;
pub(crate) mod owners;
mod place;
pub(crate) mod reader;
pub(crate) mod row_groups;
mod trusted;
mod window;
