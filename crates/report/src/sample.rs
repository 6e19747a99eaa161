//! The sample: what one measured process reported, and the one owner of the CSV's columns.
//!
//! The struct's fields are the columns, in order. What a kind of sample does not measure is `None`
//! and an empty field, never 0. `docs/csv.md` explains every column; a test holds the two together.

mod check;
mod older;
mod words;

use crate::rows::{self, Row, RowWriter, Rows, read_rows};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::Path;

pub use crate::rows::{RowError as SampleError, to_csv};
pub use words::{Kind, Situation, Status, Workload};

/// The version of the CSV's columns and their meaning. It goes up with every change of either; the version before
/// stays readable.
pub const SCHEMA_VERSION: u32 = 5;

/// One run of one cell in a fresh process: one row of the CSV.
///
/// Build one with [`Sample::new`] and struct update, so that what is not measured stays empty:
///
/// ```
/// use alloquet_report::sample::{Kind, Sample, Workload};
///
/// let sample = Sample {
///     dataset: "wide-float".to_owned(),
///     strategy: "pooled".to_owned(),
///     heap_peak_bytes: Some(264_241_152),
///     ..Sample::new(Kind::Heap, Workload::Read)
/// };
/// assert_eq!(sample.wall_s, None);
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// [`SCHEMA_VERSION`] of the program that wrote the row.
    pub schema_version: u32,
    /// Names the run: all samples that were interleaved with one another.
    pub run_id: String,
    /// Name of the matrix that was measured.
    pub matrix: String,
    /// Number of the repetition, from 0. Samples of one repetition are compared in pairs.
    pub repetition: u32,
    /// Place of the sample in the run's shuffled order, from 0.
    pub position: u32,
    /// What the sample measures.
    pub kind: Kind,
    /// The global allocator of the binary.
    pub allocator: String,
    /// The allocator's version, as it reports it itself.
    pub allocator_version: String,
    /// The allocator's environment, `NAME=value;NAME=value`; empty for its defaults.
    pub settings: String,
    /// The kernel's transparent huge page mode, or `off` where the process was allowed none.
    pub thp: String,
    /// The Cargo profile of the binary.
    pub profile: String,
    /// What was done with the dataset.
    pub workload: Workload,
    /// Name of the dataset, or of the user's own file.
    pub dataset: String,
    /// The buffer strategy; `upstream` and what starts with it are controls.
    pub strategy: String,
    /// Threads that did the work.
    pub threads: u32,
    /// Rows asked for in a batch.
    pub batch_rows: u64,
    /// Whether the work was done.
    pub status: Status,
    /// Why it was not, on one line; empty otherwise.
    pub error: String,
    /// Wall clock time of the measured window, in seconds.
    pub wall_s: Option<f64>,
    /// User CPU time of the measured window, in seconds.
    pub user_s: Option<f64>,
    /// System CPU time of the measured window, in seconds.
    pub sys_s: Option<f64>,
    /// Peak RSS of the process since the window began (`VmHWM`), in bytes.
    pub max_rss_bytes: Option<u64>,
    /// RSS just before the window, in bytes.
    pub rss_before_bytes: Option<u64>,
    /// RSS after everything that the work made was dropped, in bytes.
    pub rss_after_bytes: Option<u64>,
    /// The anonymous part of the RSS at the window's end (`RssAnon`), in bytes.
    pub rss_anon_bytes: Option<u64>,
    /// Peak RSS by the parent's `wait4`, in bytes: a cross-check of `process_max_rss_bytes`.
    pub ru_maxrss_bytes: Option<u64>,
    /// Most bytes live in the Rust heap at once within the window, those from before counted.
    pub heap_peak_bytes: Option<u64>,
    /// Bytes live in the Rust heap just before the window.
    pub heap_before_bytes: Option<u64>,
    /// Bytes allocated within the window, freed or not; a `realloc` adds what it grew.
    pub allocated_bytes: Option<u64>,
    /// Calls of `alloc` and `alloc_zeroed` within the window.
    pub allocations: Option<u64>,
    /// Calls of `realloc` within the window.
    pub reallocations: Option<u64>,
    /// Page faults served without I/O within the window.
    pub minor_faults: Option<u64>,
    /// Page faults that needed I/O within the window.
    pub major_faults: Option<u64>,
    /// Rows read or written.
    pub rows: Option<u64>,
    /// Values read or written, nulls counted.
    pub values: Option<u64>,
    /// Length of the Parquet file, in bytes.
    pub file_bytes: Option<u64>,
    /// Bytes that the values are long, the same however arrays hold them.
    pub decoded_bytes: Option<u64>,
    /// Full checksum of the batches, in hexadecimal. The same for every lane of a workload.
    pub checksum: Option<String>,
    /// The cheap sum over every value, in hexadecimal. The same for every lane of a workload.
    pub fold: Option<String>,
    /// Which binary was measured: the `NAME` of `--with NAME=BINARY`, or the allocator's name.
    pub label: String,
    /// Scale of the dataset's rows; 1 is the dataset as defined.
    pub scale_rows: f64,
    /// Scale of the dataset's columns; 1 is the dataset as defined.
    pub scale_columns: f64,
    /// Notes on the sample, separated by semicolons, such as `ru_maxrss-differs`.
    pub flags: String,
    /// Seed of the run's order.
    pub seed: u64,
    /// Most bytes the reader or writer itself owned at once, by its own ledger.
    pub ledger_peak_bytes: Option<u64>,
    /// Bytes of fetched, still raw pages at the ledger's peak.
    pub ledger_fetch_bytes: Option<u64>,
    /// Bytes of decrypted pages at the ledger's peak.
    pub ledger_decrypt_bytes: Option<u64>,
    /// Bytes of decompressed pages at the ledger's peak.
    pub ledger_page_bytes: Option<u64>,
    /// Bytes of dictionary pages at the ledger's peak.
    pub ledger_dictionary_bytes: Option<u64>,
    /// Bytes of decompression contexts at the ledger's peak; zstd's lie in the C heap.
    pub ledger_codec_bytes: Option<u64>,
    /// Bytes of the last batch returned at the ledger's peak.
    pub ledger_output_bytes: Option<u64>,
    /// Bytes of file metadata at the ledger's peak.
    pub ledger_metadata_bytes: Option<u64>,
    /// Sum over the columns of the largest stored page, in bytes.
    pub largest_stored_pages_bytes: Option<u64>,
    /// Sum over the columns of the largest decompressed page, in bytes.
    pub largest_pages_bytes: Option<u64>,
    /// Peak RSS of the whole process by its own `VmHWM`, in bytes: what `ru_maxrss_bytes` is held against.
    pub process_max_rss_bytes: Option<u64>,
    /// Bytes that a block device was read for within the window: what the page cache did not have.
    pub disk_read_bytes: Option<u64>,
    /// Where the batches that were written came from; empty for a read.
    pub situation: Option<Situation>,
    /// Writers that were open at once; empty for a read.
    pub writers: Option<u64>,
    /// What the writer was told otherwise than the dataset says, `name=value;name=value`; empty where nothing.
    #[serde(default)]
    pub properties: String,
    /// Leaf columns of the file.
    pub leaf_columns: Option<u64>,
    /// By how much the writer's own account of its memory was off the counted heap at most, as a share of it.
    pub memory_size_error: Option<f64>,
    /// Bytes of batches that the writer held back at the ledger's peak.
    pub ledger_input_bytes: Option<u64>,
    /// Bytes of values and levels under encoding at the ledger's peak.
    pub ledger_encoder_bytes: Option<u64>,
    /// Bytes of finished pages that waited in memory at the ledger's peak.
    pub ledger_page_store_bytes: Option<u64>,
    /// Bytes of what the parquet crate's own writer encoded at the ledger's peak, as far as it tells.
    pub ledger_upstream_bytes: Option<u64>,
    /// Readers or writers at work at once, each in a thread of its own with the whole work.
    #[serde(default = "one")]
    pub concurrent: u32,
    /// How often the work was done in the one process, of a `cycles` sample.
    pub cycles: Option<u64>,
    /// The memory that the sample was to fit in, in bytes.
    pub memory_limit_bytes: Option<u64>,
    /// What held it to that: `cgroup-v1`, `cgroup-v2`, or `rss`, where max RSS was compared afterwards.
    #[serde(default)]
    pub limited_by: String,
    /// The CPUs that the process was pinned to, such as `0,1`; empty where it was not.
    #[serde(default)]
    pub cpus: String,
    /// When its process was started, in seconds of Unix time.
    pub started_s: Option<f64>,
    /// When its process had ended, in seconds of Unix time.
    pub ended_s: Option<f64>,
    /// Number of the call, of those that allocate or reallocate within the window, from 1, at which the heap peaked.
    pub heap_peak_call: Option<u64>,
    /// Bytes live in the Rust heap after everything that the work made was dropped.
    pub heap_after_bytes: Option<u64>,
    /// The file-backed part of the RSS at the window's end (`RssFile`), in bytes.
    pub rss_file_bytes: Option<u64>,
    /// RSS at the window's end with what is shared divided by its sharers (`Pss`), in bytes.
    pub pss_bytes: Option<u64>,
    /// Dirty pages that are this process's alone at the window's end (`Private_Dirty`), in bytes.
    pub private_dirty_bytes: Option<u64>,
    /// The part of the RSS at the window's end that the kernel takes back when it needs to (`LazyFree`), in bytes.
    pub lazy_free_bytes: Option<u64>,
    /// The part of the RSS at the window's end that is huge pages (`AnonHugePages`), in bytes.
    pub anon_huge_bytes: Option<u64>,
    /// Bytes live at the window's end by the allocator's own statistics.
    pub allocator_live_bytes: Option<u64>,
    /// Bytes that the allocator could use at the window's end without asking the system, by its own statistics.
    pub allocator_committed_bytes: Option<u64>,
    /// Those of them that were neither live nor the allocator's own records.
    pub allocator_retained_bytes: Option<u64>,
    /// Bytes in use in libc's own heap at the window's end (`mallinfo2`).
    pub libc_heap_bytes: Option<u64>,
    /// Bytes free in libc's own heap at the window's end (`mallinfo2`).
    pub libc_free_bytes: Option<u64>,
    /// Bytes free in libc's own heap after everything that the work made was dropped (`mallinfo2`).
    pub libc_free_after_bytes: Option<u64>,
    /// Bytes of pages that arrays alone still held at the ledger's peak.
    pub ledger_kept_bytes: Option<u64>,
    /// Requests for pages that the file was asked.
    pub source_reads: Option<u64>,
    /// Bytes that these requests were for.
    pub source_read_bytes: Option<u64>,
    /// Bytes of values in arrays that are slices of pages, of `decode=direct`.
    pub shared_value_bytes: Option<u64>,
    /// Bytes of values that were written into arrays, of `decode=direct`.
    pub written_value_bytes: Option<u64>,
}

impl Sample {
    /// A sample of which nothing is known yet: names empty, measures `None`, status `ok`,
    /// one thread, scale 1.
    #[must_use]
    pub fn new(kind: Kind, workload: Workload) -> Self {
        Self {
            schema_version: SCHEMA_VERSION,
            run_id: String::new(),
            matrix: String::new(),
            repetition: 0,
            position: 0,
            kind,
            allocator: String::new(),
            allocator_version: String::new(),
            settings: String::new(),
            thp: String::new(),
            profile: String::new(),
            workload,
            dataset: String::new(),
            strategy: String::new(),
            threads: 1,
            batch_rows: 0,
            status: Status::Ok,
            error: String::new(),
            wall_s: None,
            user_s: None,
            sys_s: None,
            max_rss_bytes: None,
            rss_before_bytes: None,
            rss_after_bytes: None,
            rss_anon_bytes: None,
            ru_maxrss_bytes: None,
            heap_peak_bytes: None,
            heap_before_bytes: None,
            allocated_bytes: None,
            allocations: None,
            reallocations: None,
            minor_faults: None,
            major_faults: None,
            rows: None,
            values: None,
            file_bytes: None,
            decoded_bytes: None,
            checksum: None,
            fold: None,
            label: String::new(),
            scale_rows: 1.0,
            scale_columns: 1.0,
            flags: String::new(),
            seed: 0,
            ledger_peak_bytes: None,
            ledger_fetch_bytes: None,
            ledger_decrypt_bytes: None,
            ledger_page_bytes: None,
            ledger_dictionary_bytes: None,
            ledger_codec_bytes: None,
            ledger_output_bytes: None,
            ledger_metadata_bytes: None,
            largest_stored_pages_bytes: None,
            largest_pages_bytes: None,
            process_max_rss_bytes: None,
            disk_read_bytes: None,
            situation: None,
            writers: None,
            properties: String::new(),
            leaf_columns: None,
            memory_size_error: None,
            ledger_input_bytes: None,
            ledger_encoder_bytes: None,
            ledger_page_store_bytes: None,
            ledger_upstream_bytes: None,
            concurrent: 1,
            cycles: None,
            memory_limit_bytes: None,
            limited_by: String::new(),
            cpus: String::new(),
            started_s: None,
            ended_s: None,
            heap_peak_call: None,
            heap_after_bytes: None,
            rss_file_bytes: None,
            pss_bytes: None,
            private_dirty_bytes: None,
            lazy_free_bytes: None,
            anon_huge_bytes: None,
            allocator_live_bytes: None,
            allocator_committed_bytes: None,
            allocator_retained_bytes: None,
            libc_heap_bytes: None,
            libc_free_bytes: None,
            libc_free_after_bytes: None,
            ledger_kept_bytes: None,
            source_reads: None,
            source_read_bytes: None,
            shared_value_bytes: None,
            written_value_bytes: None,
        }
    }

    /// The same sample as a failure: says why, and every measure is emptied.
    #[must_use]
    pub fn failed(self, error: impl fmt::Display) -> Self {
        self.without_measures(Status::Failed, error)
    }

    /// The same sample with its work not done: says why, and every measure is emptied.
    #[must_use]
    pub fn without_measures(self, status: Status, error: impl fmt::Display) -> Self {
        Self {
            schema_version: self.schema_version,
            run_id: self.run_id,
            matrix: self.matrix,
            repetition: self.repetition,
            position: self.position,
            allocator: self.allocator,
            allocator_version: self.allocator_version,
            settings: self.settings,
            thp: self.thp,
            profile: self.profile,
            dataset: self.dataset,
            strategy: self.strategy,
            threads: self.threads,
            batch_rows: self.batch_rows,
            status,
            error: one_line(&error.to_string()),
            label: self.label,
            scale_rows: self.scale_rows,
            scale_columns: self.scale_columns,
            flags: self.flags,
            seed: self.seed,
            situation: self.situation,
            writers: self.writers,
            properties: self.properties,
            concurrent: self.concurrent,
            cycles: self.cycles,
            memory_limit_bytes: self.memory_limit_bytes,
            limited_by: self.limited_by,
            cpus: self.cpus,
            started_s: self.started_s,
            ended_s: self.ended_s,
            ..Self::new(self.kind, self.workload)
        }
    }
}

/// For rows from before the column was there.
fn one() -> u32 {
    1
}

/// A text on one line: runs of white space become one space.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A CSV file of samples that is open for appending.
pub type SampleWriter = RowWriter<Sample>;

/// What a file of samples holds.
pub type Samples = Rows<Sample>;

impl Row for Sample {
    const WHAT: &'static str = "samples";
    const REMEDY: &'static str = "name a file of samples, as `alloquet run` writes them";

    fn blank() -> Self {
        Self::new(Kind::Rss, Workload::Read)
    }

    fn known_columns() -> Vec<(u32, Vec<String>)> {
        older::known_columns()
    }

    fn upgraded(self) -> Self {
        older::upgraded(self)
    }

    fn check(&self) -> Result<(), (&'static str, String)> {
        check::check(self)
    }
}

/// The CSV's columns, in order.
#[must_use]
pub fn columns() -> Vec<String> {
    rows::columns::<Sample>()
}

/// Reads every whole row of `path`. Rows of the versions before become rows of the present one.
///
/// A last line without a line break is left out and becomes a warning.
///
/// # Errors
///
/// Where the file cannot be read, has other columns or another schema version than ours, or where a
/// row cannot be understood. The error names file, line and column.
pub fn read_samples(path: impl AsRef<Path>) -> Result<Samples, SampleError> {
    read_rows(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_columns_are_these() {
        let expected = "schema_version run_id matrix repetition position kind allocator \
            allocator_version settings thp profile workload dataset strategy threads batch_rows \
            status error wall_s user_s sys_s max_rss_bytes rss_before_bytes rss_after_bytes \
            rss_anon_bytes ru_maxrss_bytes heap_peak_bytes heap_before_bytes allocated_bytes \
            allocations reallocations minor_faults major_faults rows values file_bytes \
            decoded_bytes checksum fold label scale_rows scale_columns flags seed \
            ledger_peak_bytes ledger_fetch_bytes ledger_decrypt_bytes ledger_page_bytes \
            ledger_dictionary_bytes ledger_codec_bytes ledger_output_bytes \
            ledger_metadata_bytes largest_stored_pages_bytes largest_pages_bytes \
            process_max_rss_bytes disk_read_bytes situation writers properties leaf_columns \
            memory_size_error ledger_input_bytes ledger_encoder_bytes ledger_page_store_bytes \
            ledger_upstream_bytes concurrent cycles memory_limit_bytes limited_by cpus started_s ended_s heap_peak_call heap_after_bytes rss_file_bytes pss_bytes private_dirty_bytes lazy_free_bytes anon_huge_bytes allocator_live_bytes allocator_committed_bytes allocator_retained_bytes libc_heap_bytes libc_free_bytes libc_free_after_bytes \
            ledger_kept_bytes source_reads source_read_bytes shared_value_bytes written_value_bytes";
        assert_eq!(columns(), expected.split_whitespace().collect::<Vec<_>>());
    }

    #[test]
    fn a_failure_keeps_the_names_and_empties_the_measures() {
        let sample = Sample {
            run_id: "r1".to_owned(),
            strategy: "pooled".to_owned(),
            repetition: 3,
            seed: 42,
            wall_s: Some(1.0),
            rows: Some(7),
            checksum: Some("ab".to_owned()),
            ..Sample::new(Kind::Heap, Workload::Write)
        };
        let expected = Sample {
            run_id: "r1".to_owned(),
            strategy: "pooled".to_owned(),
            repetition: 3,
            seed: 42,
            status: Status::Failed,
            error: "wrong key: column a".to_owned(),
            ..Sample::new(Kind::Heap, Workload::Write)
        };
        assert_eq!(sample.failed("wrong key:\n  column a"), expected);
    }
}
