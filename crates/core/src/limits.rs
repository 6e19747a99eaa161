//! [`Limits`]: what a file may ask a reader to allocate.

/// Bounds on what a reader allocates because a file says so. They are held before anything is allocated or decompressed.
///
/// Besides them, every length is held against what the file's metadata says of its column chunk, and against what the codec can make
/// of the stored bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// The most bytes of a data page, stored or decompressed. Default: 2³¹ − 1, the most that a page header can say.
    pub max_page_bytes: usize,
    /// The most bytes of a dictionary page, stored or decompressed. Default: 2³¹ − 1.
    pub max_dictionary_bytes: usize,
    /// The most decompressed bytes for a stored one. Default: none.
    pub max_ratio: Option<u32>,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_page_bytes: i32::MAX as usize,
            max_dictionary_bytes: i32::MAX as usize,
            max_ratio: None,
        }
    }
}
