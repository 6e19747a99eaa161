//! What can go wrong between a definition and a finished file.
//!
//! Every error names the definition or the file it is about. None holds key
//! material: keys have their own error type, which is built without it.

use std::io;
use std::path::{Path, PathBuf};

use parquet::errors::ParquetError;

use crate::keys::KeyError;

/// The result of everything in this crate that reads definitions or writes files.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a dataset could not be loaded or generated.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The definition's file could not be read.
    #[error("cannot read the dataset definition {}: {source}", path.display())]
    ReadDefinition {
        /// The file that was asked for.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },

    /// The definition says something that is not known or does not fit together.
    #[error("{origin}{}: {message}", at_line(*line))]
    Definition {
        /// The file, or the name of a definition that did not come from a file.
        origin: String,
        /// The line the message is about, counted from 1, where it is known.
        line: Option<usize>,
        /// What is wrong and what is allowed.
        message: String,
    },

    /// A scale factor is not above 0 and at most 1.
    #[error("the {what} scale {factor} is not above 0 and at most 1")]
    Scale {
        /// `rows` or `columns`.
        what: &'static str,
        /// The factor that was asked for.
        factor: f64,
    },

    /// A key is missing or malformed.
    #[error("{origin}: {source}")]
    Key {
        /// The file, or the name of a definition that did not come from a file.
        origin: String,
        /// Which key, and what is wrong with it.
        source: KeyError,
    },

    /// A file or its folder could not be written.
    #[error("cannot write {}: {source}; {}", path.display(), write_advice(source))]
    Write {
        /// The file that was being written.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },

    /// A file that was just written could not be read back.
    #[error("cannot read back {}: {source}", path.display())]
    ReadBack {
        /// The file that was being read.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },

    /// The parquet crate refused to write or to read the file.
    #[error("{}: {source}", path.display())]
    Parquet {
        /// The file that was being written or read.
        path: PathBuf,
        /// What the parquet crate said.
        source: ParquetError,
    },

    /// A finished file does not say of its pages what it should.
    #[error("{}: row group {row_group}, column {column}: {message}", path.display())]
    Pages {
        /// The file that was walked.
        path: PathBuf,
        /// The row group, counted from 0.
        row_group: usize,
        /// The column, counted from 0.
        column: usize,
        /// What was found.
        message: String,
    },

    /// The caller's progress asked to stop. Nothing was left behind.
    #[error("generating {} was stopped; nothing was left behind", path.display())]
    Cancelled {
        /// The file that was being written.
        path: PathBuf,
    },
}

impl Error {
    /// Sorts an error of the parquet crate: a failed write is told as one.
    pub(crate) fn from_parquet_write(path: &Path, error: ParquetError) -> Self {
        let path = path.to_owned();
        match error {
            ParquetError::External(inner) => match inner.downcast::<io::Error>() {
                Ok(source) => Self::Write {
                    path,
                    source: *source,
                },
                Err(inner) => Self::Parquet {
                    path,
                    source: ParquetError::External(inner),
                },
            },
            source => Self::Parquet { path, source },
        }
    }
}

fn at_line(line: Option<usize>) -> String {
    line.map(|line| format!(", line {line}"))
        .unwrap_or_default()
}

fn write_advice(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "free some space, choose another folder, or scale the dataset down"
        }
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            "choose a folder that can be written to"
        }
        io::ErrorKind::NotFound => "create its folder first",
        _ => "check the folder and its disk",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_names_the_file_and_says_what_to_do() {
        let full = ParquetError::External(Box::new(io::Error::from(io::ErrorKind::StorageFull)));
        let error = Error::from_parquet_write(Path::new("some/file.parquet"), full);
        let text = error.to_string();
        assert!(
            text.starts_with("cannot write some/file.parquet: "),
            "{text}"
        );
        assert!(text.contains("free some space"), "{text}");
    }

    #[test]
    fn a_definition_error_names_file_and_line() {
        let error = Error::Definition {
            origin: "wide.toml".to_owned(),
            line: Some(7),
            message: "what is wrong".to_owned(),
        };
        assert_eq!(error.to_string(), "wide.toml, line 7: what is wrong");
    }
}
