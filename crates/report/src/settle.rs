//! What stays resident once everything was dropped: whether it goes back, when, and what a purge does.
//!
//! Nothing runs meanwhile: some allocators give memory back only when they are called again.

use crate::cycles::{above, near};
use crate::format;
use crate::sample::Sample;
use crate::series::Point;
use crate::verify::{NOT_PURGED, flags_of};
use serde::Serialize;

/// A purge that gives back less than this did nothing, in bytes.
const SMALLEST_PURGE: f64 = 1024.0 * 1024.0;

/// What a `settle` sample comes to.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Settling {
    /// RSS before the work, in bytes.
    pub before_bytes: f64,
    /// RSS right after everything was dropped, in bytes.
    pub dropped_bytes: f64,
    /// RSS at the end of the waiting, in bytes.
    pub waited_bytes: f64,
    /// How long the waiting was, in seconds.
    pub waited_s: f64,
    /// The part of it that the kernel takes when it needs to, in bytes; where it tells.
    pub lazy_free_bytes: Option<u64>,
    /// RSS after the allocator's purge, in bytes; `None` where it has none.
    pub purged_bytes: Option<f64>,
    /// When memory was given back.
    pub verdict: Verdict,
    /// The same in words.
    pub text: String,
}

/// When memory was given back.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "given_back", content = "after_s")]
pub enum Verdict {
    /// When it was dropped.
    AtOnce,
    /// So many seconds later, at the latest.
    After(f64),
    /// Only when the allocator was told to.
    OnlyPurged,
    /// Not at all.
    Never,
}

impl Settling {
    /// Of a sample's points: one `dropped`, any number after it, and one or more `purged`. What was there before is a
    /// point `before`, or else what the sample says. `None` where nothing was dropped.
    #[must_use]
    pub fn of(sample: &Sample, points: &[Point]) -> Option<Self> {
        let dropped = points.iter().position(|point| point.phase == "dropped")?;
        let (earlier, later) = points.split_at(dropped);
        let dropped = later.first()?;
        let before = earlier.iter().find(|point| point.phase == "before");
        let before = before.map(|point| point.rss_bytes);
        let before_bytes = before.or(sample.rss_before_bytes)? as f64;
        // Where there is no purge, looking once more after it says nothing.
        let has_purge = !flags_of(sample).any(|flag| flag == NOT_PURGED);
        let purged = later.iter().rfind(|point| point.phase == "purged");
        let purged = purged.filter(|_| has_purge);
        let waiting = || later.iter().filter(|point| point.phase != "purged");
        let waited = waiting().next_back().unwrap_or(dropped);

        let back = |point: &&Point| near(point.rss_bytes as f64, before_bytes);
        let after = |point: &Point| (point.at_s - dropped.at_s).max(0.0);
        let verdict = match waiting().find(back) {
            Some(point) if std::ptr::eq(point, dropped) => Verdict::AtOnce,
            Some(point) => Verdict::After(after(point)),
            None if purged.as_ref().is_some_and(back) => Verdict::OnlyPurged,
            None => Verdict::Never,
        };
        let mut settling = Self {
            before_bytes,
            dropped_bytes: dropped.rss_bytes as f64,
            waited_bytes: waited.rss_bytes as f64,
            waited_s: after(waited),
            lazy_free_bytes: waited.lazy_free_bytes,
            purged_bytes: purged.map(|point| point.rss_bytes as f64),
            verdict,
            text: String::new(),
        };
        settling.text = settling.in_words();
        Some(settling)
    }

    fn in_words(&self) -> String {
        let before = format!("the {} before", mib(self.before_bytes));
        let beside = |bytes: f64| above(bytes - self.before_bytes);
        let waited = format!(
            "{} s later it is {}",
            trimmed(self.waited_s),
            beside(self.waited_bytes)
        );
        let dropped = format!("RSS is {} {before}", beside(self.dropped_bytes));
        match self.verdict {
            Verdict::AtOnce => format!("at once: {dropped}"),
            Verdict::After(s) => format!("after {} s: at first {dropped}, {waited}", trimmed(s)),
            Verdict::OnlyPurged => format!(
                "only after a purge: {dropped}, {waited}{}, purged {}",
                self.lazily(),
                beside(self.purged_bytes.unwrap_or_default())
            ),
            Verdict::Never => {
                let purge = match self.purged_bytes {
                    None => "there is no purge".to_owned(),
                    Some(purged) if self.waited_bytes - purged < SMALLEST_PURGE => {
                        "the purge did nothing".to_owned()
                    }
                    Some(purged) => format!("the purge left {}", beside(purged)),
                };
                format!("never: {dropped}, {waited}{}, {purge}", self.lazily())
            }
        }
    }

    /// What of the kept memory the kernel could have; empty where that is nothing to speak of.
    fn lazily(&self) -> String {
        match self.lazy_free_bytes {
            Some(bytes) if bytes as f64 >= SMALLEST_PURGE => format!(
                " ({} of it freed lazily: the kernel takes it when memory is short)",
                format::mib(bytes)
            ),
            _ => String::new(),
        }
    }
}

fn mib(bytes: f64) -> String {
    format!("{} MiB", format::mib_number(bytes))
}

/// Seconds with one decimal, and none where they are whole.
fn trimmed(seconds: f64) -> String {
    let text = format!("{seconds:.1}");
    text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{Kind, Workload};

    fn point(phase: &str, at_s: f64, mib: u64) -> Point {
        Point {
            phase: phase.to_owned(),
            point: 0,
            at_s,
            rss_bytes: mib << 20,
            lazy_free_bytes: None,
            heap_live_bytes: None,
        }
    }

    /// 20 MiB before; then RSS at 0, 0.1, 1 and 5 s and after a purge, in MiB.
    fn settling(looks: [u64; 4], purged: Option<u64>) -> Settling {
        let mut sample = Sample::new(Kind::Settle, Workload::Read);
        let mut points = vec![
            point("before", -2.0, 20),
            point("peak", -0.1, 900),
            point("dropped", 0.0, looks[0]),
        ];
        for (at_s, mib) in [0.1, 1.0, 5.0].into_iter().zip(&looks[1..]) {
            points.push(point("settled", at_s, *mib));
        }
        points.push(point("before-purge", 5.01, looks[3]));
        // It is looked at whether or not there is a purge.
        points.push(point("purged", 5.02, purged.unwrap_or(looks[3])));
        if purged.is_none() {
            sample.flags = format!("swapped; {NOT_PURGED}");
        }
        Settling::of(&sample, &points).unwrap()
    }

    fn text(looks: [u64; 4], purged: Option<u64>) -> String {
        settling(looks, purged).text
    }

    #[test]
    fn it_is_said_when_memory_was_given_back() {
        assert_eq!(
            text([25, 25, 25, 25], None),
            "at once: RSS is 5.0 MiB above the 20.0 MiB before"
        );
        assert_eq!(
            text([300, 300, 22, 21], Some(21)),
            "after 1 s: at first RSS is 280.0 MiB above the 20.0 MiB before, 5 s later it is 1.0 MiB above"
        );
        assert_eq!(
            text([300, 290, 290, 290], Some(19)),
            "only after a purge: RSS is 280.0 MiB above the 20.0 MiB before, 5 s later it is 270.0 MiB above, purged \
             1.0 MiB below"
        );
    }

    #[test]
    fn a_purge_that_did_nothing_is_told_from_one_that_is_not_there() {
        assert!(text([90, 90, 90, 90], Some(90)).ends_with("above, the purge did nothing"));
        assert!(text([90, 90, 90, 90], None).ends_with("above, there is no purge"));
        let some = settling([90, 90, 90, 90], Some(60));
        assert_eq!(some.verdict, Verdict::Never);
        assert!(some.text.ends_with("the purge left 40.0 MiB above"));
    }

    #[test]
    fn a_large_process_may_keep_a_twentieth() {
        let sample = Sample {
            rss_before_bytes: Some(1000 << 20),
            ..Sample::new(Kind::Settle, Workload::Read)
        };
        let dropped = |mib| {
            [Point {
                lazy_free_bytes: Some(30 << 20),
                ..point("dropped", 0.0, mib)
            }]
        };
        let found = Settling::of(&sample, &dropped(1050)).unwrap();
        assert_eq!(found.verdict, Verdict::AtOnce);
        let found = Settling::of(&sample, &dropped(1051)).unwrap();
        assert_eq!(found.verdict, Verdict::Never);
        assert!(found.text.contains("(30.0 MiB of it freed lazily"));
        assert_eq!(Settling::of(&sample, &[]), None);
        let unknown = Sample::new(Kind::Settle, Workload::Read);
        assert_eq!(Settling::of(&unknown, &dropped(1)), None);
    }
}
