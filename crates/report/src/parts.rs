//! Where the RSS of an `explain` sample is: its parts, which add up to it.

use serde::{Deserialize, Serialize};

/// One part of an RSS.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// Its name, such as `live-page` or `freed-but-kept`.
    pub part: String,
    /// How much it adds, in bytes; negative for what is in another part and takes no memory.
    pub bytes: i64,
    /// How it is known.
    pub source: Source,
    /// From what, in a few words.
    pub how: String,
}

/// How a figure is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// Counted, or read from the kernel or the allocator.
    Measured,
    /// Worked out from what was measured, by a rule that can be wrong.
    Derived,
}
