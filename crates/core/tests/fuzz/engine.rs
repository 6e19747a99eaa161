//! Runs a target many times, and says which run failed and how to repeat it.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use alloquet_core::ReadStrategy;

use crate::HEAP;
use crate::mutate::Random;

/// Runs begun so far: by it the watchdog sees a run that does not end.
static BEGUN: AtomicU64 = AtomicU64::new(0);

/// No run takes so long, however busy the machine is.
const ENDLESS: Duration = Duration::from_secs(120);

/// Ends the process, the test failing so, where one run does not end; what that run is, `label` says.
fn watch<T>(label: impl Fn(u64) -> String + Send + Sync, f: impl FnOnce() -> T) -> T {
    let (done, ended) = channel::<()>();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let mut last = BEGUN.load(Ordering::Relaxed);
            while ended.recv_timeout(ENDLESS) == Err(RecvTimeoutError::Timeout) {
                let now = BEGUN.load(Ordering::Relaxed);
                if now == last {
                    eprintln!("{}: does not end", label(now));
                    std::process::exit(1);
                }
                last = now;
            }
        });
        let result = f();
        drop(done);
        result
    })
}

/// Only one campaign at a time: the allocator counts for the whole process.
static ALONE: Mutex<()> = Mutex::new(());

/// Runs `f` while no other campaign runs.
pub(crate) fn alone<T>(f: impl FnOnce() -> T) -> T {
    let _lock = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    f()
}

/// What one run reads, and how.
#[derive(Clone)]
pub(crate) struct Case {
    /// Which seed the bytes were made from.
    pub(crate) seed: usize,
    pub(crate) bytes: Vec<u8>,
    pub(crate) strategy: ReadStrategy,
    pub(crate) batch_size: usize,
    pub(crate) verify_checksums: bool,
    /// Whether some rows are left out.
    pub(crate) select: bool,
    /// A number for what else a target chooses.
    pub(crate) choice: usize,
}

/// What came of a run.
#[derive(Default)]
pub(crate) struct Outcome {
    pub(crate) error: Option<String>,
    /// Step, bytes that the heap grew by at the most in it, and the bound of that.
    pub(crate) growth: Vec<(&'static str, u64, u64)>,
}

impl Outcome {
    /// Runs a step and notes how far the heap grew in it. `bound` is asked afterwards.
    pub(crate) fn step<T>(
        &mut self,
        name: &'static str,
        step: impl FnOnce() -> T,
        bound: impl FnOnce(&T) -> u64,
    ) -> T {
        HEAP.reset_peak_usage();
        let before = HEAP.current_usage();
        let result = step();
        let growth = HEAP.peak_usage().saturating_sub(before) as u64;
        let bound = bound(&result);
        self.growth.push((name, growth, bound));
        result
    }
}

pub(crate) trait Target {
    fn name(&self) -> &'static str;
    /// Runs unless the environment says otherwise: some seconds.
    fn default_runs(&self) -> u64;
    fn case(&self, random: &mut Random) -> Case;
    fn run(&self, case: &Case) -> Outcome;
    /// The bytes that a case was made from, and their name.
    fn original(&self, case: &Case) -> (&'static [u8], &'static str);
}

/// A number from the environment.
pub(crate) fn variable(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(
        text.parse()
            .unwrap_or_else(|_| panic!("{name} is no number: {text}")),
    )
}

/// A place in the parquet crate that panicked, the panic having become an error.
struct Wrapped {
    times: u64,
    first: String,
}

/// Bytes that the threads of the test harness may take meanwhile: memory is counted for the whole process.
const HARNESS: u64 = 4 << 10;

/// What a campaign found.
#[derive(Default)]
pub(crate) struct Findings {
    runs: u64,
    errors: u64,
    wrapped: BTreeMap<String, Wrapped>,
    slowest: Duration,
    /// By step: the largest growth in bytes, and the largest part of its bound.
    growth: BTreeMap<&'static str, (u64, f64)>,
}

impl Findings {
    /// Runs a case: a panic or too much memory fails the test with `label`.
    pub(crate) fn add(&mut self, target: &impl Target, case: &Case, label: impl Fn() -> String) {
        BEGUN.fetch_add(1, Ordering::Relaxed);
        let start = Instant::now();
        let outcome = catch_unwind(AssertUnwindSafe(|| target.run(case)));
        self.slowest = self.slowest.max(start.elapsed());
        let Ok(outcome) = outcome else {
            panic!("{}: panicked: {}", label(), describe(target, case));
        };
        self.runs += 1;
        self.errors += u64::from(outcome.error.is_some());
        for (step, growth, bound) in outcome.growth {
            assert!(
                growth <= bound.saturating_add(HARNESS),
                "{}: {step} took {growth} bytes where {bound} are allowed: {}; {:?}",
                label(),
                describe(target, case),
                outcome.error,
            );
            let most = self.growth.entry(step).or_default();
            most.0 = most.0.max(growth);
            most.1 = most.1.max(growth as f64 / bound.max(1) as f64);
        }
        if let Some(place) = outcome.error.as_deref().and_then(panic_place) {
            self.wrapped
                .entry(place.to_owned())
                .and_modify(|known| known.times += 1)
                .or_insert_with(|| Wrapped {
                    times: 1,
                    first: format!(
                        "{}: {}: {}",
                        label(),
                        describe(target, &reduced(target, case, place)),
                        outcome.error.as_deref().unwrap_or_default(),
                    ),
                });
        }
    }

    pub(crate) fn report(&self, name: &str, took: Duration) {
        println!(
            "{name}: {} runs in {:.1} s, {} with an error, slowest {:.1} ms",
            self.runs,
            took.as_secs_f64(),
            self.errors,
            self.slowest.as_secs_f64() * 1e3,
        );
        for (step, (bytes, part)) in &self.growth {
            println!(
                "  {step}: at most {bytes} bytes, at most {:.0} % of its bound",
                100.0 * part
            );
        }
        for (place, wrapped) in &self.wrapped {
            println!("  {} × {place}\n    {}", wrapped.times, wrapped.first);
        }
    }
}

/// Runs a target as often as the environment says.
pub(crate) fn campaign(target: &impl Target) -> Findings {
    let name = target.name();
    let seed = variable("ALLOQUET_FUZZ_SEED").unwrap_or(1);
    let runs = match variable("ALLOQUET_FUZZ_ONLY") {
        Some(run) => run..run + 1,
        None => 0..variable("ALLOQUET_FUZZ_RUNS").unwrap_or_else(|| target.default_runs()),
    };
    let mut trace = std::env::var_os("ALLOQUET_FUZZ_TRACE").map(|path| File::create(path).unwrap());
    let mut findings = Findings::default();
    let start = Instant::now();
    let before = BEGUN.load(Ordering::Relaxed) + 1;
    let first = runs.start;
    let repeat = |run: u64| format!("ALLOQUET_FUZZ_SEED={seed} ALLOQUET_FUZZ_ONLY={run} {name}");
    let of_watch = |begun: u64| repeat(first + begun.saturating_sub(before));
    let all = || {
        for run in runs {
            if let Some(trace) = &mut trace {
                writeln!(trace, "{name} seed {seed} run {run}").unwrap();
            }
            let case = target.case(&mut Random::new(seed, run));
            findings.add(target, &case, || repeat(run));
        }
    };
    watch(of_watch, all);
    findings.report(name, start.elapsed());
    findings
}

/// Where the decoder panicked, by the error's text.
fn panic_place(error: &str) -> Option<&str> {
    let (_, rest) = error.split_once("the decoder panicked at ")?;
    Some(rest.split_once(" (")?.0)
}

/// The case with as many bytes as they were before as still panics at the same place.
fn reduced(target: &impl Target, case: &Case, place: &str) -> Case {
    let original = target.original(case).0;
    let mut best = case.clone();
    if best.bytes.len() != original.len() {
        return best;
    }
    for (i, old) in original.iter().enumerate() {
        if best.bytes[i] == *old {
            continue;
        }
        let mut fewer = best.clone();
        fewer.bytes[i] = *old;
        let error = target.run(&fewer).error;
        if error.as_deref().and_then(panic_place) == Some(place) {
            best = fewer;
        }
    }
    best
}

fn describe(target: &impl Target, case: &Case) -> String {
    let (original, name) = target.original(case);
    let mut text = format!(
        "{name}, {}, batches of {}, {} bytes",
        case.strategy,
        case.batch_size,
        case.bytes.len()
    );
    if original.len() == case.bytes.len() {
        let changed = original.iter().zip(&case.bytes).enumerate();
        for (i, (old, new)) in changed.filter(|(_, (old, new))| old != new).take(32) {
            text += &format!(", [{i}] {old:02x}→{new:02x}");
        }
    } else {
        text += &format!(", {} before", original.len());
    }
    text
}
