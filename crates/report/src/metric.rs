//! The figures that tables show of a sample, and from which kind of sample each may come.

use crate::format;
use crate::sample::{Kind, Sample, Status};
use serde::Serialize;
use std::str::FromStr;

/// One figure of a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Metric {
    /// Most bytes live in the Rust heap at once.
    PeakHeap,
    /// What the work added to the heap at its peak, over its writers and leaf columns, in bytes.
    HeapPerColumn,
    /// The same over its writers alone.
    HeapPerWriter,
    /// Peak RSS (`VmHWM`), in bytes.
    MaxRss,
    /// Page faults served without I/O.
    MinorFaults,
    /// User and system CPU time together, in seconds.
    Cpu,
    /// Wall clock time, in seconds.
    Wall,
    /// RSS that is left of the work after everything was dropped, in bytes.
    RssAfter,
    /// Bytes free in libc's own heap after everything was dropped: free but stuck.
    LibcFree,
    /// Bytes of values that were written into arrays, not shared with pages.
    Copied,
    /// Requests for pages that the file was asked.
    Reads,
}

impl Metric {
    /// Every metric, in the order of the tables.
    pub const ALL: [Self; 11] = [
        Self::PeakHeap,
        Self::HeapPerColumn,
        Self::HeapPerWriter,
        Self::MaxRss,
        Self::MinorFaults,
        Self::Cpu,
        Self::Wall,
        Self::RssAfter,
        Self::LibcFree,
        Self::Copied,
        Self::Reads,
    ];

    /// Those that tables show where nothing else is asked for.
    pub const USUAL: [Self; 7] = [
        Self::PeakHeap,
        Self::HeapPerColumn,
        Self::HeapPerWriter,
        Self::MaxRss,
        Self::MinorFaults,
        Self::Cpu,
        Self::Wall,
    ];

    /// The name by which it is asked for, and which [`FromStr`] reads.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::PeakHeap => "peak-heap",
            Self::HeapPerColumn => "heap-per-column",
            Self::HeapPerWriter => "heap-per-writer",
            Self::MaxRss => "max-rss",
            Self::MinorFaults => "minor-faults",
            Self::Cpu => "cpu",
            Self::Wall => "wall",
            Self::RssAfter => "rss-after",
            Self::LibcFree => "libc-free",
            Self::Copied => "copied",
            Self::Reads => "reads",
        }
    }

    /// The kind of sample that measures it.
    #[must_use]
    pub fn kind(self) -> Kind {
        match self {
            Self::PeakHeap | Self::HeapPerColumn | Self::HeapPerWriter => Kind::Heap,
            Self::MaxRss
            | Self::MinorFaults
            | Self::Cpu
            | Self::Wall
            | Self::RssAfter
            | Self::LibcFree
            | Self::Copied
            | Self::Reads => Kind::Rss,
        }
    }

    /// Whether it divides another figure by something that not every sample tells.
    pub(crate) fn is_share(self) -> bool {
        matches!(self, Self::HeapPerColumn | Self::HeapPerWriter)
    }

    /// Whether a table is without its columns where no sample has it.
    pub(crate) fn may_be_missing(self) -> bool {
        self.is_share()
            || matches!(
                self,
                Self::RssAfter | Self::LibcFree | Self::Copied | Self::Reads
            )
    }

    /// The figure of one sample; `None` where it failed, is of another kind or has no such figure.
    #[must_use]
    pub fn of(self, sample: &Sample) -> Option<f64> {
        if sample.status != Status::Ok || sample.kind != self.kind() {
            return None;
        }
        let count = |count: Option<u64>| count.map(|count| count as f64);
        let at_once = u64::from(sample.concurrent);
        match self {
            Self::PeakHeap => count(sample.heap_peak_bytes),
            Self::HeapPerColumn => over(
                added(sample)?,
                sample.writers.unwrap_or(1) * at_once * sample.leaf_columns?,
            ),
            Self::HeapPerWriter => over(added(sample)?, sample.writers? * at_once),
            Self::MaxRss => count(sample.max_rss_bytes),
            Self::MinorFaults => count(sample.minor_faults),
            Self::Cpu => Some(sample.user_s? + sample.sys_s?),
            Self::Wall => sample.wall_s,
            Self::RssAfter => {
                Some(sample.rss_after_bytes? as f64 - sample.rss_before_bytes? as f64)
            }
            Self::LibcFree => count(sample.libc_free_after_bytes),
            Self::Copied => count(sample.written_value_bytes),
            Self::Reads => count(sample.source_reads),
        }
    }

    /// The heading of its columns, with the unit in which [`Metric::show`] writes.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::PeakHeap => "peak heap MiB",
            Self::HeapPerColumn => "heap/column KiB",
            Self::HeapPerWriter => "heap/writer KiB",
            Self::MaxRss => "max RSS MiB",
            Self::MinorFaults => "minor faults",
            Self::Cpu => "CPU s",
            Self::Wall => "wall s",
            Self::RssAfter => "RSS left MiB",
            Self::LibcFree => "libc free MiB",
            Self::Copied => "copied MiB",
            Self::Reads => "reads",
        }
    }

    /// A figure of this metric, for a column under [`Metric::title`].
    #[must_use]
    pub fn show(self, figure: f64) -> String {
        match self {
            Self::PeakHeap | Self::MaxRss | Self::RssAfter | Self::LibcFree | Self::Copied => {
                format::mib_number(figure)
            }
            Self::HeapPerColumn | Self::HeapPerWriter => format::kib_number(figure),
            Self::MinorFaults | Self::Reads => format::count(figure.round() as u64),
            Self::Cpu | Self::Wall => format::seconds(figure),
        }
    }
}

/// What the work added to the heap at its peak, in bytes.
fn added(sample: &Sample) -> Option<u64> {
    Some(
        sample
            .heap_peak_bytes?
            .saturating_sub(sample.heap_before_bytes?),
    )
}

fn over(bytes: u64, count: u64) -> Option<f64> {
    (count > 0).then(|| bytes as f64 / count as f64)
}

/// A name that is no [`Metric`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no metric '{0}', only {known}", known = format::listed(Metric::ALL.map(Metric::name), Metric::ALL.len()))]
pub struct UnknownMetric(String);

impl FromStr for Metric {
    type Err = UnknownMetric;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let mut all = Self::ALL.into_iter();
        all.find(|metric| metric.name() == name)
            .ok_or_else(|| UnknownMetric(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::Workload;

    #[test]
    fn metrics_go_by_their_names() {
        for metric in Metric::ALL {
            assert_eq!(metric.name().parse(), Ok(metric));
        }
        let error = "rss".parse::<Metric>().unwrap_err().to_string();
        assert_eq!(
            error,
            "there is no metric 'rss', only peak-heap, heap-per-column, heap-per-writer, max-rss, minor-faults, cpu, wall, rss-after, libc-free, copied, reads"
        );
    }

    #[test]
    fn what_was_there_before_is_no_columns_and_no_writers() {
        let written = Sample {
            heap_before_bytes: Some(1_000),
            heap_peak_bytes: Some(7_000),
            leaf_columns: Some(3),
            writers: Some(2),
            ..Sample::new(Kind::Heap, Workload::Write)
        };
        assert_eq!(Metric::HeapPerColumn.of(&written), Some(1_000.0));
        assert_eq!(Metric::HeapPerWriter.of(&written), Some(3_000.0));
        let read = Sample {
            writers: None,
            ..written.clone()
        };
        assert_eq!(Metric::HeapPerColumn.of(&read), Some(2_000.0));
        assert_eq!(Metric::HeapPerWriter.of(&read), None);
        let at_once = Sample {
            concurrent: 3,
            ..written.clone()
        };
        assert_eq!(Metric::HeapPerWriter.of(&at_once), Some(1_000.0));
        let without_columns = Sample {
            leaf_columns: Some(0),
            ..written
        };
        assert_eq!(Metric::HeapPerColumn.of(&without_columns), None);
    }

    #[test]
    fn what_is_left_may_be_less_than_before() {
        let sample = Sample {
            rss_before_bytes: Some(9 << 20),
            rss_after_bytes: Some(7 << 20),
            libc_free_after_bytes: Some(3 << 20),
            ..Sample::new(Kind::Rss, Workload::Read)
        };
        let shown = |metric: Metric| metric.of(&sample).map(|figure| metric.show(figure));
        assert_eq!(shown(Metric::RssAfter).as_deref(), Some("-2.0"));
        assert_eq!(shown(Metric::LibcFree).as_deref(), Some("3.0"));
    }

    #[test]
    fn a_figure_comes_only_from_a_good_sample_of_its_kind() {
        let sample = Sample {
            user_s: Some(1.0),
            sys_s: Some(0.5),
            heap_peak_bytes: Some(9),
            ..Sample::new(Kind::Rss, Workload::Read)
        };
        assert_eq!(Metric::Cpu.of(&sample), Some(1.5));
        assert_eq!(Metric::PeakHeap.of(&sample), None);
        assert_eq!(Metric::MaxRss.of(&sample), None);
        let broken = Sample {
            status: Status::Failed,
            ..sample
        };
        assert_eq!(Metric::Cpu.of(&broken), None);
    }
}
