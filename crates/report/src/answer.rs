//! The answer to the first question: what has the lowest max RSS, and what does it cost in time?

use crate::cell::{CONTROL, Lane};
use crate::metric::Metric;
use crate::stats::{Ratio, Summary};
use crate::summary::{CellSummary, Lanes, ratio};
use serde::Serialize;

/// The cell with the lowest max RSS of a block.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Answer {
    /// Which it is.
    pub lowest: Lane,
    /// Its max RSS, in bytes: the minimum over its samples.
    pub max_rss_bytes: f64,
    /// Others whose minimum lies within the spread of the lowest: as good, for all that is known.
    pub as_low: Vec<Lane>,
    /// What it is held against; `None` where there is no such cell, or it is the lowest itself.
    pub against: Option<Against>,
}

/// The lowest cell held against the one that a user has without choosing anything.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Against {
    /// `upstream` on the system allocator with its defaults; on the lowest cell's own setup where
    /// the run has none.
    pub reference: Lane,
    /// The reference's max RSS, in bytes: the minimum over its samples.
    pub max_rss_bytes: f64,
    /// Max RSS of the lowest cell over the reference's, of the two minima.
    pub max_rss_ratio: f64,
    /// CPU time of the lowest cell over the reference's, paired.
    pub cpu: Option<Ratio>,
    /// Wall clock time of the lowest cell over the reference's, paired.
    pub wall: Option<Ratio>,
}

/// The answer for the cells of one block; `None` where fewer than two have a max RSS to compare.
pub(crate) fn answer(cells: &[CellSummary], lanes: &Lanes<'_>) -> Option<Answer> {
    let sound: Vec<(&Lane, Summary)> = cells
        .iter()
        .filter(|cell| cell.can_win())
        .filter_map(|cell| Some((&cell.lane, cell.max_rss_bytes?)))
        .collect();
    if sound.len() < 2 {
        return None;
    }
    let (lowest, rss) = *sound.iter().min_by(|a, b| a.1.min.total_cmp(&b.1.min))?;
    let others = || sound.iter().filter(|(lane, _)| *lane != lowest);
    let as_low = others().filter(|(_, theirs)| theirs.min <= rss.max);

    let upstream = || sound.iter().filter(|(lane, _)| lane.strategy.0 == CONTROL);
    let reference = upstream()
        .find(|(lane, _)| lane.setup.is_plain())
        .or_else(|| upstream().find(|(lane, _)| lane.setup == lowest.setup))
        .filter(|(lane, _)| *lane != lowest);
    Some(Answer {
        lowest: lowest.clone(),
        max_rss_bytes: rss.min,
        as_low: as_low.map(|(lane, _)| (*lane).clone()).collect(),
        against: reference.map(|(lane, theirs)| Against {
            reference: (*lane).clone(),
            max_rss_bytes: theirs.min,
            max_rss_ratio: rss.min / theirs.min,
            cpu: ratio(Metric::Cpu, lanes, lowest, lane),
            wall: ratio(Metric::Wall, lanes, lowest, lane),
        }),
    })
}
