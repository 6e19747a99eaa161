//! The JSON file beside a generated one: which definition and generator made it,
//! and what is in it.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use parquet::file::metadata::ParquetMetaDataReader;
use serde::{Deserialize, Serialize};
use tempfile::TempPath;

use super::temporary_in;
use crate::dataset::{Dataset, generator};
use crate::keys::KeySet;
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
pub(super) fn usable(dataset: &Dataset, file: &Path, keys: Option<&KeySet>) -> Option<FileReport> {
    let text = fs::read(path_of(file)).ok()?;
    let sidecar: Sidecar = serde_json::from_slice(&text).ok()?;
    let matches = sidecar.definition_sha256 == dataset.hash()
        && sidecar.generator == generator()
        && sidecar.file_bytes == fs::metadata(file).ok()?.len();
    (matches && opens(file, keys).is_ok()).then_some(sidecar.report)
}

/// Checks the magic at both ends and the footer between; with keys, that they fit.
fn opens(path: &Path, keys: Option<&KeySet>) -> Result<(), Box<dyn std::error::Error>> {
    use std::io::Read;

    let mut file = File::open(path)?;
    let mut magic = [0; 4];
    file.read_exact(&mut magic)?;
    if &magic != b"PAR1" && &magic != b"PARE" {
        return Err("no Parquet magic".into());
    }
    let mut reader = ParquetMetaDataReader::new();
    if let Some(keys) = keys {
        let properties = keys.decryption_properties()?;
        reader = reader.with_decryption_properties(Some(properties));
    }
    reader.parse_and_finish(&file)?;
    Ok(())
}
