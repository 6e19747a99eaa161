//! What makes two samples comparable: the names that cells, columns and blocks of tables go by.
//!
//! A block holds what was done (one dataset, one workload, in one run); a setup is a column of it
//! (allocator, settings, binary); a strategy on a setup is a lane, and a lane of a block is a cell.

use crate::sample::{Sample, Situation, Workload};
use serde::Serialize;
use std::cmp::Ordering;
use std::fmt;

/// The strategy that every other is compared with: the parquet crate's own reader or writer.
pub const CONTROL: &str = "upstream";

/// The strategy that keeps nothing of what it reads: what no other can go below. A control, and no choice.
pub const LIMIT: &str = "limit";

/// The allocator that every other is compared with: the platform's own.
pub const PLAIN_ALLOCATOR: &str = "system";

const STRATEGIES: [&str; 9] = [
    "retained",
    "temp-decrypt",
    "temp-both",
    "eager",
    "grow",
    "exact",
    "bounded",
    "pooled",
    "direct",
];
const ALLOCATORS: [&str; 8] = [
    PLAIN_ALLOCATOR,
    "mimalloc",
    "mimalloc-override",
    "mimalloc-v2",
    "jemalloc",
    "jemalloc-override",
    "snmalloc",
    "dhat",
];

/// Variables that hold all settings of an allocator, each with a name of its own: the variable's says nothing more.
const WRAPPERS: [&str; 3] = ["_RJEM_MALLOC_CONF=", "MALLOC_CONF=", "GLIBC_TUNABLES="];

/// A factor by which a dataset was scaled.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(transparent)]
pub struct Factor(pub f64);

impl Ord for Factor {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.total_cmp(&other.0)
    }
}

impl PartialOrd for Factor {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Factor {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Factor {}

/// What must come out the same whatever reads or writes it: all its samples share one checksum.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Work {
    /// The run.
    pub run_id: String,
    /// Read or write.
    pub workload: Workload,
    /// The dataset's name.
    pub dataset: String,
    /// Scale of its rows.
    pub scale_rows: Factor,
    /// Scale of its columns.
    pub scale_columns: Factor,
}

/// The same work done in the same way: one block of tables.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Block {
    /// What was done.
    #[serde(flatten)]
    pub work: Work,
    /// With how many threads.
    pub threads: u32,
    /// How many readers or writers at once.
    pub concurrent: u32,
    /// In batches of how many rows.
    pub batch_rows: u64,
    /// Within how much memory, in bytes; `None` where there was no limit.
    pub memory_limit_bytes: Option<u64>,
    /// Of a write, how; `None` of a read.
    #[serde(flatten)]
    pub writing: Option<Writing>,
}

/// How a table was written, besides the strategy.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Writing {
    /// Where the batches came from.
    pub situation: Situation,
    /// How many writers were open at once.
    pub writers: u64,
    /// What they were told otherwise than the dataset says; empty where nothing.
    pub properties: String,
}

/// One binary with one allocator and its settings: one column of a table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Setup {
    /// The allocator.
    pub allocator: String,
    /// Its settings; empty for its defaults.
    pub settings: String,
    /// The name of the binary.
    pub label: String,
}

/// One strategy on one setup.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Lane {
    /// Its row of a table.
    pub strategy: Strategy,
    /// Its column.
    pub setup: Setup,
}

/// One lane of one block: what is measured again and again.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cell {
    /// The block it belongs to.
    pub block: Block,
    /// Its lane there.
    pub lane: Lane,
}

/// The name of a strategy, in the order of tables: as memory was saved, controls last.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Strategy(pub String);

impl Cell {
    /// The cell that a sample belongs to.
    #[must_use]
    pub fn of(sample: &Sample) -> Self {
        Self {
            block: Block {
                work: Work {
                    run_id: sample.run_id.clone(),
                    workload: sample.workload,
                    dataset: sample.dataset.clone(),
                    scale_rows: Factor(sample.scale_rows),
                    scale_columns: Factor(sample.scale_columns),
                },
                threads: sample.threads,
                concurrent: sample.concurrent,
                batch_rows: sample.batch_rows,
                memory_limit_bytes: sample.memory_limit_bytes,
                writing: sample.situation.map(|situation| Writing {
                    situation,
                    writers: sample.writers.unwrap_or(1),
                    properties: sample.properties.clone(),
                }),
            },
            lane: Lane {
                strategy: Strategy(sample.strategy.clone()),
                setup: Setup {
                    allocator: sample.allocator.clone(),
                    settings: sample.settings.clone(),
                    label: sample.label.clone(),
                },
            },
        }
    }
}

impl fmt::Display for Lane {
    /// Writes it in words: `pooled on mimalloc (MIMALLOC_ALLOW_THP=0)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} on {}", self.strategy.0, self.setup)
    }
}

impl Setup {
    /// The allocator, and the binary's label where that says more.
    #[must_use]
    pub fn title(&self) -> String {
        if self.label.is_empty() || self.label == self.allocator {
            self.allocator.clone()
        } else if self.label.contains(&self.allocator) {
            self.label.clone()
        } else {
            format!("{} ({})", self.label, self.allocator)
        }
    }

    /// Its settings one by one, as tables show them: `dirty_decay_ms:0` rather than the variable that it came in.
    pub(crate) fn short_settings(&self) -> impl Iterator<Item = &str> {
        let settings = self.settings.split(';').filter(|one| !one.is_empty());
        settings.map(|setting| {
            let mut wrappers = WRAPPERS.iter();
            let inner = wrappers.find_map(|wrapper| setting.strip_prefix(wrapper));
            inner.unwrap_or(setting)
        })
    }

    /// Whether it is the platform's allocator with its defaults, which others are compared with.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        self.allocator == PLAIN_ALLOCATOR && self.settings.is_empty()
    }

    fn key(&self) -> (usize, &str, &str, &str) {
        let rank = allocator_rank(&self.allocator);
        (rank, &self.allocator, &self.label, &self.settings)
    }
}

impl fmt::Display for Setup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.title())?;
        if self.settings.is_empty() {
            return Ok(());
        }
        let settings: Vec<&str> = self.short_settings().collect();
        write!(f, " ({})", settings.join(";"))
    }
}

impl Ord for Setup {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}

impl PartialOrd for Setup {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Strategy {
    /// Whether it is upstream's own code, in any variant, or the limit.
    #[must_use]
    pub fn is_control(&self) -> bool {
        self.0.starts_with(CONTROL) || self.is_limit()
    }

    /// Whether it is the limit, which is nothing to choose.
    #[must_use]
    pub fn is_limit(&self) -> bool {
        self.0 == LIMIT
    }

    fn key(&self) -> (usize, u8, &str) {
        // Among the controls the plain one stands last, but for the limit.
        let rank = if self.is_control() {
            STRATEGIES.len() + 1
        } else {
            rank(&STRATEGIES, &self.0)
        };
        let last = u8::from(self.0 == CONTROL) + 2 * u8::from(self.is_limit());
        (rank, last, &self.0)
    }
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)?;
        f.write_str(if self.is_control() { " (control)" } else { "" })
    }
}

impl Ord for Strategy {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}

impl PartialOrd for Strategy {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The place of an allocator in the order of tables.
pub(crate) fn allocator_rank(name: &str) -> usize {
    rank(&ALLOCATORS, name)
}

/// The place of `name` among `known`; behind them all where it is not one of them.
fn rank(known: &[&str], name: &str) -> usize {
    let place = known.iter().position(|known| *known == name);
    place.unwrap_or(known.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::Kind;

    fn sorted<T: Ord>(mut items: Vec<T>) -> Vec<T> {
        items.sort();
        items
    }

    #[test]
    fn strategies_stand_in_their_order_and_controls_last() {
        let names = [
            "limit",
            "upstream",
            "upstream-column-wise",
            "streamed",
            "pooled",
            "temp-both,codec=shared",
            "direct",
            "temp-both",
            "temp-decrypt",
            "retained",
        ];
        let strategies = sorted(names.map(|name| Strategy(name.to_owned())).to_vec());
        let shown: Vec<String> = strategies.iter().map(ToString::to_string).collect();
        assert_eq!(
            shown,
            [
                "retained",
                "temp-decrypt",
                "temp-both",
                "pooled",
                "direct",
                "streamed",
                "temp-both,codec=shared",
                "upstream-column-wise (control)",
                "upstream (control)",
                "limit (control)",
            ]
        );
    }

    #[test]
    fn write_strategies_stand_in_their_order_too() {
        let names = [
            "upstream",
            "upstream-eager",
            "upstream-exact-store",
            "pooled",
            "grow",
            "bounded",
            "exact",
            "grow,sink=spill",
            "eager",
        ];
        let strategies = sorted(names.map(|name| Strategy(name.to_owned())).to_vec());
        let names: Vec<&str> = strategies.iter().map(|strategy| &*strategy.0).collect();
        assert_eq!(
            names,
            [
                "eager",
                "grow",
                "exact",
                "bounded",
                "pooled",
                "grow,sink=spill",
                "upstream-eager",
                "upstream-exact-store",
                "upstream",
            ]
        );
    }

    #[test]
    fn other_situations_and_properties_are_other_blocks_of_the_same_work() {
        let sample = |situation, properties: &str| Sample {
            situation: Some(situation),
            writers: Some(1),
            properties: properties.to_owned(),
            ..Sample::new(Kind::Rss, Workload::Write)
        };
        let cells = [
            Cell::of(&sample(Situation::Resident, "")),
            Cell::of(&sample(Situation::Arriving, "")),
            Cell::of(&sample(Situation::Resident, "dictionary=false")),
        ];
        for (i, cell) in cells.iter().enumerate() {
            assert!(cells[..i].iter().all(|other| other.block != cell.block));
            assert_eq!(cell.block.work, cells[0].block.work);
        }
    }

    fn setup(allocator: &str, label: &str, settings: &str) -> Setup {
        Setup {
            allocator: allocator.to_owned(),
            settings: settings.to_owned(),
            label: label.to_owned(),
        }
    }

    #[test]
    fn setups_stand_in_their_order_and_say_what_they_are() {
        let setups = sorted(vec![
            setup("other", "other", ""),
            setup("jemalloc", "", ""),
            setup("mimalloc", "mimalloc-v2", ""),
            setup("mimalloc", "mimalloc", "MIMALLOC_ALLOW_THP=0"),
            setup("system", "old", ""),
            setup("mimalloc", "mimalloc", ""),
            setup("dhat", "dhat", ""),
            setup(
                "jemalloc-override",
                "",
                "MALLOC_CONF=dirty_decay_ms:0,muzzy_decay_ms:0;thp=off",
            ),
            setup(
                "system",
                "system",
                "GLIBC_TUNABLES=glibc.malloc.hugetlb=1;MALLOC_ARENA_MAX=2",
            ),
        ]);
        let shown: Vec<String> = setups.iter().map(ToString::to_string).collect();
        assert_eq!(
            shown,
            [
                "old (system)",
                "system (glibc.malloc.hugetlb=1;MALLOC_ARENA_MAX=2)",
                "mimalloc",
                "mimalloc (MIMALLOC_ALLOW_THP=0)",
                "mimalloc-v2",
                "jemalloc",
                "jemalloc-override (dirty_decay_ms:0,muzzy_decay_ms:0;thp=off)",
                "dhat",
                "other",
            ]
        );
    }
}
