//! The JSON file beside a generated one: which definition and generator made it,
//! and what is in it.

use std::ffi::OsString;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tempfile::TempPath;

use super::{content, temporary_in};
use crate::dataset::{Dataset, generator};
use crate::keys::KeySet;
use crate::pages;
use crate::progress::Progress;
use crate::report::FileReport;

#[derive(Debug, Serialize, Deserialize)]
struct Sidecar {
    dataset: String,
    definition_sha256: String,
    generator: String,
    file_bytes: u64,
    /// Of the whole file. Not optional: a sidecar without it cannot vouch for page bodies.
    content_xxh64: String,
    report: FileReport,
}

/// `<file>.json`.
pub(super) fn path_of(file: &Path) -> PathBuf {
    let mut name = OsString::from(file);
    name.push(".json");
    PathBuf::from(name)
}

/// Writes a sidecar into a temporary file, to be renamed once the file is in place.
pub(super) fn write(
    dataset: &Dataset,
    report: &FileReport,
    content_xxh64: String,
    folder: &Path,
) -> io::Result<TempPath> {
    let sidecar = Sidecar {
        dataset: dataset.name().to_owned(),
        definition_sha256: dataset.hash(),
        generator: generator(),
        file_bytes: report.file_bytes,
        content_xxh64,
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
/// The hash finds damage. The pages are walked besides, before it, because that
/// takes every key, which may have changed since, and holds the sidecar's own
/// report against the file.
pub(super) fn usable(
    dataset: &Dataset,
    file: &Path,
    keys: Option<&KeySet>,
    progress: &dyn Progress,
) -> Option<FileReport> {
    let text = fs::read(path_of(file)).ok()?;
    let sidecar: Sidecar = serde_json::from_slice(&text).ok()?;
    let matches = sidecar.definition_sha256 == dataset.hash()
        && sidecar.generator == generator()
        && sidecar.file_bytes == fs::metadata(file).ok()?.len();
    let walked = matches.then(|| pages::walk(file, keys).ok()).flatten()?;
    if walked != sidecar.report {
        return None;
    }
    // Where this is told to stop, so is the generating that follows.
    let content = content::hash(file, progress).ok()??;
    (content == sidecar.content_xxh64).then_some(walked)
}
