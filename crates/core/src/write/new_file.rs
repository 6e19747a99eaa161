//! A file that has its name only once it is whole.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use parquet::errors::{ParquetError, Result};
use tempfile::NamedTempFile;

/// A file under a temporary name beside its own, which it takes over when it is whole.
///
/// Where it is dropped before, by an error say, the temporary file is removed; where the process is killed, it
/// stays behind under the temporary name (`.tmp…`), and never passes for the file.
#[derive(Debug)]
pub struct NewFile {
    temporary: NamedTempFile,
    path: PathBuf,
}

impl NewFile {
    /// Creates the temporary file in the folder of `path`, so that taking its name over is one step.
    ///
    /// # Errors
    /// The folder does not exist or takes no file; the message names `path`.
    pub fn create(path: impl Into<PathBuf>) -> Result<Self> {
        // Wherever the process is when the file is named.
        let path = std::path::absolute(path.into()).map_err(ParquetError::from)?;
        let folder = match path.parent() {
            Some(folder) if folder != Path::new("") => folder,
            _ => Path::new("."),
        };
        let temporary = tempfile::Builder::new()
            .prefix(".tmp-")
            .suffix(".parquet")
            .permissions_of_a_new_file()
            .tempfile_in(folder)
            .map_err(|error| failed("create", &path, &error))?;
        Ok(Self { temporary, path })
    }

    /// The name that the file will have.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Gives the file its name; a file that had it is replaced.
    ///
    /// # Errors
    /// The name cannot be taken over; the temporary file is removed.
    pub fn commit(self) -> Result<File> {
        // Or a crash of the machine could leave the name on a file whose pages never reached the disk.
        self.temporary
            .as_file()
            .sync_all()
            .map_err(|error| failed("write", &self.path, &error))?;
        self.temporary
            .persist(&self.path)
            .map_err(|error| failed("name", &self.path, &error.error))
    }
}

fn failed(what: &str, path: &Path, error: &io::Error) -> ParquetError {
    ParquetError::General(format!("cannot {what} {}: {error}", path.display()))
}

/// A temporary file is for its owner alone; one that gets a name is for whom the umask says.
trait Permissions {
    fn permissions_of_a_new_file(&mut self) -> &mut Self;
}

impl Permissions for tempfile::Builder<'_, '_> {
    #[cfg(unix)]
    fn permissions_of_a_new_file(&mut self) -> &mut Self {
        use std::os::unix::fs::PermissionsExt;
        // The umask is applied by open(2).
        self.permissions(std::fs::Permissions::from_mode(0o666))
    }

    #[cfg(not(unix))]
    fn permissions_of_a_new_file(&mut self) -> &mut Self {
        self
    }
}

impl Write for NewFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.temporary.as_file_mut().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.temporary.as_file_mut().flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_has_its_name_only_when_committed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.parquet");
        let mut dropped = NewFile::create(&path).unwrap();
        dropped.write_all(b"half").unwrap();
        drop(dropped);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);

        let mut whole = NewFile::create(&path).unwrap();
        whole.write_all(b"whole").unwrap();
        assert!(!path.exists());
        whole.commit().unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"whole");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_missing_folder_is_named() {
        let error = NewFile::create("/no/such/folder/a.parquet").unwrap_err();
        assert!(error.to_string().contains("/no/such/folder/a.parquet"));
    }
}
