//! The JSON file beside a generated one: which definition and generator made it,
//! and what is in it.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tempfile::TempPath;

use super::temporary_in;
use crate::dataset::{Dataset, generator};
use crate::keys::KeySet;
use crate::pages;
use crate::report::FileReport;

#[derive(Debug, Serialize, Deserialize)]
struct Sidecar {
    dataset: String,
    definition_sha256: String,
    generator: String,
    file_bytes: u64,
    report: FileReport,
}

/// `<file>.json`.
pub(super) fn path_of(file: &Path) -> PathBuf {
    let mut name = OsString::from(file);
    name.push(".json");
    PathBuf::from(name)
}

/// Writes a sidecar into a temporary file, to be renamed once the file is in place.
pub(super) fn write(dataset: &Dataset, report: &FileReport, folder: &Path) -> io::Result<TempPath> {
    let sidecar = Sidecar {
        dataset: dataset.name().to_owned(),
        definition_sha256: dataset.hash(),
        generator: generator(),
        file_bytes: report.file_bytes,
        report: report.clone(),
    };
    let mut file = temporary_in(folder, dataset.name())?;
    let mut text = serde_json::to_vec_pretty(&sidecar).map_err(io::Error::other)?;
    text.push(b'\n');
    file.write_all(&text)?;
    Ok(file.into_temp_path())
}

/// The report of an existing file, if that is the one that would be generated.
///
/// The pages are walked again: that takes a fraction of a second, finds a file
/// that was damaged or cut, and keys that have changed since.
pub(super) fn usable(dataset: &Dataset, file: &Path, keys: Option<&KeySet>) -> Option<FileReport> {
    let text = fs::read(path_of(file)).ok()?;
    let sidecar: Sidecar = serde_json::from_slice(&text).ok()?;
    let matches = sidecar.definition_sha256 == dataset.hash()
        && sidecar.generator == generator()
        && sidecar.file_bytes == fs::metadata(file).ok()?.len()
        && starts_as_parquet(file).ok()?;
    let walked = matches.then(|| pages::walk(file, keys).ok()).flatten()?;
    (walked == sidecar.report).then_some(walked)
}

/// The parquet crate looks at the magic at the end only.
fn starts_as_parquet(file: &Path) -> io::Result<bool> {
    let mut magic = [0; 4];
    File::open(file)?.read_exact(&mut magic)?;
    Ok(&magic == b"PAR1" || &magic == b"PARE")
}
