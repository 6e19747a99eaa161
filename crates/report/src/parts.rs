//! Where the RSS of an `explain` sample is: its parts, which add up to it.

use crate::companions::{CompanionRow, Key};
use crate::rows::{Row, columns};
use crate::sample::{SCHEMA_VERSION, Sample};
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

/// The name of the last part of a sample: what is in none of the others.
pub const LAST: &str = "left-over";

/// How a figure is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// Counted, or read from the kernel or the allocator.
    Measured,
    /// Worked out from what was measured, by a rule that can be wrong.
    Derived,
}

/// One part of one sample: one row of `MATRIX.parts.csv`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartRow {
    /// [`SCHEMA_VERSION`] of the program that wrote the row.
    pub schema_version: u32,
    /// The sample's run.
    pub run_id: String,
    /// Its place in the run's order.
    pub position: u32,
    /// See [`Part::part`].
    pub part: String,
    /// See [`Part::bytes`].
    pub bytes: i64,
    /// See [`Part::source`].
    pub source: Source,
    /// See [`Part::how`].
    pub how: String,
}

impl Row for PartRow {
    const WHAT: &'static str = "parts of samples";
    const REMEDY: &'static str = "move it away: only `explain` does without it";

    fn blank() -> Self {
        Self {
            schema_version: SCHEMA_VERSION,
            run_id: String::new(),
            position: 0,
            part: String::new(),
            bytes: 0,
            source: Source::Measured,
            how: String::new(),
        }
    }

    fn known_columns() -> Vec<(u32, Vec<String>)> {
        // Version 4 had the same.
        vec![(4, columns::<Self>()), (SCHEMA_VERSION, columns::<Self>())]
    }
}

impl CompanionRow for PartRow {
    type Content = Part;
    const NAME: &'static str = "parts";

    fn new(sample: &Sample, part: &Part) -> Self {
        Self {
            schema_version: SCHEMA_VERSION,
            run_id: sample.run_id.clone(),
            position: sample.position,
            part: part.part.clone(),
            bytes: part.bytes,
            source: part.source,
            how: part.how.clone(),
        }
    }

    fn key(&self) -> Key {
        (self.run_id.clone(), self.position)
    }

    fn name(&self) -> (String, u32) {
        (self.part.clone(), 0)
    }

    /// What is left over is always the last.
    fn are_whole(parts: &[Part]) -> bool {
        parts.last().is_some_and(|part| part.part == LAST)
    }

    fn content(self) -> Part {
        Part {
            part: self.part,
            bytes: self.bytes,
            source: self.source,
            how: self.how,
        }
    }
}
