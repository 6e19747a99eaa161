//! From a worker's reply to the row of the CSV.

use alloquet_report::format::mib;
use alloquet_report::parts::Part;
use alloquet_report::sample::{Kind, Sample, Status, Workload};
use alloquet_report::series::Point;
use alloquet_report::verify::{DISK_READS, RU_MAXRSS_DIFFERS, peaks_differ};

use super::setup::Setup;
use super::worker::Taken;
use crate::measure::{Conduct, HeapMeasures, Measures, Outcome, RssMeasures, WatchedMeasures};
use crate::plan::{Step, Work};

/// What every row of a run shares.
pub(super) struct RunFacts {
    pub(super) run_id: String,
    pub(super) matrix: String,
    pub(super) seed: u64,
}

/// One sample of a run, before it is taken.
pub(super) struct Place<'a> {
    pub(super) step: Step,
    /// In the run's order.
    pub(super) position: usize,
    pub(super) work: &'a Work,
    pub(super) setup: &'a Setup,
    pub(super) conduct: &'a Conduct,
    /// What holds it to its limit of memory, as in the CSV; empty where there is no limit.
    pub(super) limited_by: &'static str,
}

/// A sample's row, and what goes to the CSV's companions.
pub(super) struct Recorded {
    pub(super) sample: Sample,
    pub(super) parts: Vec<Part>,
    pub(super) points: Vec<Point>,
}

/// What is recorded of one sample, whether it was taken or failed.
pub(super) fn record(run: &RunFacts, place: &Place<'_>, taken: Taken) -> Recorded {
    let mut taken = taken;
    let (mut parts, mut points) = (Vec::new(), Vec::new());
    if let Ok(done) = &mut taken.reply {
        parts = std::mem::take(&mut done.outcome.parts);
        points = std::mem::take(&mut done.outcome.points);
    }
    let sample = row(run, place, taken);
    if sample.status != Status::Ok {
        parts.clear();
        points.clear();
    }
    Recorded {
        sample,
        parts,
        points,
    }
}

fn row(run: &RunFacts, place: &Place<'_>, taken: Taken) -> Sample {
    let Place {
        step,
        position,
        work,
        setup,
        conduct,
        limited_by,
    } = *place;
    let (scale_rows, scale_columns) = work.input.scale();
    let is_write = work.workload == Workload::Write;
    let binary = &setup.binary;
    let environment = &binary.environment;
    let named = Sample {
        run_id: run.run_id.clone(),
        matrix: run.matrix.clone(),
        seed: run.seed,
        repetition: step.repetition as u32,
        position: position as u32,
        label: binary.label.clone(),
        allocator: environment.allocator.name.clone(),
        allocator_version: environment.allocator.version.clone(),
        settings: setup.settings.column(),
        thp: environment.machine.thp.summary().to_owned(),
        profile: environment.build.profile.clone(),
        dataset: work.input.name(),
        strategy: work.strategies[step.strategy].clone(),
        batch_rows: work.batch_rows as u64,
        scale_rows,
        scale_columns,
        situation: is_write.then_some(work.writing.situation),
        writers: is_write.then_some(work.writing.writers as u64),
        properties: if is_write {
            work.writing.changes.to_string()
        } else {
            String::new()
        },
        threads: work.threads as u32,
        concurrent: work.concurrent as u32,
        cycles: (step.kind == Kind::Cycles).then_some(u64::from(conduct.cycles)),
        memory_limit_bytes: work.memory_limit.map(|limit| limit.0),
        limited_by: limited_by.to_owned(),
        cpus: cpus(conduct),
        started_s: Some(taken.started_s),
        ended_s: Some(taken.ended_s),
        ..Sample::new(step.kind, work.workload)
    };
    let done = match taken.reply {
        Err(ended) => return named.without_measures(ended.status, ended.why),
        Ok(done) => *done,
    };
    // What the worker read back counts, not what the binary said when it was asked first.
    let mut sample = Sample {
        allocator: done.allocator.name,
        allocator_version: done.allocator.version,
        thp: done.thp.summary().to_owned(),
        profile: done.profile,
        flags: done.outcome.flags.join("; "),
        ..named
    };
    fill(&mut sample, done.outcome);
    if let (Some(own), Some(waited)) = (sample.process_max_rss_bytes, taken.ru_maxrss_bytes) {
        sample.ru_maxrss_bytes = Some(waited);
        if peaks_differ(own, waited) {
            flag(&mut sample, RU_MAXRSS_DIFFERS);
        }
    }
    match (limited_by, work.memory_limit, sample.max_rss_bytes) {
        (LIMITED_BY_RSS, Some(limit), Some(rss)) if rss > limit.0 => {
            let why = format!(
                "did not fit in {limit}: max RSS was {}, held against the limit afterwards",
                mib(rss)
            );
            sample.without_measures(Status::DidNotFit, why)
        }
        _ => sample,
    }
}

/// The word for a limit that max RSS is compared with.
pub(super) const LIMITED_BY_RSS: &str = "rss";

fn cpus(conduct: &Conduct) -> String {
    let cpus: Vec<String> = conduct.cpus.iter().map(usize::to_string).collect();
    cpus.join(",")
}

fn fill(sample: &mut Sample, outcome: Outcome) {
    match outcome.measures {
        Measures::Heap(heap) => fill_heap(sample, &heap),
        Measures::Rss(rss) => fill_rss(sample, &rss),
        Measures::Watched(watched) => fill_watched(sample, &watched),
    }
    sample.rows = Some(outcome.rows);
    sample.values = Some(outcome.values);
    sample.file_bytes = Some(outcome.file_bytes);
    sample.decoded_bytes = Some(outcome.decoded_bytes);
    sample.checksum = outcome.checksum;
    sample.fold = Some(outcome.fold);
    sample.leaf_columns = Some(outcome.leaf_columns);
    sample.memory_size_error = outcome.memory_size_error;
    sample.largest_stored_pages_bytes = outcome.pages.map(|pages| pages.largest_stored_bytes);
    sample.largest_pages_bytes = outcome.pages.map(|pages| pages.largest_bytes);
    if let Some(copying) = outcome.copying {
        sample.source_reads = Some(copying.reads);
        sample.source_read_bytes = Some(copying.read_bytes);
        sample.shared_value_bytes = copying.shared_value_bytes;
        sample.written_value_bytes = copying.written_value_bytes;
    }
    if let Some(ledger) = outcome.ledger {
        let purpose = |name: &str| ledger.by_purpose.get(name).copied();
        sample.ledger_peak_bytes = Some(ledger.total_bytes);
        sample.ledger_fetch_bytes = purpose("fetch");
        sample.ledger_decrypt_bytes = purpose("decrypt");
        sample.ledger_page_bytes = purpose("page");
        // Writers keep no pages in arrays.
        sample.ledger_kept_bytes = purpose("kept").filter(|_| sample.workload == Workload::Read);
        sample.ledger_dictionary_bytes = purpose("dictionary");
        sample.ledger_codec_bytes = purpose("codec");
        sample.ledger_output_bytes = purpose("output");
        sample.ledger_metadata_bytes = purpose("metadata");
        sample.ledger_input_bytes = purpose("input");
        sample.ledger_encoder_bytes = purpose("encoder");
        sample.ledger_page_store_bytes = purpose("page store");
        sample.ledger_upstream_bytes = purpose("upstream");
    }
}

fn fill_heap(sample: &mut Sample, heap: &HeapMeasures) {
    sample.heap_peak_bytes = Some(heap.heap_peak_bytes);
    sample.heap_before_bytes = Some(heap.heap_before_bytes);
    sample.allocated_bytes = Some(heap.allocated_bytes);
    sample.allocations = Some(heap.allocations);
    sample.reallocations = Some(heap.reallocations);
    sample.heap_peak_call = heap.heap_peak_call;
    sample.heap_after_bytes = Some(heap.heap_after_bytes);
}

fn fill_watched(sample: &mut Sample, watched: &WatchedMeasures) {
    if let Some(heap) = &watched.heap {
        fill_heap(sample, heap);
    }
    sample.max_rss_bytes = Some(watched.max_rss_bytes);
    sample.rss_before_bytes = Some(watched.rss_before_bytes);
    sample.rss_after_bytes = Some(watched.rss_after_bytes);
    sample.process_max_rss_bytes = Some(watched.process_max_rss_bytes);
}

fn fill_rss(sample: &mut Sample, rss: &RssMeasures) {
    sample.wall_s = Some(rss.wall_s);
    sample.user_s = Some(rss.user_s);
    sample.sys_s = Some(rss.sys_s);
    sample.max_rss_bytes = Some(rss.max_rss_bytes);
    sample.rss_before_bytes = Some(rss.rss_before_bytes);
    sample.rss_after_bytes = Some(rss.rss_after_bytes);
    sample.rss_anon_bytes = rss.rss_anon_bytes;
    sample.rss_file_bytes = rss.rss_file_bytes;
    sample.process_max_rss_bytes = Some(rss.process_max_rss_bytes);
    sample.minor_faults = Some(rss.minor_faults);
    sample.major_faults = Some(rss.major_faults);
    sample.disk_read_bytes = rss.disk_read_bytes;
    sample.pss_bytes = rss.pss_bytes;
    sample.private_dirty_bytes = rss.private_dirty_bytes;
    sample.lazy_free_bytes = rss.lazy_free_bytes;
    sample.anon_huge_bytes = rss.anon_huge_bytes;
    sample.allocator_live_bytes = rss.allocator_live_bytes;
    sample.allocator_committed_bytes = rss.allocator_committed_bytes;
    sample.allocator_retained_bytes = rss.allocator_retained_bytes;
    sample.libc_heap_bytes = rss.libc_heap_bytes;
    sample.libc_free_bytes = rss.libc_free_bytes;
    sample.libc_free_after_bytes = rss.libc_free_after_bytes;
    if rss.disk_read_bytes.is_some_and(|bytes| bytes > 0) {
        flag(sample, DISK_READS);
    }
}

fn flag(sample: &mut Sample, note: &str) {
    if !sample.flags.is_empty() {
        sample.flags.push_str("; ");
    }
    sample.flags.push_str(note);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_that_read_from_a_disk_is_flagged() {
        let filled = |disk_read_bytes| {
            let mut sample = Sample {
                flags: "swapped".to_owned(),
                ..Sample::new(Kind::Rss, Workload::Read)
            };
            let measures = RssMeasures {
                disk_read_bytes,
                ..RssMeasures::default()
            };
            fill_rss(&mut sample, &measures);
            (sample.disk_read_bytes, sample.flags)
        };
        assert_eq!(filled(None), (None, "swapped".to_owned()));
        assert_eq!(filled(Some(0)), (Some(0), "swapped".to_owned()));
        assert_eq!(
            filled(Some(4096)),
            (Some(4096), "swapped; disk-reads".to_owned())
        );
    }
}
