//! What a generated file turned out to be: the sizes its pages really have.

use serde::{Deserialize, Serialize};

/// The file as it was walked after writing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileReport {
    /// Rows of the whole file.
    pub rows: u64,
    /// Leaf columns.
    pub columns: usize,
    /// Row groups.
    pub row_groups: usize,
    /// The file's length in bytes.
    pub file_bytes: u64,
    /// All data pages.
    pub data_pages: PageSizes,
    /// All dictionary pages, if there are any. Their `rows` are values.
    pub dictionary_pages: Option<PageSizes>,
    /// The largest pages of each column, in the file's order.
    pub column_pages: Vec<ColumnPages>,
}

/// How large pages are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageSizes {
    /// The number of pages.
    pub count: u64,
    /// Rows of a page.
    pub rows: Spread,
    /// Bytes of a page body, decompressed (levels included).
    pub page_bytes: Spread,
    /// Bytes of a stored page body: compressed, and encrypted if so (which adds 32).
    pub stored_bytes: Spread,
}

/// Least, middle and greatest of some numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spread {
    /// The least.
    pub min: u64,
    /// The middle one; the lower of two.
    pub median: u64,
    /// The greatest.
    pub max: u64,
}

impl Spread {
    /// Of no numbers, `None`.
    pub(crate) fn of(mut numbers: Vec<u64>) -> Option<Self> {
        numbers.sort_unstable();
        Some(Self {
            min: *numbers.first()?,
            median: numbers[(numbers.len() - 1) / 2],
            max: *numbers.last()?,
        })
    }
}

/// The largest pages of one column, over all row groups, in bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ColumnPages {
    /// The column's dotted path.
    pub column: String,
    /// The largest data page body, decompressed.
    pub largest_page_bytes: u64,
    /// The largest stored data page body.
    pub largest_stored_page_bytes: u64,
    /// The largest dictionary page body, decompressed; 0 if there is none.
    pub dictionary_bytes: u64,
    /// The largest stored dictionary page body; 0 if there is none.
    pub stored_dictionary_bytes: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spread_of_an_even_count_takes_the_lower_middle() {
        assert_eq!(
            Spread::of(vec![4, 1, 3, 2]),
            Some(Spread {
                min: 1,
                median: 2,
                max: 4
            })
        );
        assert_eq!(Spread::of(vec![]), None);
    }
}
