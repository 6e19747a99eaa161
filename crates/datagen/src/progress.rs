//! How a caller watches a file being generated, and stops it.
//!
//! Drawing is the caller's business: this crate knows no terminal.

/// Told how far a file has come, in values (rows × columns).
///
/// All methods take `&self`: an implementation holds its bar behind whatever
/// it needs. `()` watches nothing.
pub trait Progress {
    /// Generation starts; `total_values` will be written. Not called when an
    /// existing file is reused.
    fn start(&self, total_values: u64) {
        let _ = total_values;
    }

    /// `values` more have been written.
    fn advance(&self, values: u64) {
        let _ = values;
    }

    /// The file is in place. Not called when generation fails.
    fn finish(&self) {}

    /// Asked every slice of a column; `true` stops generation, removes what was
    /// written and returns [`Error::Cancelled`](crate::Error::Cancelled).
    fn is_cancelled(&self) -> bool {
        false
    }
}

impl Progress for () {}
