//! Before the first sample: the files that are worked on exist, and their keys are at hand.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use alloquet_datagen::keys::KeySet;
use anyhow::{Context, Result, ensure};

use crate::cmd::generate::GeneratedFile;
use crate::measure::DatasetSource;
use crate::plan::{Input, Work};

/// The folders of `bench-data`.
#[derive(Clone, Debug)]
pub(crate) struct Folders {
    /// `bench-data` itself.
    pub(crate) root: PathBuf,
}

impl Folders {
    /// For a user's own file, which needs none.
    pub(crate) fn none() -> Self {
        Self {
            root: PathBuf::new(),
        }
    }

    /// Dataset definitions.
    pub(crate) fn datasets(&self) -> PathBuf {
        self.root.join("datasets")
    }

    /// Matrices.
    pub(crate) fn matrices(&self) -> PathBuf {
        self.root.join("matrices")
    }

    /// Generated files.
    pub(crate) fn generated(&self) -> PathBuf {
        self.root.join("generated")
    }

    /// The definition of the dataset `name`.
    pub(crate) fn definition(&self, name: &str) -> PathBuf {
        self.datasets().join(format!("{name}.toml"))
    }
}

/// A file that is ready to be worked on.
#[derive(Clone)]
pub(super) struct Prepared {
    pub(super) file: PathBuf,
    pub(super) dataset: Option<DatasetSource>,
    pub(super) keys: Option<KeySet>,
}

impl Prepared {
    /// Makes a work's file ready: generates it if it is a dataset's and missing. `keys` are those of a user's own
    /// file; a dataset's stand in its definition.
    pub(super) fn new(work: &Work, folders: &Folders, keys: Option<&KeySet>) -> Result<Self> {
        match &work.input {
            Input::File(path) => {
                let found = std::fs::metadata(path)
                    .with_context(|| format!("cannot read {}", path.display()))?;
                ensure!(
                    found.is_file(),
                    "cannot read {}: it is no regular file",
                    path.display()
                );
                ensure!(
                    path.to_str().is_some(),
                    "cannot measure {}: its name is not UTF-8, and the CSV could not name it; use a link of another name",
                    path.display()
                );
                Ok(Self {
                    file: path.clone(),
                    dataset: None,
                    keys: keys.cloned(),
                })
            }
            Input::Dataset {
                name,
                scale_rows,
                scale_columns,
            } => {
                let source = DatasetSource {
                    definition: folders.definition(name),
                    scale_rows: *scale_rows,
                    scale_columns: *scale_columns,
                };
                let file = generate(name, &source, &folders.root)?;
                Ok(Self {
                    file,
                    keys: source.load()?.keys()?,
                    dataset: Some(source),
                })
            }
        }
    }

    /// Reads the file, so that the next sample finds it in the page cache as those after it do.
    pub(super) fn warm(&self) -> io::Result<()> {
        let mut file = File::open(&self.file)?;
        let mut buffer = vec![0; 256 * 1024];
        while file.read(&mut buffer)? > 0 {}
        Ok(())
    }
}

/// Has a child generate the file, or say that it is there already; its progress goes to the terminal.
fn generate(name: &str, source: &DatasetSource, root: &Path) -> Result<PathBuf> {
    let this = std::env::current_exe().context("cannot find this program's own file")?;
    let output = Command::new(this)
        .args(["generate", name, "--format", "json"])
        .args(["--scale-rows", &source.scale_rows.to_string()])
        .args(["--scale-columns", &source.scale_columns.to_string()])
        .arg("--bench-data")
        .arg(root)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()
        .and_then(std::process::Child::wait_with_output)
        .with_context(|| format!("cannot start a process to generate dataset '{name}'"))?;
    ensure!(
        output.status.success(),
        "dataset '{name}' could not be generated ({})",
        output.status
    );
    let files: Vec<GeneratedFile> = serde_json::from_slice(&output.stdout)
        .with_context(|| format!("generating dataset '{name}' gave no answer"))?;
    let file = files.into_iter().next();
    Ok(file
        .with_context(|| format!("generating dataset '{name}' gave no file"))?
        .path)
}
