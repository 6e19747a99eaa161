//! What a set of samples comes to, as data: runs, blocks, cells, findings, answers.
//!
//! Tables show it and `--format json` prints it; all computing is done here and none of the
//! formatting.

use crate::answer::{Answer, answer};
use crate::cell::{Block, CONTROL, Cell, Lane, Setup, Strategy, allocator_rank};
use crate::companions::Companions;
use crate::cycles::Cycles;
use crate::explain::Waterfall;
use crate::metric::Metric;
use crate::sample::{Kind, SCHEMA_VERSION, Sample, Status};
use crate::series::Point;
use crate::settle::Settling;
use crate::stats::{Ratio, Summary};
use crate::verify::{Finding, verify};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// Everything that a set of samples comes to.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// Version of the samples' columns.
    pub schema_version: u32,
    /// One entry a run, by the run's name.
    pub runs: Vec<Run>,
}

/// One run: samples that were interleaved with one another.
#[derive(Debug, Clone, Serialize)]
pub struct Run {
    /// Its name.
    pub run_id: String,
    /// Its machine, where the caller told.
    pub machine: Option<String>,
    /// The matrices that were measured.
    pub matrices: BTreeSet<String>,
    /// Most samples of one cell that measure time and RSS.
    pub rss_repetitions: usize,
    /// Most samples of one cell that measure the heap.
    pub heap_repetitions: usize,
    /// The seeds of its order; more than one only if runs share a name.
    pub seeds: BTreeSet<u64>,
    /// Build profiles of its binaries.
    pub profiles: BTreeSet<String>,
    /// Transparent huge page modes during the run.
    pub thp: BTreeSet<String>,
    /// The CPUs that its samples were pinned to; empty where they were not.
    pub cpus: BTreeSet<String>,
    /// The allocators, in the order of tables.
    pub allocators: Vec<Allocator>,
    /// What was measured, reads before writes.
    pub blocks: Vec<BlockSummary>,
}

/// An allocator as it reported itself.
#[derive(Debug, Clone, Serialize)]
pub struct Allocator {
    /// Its name.
    pub name: String,
    /// Its versions; empty where no sample got so far as to ask.
    pub versions: BTreeSet<String>,
}

/// One dataset read or written, by every strategy and setup.
#[derive(Debug, Clone, Serialize)]
pub struct BlockSummary {
    /// What was done, and how.
    #[serde(flatten)]
    pub block: Block,
    /// Rows of the dataset.
    pub rows: Option<u64>,
    /// Its values.
    pub values: Option<u64>,
    /// Length of its file, in bytes.
    pub file_bytes: Option<u64>,
    /// Bytes of its batches.
    pub decoded_bytes: Option<u64>,
    /// What held samples to the memory limit; empty where there is none.
    pub limited_by: BTreeSet<String>,
    /// The rows of its table.
    pub strategies: BTreeSet<Strategy>,
    /// The columns of its table.
    pub setups: BTreeSet<Setup>,
    /// Its cells, those without a sample left out.
    pub cells: Vec<CellSummary>,
    /// What does not agree.
    pub findings: Vec<FoundText>,
    /// Which cell has the lowest max RSS; `None` where there is no choice.
    pub answer: Option<Answer>,
}

/// One cell's figures.
#[derive(Debug, Clone, Serialize)]
pub struct CellSummary {
    /// Its strategy and setup.
    #[serde(flatten)]
    pub lane: Lane,
    /// Peak heap, in bytes.
    pub peak_heap_bytes: Option<Summary>,
    /// What the work added to the heap over writers and leaf columns, in bytes.
    pub heap_per_column_bytes: Option<Summary>,
    /// What the work added to the heap over writers, in bytes.
    pub heap_per_writer_bytes: Option<Summary>,
    /// Peak RSS, in bytes.
    pub max_rss_bytes: Option<Summary>,
    /// Page faults without I/O.
    pub minor_faults: Option<Summary>,
    /// User and system CPU time, in seconds.
    pub cpu_s: Option<Summary>,
    /// Wall clock time, in seconds.
    pub wall_s: Option<Summary>,
    /// RSS that was left of the work after everything was dropped, in bytes.
    pub rss_after_bytes: Option<Summary>,
    /// Bytes free in libc's own heap after everything was dropped.
    pub libc_free_bytes: Option<Summary>,
    /// Bytes of values written into arrays.
    pub copied_bytes: Option<Summary>,
    /// Requests for pages.
    pub reads: Option<Summary>,
    /// CPU time over that of `upstream` on the same setup.
    pub cpu_to_upstream: Option<Ratio>,
    /// CPU time over that of the same strategy on the system allocator with its defaults.
    pub cpu_to_system: Option<Ratio>,
    /// Its failed samples.
    pub failures: Vec<Failure>,
    /// Its samples that did not fit in their memory, or did not finish in their time.
    pub limits: Vec<Limited>,
    /// Where the RSS of its `explain` samples is.
    pub explained: Vec<Waterfall>,
    /// When its `settle` samples gave memory back.
    pub settling: Vec<Settling>,
    /// How memory went on in its `cycles` samples.
    pub cycles: Vec<Cycles>,
    /// Why its result cannot be believed: what other lanes got otherwise.
    pub disagreements: Vec<String>,
}

/// Failed samples of one cell that failed alike.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Failure {
    /// What they would have measured.
    pub kind: Kind,
    /// How many there are.
    pub failed: usize,
    /// Of how many samples of that kind.
    pub samples: usize,
    /// Why.
    pub error: String,
}

/// Samples of one cell that met a limit: a result, and no failure.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Limited {
    /// What they would have measured.
    pub kind: Kind,
    /// Which limit: that of memory, or that of time.
    pub status: Status,
    /// How many there are.
    pub limited: usize,
    /// Of how many samples of that kind.
    pub samples: usize,
    /// The memory that they were to fit in, in bytes.
    pub memory_limit_bytes: Option<u64>,
    /// For how long the shortest was let run, in whole seconds.
    pub waited_s: Option<u64>,
    /// What is said of the first of them.
    pub text: String,
}

/// A finding, without the cells.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FoundText {
    /// What it is about.
    pub subject: crate::verify::Subject,
    /// What was found.
    pub text: String,
}

impl CellSummary {
    /// The figures of one metric; `None` where no good sample has them.
    #[must_use]
    pub fn of(&self, metric: Metric) -> Option<&Summary> {
        match metric {
            Metric::PeakHeap => self.peak_heap_bytes.as_ref(),
            Metric::HeapPerColumn => self.heap_per_column_bytes.as_ref(),
            Metric::HeapPerWriter => self.heap_per_writer_bytes.as_ref(),
            Metric::MaxRss => self.max_rss_bytes.as_ref(),
            Metric::MinorFaults => self.minor_faults.as_ref(),
            Metric::Cpu => self.cpu_s.as_ref(),
            Metric::Wall => self.wall_s.as_ref(),
            Metric::RssAfter => self.rss_after_bytes.as_ref(),
            Metric::LibcFree => self.libc_free_bytes.as_ref(),
            Metric::Copied => self.copied_bytes.as_ref(),
            Metric::Reads => self.reads.as_ref(),
        }
    }

    /// Whether no sample with figures failed and the result is what other lanes got.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        let of_figures = |failure: &Failure| matches!(failure.kind, Kind::Heap | Kind::Rss);
        !self.failures.iter().any(of_figures) && self.disagreements.is_empty()
    }

    /// Whether it can be the lowest: it is no limit, it is sound, and every sample with figures kept within its limits.
    #[must_use]
    pub fn can_win(&self) -> bool {
        let of_figures = |limited: &Limited| matches!(limited.kind, Kind::Heap | Kind::Rss);
        self.is_sound() && !self.lane.strategy.is_limit() && !self.limits.iter().any(of_figures)
    }
}

impl BlockSummary {
    /// Those of `metrics` that its table shows: some only where its samples have them.
    pub(crate) fn shown(&self, metrics: &BTreeSet<Metric>) -> BTreeSet<Metric> {
        let has = |metric: &Metric| self.cells.iter().any(|cell| cell.of(*metric).is_some());
        metrics
            .iter()
            .filter(|metric| !metric.may_be_missing() || has(metric))
            .copied()
            .collect()
    }

    /// The cell of one strategy and setup, if it has any sample.
    #[must_use]
    pub fn cell(&self, strategy: &Strategy, setup: &Setup) -> Option<&CellSummary> {
        self.cells
            .iter()
            .find(|cell| cell.lane.strategy == *strategy && cell.lane.setup == *setup)
    }
}

/// Samples of one block, by lane.
pub(crate) type Lanes<'a> = BTreeMap<Lane, Vec<&'a Sample>>;

impl Report {
    /// Computes the report of `samples`, in whatever order they are; `machines` says by a run's name
    /// where it was measured, and `companions` have what stands beside their rows.
    #[must_use]
    pub fn of(
        samples: &[Sample],
        machines: &BTreeMap<String, String>,
        companions: &Companions,
    ) -> Self {
        let findings = verify(samples);
        let mut runs: BTreeMap<&str, Vec<&Sample>> = BTreeMap::new();
        for sample in samples {
            runs.entry(&sample.run_id).or_default().push(sample);
        }
        Self {
            schema_version: SCHEMA_VERSION,
            runs: runs
                .into_iter()
                .map(|(run_id, samples)| Run {
                    machine: machines.get(run_id).cloned(),
                    ..run(run_id, &samples, &findings, companions)
                })
                .collect(),
        }
    }
}

fn run(run_id: &str, samples: &[&Sample], findings: &[Finding], companions: &Companions) -> Run {
    let texts = |text: fn(&Sample) -> &String| -> BTreeSet<String> {
        let texts = samples.iter().map(|sample| text(sample).clone());
        texts.filter(|text| !text.is_empty()).collect()
    };
    let mut blocks: BTreeMap<Block, Lanes<'_>> = BTreeMap::new();
    let mut allocators: BTreeMap<(usize, &str), BTreeSet<String>> = BTreeMap::new();
    for sample in samples {
        let cell = Cell::of(sample);
        let lanes = blocks.entry(cell.block).or_default();
        lanes.entry(cell.lane).or_default().push(sample);
        let rank = allocator_rank(&sample.allocator);
        let versions = allocators.entry((rank, &sample.allocator)).or_default();
        if !sample.allocator_version.is_empty() {
            versions.insert(sample.allocator_version.clone());
        }
    }
    let repetitions = |kind| {
        let lanes = blocks.values().flat_map(BTreeMap::values);
        lanes.map(|samples| of_kind(samples, kind).count()).max()
    };
    Run {
        run_id: run_id.to_owned(),
        machine: None,
        matrices: texts(|sample| &sample.matrix),
        rss_repetitions: repetitions(Kind::Rss).unwrap_or(0),
        heap_repetitions: repetitions(Kind::Heap).unwrap_or(0),
        seeds: samples.iter().map(|sample| sample.seed).collect(),
        profiles: texts(|sample| &sample.profile),
        thp: texts(|sample| &sample.thp),
        cpus: texts(|sample| &sample.cpus),
        allocators: allocators
            .into_iter()
            .map(|((_, name), versions)| Allocator {
                name: name.to_owned(),
                versions,
            })
            .collect(),
        blocks: blocks
            .into_iter()
            .map(|(block, lanes)| block_summary(block, &lanes, findings, companions))
            .collect(),
    }
}

fn block_summary(
    block: Block,
    lanes: &Lanes<'_>,
    findings: &[Finding],
    companions: &Companions,
) -> BlockSummary {
    let fact =
        |fact: fn(&Sample) -> Option<u64>| lanes.values().flatten().find_map(|sample| fact(sample));
    let findings: Vec<&Finding> = findings
        .iter()
        .filter(|finding| finding.cells.iter().any(|cell| cell.block == block))
        .collect();
    let cells: Vec<CellSummary> = lanes
        .keys()
        .map(|lane| {
            let cell = Cell {
                block: block.clone(),
                lane: lane.clone(),
            };
            cell_summary(cell, lanes, &findings, companions)
        })
        .collect();
    BlockSummary {
        rows: fact(|sample| sample.rows),
        values: fact(|sample| sample.values),
        file_bytes: fact(|sample| sample.file_bytes),
        decoded_bytes: fact(|sample| sample.decoded_bytes),
        limited_by: lanes
            .values()
            .flatten()
            .map(|sample| sample.limited_by.clone())
            .filter(|by| !by.is_empty())
            .collect(),
        strategies: lanes.keys().map(|lane| lane.strategy.clone()).collect(),
        setups: lanes.keys().map(|lane| lane.setup.clone()).collect(),
        answer: answer(&cells, lanes),
        cells,
        findings: findings
            .into_iter()
            .map(|finding| FoundText {
                subject: finding.subject,
                text: finding.text.clone(),
            })
            .collect(),
        block,
    }
}

fn cell_summary(
    cell: Cell,
    lanes: &Lanes<'_>,
    findings: &[&Finding],
    companions: &Companions,
) -> CellSummary {
    let disagreements = findings
        .iter()
        .filter(|finding| finding.subject.fails() && finding.cells.contains(&cell))
        .map(|finding| finding.text.clone())
        .collect();
    let lane = cell.lane;
    let samples = &lanes[&lane];
    let summary = |metric: Metric| {
        let figures = samples.iter().filter_map(|sample| metric.of(sample));
        Summary::of(&figures.collect::<Vec<_>>())
    };
    let cpu_over = |other: Option<&Lane>| {
        let other = other.filter(|other| **other != lane)?;
        ratio(Metric::Cpu, lanes, &lane, other)
    };
    let upstream = Lane {
        strategy: Strategy(CONTROL.to_owned()),
        setup: lane.setup.clone(),
    };
    let plain = lanes
        .keys()
        .find(|other| other.strategy == lane.strategy && other.setup.is_plain());
    CellSummary {
        peak_heap_bytes: summary(Metric::PeakHeap),
        heap_per_column_bytes: summary(Metric::HeapPerColumn),
        heap_per_writer_bytes: summary(Metric::HeapPerWriter),
        max_rss_bytes: summary(Metric::MaxRss),
        minor_faults: summary(Metric::MinorFaults),
        cpu_s: summary(Metric::Cpu),
        wall_s: summary(Metric::Wall),
        rss_after_bytes: summary(Metric::RssAfter),
        libc_free_bytes: summary(Metric::LibcFree),
        copied_bytes: summary(Metric::Copied),
        reads: summary(Metric::Reads),
        cpu_to_upstream: cpu_over(Some(&upstream)),
        cpu_to_system: cpu_over(plain),
        failures: failures(samples),
        limits: limits(samples),
        explained: explained(samples, companions),
        settling: over_time(samples, Kind::Settle, companions, Settling::of),
        cycles: over_time(samples, Kind::Cycles, companions, |_, points| {
            Cycles::of(points)
        }),
        disagreements,
        lane,
    }
}

/// One lane over another, paired; `None` where they share no repetition.
pub(crate) fn ratio(
    metric: Metric,
    lanes: &Lanes<'_>,
    ours: &Lane,
    theirs: &Lane,
) -> Option<Ratio> {
    let ours = lanes.get(ours)?.iter().copied();
    let theirs = lanes.get(theirs)?.iter().copied();
    Ratio::paired(metric, ours, theirs)
}

fn of_kind<'a>(samples: &'a [&Sample], kind: Kind) -> impl Iterator<Item = &'a Sample> {
    let samples = samples.iter().copied();
    samples.filter(move |sample| sample.kind == kind)
}

fn failures(samples: &[&Sample]) -> Vec<Failure> {
    let mut counts: BTreeMap<(Kind, &str), usize> = BTreeMap::new();
    for sample in samples {
        if sample.status == Status::Failed {
            *counts.entry((sample.kind, &sample.error)).or_default() += 1;
        }
    }
    let failure = |((kind, error), failed): ((Kind, &str), usize)| Failure {
        kind,
        failed,
        samples: of_kind(samples, kind).count(),
        error: error.to_owned(),
    };
    counts.into_iter().map(failure).collect()
}

/// The samples that met a limit, by kind and limit.
fn limits(samples: &[&Sample]) -> Vec<Limited> {
    let mut found: BTreeMap<(Kind, Status), Vec<&Sample>> = BTreeMap::new();
    for sample in samples {
        if matches!(sample.status, Status::DidNotFit | Status::DidNotFinish) {
            let alike = found.entry((sample.kind, sample.status)).or_default();
            alike.push(sample);
        }
    }
    let limited = |((kind, status), limited): ((Kind, Status), Vec<&Sample>)| {
        let waited = limited
            .iter()
            .filter_map(|sample| Some(sample.ended_s? - sample.started_s?));
        let shortest = waited.min_by(f64::total_cmp);
        Limited {
            kind,
            status,
            limited: limited.len(),
            samples: of_kind(samples, kind).count(),
            memory_limit_bytes: limited.iter().find_map(|sample| sample.memory_limit_bytes),
            waited_s: shortest.map(|seconds| seconds.max(0.0) as u64),
            text: limited
                .first()
                .map_or_else(String::new, |sample| sample.error.clone()),
        }
    };
    found.into_iter().map(limited).collect()
}

fn explained(samples: &[&Sample], companions: &Companions) -> Vec<Waterfall> {
    let parts = of_kind(samples, Kind::Explain).map(|sample| companions.parts(sample));
    parts
        .filter(|parts| !parts.is_empty())
        .map(|parts| Waterfall::of(parts, samples.iter().copied()))
        .collect()
}

/// What the series of samples of one kind come to.
fn over_time<T>(
    samples: &[&Sample],
    kind: Kind,
    companions: &Companions,
    what: impl Fn(&Sample, &[Point]) -> Option<T>,
) -> Vec<T> {
    of_kind(samples, kind)
        .filter_map(|sample| what(sample, companions.series(sample)))
        .collect()
}
