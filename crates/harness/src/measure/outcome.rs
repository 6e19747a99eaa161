//! What a worker answers: one line of JSON on its standard output.

use std::collections::BTreeMap;

use alloquet_core::{Ledger, LedgerPeak, PageInfo, Purpose};
use alloquet_report::parts::Part;
use alloquet_report::series::Point;
use parquet::basic::PageType;
use serde::{Deserialize, Serialize};

use super::fold::Fold;
use super::window::Measures;
use crate::allocator::AllocatorFacts;
use crate::sys::machine::Thp;

/// An outcome, or why there is none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum Reply {
    /// The sample failed.
    Failed {
        /// Why, on one line.
        error: String,
    },
    /// The sample was taken.
    Done(Box<DoneReply>),
}

/// A taken sample and what took it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct DoneReply {
    /// The worker's allocator, read back from it.
    pub(crate) allocator: AllocatorFacts,
    /// The Cargo profile of the worker's binary.
    pub(crate) profile: String,
    /// Transparent huge pages, as the worker saw them.
    pub(crate) thp: Thp,
    /// What was measured.
    pub(crate) outcome: Outcome,
}

/// What the work measured and what it found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Outcome {
    /// The measures of the window.
    pub(crate) measures: Measures,
    /// Rows read or written.
    pub(crate) rows: u64,
    /// Values read or written, nulls counted.
    pub(crate) values: u64,
    /// The nulls among them.
    pub(crate) nulls: u64,
    /// Length of the Parquet file read or written, in bytes.
    pub(crate) file_bytes: u64,
    /// Bytes that the values are long: the same for every strategy, however arrays hold them.
    pub(crate) decoded_bytes: u64,
    /// The fold of all batches, 16 hexadecimal digits.
    pub(crate) fold: String,
    /// The checksum of all batches, 16 hexadecimal digits; a timed read has none.
    pub(crate) checksum: Option<String>,
    /// Leaf columns of the file.
    pub(crate) leaf_columns: u64,
    /// By how much the writer's own account of its memory was off the counted heap at most, as a share of it; of heap
    /// samples of core's writer.
    pub(crate) memory_size_error: Option<f64>,
    /// What the reader or the writers themselves owned at their peak.
    pub(crate) ledger: Option<LedgerFacts>,
    /// What the readers asked of the file, and copied.
    pub(crate) copying: Option<Copying>,
    /// The file's pages, in heap samples of reading.
    pub(crate) pages: Option<PageFacts>,
    /// Where the RSS was, of an `explain` sample.
    pub(crate) parts: Vec<Part>,
    /// Memory over time, of a `settle`, `cycles` or `timeline` sample.
    pub(crate) points: Vec<Point>,
    /// What a reader of the sample should know, one sentence each.
    pub(crate) flags: Vec<String>,
}

/// What core's readers asked of the file and did with its values, all readers together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Copying {
    /// Requests for pages.
    pub(crate) reads: u64,
    /// Bytes of them.
    pub(crate) read_bytes: u64,
    /// Bytes of values in slices of pages; where columns are decoded by core.
    pub(crate) shared_value_bytes: Option<u64>,
    /// Bytes of values written into arrays, likewise.
    pub(crate) written_value_bytes: Option<u64>,
}

impl Copying {
    /// Adds what a ledger counted; `is_direct` says whether core decoded columns.
    pub(super) fn add(&mut self, ledger: &Ledger, is_direct: bool) {
        self.reads += ledger.reads();
        self.read_bytes += ledger.read_bytes();
        if is_direct {
            let add = |sum: &mut Option<u64>, bytes| *sum = Some(sum.unwrap_or(0) + bytes);
            add(&mut self.shared_value_bytes, ledger.shared_value_bytes());
            add(&mut self.written_value_bytes, ledger.written_value_bytes());
        }
    }
}

/// The ledger of a reader or writer at its own peak, in bytes; of several writers, all of theirs together.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LedgerFacts {
    /// All of it.
    pub(crate) total_bytes: u64,
    /// By purpose; names as `Purpose` displays them.
    pub(crate) by_purpose: BTreeMap<String, u64>,
}

impl From<&LedgerPeak> for LedgerFacts {
    fn from(peak: &LedgerPeak) -> Self {
        let by_purpose = peak
            .by_purpose()
            .into_iter()
            .map(|(purpose, bytes)| (purpose.to_string(), bytes));
        Self {
            total_bytes: peak.total_bytes(),
            by_purpose: by_purpose.collect(),
        }
    }
}

impl LedgerFacts {
    /// Adds another's.
    pub(super) fn add(&mut self, other: Self) {
        self.total_bytes += other.total_bytes;
        for (purpose, bytes) in other.by_purpose {
            *self.by_purpose.entry(purpose).or_default() += bytes;
        }
    }

    /// The same without the metadata, for a reader that uses another's.
    pub(super) fn without_metadata(mut self) -> Self {
        let metadata = self.by_purpose.remove(&Purpose::Metadata.to_string());
        self.total_bytes -= metadata.unwrap_or(0);
        self
    }
}

/// A finished piece of work, before it is put in the form of the wire.
pub(super) struct Work {
    pub(super) measures: Measures,
    pub(super) flags: Vec<String>,
    pub(super) fold: Fold,
    pub(super) checksum: Option<u64>,
    pub(super) file_bytes: u64,
    pub(super) leaf_columns: u64,
    pub(super) memory_size_error: Option<f64>,
    pub(super) ledger: Option<LedgerFacts>,
    pub(super) copying: Option<Copying>,
    pub(super) pages: Option<PageFacts>,
    pub(super) parts: Vec<Part>,
    pub(super) points: Vec<Point>,
}

/// The largest data page of each column, summed over the columns, in bytes: what buffers of one
/// page per column hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PageFacts {
    /// As stored: compressed, and encrypted if so.
    pub(crate) largest_stored_bytes: u64,
    /// Decompressed.
    pub(crate) largest_bytes: u64,
}

impl PageFacts {
    /// Of all pages of a file.
    pub(super) fn of(pages: &[PageInfo]) -> Self {
        let data_pages = || {
            pages
                .iter()
                .filter(|page| page.page_type != PageType::DICTIONARY_PAGE)
        };
        let sum_of_largest = |size: fn(&PageInfo) -> u64| {
            let mut largest = BTreeMap::new();
            for page in data_pages() {
                let most = largest.entry(page.column).or_insert(0);
                *most = size(page).max(*most);
            }
            largest.values().sum()
        };
        Self {
            largest_stored_bytes: sum_of_largest(|page| page.stored_bytes),
            largest_bytes: sum_of_largest(|page| page.uncompressed_bytes),
        }
    }
}

impl From<Work> for Outcome {
    fn from(work: Work) -> Self {
        let hexadecimal = |number: u64| format!("{number:016x}");
        Self {
            measures: work.measures,
            rows: work.fold.rows(),
            values: work.fold.values(),
            nulls: work.fold.nulls(),
            file_bytes: work.file_bytes,
            decoded_bytes: work.fold.value_bytes(),
            fold: hexadecimal(work.fold.sum()),
            checksum: work.checksum.map(hexadecimal),
            leaf_columns: work.leaf_columns,
            memory_size_error: work.memory_size_error,
            ledger: work.ledger,
            copying: work.copying,
            pages: work.pages,
            parts: work.parts,
            points: work.points,
            flags: work.flags,
        }
    }
}
