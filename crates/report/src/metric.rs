//! The figures that tables show of a sample, and from which kind of sample each may come.

use crate::format;
use crate::sample::{Kind, Sample, Status};
use std::str::FromStr;

/// One figure of a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Metric {
    /// Most bytes live in the Rust heap at once.
    PeakHeap,
    /// Peak RSS (`VmHWM`), in bytes.
    MaxRss,
    /// Page faults served without I/O.
    MinorFaults,
    /// User and system CPU time together, in seconds.
    Cpu,
    /// Wall clock time, in seconds.
    Wall,
}

impl Metric {
    /// Every metric, in the order of the tables.
    pub const ALL: [Self; 5] = [
        Self::PeakHeap,
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
            Self::MaxRss => "max-rss",
            Self::MinorFaults => "minor-faults",
            Self::Cpu => "cpu",
            Self::Wall => "wall",
        }
    }

    /// The kind of sample that measures it.
    #[must_use]
    pub fn kind(self) -> Kind {
        match self {
            Self::PeakHeap => Kind::Heap,
            Self::MaxRss | Self::MinorFaults | Self::Cpu | Self::Wall => Kind::Rss,
        }
    }

    /// The figure of one sample; `None` where it failed, is of another kind or has no such figure.
    #[must_use]
    pub fn of(self, sample: &Sample) -> Option<f64> {
        if sample.status != Status::Ok || sample.kind != self.kind() {
            return None;
        }
        let count = |count: Option<u64>| count.map(|count| count as f64);
        match self {
            Self::PeakHeap => count(sample.heap_peak_bytes),
            Self::MaxRss => count(sample.max_rss_bytes),
            Self::MinorFaults => count(sample.minor_faults),
            Self::Cpu => Some(sample.user_s? + sample.sys_s?),
            Self::Wall => sample.wall_s,
        }
    }

    /// The heading of its columns, with the unit in which [`Metric::show`] writes.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::PeakHeap => "peak heap MiB",
            Self::MaxRss => "max RSS MiB",
            Self::MinorFaults => "minor faults",
            Self::Cpu => "CPU s",
            Self::Wall => "wall s",
        }
    }

    /// A figure of this metric, for a column under [`Metric::title`].
    #[must_use]
    pub fn show(self, figure: f64) -> String {
        match self {
            Self::PeakHeap | Self::MaxRss => format::mib_number(figure),
            Self::MinorFaults => format::count(figure.round() as u64),
            Self::Cpu | Self::Wall => format::seconds(figure),
        }
    }
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
            "there is no metric 'rss', only peak-heap, max-rss, minor-faults, cpu, wall"
        );
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
