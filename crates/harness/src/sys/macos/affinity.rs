//! The CPUs that this process runs on, which macOS lets nobody choose.

use std::io;

/// Refuses.
///
/// # Errors
///
/// Always.
pub(crate) fn pin(_cpus: &[usize]) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}
