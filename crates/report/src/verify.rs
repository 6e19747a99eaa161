//! Holds samples against one another: what must agree, and what does not.
//!
//! It says nothing on which lane is better. A lane that read something else than the others has
//! failed, however fast it was.

use crate::cell::{Block, CONTROL, Cell, Work};
use crate::format;
use crate::sample::{Kind, Sample, Status};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// Something that does not agree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// What it is about.
    pub subject: Subject,
    /// The cells that are to blame.
    pub cells: BTreeSet<Cell>,
    /// What was found, in one sentence that names the cells.
    pub text: String,
}

/// What a finding is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Subject {
    /// The checksum of the batches differs from what other lanes got.
    Checksum,
    /// The fold over the values differs from what other lanes got.
    Fold,
    /// The number of rows differs from what other lanes got.
    Rows,
    /// The number of values differs from what other lanes got.
    Values,
    /// A sample counts as good but carries nothing that would prove it.
    Unverified,
    /// Heap figures of one cell differ between samples, which they must not with one thread.
    HeapRepeat,
    /// `ru_maxrss` and `VmHWM` are further apart than max(8 MiB, 20 %).
    PeakRss,
    /// What measured the sample left a note in its `flags`.
    Flagged,
}

impl Subject {
    /// Whether a cell with such a finding has failed; otherwise its figures stand, with a note.
    #[must_use]
    pub fn fails(self) -> bool {
        match self {
            Self::Checksum | Self::Fold | Self::Rows | Self::Values => true,
            Self::Unverified | Self::HeapRepeat | Self::PeakRss | Self::Flagged => false,
        }
    }

    /// With what a line on such a finding begins.
    #[must_use]
    pub fn lead(self) -> &'static str {
        match self {
            Self::Unverified => "not verified",
            Self::PeakRss | Self::Flagged => "note",
            _ => "does not agree",
        }
    }
}

/// Everything in `samples` that does not agree. Failed samples are left out: they say so themselves.
#[must_use]
pub fn verify(samples: &[Sample]) -> Vec<Finding> {
    let mut works: BTreeMap<Work, Vec<(Cell, &Sample)>> = BTreeMap::new();
    let mut cells: BTreeMap<Cell, Vec<&Sample>> = BTreeMap::new();
    for sample in samples.iter().filter(|sample| sample.status == Status::Ok) {
        let cell = Cell::of(sample);
        let work = works.entry(cell.block.work.clone()).or_default();
        work.push((cell.clone(), sample));
        cells.entry(cell).or_default().push(sample);
    }

    let mut findings = Vec::new();
    for samples in works.values() {
        for (subject, result) in RESULTS {
            findings.extend(differing(subject, samples, result));
        }
    }
    let by_cell: [(Subject, &str, DetailOf); 3] = [
        (
            Subject::Unverified,
            "there is no fold or checksum",
            unverified,
        ),
        (
            Subject::HeapRepeat,
            "heap figures of one thread must repeat exactly",
            heap_repeat,
        ),
        (
            Subject::PeakRss,
            "VmHWM of the whole process is far from its ru_maxrss",
            peak_rss,
        ),
    ];
    for (subject, what, detail) in by_cell {
        findings.extend(by_block(subject, what, &cells, detail));
    }
    let flags: BTreeSet<&str> = cells
        .values()
        .flatten()
        .flat_map(|sample| flags_of(sample))
        .collect();
    // This one is seen in the figures themselves, whether or not it was flagged.
    for flag in flags.into_iter().filter(|flag| *flag != RU_MAXRSS_DIFFERS) {
        findings.extend(by_block(
            Subject::Flagged,
            &told(flag),
            &cells,
            |_, samples| {
                some_of(samples, |sample| {
                    flags_of(sample).any(|known| known == flag)
                })
            },
        ));
    }
    findings
}

/// The flag of a sample whose `ru_maxrss` is far from its `VmHWM`; see [`peaks_differ`].
pub const RU_MAXRSS_DIFFERS: &str = "ru_maxrss-differs";

/// The flag of a sample whose window read from a block device: the file was not in the page cache.
pub const DISK_READS: &str = "disk-reads";

/// The flag of a `heap` sample whose file's pages could not be listed: the largest are not known.
pub const PAGES_NOT_LISTED: &str = "pages-not-listed";

/// The flag of a sample whose allocator could not be told to give back what is free: before a write what loading the input
/// left, in a `settle` sample what the work left.
pub const NOT_PURGED: &str = "not-purged";

/// The flag of a `settle` sample whose allocator gave back less than 1 MiB when it was told to purge.
pub const PURGE_DID_NOTHING: &str = "purge-did-nothing";

/// The flag of a `heap` sample whose writer says that it holds another amount of memory than was counted.
pub const MEMORY_SIZE_OFF: &str = "memory-size-off";

/// A flag in words.
fn told(flag: &str) -> String {
    let meaning = match flag {
        DISK_READS => "the window read from a disk, and its times include that",
        PAGES_NOT_LISTED => "the sizes of the largest pages are not known",
        NOT_PURGED => {
            "the allocator has no purge: what was free stayed with it, before a write and after the work"
        }
        PURGE_DID_NOTHING => "the allocator's purge gave back less than 1 MiB",
        MEMORY_SIZE_OFF => {
            "the writer's memory_size() was off the counted heap by more than 5 % at some time"
        }
        _ => return flag.to_owned(),
    };
    format!("{flag} ({meaning})")
}

/// The notes of a sample.
pub(crate) fn flags_of(sample: &Sample) -> impl Iterator<Item = &str> {
    let flags = sample.flags.split(';').map(str::trim);
    flags.filter(|flag| !flag.is_empty())
}

/// What a sample says of its result, as text.
type ResultOf = fn(&Sample) -> Option<String>;

/// What every lane must get alike.
const RESULTS: [(Subject, ResultOf); 4] = [
    (Subject::Rows, |sample| sample.rows.map(format::count)),
    (Subject::Values, |sample| sample.values.map(format::count)),
    (Subject::Fold, |sample| sample.fold.clone()),
    (Subject::Checksum, |sample| sample.checksum.clone()),
];

/// The lanes whose result is not the one that upstream got, or most of the samples where there is
/// no upstream among them.
fn differing(
    subject: Subject,
    samples: &[(Cell, &Sample)],
    result: ResultOf,
) -> impl Iterator<Item = Finding> + use<> {
    let mut by_result: BTreeMap<String, (usize, usize, BTreeSet<Cell>)> = BTreeMap::new();
    for (cell, sample) in samples {
        if let Some(result) = result(sample) {
            let (of_control, of_all, cells) = by_result.entry(result).or_default();
            *of_control += usize::from(sample.strategy == CONTROL);
            *of_all += 1;
            cells.insert(cell.clone());
        }
    }
    let expected = by_result
        .iter()
        .max_by_key(|(_, (of_control, of_all, _))| (*of_control, *of_all))
        // Backwards, for upstream stands last and is the one to name.
        .map(|(result, (_, _, cells))| (result.clone(), names(cells.iter().rev(), 1)));
    let what = match subject {
        Subject::Checksum => "checksum",
        Subject::Fold => "fold",
        Subject::Rows => "rows",
        _ => "values",
    };
    by_result
        .into_iter()
        .filter_map(move |(result, (_, _, cells))| {
            let (expected, holders) = expected.as_ref()?;
            (result != *expected).then(|| Finding {
                subject,
                text: format!(
                    "{what}: {} got {result} where {holders} got {expected}",
                    names(cells.iter(), 3)
                ),
                cells,
            })
        })
}

/// What is wrong with one cell; `None` where nothing is.
type DetailOf = fn(&Cell, &[&Sample]) -> Option<String>;

/// One finding for each block in which any cell has a detail to tell.
fn by_block(
    subject: Subject,
    what: &str,
    cells: &BTreeMap<Cell, Vec<&Sample>>,
    detail: impl Fn(&Cell, &[&Sample]) -> Option<String>,
) -> Vec<Finding> {
    let mut blocks: BTreeMap<&Block, Vec<(&Cell, String)>> = BTreeMap::new();
    for (cell, samples) in cells {
        if let Some(detail) = detail(cell, samples) {
            let found = blocks.entry(&cell.block).or_default();
            found.push((cell, format!("{} ({detail})", cell.lane)));
        }
    }
    let finding = |found: Vec<(&Cell, String)>| {
        let (cells, texts): (Vec<&Cell>, Vec<String>) = found.into_iter().unzip();
        Finding {
            subject,
            cells: cells.into_iter().cloned().collect(),
            text: format!("{what}: {}", format::listed(texts, 3)),
        }
    };
    blocks.into_values().map(finding).collect()
}

fn unverified(_: &Cell, samples: &[&Sample]) -> Option<String> {
    some_of(samples, |sample| match sample.kind {
        Kind::Heap | Kind::Explain => sample.checksum.is_none() || sample.fold.is_none(),
        Kind::Rss | Kind::Settle | Kind::Cycles | Kind::Timeline => sample.fold.is_none(),
    })
}

fn some_of(samples: &[&Sample], is_one: impl Fn(&Sample) -> bool) -> Option<String> {
    let count = samples.iter().filter(|sample| is_one(sample)).count();
    let all = format::plural(samples.len() as u64, "sample");
    (count > 0).then(|| format!("{count} of {all}"))
}

/// A figure of a heap sample.
type FigureOf = fn(&Sample) -> Option<u64>;

fn heap_repeat(cell: &Cell, samples: &[&Sample]) -> Option<String> {
    if cell.block.threads > 1 || cell.block.concurrent > 1 {
        return None;
    }
    let figures: [(&str, FigureOf); 4] = [
        ("heap_peak_bytes", |sample| sample.heap_peak_bytes),
        ("allocated_bytes", |sample| sample.allocated_bytes),
        ("allocations", |sample| sample.allocations),
        ("reallocations", |sample| sample.reallocations),
    ];
    let differing = figures.iter().filter_map(|(name, figure)| {
        let heap = samples.iter().filter(|sample| sample.kind == Kind::Heap);
        let found: BTreeSet<u64> = heap.filter_map(|sample| figure(sample)).collect();
        let (low, high) = (*found.first()?, *found.last()?);
        (low != high).then(|| format!("{name} {} to {}", format::count(low), format::count(high)))
    });
    let differing: Vec<String> = differing.collect();
    (!differing.is_empty()).then(|| differing.join(", "))
}

fn peak_rss(_: &Cell, samples: &[&Sample]) -> Option<String> {
    let peaks = samples.iter();
    let peaks =
        peaks.filter_map(|sample| Some((sample.process_max_rss_bytes?, sample.ru_maxrss_bytes?)));
    let (own, parents) = peaks
        .filter(|(own, parents)| peaks_differ(*own, *parents))
        .max_by_key(|(own, parents)| own.abs_diff(*parents))?;
    Some(format!("{} and {}", format::mib(own), format::mib(parents)))
}

/// Whether `VmHWM` and `ru_maxrss` of one process are further apart than max(8 MiB, 20 %).
#[must_use]
pub fn peaks_differ(own_bytes: u64, ru_maxrss_bytes: u64) -> bool {
    let larger = own_bytes.max(ru_maxrss_bytes);
    own_bytes.abs_diff(ru_maxrss_bytes) > (8 * 1024 * 1024).max(larger / 5)
}

/// The first few cells by name, and how many more there are.
fn names<'a>(cells: impl Iterator<Item = &'a Cell>, most: usize) -> String {
    let mut names: Vec<String> = cells.map(|cell| cell.lane.to_string()).collect();
    // Cells that differ only in threads or batches have one name.
    names.dedup();
    format::listed(names, most)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::Workload;

    fn sample(kind: Kind, strategy: &str) -> Sample {
        Sample {
            strategy: strategy.to_owned(),
            allocator: "system".to_owned(),
            rows: Some(10),
            values: Some(20),
            fold: Some("f0".to_owned()),
            checksum: (kind == Kind::Heap).then(|| "c0".to_owned()),
            ..Sample::new(kind, Workload::Read)
        }
    }

    fn texts(samples: &[Sample]) -> Vec<String> {
        let findings = verify(samples);
        findings.into_iter().map(|finding| finding.text).collect()
    }

    #[test]
    fn agreement_is_silent() {
        let samples = [
            sample(Kind::Heap, "pooled"),
            sample(Kind::Heap, "upstream"),
            sample(Kind::Rss, "pooled"),
            sample(Kind::Rss, "upstream").failed("killed"),
        ];
        assert_eq!(texts(&samples), Vec::<String>::new());
    }

    #[test]
    fn upstream_is_believed_even_against_a_majority() {
        let mut samples = vec![sample(Kind::Heap, "upstream")];
        for strategy in ["pooled", "retained", "temp-both", "direct", "temp-decrypt"] {
            samples.push(Sample {
                checksum: Some("bad".to_owned()),
                ..sample(Kind::Heap, strategy)
            });
        }
        assert_eq!(
            texts(&samples),
            [
                "checksum: retained on system, temp-decrypt on system, temp-both on system and 2 \
                 more got bad where upstream on system got c0"
            ]
        );
        let finding = &verify(&samples)[0];
        assert!(finding.subject.fails());
        assert_eq!(finding.cells.len(), 5);
    }

    #[test]
    fn without_upstream_most_samples_are_believed() {
        let samples = [
            sample(Kind::Rss, "a"),
            sample(Kind::Rss, "b"),
            Sample {
                rows: Some(1_000),
                fold: Some("f1".to_owned()),
                ..sample(Kind::Rss, "c")
            },
        ];
        assert_eq!(
            texts(&samples),
            [
                "rows: c on system got 1,000 where b on system and 1 more got 10",
                "fold: c on system got f1 where b on system and 1 more got f0",
            ]
        );
    }

    #[test]
    fn other_work_may_come_out_otherwise() {
        let samples = [
            sample(Kind::Rss, "a"),
            Sample {
                fold: Some("f1".to_owned()),
                scale_rows: 0.5,
                ..sample(Kind::Rss, "a")
            },
            Sample {
                fold: Some("f2".to_owned()),
                run_id: "other".to_owned(),
                ..sample(Kind::Rss, "a")
            },
        ];
        assert_eq!(texts(&samples), Vec::<String>::new());
    }

    #[test]
    fn heap_figures_must_repeat_with_one_thread() {
        let one = Sample {
            heap_peak_bytes: Some(1_000),
            allocations: Some(5),
            ..sample(Kind::Heap, "pooled")
        };
        let mut other = Sample {
            heap_peak_bytes: Some(1_016),
            ..one.clone()
        };
        assert_eq!(
            texts(&[one.clone(), other.clone()]),
            [
                "heap figures of one thread must repeat exactly: pooled on system \
                 (heap_peak_bytes 1,000 to 1,016)"
            ]
        );
        other.threads = 2;
        let one = Sample { threads: 2, ..one };
        assert_eq!(texts(&[one, other]), Vec::<String>::new());
    }

    #[test]
    fn a_good_sample_without_proof_is_found() {
        let bare = Sample {
            fold: None,
            ..sample(Kind::Rss, "pooled")
        };
        assert_eq!(
            texts(&[bare, sample(Kind::Rss, "pooled")]),
            ["there is no fold or checksum: pooled on system (1 of 2 samples)"]
        );
    }

    #[test]
    fn peaks_may_differ_by_eight_mib_or_a_fifth() {
        const MIB: u64 = 1024 * 1024;
        assert!(!peaks_differ(10 * MIB, 18 * MIB));
        assert!(peaks_differ(10 * MIB, 18 * MIB + 1));
        assert!(!peaks_differ(400 * MIB, 500 * MIB));
        assert!(peaks_differ(399 * MIB, 500 * MIB));
        let far = Sample {
            process_max_rss_bytes: Some(10 * MIB),
            ru_maxrss_bytes: Some(45 * MIB),
            ..sample(Kind::Rss, "pooled")
        };
        assert_eq!(
            texts(&[far]),
            [
                "VmHWM of the whole process is far from its ru_maxrss: pooled on system \
                 (10.0 MiB and 45.0 MiB)"
            ]
        );
    }

    #[test]
    fn flags_are_told_once_for_all_lanes() {
        let flagged = |strategy: &str, flags: &str| Sample {
            flags: flags.to_owned(),
            ..sample(Kind::Rss, strategy)
        };
        let samples = [
            flagged("pooled", "swapped; ru_maxrss-differs"),
            flagged("pooled", ""),
            flagged("upstream", "swapped"),
        ];
        assert_eq!(
            texts(&samples),
            ["swapped: pooled on system (1 of 2 samples), upstream on system (1 of 1 sample)"]
        );
        assert_eq!(
            texts(&[flagged("pooled", DISK_READS)]),
            [
                "disk-reads (the window read from a disk, and its times include that): pooled on \
             system (1 of 1 sample)"
            ]
        );
        let finding = &verify(&samples)[0];
        assert!(!finding.subject.fails());
        assert_eq!(finding.subject.lead(), "note");
    }
}
