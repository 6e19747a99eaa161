//! Does it fit in so much memory, and which knob gets it there?
//!
//! Every way of doing one piece of work is a candidate. One is the baseline, what a user has without choosing anything;
//! a candidate's knobs are what it has otherwise.

use crate::cell::{Cell, Setup};
use crate::format::{count, mib, mib_number, plural, ratio, seconds};
use crate::metric::Metric;
use crate::sample::{Kind, Sample, Situation, Status};
use crate::stats::Summary;
use std::collections::BTreeMap;

/// What a limit was held by where nothing was tried under it.
const BY_RSS: &str = "rss";

/// One way of doing the work.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Way {
    /// The strategy.
    pub strategy: String,
    /// Rows asked for in a batch.
    pub batch_rows: u64,
    /// The allocator and its settings.
    pub setup: Setup,
}

impl Way {
    /// The way in which a sample was taken.
    #[must_use]
    pub fn of(sample: &Sample) -> Self {
        let cell = Cell::of(sample);
        Self {
            strategy: cell.lane.strategy.0,
            batch_rows: cell.block.batch_rows,
            setup: cell.lane.setup,
        }
    }

    /// What is otherwise than in `baseline`, in words.
    fn knobs(&self, baseline: &Self) -> Vec<String> {
        let mut knobs = Vec::new();
        if self.strategy != baseline.strategy {
            knobs.push(format!("strategy {}", self.strategy));
        }
        if self.batch_rows != baseline.batch_rows {
            knobs.push(format!("batches of {}", plural(self.batch_rows, "row")));
        }
        if self.setup != baseline.setup {
            knobs.push(self.setup.to_string());
        }
        knobs
    }
}

/// What is known of a way.
#[derive(Debug, Clone, PartialEq)]
pub struct Candidate {
    /// Which it is.
    pub way: Way,
    /// What it has otherwise than the baseline, in words; empty for the baseline itself.
    pub knobs: Vec<String>,
    /// Max RSS over its samples, in bytes; `None` where none came to its end.
    pub max_rss_bytes: Option<u64>,
    /// Wall clock time in seconds, the least.
    pub wall_s: Option<f64>,
    /// Its wall clock time over the baseline's of the same run, of the least of each.
    pub wall_ratio: Option<f64>,
    /// Why it could not be measured.
    pub error: Option<String>,
    /// Whether it was seen to end well (or not) when it had no more memory than the limit.
    pub confirmed: Option<bool>,
}

impl Candidate {
    /// Whether all its samples stayed below the limit, and nothing that was tried under the limit says otherwise.
    #[must_use]
    pub fn fits(&self, limit: u64) -> bool {
        let below = self.max_rss_bytes.is_some_and(|rss| rss <= limit);
        self.confirmed.unwrap_or(below)
    }
}

/// The candidates among `samples`, the baseline first and those with few knobs before those with many; within that by time.
///
/// `rss` samples without a limit give the figures; those with a limit say whether it really fits.
#[must_use]
pub fn candidates(samples: &[Sample], baseline: &Way) -> Vec<Candidate> {
    let mut ways: BTreeMap<Way, Vec<&Sample>> = BTreeMap::new();
    for sample in samples.iter().filter(|sample| sample.kind == Kind::Rss) {
        ways.entry(Way::of(sample)).or_default().push(sample);
    }
    let of_baseline: Vec<&Sample> = ways.get(baseline).cloned().unwrap_or_default();
    let mut candidates: Vec<Candidate> = ways
        .into_iter()
        .map(|(way, samples)| candidate(way, baseline, &samples, &of_baseline))
        .collect();
    candidates.sort_by(|a, b| {
        let key = |c: &Candidate| (c.knobs.len(), c.wall_s.is_none());
        let wall = |c: &Candidate| c.wall_s.unwrap_or(0.0);
        key(a).cmp(&key(b)).then(wall(a).total_cmp(&wall(b)))
    });
    candidates
}

fn candidate(way: Way, baseline: &Way, samples: &[&Sample], of_baseline: &[&Sample]) -> Candidate {
    let free = || samples.iter().filter(|s| s.memory_limit_bytes.is_none());
    let limited: Vec<bool> = samples
        .iter()
        .filter(|sample| sample.memory_limit_bytes.is_some() && sample.limited_by != BY_RSS)
        .map(|sample| sample.status == Status::Ok)
        .collect();
    let wall = least(&free().copied().collect::<Vec<_>>());
    // Only times of one run are compared.
    let runs: Vec<&str> = free().map(|sample| sample.run_id.as_str()).collect();
    let beside: Vec<&Sample> = of_baseline
        .iter()
        .filter(|s| s.memory_limit_bytes.is_none() && runs.contains(&s.run_id.as_str()))
        .copied()
        .collect();
    let wall_ratio = wall
        .zip(least(&beside))
        .filter(|(_, baseline)| *baseline > 0.0)
        .map(|(wall, baseline)| wall / baseline);
    let failed = free().find(|sample| sample.status != Status::Ok);
    Candidate {
        knobs: way.knobs(baseline),
        way,
        max_rss_bytes: free().filter_map(|sample| need(sample)).max(),
        wall_s: wall,
        wall_ratio,
        error: failed.map(|sample| sample.error.clone()),
        confirmed: (!limited.is_empty()).then(|| limited.iter().all(|ok| *ok)),
    }
}

/// The memory that a sample shows to be needed, in bytes: max RSS, and of a write whose batches come and go without the
/// table that they are copied from here.
fn need(sample: &Sample) -> Option<u64> {
    let table = match sample.situation {
        Some(Situation::Arriving) => sample.decoded_bytes.unwrap_or(0),
        _ => 0,
    };
    Some(sample.max_rss_bytes?.saturating_sub(table))
}

fn least(samples: &[&Sample]) -> Option<f64> {
    let figures = samples.iter().filter_map(|sample| Metric::Wall.of(sample));
    Summary::of(&figures.collect::<Vec<_>>()).map(|summary| summary.min)
}

/// Those of `candidates` that fit and are worth telling: none is both slower and has more knobs than another.
#[must_use]
pub fn worth_telling(candidates: &[Candidate], limit: u64) -> Vec<&Candidate> {
    let fits: Vec<&Candidate> = candidates.iter().filter(|c| c.fits(limit)).collect();
    let better = |a: &Candidate, b: &Candidate| {
        let wall = |c: &Candidate| c.wall_s.unwrap_or(f64::INFINITY);
        a.knobs.len() <= b.knobs.len()
            && wall(a) <= wall(b)
            && (a.knobs.len(), wall(a)) != (b.knobs.len(), wall(b))
    };
    let worth = |c: &&&Candidate| !fits.iter().any(|other| better(other, c));
    fits.iter().filter(worth).copied().collect()
}

/// The answer: a table of the candidates that matter and a sentence on the first knob to turn.
///
/// `limited_by` is what the limit was held by, as in the CSV; `None` where nothing was tried under it.
#[must_use]
pub fn render(candidates: &[Candidate], limit: u64, limited_by: Option<&str>) -> String {
    let mut lines = Vec::new();
    let fitting = candidates.iter().filter(|c| c.fits(limit)).count();
    lines.push(format!(
        "fits in {}: {} of {} ways measured",
        mib(limit),
        count(fitting as u64),
        count(candidates.len() as u64)
    ));
    let mut rows = vec![[
        "".to_owned(),
        "max RSS MiB".to_owned(),
        "wall s".to_owned(),
        "wall ÷".to_owned(),
        "fits".to_owned(),
    ]];
    let worth = worth_telling(candidates, limit);
    let shown = candidates.iter().filter(|c| {
        c.knobs.len() <= 1 || worth.contains(c) || (fitting == 0 && c.max_rss_bytes.is_some())
    });
    let mut shown: Vec<&Candidate> = shown.collect();
    // A long list says less than its lowest.
    const MOST: usize = 24;
    if shown.len() > MOST {
        shown.sort_by_key(|c| (c.knobs.len() > 1, c.max_rss_bytes.unwrap_or(u64::MAX)));
        shown.truncate(MOST);
        shown.sort_by_key(|c| c.knobs.len());
    }
    for c in shown {
        let name = if c.knobs.is_empty() {
            format!("as it is: {}", told(&c.way))
        } else {
            c.knobs.join(", ")
        };
        let or_dash = |text: Option<String>| text.unwrap_or_else(|| "–".to_owned());
        let fits = match (c.error.is_some(), c.fits(limit), c.confirmed) {
            (true, ..) => "failed",
            (_, true, Some(_)) => "yes, tried",
            (_, true, None) => "yes",
            (_, false, Some(_)) => "no, tried",
            (_, false, None) => "no",
        };
        rows.push([
            name,
            or_dash(c.max_rss_bytes.map(|rss| mib_number(rss as f64))),
            or_dash(c.wall_s.map(seconds)),
            or_dash(c.wall_ratio.map(ratio)),
            fits.to_owned(),
        ]);
    }
    lines.extend(aligned(&rows));
    lines.push(answer(candidates, &worth, limit));
    lines.push(match limited_by {
        Some(BY_RSS) => {
            "No control group could be made here, so max RSS was held against the limit; page cache is not in it."
                .to_owned()
        }
        Some(group) => format!(
            "\"tried\": run in a control group ({group}) that has no more memory, page cache included."
        ),
        None => "max RSS was held against the limit; page cache is not in it.".to_owned(),
    });
    lines.push(
        "wall ÷ is the least of a way's samples over the baseline's: a hint, where `alloquet read` and `write` measure."
            .to_owned(),
    );
    if let Some(failed) = candidates.iter().find_map(|c| Some((c, c.error.as_ref()?))) {
        lines.push(format!("failed: {}: {}", told(&failed.0.way), failed.1));
    }
    lines.join("\n") + "\n"
}

fn told(way: &Way) -> String {
    format!(
        "{}, batches of {}, {}",
        way.strategy,
        plural(way.batch_rows, "row"),
        way.setup
    )
}

fn answer(candidates: &[Candidate], worth: &[&Candidate], limit: u64) -> String {
    let baseline = candidates.iter().find(|c| c.knobs.is_empty());
    if let Some(as_it_is) = baseline.filter(|c| c.fits(limit)) {
        let room = limit.saturating_sub(as_it_is.max_rss_bytes.unwrap_or(0));
        return format!("It fits as it is, with {} to spare.", mib(room));
    }
    match worth.first() {
        Some(first) => {
            let others: Vec<String> = worth
                .iter()
                .skip(1)
                .map(|c| format!("{}{}", c.knobs.join(" and "), at(c)))
                .collect();
            let others = if others.is_empty() {
                String::new()
            } else {
                format!(" In less time, with more knobs: {}.", others.join("; "))
            };
            let turn = if first.knobs.len() == 1 {
                "The first knob to turn"
            } else {
                "No single knob gets it there; turn"
            };
            format!(
                "{turn}: {}{}.{others}",
                first.knobs.join(" and "),
                at(first)
            )
        }
        None => {
            let lowest = candidates
                .iter()
                .filter(|c| c.error.is_none())
                .filter_map(|c| Some((c.max_rss_bytes?, c)))
                .min_by_key(|(rss, _)| *rss);
            lowest.map_or_else(
                || "Nothing could be measured.".to_owned(),
                |(rss, c)| {
                    format!(
                        "Nothing measured fits. The lowest is {} with {}: smaller row groups, fewer columns at once, or \
                         more memory.",
                        mib(rss),
                        told(&c.way)
                    )
                },
            )
        }
    }
}

fn at(candidate: &Candidate) -> String {
    let mut facts = Vec::new();
    facts.extend(
        candidate
            .max_rss_bytes
            .map(|rss| format!("max RSS {}", mib(rss))),
    );
    facts.extend(
        candidate
            .wall_ratio
            .map(|wall| format!("wall × {}", ratio(wall))),
    );
    if facts.is_empty() {
        String::new()
    } else {
        format!(" ({})", facts.join(", "))
    }
}

/// Rows as lines: the first column to the left, the others to the right, a rule below the heading.
fn aligned(rows: &[[String; 5]]) -> Vec<String> {
    let width = |column: usize| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells.max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..5).map(width).collect();
    let line = |row: &[String; 5]| {
        let mut line = format!("{:<w$}", row[0], w = widths[0]);
        for (cell, w) in row.iter().zip(&widths).skip(1) {
            line.push_str(&format!("  {cell:>w$}"));
        }
        line.trim_end().to_owned()
    };
    let mut lines: Vec<String> = rows.iter().map(line).collect();
    let total = widths.iter().sum::<usize>() + 2 * 4;
    lines.insert(1, "─".repeat(total));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::Workload;

    const MIB: u64 = 1 << 20;

    fn sample(strategy: &str, batch_rows: u64, rss: u64, wall: f64) -> Sample {
        Sample {
            run_id: "r".to_owned(),
            allocator: "system".to_owned(),
            label: "system".to_owned(),
            strategy: strategy.to_owned(),
            batch_rows,
            max_rss_bytes: Some(rss * MIB),
            wall_s: Some(wall),
            ..Sample::new(Kind::Rss, Workload::Read)
        }
    }

    fn samples() -> Vec<Sample> {
        vec![
            sample("upstream", 65_536, 300, 1.0),
            sample("pooled", 65_536, 240, 0.9),
            sample("upstream", 1_024, 200, 2.0),
            sample("pooled", 1_024, 150, 1.2),
        ]
    }

    fn told_of(samples: &[Sample], limit: u64) -> String {
        let baseline = Way::of(&samples[0]);
        render(&candidates(samples, &baseline), limit * MIB, None)
    }

    #[test]
    fn what_fits_as_it_is_says_so() {
        let text = told_of(&samples(), 310);
        assert!(
            text.contains("fits as it is, with 10.0 MiB to spare"),
            "{text}"
        );
    }

    #[test]
    fn the_first_knob_is_the_single_one_that_costs_least() {
        let text = told_of(&samples(), 250);
        assert!(
            text.contains(
                "The first knob to turn: strategy pooled (max RSS 240.0 MiB, wall × 0.90)."
            ),
            "{text}"
        );
        let text = told_of(&samples(), 210);
        assert!(
            text.contains(
                "The first knob to turn: batches of 1,024 rows (max RSS 200.0 MiB, wall × 2.00). In less time, with more knobs: \
                 strategy pooled and batches of 1,024 rows (max RSS 150.0 MiB, wall × 1.20)."
            ),
            "{text}"
        );
    }

    #[test]
    fn two_knobs_are_told_where_one_does_not_do() {
        let text = told_of(&samples(), 160);
        assert!(
            text.contains("No single knob gets it there; turn: strategy pooled and batches"),
            "{text}"
        );
        let text = told_of(&samples(), 100);
        assert!(
            text.contains("Nothing measured fits. The lowest is 150.0 MiB with pooled"),
            "{text}"
        );
    }

    #[test]
    fn what_was_tried_under_the_limit_decides() {
        let mut samples = samples();
        samples.push(
            Sample {
                memory_limit_bytes: Some(250 * MIB),
                ..sample("pooled", 65_536, 240, 0.9)
            }
            .without_measures(Status::DidNotFit, "did not fit"),
        );
        let baseline = Way::of(&samples[0]);
        let found = candidates(&samples, &baseline);
        let pooled = found
            .iter()
            .find(|c| c.way.strategy == "pooled" && c.knobs.len() == 1);
        assert_eq!(
            pooled.map(|c| (c.confirmed, c.fits(250 * MIB))),
            Some((Some(false), false))
        );
        let text = render(&found, 250 * MIB, Some("cgroup-v2"));
        assert!(
            text.contains("The first knob to turn: batches of 1,024 rows"),
            "{text}"
        );
        assert!(text.contains("no, tried"), "{text}");
    }

    #[test]
    fn times_of_other_runs_are_not_compared() {
        let mut samples = samples();
        samples.push(Sample {
            run_id: "another".to_owned(),
            settings: "thp=off".to_owned(),
            ..sample("upstream", 65_536, 100, 9.0)
        });
        let baseline = Way::of(&samples[0]);
        let found = candidates(&samples, &baseline);
        let other = found.iter().find(|c| !c.way.setup.is_plain()).unwrap();
        assert_eq!((other.wall_s, other.wall_ratio), (Some(9.0), None));
    }
}
