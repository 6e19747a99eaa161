//! Standard output and standard error, without the panics of `print!`: a pipe that was closed and a disk that is
//! full are no fault of this program.

use std::fmt;
use std::io::{self, ErrorKind, Write};

use anyhow::{Context, Result};

/// Writes `text` to standard output. Where nobody reads it any more, that is no error.
///
/// # Errors
///
/// It cannot be written, such as to a full disk.
pub(crate) fn print(text: impl fmt::Display) -> Result<()> {
    let mut stdout = io::stdout().lock();
    match write!(stdout, "{text}").and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(error).context("cannot write to standard output")
        }
        _ => Ok(()),
    }
}

/// Writes a line to standard error. Where that fails there is nobody left to tell.
pub(crate) fn remark(line: impl fmt::Display) {
    let _ = writeln!(io::stderr().lock(), "{line}");
}

/// An error and its causes on one line, without the causes that an error repeats in its own text.
pub(crate) fn message(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain() {
        let cause = cause.to_string();
        let cause = cause
            .strip_prefix("Parquet argument error: ")
            .unwrap_or(&cause);
        let cause = cause.strip_prefix("Parquet error: ").unwrap_or(cause);
        if text.is_empty() {
            text.push_str(cause);
        } else if !text.contains(cause) {
            text.push_str(": ");
            text.push_str(cause);
        }
    }
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use anyhow::anyhow;

    use super::*;

    #[test]
    fn a_cause_that_is_repeated_is_said_once() {
        let full = io::Error::other("disk full");
        let error = anyhow::Error::new(full)
            .context("cannot write x: disk full")
            .context("cell 3");
        assert_eq!(message(&error), "cell 3: cannot write x: disk full");
        let error = anyhow!("Parquet argument error: Parquet error: bad\nheader").context("file x");
        assert_eq!(message(&error), "file x: bad header");
    }
}
