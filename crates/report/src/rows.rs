//! Files of rows: a CSV whose columns are the fields of one struct, appended to and read strictly.
//!
//! Samples are such rows, and so is what does not fit in one: see [`crate::companions`]. What every such file is held
//! to is here once; what a row means is with its struct.

mod append;
mod error;
mod read;

use serde::Serialize;
use serde::de::DeserializeOwned;

pub use append::RowWriter;
pub use error::RowError;
pub use read::{Rows, read_rows};

/// A struct whose fields are the columns of a file, in order.
pub trait Row: Serialize + DeserializeOwned {
    /// What errors call the rows, such as `samples`.
    const WHAT: &'static str;
    /// What to do about a file that holds something else.
    const REMEDY: &'static str;

    /// A row of which nothing is known.
    fn blank() -> Self;

    /// The columns of each version that is read, the present one last.
    #[must_use]
    fn known_columns() -> Vec<(u32, Vec<String>)>;

    /// A row of any version that is read, as the present version would have it.
    #[must_use]
    fn upgraded(self) -> Self {
        self
    }

    /// Refuses what the types allow and such a row does not.
    ///
    /// # Errors
    ///
    /// The column, and what is wrong with it.
    fn check(&self) -> Result<(), (&'static str, String)> {
        Ok(())
    }
}

/// The columns of a file of such rows, in order.
#[must_use]
pub fn columns<R: Row>() -> Vec<String> {
    // Into memory, and of plain fields: it cannot fail, and a test sees it if it ever does.
    let bytes = encode(&R::blank(), true).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let header = text.lines().next().unwrap_or_default();
    header.split(',').map(str::to_owned).collect()
}

/// The rows as the text of a file: what a [`RowWriter`] writes.
///
/// # Errors
///
/// Where a row cannot be put in writing.
pub fn to_csv<R: Row>(rows: &[R]) -> Result<String, csv::Error> {
    let mut text = columns::<R>().join(",") + "\n";
    for row in rows {
        text.push_str(&String::from_utf8_lossy(&line(row)?));
    }
    Ok(text)
}

/// One row as exactly one line: line breaks inside a text become spaces.
fn line<R: Row>(row: &R) -> Result<Vec<u8>, csv::Error> {
    let mut line = encode(row, false)?;
    let last = line.len().saturating_sub(1);
    for byte in &mut line[..last] {
        if matches!(byte, b'\n' | b'\r') {
            *byte = b' ';
        }
    }
    Ok(line)
}

fn encode<R: Row>(row: &R, header: bool) -> Result<Vec<u8>, csv::Error> {
    let mut bytes = Vec::new();
    let mut writer = csv::WriterBuilder::new()
        .has_headers(header)
        .from_writer(&mut bytes);
    writer.serialize(row)?;
    writer.flush()?;
    drop(writer);
    Ok(bytes)
}

/// How many of `bytes` are whole lines; the rest is a row that was never finished.
fn whole_lines(bytes: &[u8]) -> usize {
    let last = bytes.iter().rposition(|byte| *byte == b'\n');
    last.map_or(0, |end| end + 1)
}
