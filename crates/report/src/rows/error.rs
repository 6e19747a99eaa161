//! What can go wrong with a file of rows. Every text names the file and what to do.

use super::Row;
use crate::sample::SCHEMA_VERSION;
use std::io;
use std::path::{Path, PathBuf};

/// Why a file of rows could not be read or appended to.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RowError {
    /// The operating system refused.
    #[error("{}: cannot {action} the {what}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What was tried, such as `read`.
        action: &'static str,
        /// What the rows are, such as `samples`.
        what: &'static str,
        /// What the operating system said.
        source: io::Error,
    },
    /// The first line is not this version's header.
    #[error("{}: not the columns of this version: {difference}; {remedy}", path.display())]
    Header {
        /// The file.
        path: PathBuf,
        /// The first column that differs.
        difference: String,
        /// What to do.
        remedy: &'static str,
    },
    /// The rows were written by another version of the program.
    #[error(
        "{}: line {line}: schema version {found}, but this program knows {SCHEMA_VERSION}; {remedy}",
        path.display()
    )]
    Version {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
        /// The version found there.
        found: u32,
        /// What to do.
        remedy: &'static str,
    },
    /// A row cannot be understood.
    #[error("{}: line {line}{}: {problem}; mend or remove the line", path.display(), in_column(column.as_deref()))]
    Row {
        /// The file.
        path: PathBuf,
        /// The line, from 1; the header is line 1.
        line: u64,
        /// The column, where one is to blame.
        column: Option<String>,
        /// What is wrong.
        problem: String,
    },
}

impl RowError {
    pub(super) fn io<R: Row>(path: &Path, action: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io {
            path: path.to_owned(),
            action,
            what: R::WHAT,
            source,
        }
    }
}

fn in_column(column: Option<&str>) -> String {
    column.map_or_else(String::new, |name| format!(", column {name}"))
}

/// Refuses a header that is not exactly the expected one.
pub(super) fn check_header(
    path: &Path,
    found: &[&str],
    expected: &[String],
    remedy: &'static str,
) -> Result<(), RowError> {
    match first_difference(found, expected) {
        None => Ok(()),
        Some(difference) => Err(RowError::Header {
            path: path.to_owned(),
            difference,
            remedy,
        }),
    }
}

/// The first place where `found` is not `expected`; `None` where they are the same.
fn first_difference(found: &[&str], expected: &[String]) -> Option<String> {
    let longest = found.len().max(expected.len());
    (0..longest).find_map(|place| {
        let number = place + 1;
        match (found.get(place), expected.get(place)) {
            (Some(found), Some(expected)) if found == expected => None,
            (Some(found), Some(expected)) => Some(format!(
                "column {number} is {found:?} where {expected:?} is expected"
            )),
            (Some(found), None) => Some(format!("column {number}, {found:?}, is unknown")),
            (None, Some(expected)) => Some(format!("column {number}, {expected:?}, is missing")),
            (None, None) => None,
        }
    })
}
