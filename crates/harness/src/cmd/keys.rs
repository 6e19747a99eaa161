//! The keys of a user's own file, for the commands that take one.

use std::path::Path;

use alloquet_datagen::keys::KeySet;
use anyhow::{Context, Result, bail};
use zeroize::Zeroizing;

/// The variable that can hold what a key file holds.
const KEYS_VARIABLE: &str = "ALLOQUET_KEYS";

/// The keys from the file that `--key-file` names, or else from the variable; `None` where there is neither.
///
/// # Errors
///
/// The file cannot be read, or the text has no keys.
pub(super) fn keys(key_file: Option<&Path>) -> Result<Option<KeySet>> {
    if let Some(path) = key_file {
        return Ok(Some(KeySet::from_file(path)?));
    }
    match std::env::var(KEYS_VARIABLE) {
        Ok(text) => KeySet::from_toml(&Zeroizing::new(text))
            .map(Some)
            .with_context(|| format!("the variable {KEYS_VARIABLE}")),
        Err(std::env::VarError::NotPresent) => Ok(None),
        Err(std::env::VarError::NotUnicode(_)) => {
            bail!("the variable {KEYS_VARIABLE} is not UTF-8 text")
        }
    }
}
