//! How a sample's work is done and looked at: once in a window, or many times, as its kind asks.

use alloquet_report::format::mib;
use alloquet_report::sample::{Kind, Workload};
use alloquet_report::series::Point;
use anyhow::{Context, Result, bail, ensure};

use super::explain::{self, Explanation};
use super::job::{Conduct, Job};
use super::looks::Looks;
use super::settle;
use super::task::{Facts, Moments, Task, perform};
use super::timeline::Timeline;
use super::window::{Closed, Measures, Window};
use crate::allocator;

/// The most threads at once: more is a slip of the keyboard.
const MOST_THREADS: usize = 1024;

/// The most cycles: their points are held in memory.
const MOST_CYCLES: u32 = 100_000;

/// What was measured, and what is left of the tasks, in order.
pub(super) struct Taken<F> {
    pub(super) measures: Measures,
    pub(super) flags: Vec<String>,
    pub(super) facts: Vec<F>,
    /// Where the RSS was, of an `explain` sample.
    pub(super) explanation: Option<Explanation>,
    pub(super) points: Vec<Point>,
}

/// Refuses what cannot be done.
///
/// # Errors
///
/// The message says what is wrong, and what to do.
pub(super) fn check(job: &Job) -> Result<()> {
    let Conduct {
        threads,
        concurrent,
        cycles,
        timeline_ms,
        ..
    } = job.conduct;
    ensure!(
        threads >= 1 && concurrent >= 1,
        "threads and concurrent are at least 1, not {threads} and {concurrent}"
    );
    ensure!(
        threads.saturating_mul(concurrent) <= MOST_THREADS,
        "{concurrent} at once with {threads} threads each are more than {MOST_THREADS} threads"
    );
    if job.workload == Workload::Write && threads > 1 {
        bail!(
            "a writer works in one thread, not in {threads}: use concurrent for several writers with a thread each, or \
             writers for several in one thread"
        );
    }
    match job.kind {
        Kind::Cycles => ensure!(
            (1..=MOST_CYCLES).contains(&cycles),
            "cycles is a number from 1 to {MOST_CYCLES}, not {cycles}"
        ),
        Kind::Timeline => ensure!(
            (1..=100).contains(&timeline_ms),
            "the points of a timeline are from 1 to 100 ms apart, not {timeline_ms}"
        ),
        Kind::Heap | Kind::Rss | Kind::Explain | Kind::Settle => {}
    }
    Ok(())
}

/// Does the work, which is `count` tasks at once, as the job's kind asks.
///
/// # Errors
///
/// Whatever a task fails with; `/proc` cannot be read; one cycle did other work than the first.
pub(super) fn take<T: Task>(
    job: &Job,
    count: usize,
    mut prepare: impl FnMut(usize) -> Result<T>,
) -> Result<Taken<T::Facts>> {
    if job.kind == Kind::Cycles {
        return cycles(job, count, &mut prepare);
    }
    let mut once = Once::new(job)?;
    let facts = perform(count, &mut prepare, &mut once)?;
    let Once {
        window: Stage::Dropped(measures, mut flags),
        looks,
        timeline,
        explanation,
        ..
    } = once
    else {
        bail!("the window was not closed");
    };
    if let (Measures::Watched(measures), Some(explanation)) = (&measures, &explanation)
        && let Some(heap) = &measures.heap
        && explanation.heap_live_bytes < heap.heap_peak_bytes / 20 * 19
    {
        flags.push(format!(
            "halted at {} of live heap where the peak was {}",
            mib(explanation.heap_live_bytes),
            mib(heap.heap_peak_bytes)
        ));
    }
    let points = match (looks, timeline) {
        (Some(looks), _) => settle::settle(looks, count > 1, &mut flags)?,
        (None, Some(timeline)) => timeline.end(&mut flags)?,
        (None, None) => Vec::new(),
    };
    Ok(Taken {
        measures,
        flags,
        facts,
        explanation,
        points,
    })
}

/// A window around work that is done once.
struct Once<'a> {
    job: &'a Job,
    window: Stage,
    /// Of a `settle` sample.
    looks: Option<Looks>,
    timeline: Option<Timeline>,
    /// Of an `explain` sample.
    explanation: Option<Explanation>,
}

/// How far a window is.
enum Stage {
    Before,
    Open(Window),
    Closed(Closed),
    Dropped(Measures, Vec<String>),
}

impl<'a> Once<'a> {
    fn new(job: &'a Job) -> Result<Self> {
        let timeline = match job.kind {
            Kind::Timeline => Some(Timeline::start(job.conduct.timeline_ms)?),
            _ => None,
        };
        Ok(Self {
            job,
            window: Stage::Before,
            looks: (job.kind == Kind::Settle).then(settle::looks),
            timeline,
            explanation: None,
        })
    }

    fn stage(&mut self) -> Stage {
        std::mem::replace(&mut self.window, Stage::Before)
    }
}

impl Moments for Once<'_> {
    fn begin(&mut self) -> Result<()> {
        give_back(self.job);
        if let Some(looks) = &mut self.looks {
            looks.look("before")?;
        }
        if let Some(timeline) = &self.timeline {
            timeline.enter("work")?;
        }
        if self.job.kind == Kind::Explain {
            let call = self.job.conduct.peak_call;
            let call = call.context("no heap sample of its cell says where the heap peaks")?;
            explain::arm(call);
        }
        self.window = Stage::Open(Window::open(self.job.kind)?);
        Ok(())
    }

    fn done(&mut self) -> Result<()> {
        let Stage::Open(window) = self.stage() else {
            bail!("the window is closed before it was opened");
        };
        let closed = window.close()?;
        if self.job.kind == Kind::Explain {
            self.explanation = Some(explain::take()?);
        }
        if let Some(timeline) = &self.timeline {
            timeline.enter("dropped")?;
        }
        if let Some(looks) = &mut self.looks {
            looks.peak("peak", closed.max_rss_bytes());
        }
        self.window = Stage::Closed(closed);
        Ok(())
    }

    fn dropped(&mut self) -> Result<()> {
        if let Some(looks) = &mut self.looks {
            looks.restart();
            looks.look("dropped")?;
        }
        let Stage::Closed(closed) = self.stage() else {
            bail!("everything was dropped before the window was closed");
        };
        let (measures, flags) = closed.after_drop()?;
        self.window = Stage::Dropped(measures, flags);
        Ok(())
    }
}

/// What loading the table of a write left free is given back before the window.
fn give_back(job: &Job) {
    if job.workload == Workload::Write {
        allocator::purge();
    }
}

/// Looks at nothing: the window is around all cycles.
struct Unobserved;

impl Moments for Unobserved {
    fn begin(&mut self) -> Result<()> {
        Ok(())
    }

    fn done(&mut self) -> Result<()> {
        Ok(())
    }

    fn dropped(&mut self) -> Result<()> {
        Ok(())
    }
}

/// The same work again and again, in one window. Whatever a cycle made is gone before it is looked at; of the first one
/// a few numbers are kept, in a place that was there before.
fn cycles<T: Task>(
    job: &Job,
    count: usize,
    prepare: &mut impl FnMut(usize) -> Result<T>,
) -> Result<Taken<T::Facts>> {
    let cycles = job.conduct.cycles;
    let mut looks = Looks::new(cycles as usize + 1);
    let mut first: Vec<T::Facts> = Vec::with_capacity(count);
    give_back(job);
    let window = Window::open(job.kind)?;
    looks.restart();
    looks.look("before")?;
    for cycle in 1..=cycles {
        let done = perform(count, prepare, &mut Unobserved)
            .with_context(|| format!("cycle {cycle} of {cycles}"))?;
        for (number, mut facts) in done.into_iter().enumerate() {
            facts.shrink();
            match first.get(number) {
                Some(first) => facts.check_same(first).with_context(|| {
                    format!("cycle {cycle} of {cycles} did other work than the first")
                })?,
                None => first.push(facts),
            }
        }
        looks.look("cycle")?;
    }
    let (measures, flags) = window.close()?.after_drop()?;
    Ok(Taken {
        measures,
        flags,
        facts: first,
        explanation: None,
        points: looks.points(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(workload: Workload, kind: Kind, conduct: Conduct) -> String {
        let job = Job {
            workload,
            kind,
            file: "a.parquet".into(),
            strategy: "pooled".to_owned(),
            batch_rows: 1,
            writing: Default::default(),
            conduct,
            dataset: None,
            keys: None,
        };
        check(&job).map_or_else(|error| error.to_string(), |()| String::new())
    }

    #[test]
    fn what_cannot_be_done_is_refused_with_a_way_out() {
        let conduct = Conduct::default;
        let threads = Conduct {
            threads: 2,
            ..conduct()
        };
        assert_eq!(refused(Workload::Read, Kind::Rss, threads.clone()), "");
        let told = refused(Workload::Write, Kind::Rss, threads);
        assert!(
            told.contains("concurrent") && told.contains("writers"),
            "{told}"
        );
        let many = Conduct {
            threads: 64,
            concurrent: 64,
            ..conduct()
        };
        let told = refused(Workload::Read, Kind::Rss, many);
        assert!(told.contains("more than 1024 threads"), "{told}");
        for none in [
            Conduct {
                threads: 0,
                ..conduct()
            },
            Conduct {
                concurrent: 0,
                ..conduct()
            },
        ] {
            assert!(refused(Workload::Read, Kind::Rss, none).contains("at least 1"));
        }
        let cycles = Conduct {
            cycles: 0,
            ..conduct()
        };
        assert_eq!(refused(Workload::Read, Kind::Heap, cycles.clone()), "");
        let told = refused(Workload::Read, Kind::Cycles, cycles);
        assert!(told.contains("from 1 to 100000, not 0"), "{told}");
        let timeline = Conduct {
            timeline_ms: 101,
            ..conduct()
        };
        let told = refused(Workload::Read, Kind::Timeline, timeline);
        assert!(told.contains("1 to 100 ms"), "{told}");
    }
}
