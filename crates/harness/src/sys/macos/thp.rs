//! Transparent huge pages, which macOS has none of.

use std::io;

/// Runs `spawn`; `allowed` must be `None`.
///
/// # Errors
///
/// Huge pages are to be allowed or not, or `spawn` fails.
pub(crate) fn with_thp<T>(
    allowed: Option<bool>,
    spawn: impl FnOnce() -> io::Result<T>,
) -> io::Result<T> {
    match allowed {
        None => spawn(),
        Some(_) => Err(io::ErrorKind::Unsupported.into()),
    }
}
