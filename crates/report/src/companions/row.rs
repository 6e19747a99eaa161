//! What a row of a companion is, whatever it holds.

use crate::rows::Row;
use crate::sample::Sample;

/// What a sample is found by: its run, and its place in the run's order.
pub type Key = (String, u32);

/// A row of a companion: a sample's key, and one thing that the sample has several of.
pub trait CompanionRow: Row {
    /// The thing.
    type Content;
    /// The companion's name, such as `parts`.
    const NAME: &'static str;

    /// The row of one thing that a sample has.
    fn new(sample: &Sample, content: &Self::Content) -> Self;
    /// Whose it is.
    fn key(&self) -> Key;
    /// What it is called among those of its sample, of which no two are called the same.
    fn name(&self) -> (String, u32);
    /// The thing.
    fn content(self) -> Self::Content;
    /// Whether these are all that a sample has, as far as they can tell.
    fn are_whole(contents: &[Self::Content]) -> bool;
}
