//! Turns samples into statistics, tables and answers.
//!
//! A sample is one run of one cell in a fresh process, and one row of a CSV file. This crate owns
//! that file's form ([`sample`]) and everything that is computed from it. It does not measure, and
//! it knows nothing of Parquet.
#![forbid(unsafe_code)]

pub mod answer;
pub mod cell;
pub mod companions;
pub mod cycles;
pub mod explain;
pub mod fit;
pub mod format;
pub mod metric;
pub mod parts;
pub mod rows;
pub mod sample;
pub mod series;
pub mod settle;
pub mod stats;
pub mod summary;
pub mod table;
pub mod timeline;
pub mod verify;
