//! Generates the Parquet files that Alloquet measures, from definitions in TOML.
//!
//! The same definition gives the same bytes on every machine (but for the nonces
//! of encryption). Files are written by the parquet crate, column after column, so
//! that generating a file of any size needs little memory; what was achieved
//! (page sizes above all) is read from the finished file, not assumed. For that
//! alone `alloquet-core` is used, which reads the page headers: no file is
//! written by the code that is measured with it.
//!
//! ```
//! use alloquet_datagen::{Dataset, Scale, generate};
//!
//! let dataset = Dataset::parse(
//!     "example",
//!     r#"
//!     description = "ten float columns"
//!     seed = 1
//!
//!     [file]
//!     row_groups = 1
//!     rows_per_row_group = 10_000
//!     page_bytes = 4096
//!     compression = "snappy"
//!
//!     [[columns]]
//!     name = "f{n}"
//!     count = 10
//!     type = "float32"
//!     "#,
//! )?;
//! let folder = tempfile::tempdir().expect("a temporary folder");
//! let half = dataset.scaled(&Scale { rows: 1.0, columns: 0.5 })?;
//! let generated = generate(&half, folder.path(), &())?;
//! assert_eq!(generated.report.columns, 5);
//! assert_eq!(generated.report.data_pages.page_bytes.median, 4096);
//! # Ok::<(), alloquet_datagen::Error>(())
//! ```
#![forbid(unsafe_code)]

mod column;
mod dataset;
mod definition;
mod distribution;
mod error;
mod generate;
mod key_metadata;
pub mod keys;
mod pages;
mod progress;
mod random;
mod report;
mod toml_error;
mod validate;
mod value_type;

pub use column::{ColumnGroup, Encoding, List};
pub use dataset::{Dataset, GENERATOR_VERSION, Scale};
pub use definition::{Compression, DataPageVersion, Layout, Statistics};
pub use distribution::{Distribution, Prefix, Scalar};
pub use error::{Error, Result};
pub use generate::{Generated, generate};
pub use progress::Progress;
pub use report::{ColumnPages, FileReport, PageSizes, Spread};
pub use value_type::ValueType;
