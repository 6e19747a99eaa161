//! Puts a dataset's file into a folder: generates it into a temporary file,
//! walks its pages, renames it, and leaves a sidecar that lets a later run use
//! it again. On any error nothing stays behind.

mod chunk;
mod content;
mod sidecar;
mod source;
mod write;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::{NamedTempFile, TempPath};

use crate::dataset::Dataset;
use crate::error::{Error, Result};
use crate::pages;
use crate::progress::Progress;
use crate::report::FileReport;
use chunk::ChunkError;
use write::WriteError;

const TEMPORARY_PREFIX: &str = ".alloquet-";
const A_DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// A dataset's file, ready to be read.
#[derive(Debug, Clone)]
pub struct Generated {
    /// Where it is.
    pub path: PathBuf,
    /// Whether it was there already, with a matching definition.
    pub reused: bool,
    /// What is in it.
    pub report: FileReport,
}

/// Generates `dataset` in `folder`, or finds it there.
///
/// The folder is made if it is missing. An existing file is used again only if
/// its sidecar has this definition's hash and this generator, its pages are what
/// the sidecar says (read with the dataset's keys, if it is encrypted), and so is a
/// hash of all its bytes. Processes that generate the same file at once each write
/// their own and rename it into place: the last one stays, whole. (An encrypted one
/// may be left with another's sidecar; the next call then generates it anew.)
///
/// Heap use does not depend on the numbers of rows and columns but by their
/// metadata, with one exception: of a column with a dictionary the parquet crate
/// holds the compressed pages of one chunk.
///
/// # Errors
///
/// The keys cannot be resolved, the folder or file cannot be written (a full disk
/// included), or `progress` says to stop. The folder is then as it was before.
pub fn generate(dataset: &Dataset, folder: &Path, progress: &dyn Progress) -> Result<Generated> {
    let path = folder.join(dataset.file_name());
    let keys = dataset.keys()?;
    if let Some(report) = sidecar::usable(dataset, &path, keys.as_ref(), progress) {
        return Ok(Generated {
            path,
            reused: true,
            report,
        });
    }

    let failed = |source: io::Error| Error::Write {
        path: path.clone(),
        source,
    };
    fs::create_dir_all(folder).map_err(|source| Error::Write {
        path: folder.to_owned(),
        source,
    })?;
    remove_abandoned(folder);
    let temporary = temporary_in(folder, dataset.name()).map_err(failed)?;
    progress.start(dataset.values());
    let length = write::write(dataset, temporary.as_file(), progress)
        .map_err(|error| told(error, dataset, &path))?;

    let report = pages::walk(temporary.path(), keys.as_ref())?;
    let on_disk = temporary.as_file().metadata().map_err(failed)?.len();
    if on_disk != length || report.file_bytes != length {
        return Err(failed(io::Error::other(format!(
            "{length} bytes were written, but the file has {on_disk}"
        ))));
    }

    // Of a file that was just written the system still has most in memory.
    let content = content::hash(temporary.path(), progress)
        .map_err(|source| Error::ReadBack {
            path: path.clone(),
            source,
        })?
        .ok_or_else(|| Error::Cancelled { path: path.clone() })?;

    // The sidecar is made before either is renamed: what can fail has failed.
    let sidecar = sidecar::write(dataset, &report, content, folder).map_err(failed)?;
    place(temporary.into_temp_path(), &path)?;
    place(sidecar, &sidecar::path_of(&path))?;
    progress.finish();
    Ok(Generated {
        path,
        reused: false,
        report,
    })
}

/// Removes what a killed process left behind: temporary files that nobody has
/// written to for a day. Best effort, for all else they do is take up space.
fn remove_abandoned(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let is_ours = name
            .to_str()
            .is_some_and(|name| name.starts_with(TEMPORARY_PREFIX) && name.ends_with(".tmp"));
        let age = entry.metadata().and_then(|metadata| metadata.modified());
        let is_old = age.is_ok_and(|modified| modified.elapsed().is_ok_and(|age| age > A_DAY));
        if is_ours && is_old {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Renames a finished temporary file.
fn place(temporary: TempPath, path: &Path) -> Result<()> {
    temporary.persist(path).map_err(|error| Error::Write {
        path: path.to_owned(),
        source: error.error,
    })
}

fn told(error: WriteError, dataset: &Dataset, path: &Path) -> Error {
    match error {
        WriteError::Definition(error) => error,
        WriteError::Chunk(ChunkError::Parquet(error)) => Error::from_parquet_write(path, error),
        WriteError::Chunk(ChunkError::Values(message)) => Error::Definition {
            origin: dataset.origin().to_owned(),
            line: None,
            message,
        },
        WriteError::Chunk(ChunkError::Cancelled) => Error::Cancelled {
            path: path.to_owned(),
        },
    }
}

/// A temporary file beside the one it will replace, readable by whom a new file
/// would be.
fn temporary_in(folder: &Path, name: &str) -> io::Result<NamedTempFile> {
    let prefix = format!("{TEMPORARY_PREFIX}{name}-");
    let mut builder = tempfile::Builder::new();
    builder.prefix(&prefix).suffix(".tmp");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(fs::Permissions::from_mode(0o666));
    }
    builder.tempfile_in(folder)
}
