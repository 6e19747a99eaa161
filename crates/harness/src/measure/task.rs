//! The work of a sample as something that is done once or many times, by this thread or by several at once, whatever is
//! measured of it.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use anyhow::{Context, Result, bail};

/// What one thread does, with everything made that can be made before the window.
pub(super) trait Task: Send {
    /// What is left of it.
    type Facts: Facts;

    /// Does it. What it makes is held until [`Self::finish`].
    fn perform(&mut self) -> Result<()>;

    /// Drops everything it made and had.
    fn finish(self) -> Self::Facts;
}

/// What is left of a task that is done.
pub(super) trait Facts: Send {
    /// Says how it differs from what the same task left before, where it must not.
    ///
    /// # Errors
    ///
    /// It does.
    fn check_same(&self, before: &Self) -> Result<()>;

    /// Drops all but what [`Self::check_same`] looks at, so that nothing of any size outlives the task.
    fn shrink(&mut self);
}

/// What is looked at when, by the thread that waits for the others or does the work itself.
pub(super) trait Moments {
    /// Everything is ready, and the work begins.
    fn begin(&mut self) -> Result<()>;

    /// The work is done, and everything it made is held.
    fn done(&mut self) -> Result<()>;

    /// Everything was dropped. Threads that did the work wait to end.
    fn dropped(&mut self) -> Result<()>;
}

/// Does `count` tasks at once: one in this thread, several in a thread each. They have ended when this returns.
///
/// # Errors
///
/// Of a task, in their order, or of `moments`.
pub(super) fn perform<T: Task>(
    count: usize,
    prepare: &mut impl FnMut(usize) -> Result<T>,
    moments: &mut impl Moments,
) -> Result<Vec<T::Facts>> {
    if count == 1 {
        // Nothing is allocated here until the end: what heap samples count is the work's.
        let mut task = prepare(0)?;
        moments.begin()?;
        task.perform()?;
        moments.done()?;
        let facts = task.finish();
        moments.dropped()?;
        return Ok(vec![facts]);
    }
    let tasks = (0..count).map(prepare).collect::<Result<Vec<_>>>()?;
    together(tasks, moments)
}

/// A thread each. All of them stop at six places: when they are there, before the work, after it, before what they made
/// is dropped, after that, and before they end, for that gives back more. One that fails goes on to stop, so that nobody
/// waits forever.
fn together<T: Task>(tasks: Vec<T>, moments: &mut impl Moments) -> Result<Vec<T::Facts>> {
    let count = tasks.len();
    let stops = Stops::new(count + 1);
    let member = |mut task: T| {
        if !stops.stop() {
            bail!("not every thread could be started");
        }
        stops.stop();
        let performed = catch_unwind(AssertUnwindSafe(|| task.perform()));
        stops.stop();
        stops.stop();
        let facts = task.finish();
        stops.stop();
        stops.stop();
        // The thread that waits for this one goes on with the panic.
        performed.unwrap_or_else(|panic| resume_unwind(panic))?;
        Ok(facts)
    };
    thread::scope(|scope| {
        let mut members = Vec::with_capacity(count);
        for task in tasks {
            let number = members.len() + 1;
            let started = thread::Builder::new().spawn_scoped(scope, || member(task));
            if started.is_err() {
                stops.abandon();
            }
            members
                .push(started.with_context(|| format!("cannot start thread {number} of {count}"))?);
        }
        stops.stop();
        let begun = moments.begin();
        stops.stop();
        stops.stop();
        let done = begun.and_then(|()| moments.done());
        stops.stop();
        stops.stop();
        let dropped = done.and_then(|()| moments.dropped());
        stops.stop();
        // All of them have ended before any is heard: a settle sample looks at what is left of them.
        let ended: Vec<_> = members.into_iter().map(|member| member.join()).collect();
        let facts = ended
            .into_iter()
            .map(|ended| ended.unwrap_or_else(|panic| resume_unwind(panic)));
        let facts = facts.collect::<Result<Vec<_>>>()?;
        dropped?;
        Ok(facts)
    })
}

/// Places at which threads wait for one another; a `Barrier` that can be given up.
struct Stops {
    threads: usize,
    state: Mutex<Stopped>,
    changed: Condvar,
}

#[derive(Default)]
struct Stopped {
    waiting: usize,
    /// How often all threads were there.
    passed: usize,
    abandoned: bool,
}

impl Stops {
    fn new(threads: usize) -> Self {
        Self {
            threads,
            state: Mutex::default(),
            changed: Condvar::new(),
        }
    }

    fn state(&self) -> MutexGuard<'_, Stopped> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until all threads are here, and says whether they are.
    fn stop(&self) -> bool {
        let mut state = self.state();
        state.waiting += 1;
        if state.waiting == self.threads {
            state.waiting = 0;
            state.passed += 1;
            self.changed.notify_all();
            return true;
        }
        let here = state.passed;
        let passed = self
            .changed
            .wait_while(state, |state| state.passed == here && !state.abandoned);
        passed.unwrap_or_else(PoisonError::into_inner).passed != here
    }

    /// Lets all threads go that wait or will wait, though not all of them will be there.
    fn abandon(&self) {
        self.state().abandoned = true;
        self.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
    use std::time::Duration;

    use super::*;

    /// How many tasks were performed and finished, and how many of their threads have ended.
    #[derive(Default)]
    struct Counts {
        performed: AtomicUsize,
        finished: AtomicUsize,
        ended: AtomicUsize,
    }

    impl Counts {
        fn now(&self) -> [usize; 3] {
            [&self.performed, &self.finished, &self.ended].map(|count| count.load(SeqCst))
        }
    }

    /// Counts the end of its thread.
    struct End(Arc<Counts>);

    impl Drop for End {
        fn drop(&mut self) {
            self.0.ended.fetch_add(1, SeqCst);
        }
    }

    thread_local! {
        static END: RefCell<Option<End>> = const { RefCell::new(None) };
    }

    struct Counted {
        counts: Arc<Counts>,
        number: usize,
        /// `Some(false)` fails, `None` panics.
        well: Option<bool>,
    }

    impl Task for Counted {
        type Facts = usize;

        fn perform(&mut self) -> Result<()> {
            END.set(Some(End(Arc::clone(&self.counts))));
            self.counts.performed.fetch_add(1, SeqCst);
            match self.well {
                Some(true) => Ok(()),
                Some(false) => bail!("number {} fails", self.number),
                None => panic!("number {} panics", self.number),
            }
        }

        fn finish(self) -> usize {
            self.counts.finished.fetch_add(1, SeqCst);
            self.number
        }
    }

    impl Facts for usize {
        fn check_same(&self, _: &Self) -> Result<()> {
            Ok(())
        }

        fn shrink(&mut self) {}
    }

    /// The counts at each moment.
    struct Seen {
        counts: Arc<Counts>,
        seen: Vec<[usize; 3]>,
    }

    impl Seen {
        fn look(&mut self) -> Result<()> {
            // Time for a thread to do what it must not do yet.
            thread::sleep(Duration::from_millis(5));
            self.seen.push(self.counts.now());
            Ok(())
        }
    }

    impl Moments for Seen {
        fn begin(&mut self) -> Result<()> {
            self.look()
        }

        fn done(&mut self) -> Result<()> {
            self.look()
        }

        fn dropped(&mut self) -> Result<()> {
            self.look()
        }
    }

    /// What comes of tasks, and the counts at each moment and afterwards.
    fn performed(wells: &[Option<bool>]) -> (Result<Vec<usize>>, Vec<[usize; 3]>) {
        let counts = Arc::new(Counts::default());
        let mut seen = Seen {
            counts: Arc::clone(&counts),
            seen: Vec::new(),
        };
        let mut prepare = |number: usize| {
            Ok(Counted {
                counts: Arc::clone(&counts),
                number,
                well: wells[number],
            })
        };
        let facts = perform(wells.len(), &mut prepare, &mut seen);
        let mut seen = seen.seen;
        seen.push(counts.now());
        (facts, seen)
    }

    #[test]
    fn every_moment_finds_all_threads_at_the_same_place() {
        for n in [2, 7] {
            let (facts, seen) = performed(&vec![Some(true); n]);
            assert_eq!(facts.unwrap(), (0..n).collect::<Vec<_>>());
            assert_eq!(seen, [[0, 0, 0], [n, 0, 0], [n, n, 0], [n, n, n]]);
        }
        // One does its work in this thread.
        let (facts, seen) = performed(&[Some(true)]);
        assert_eq!(facts.unwrap(), [0]);
        assert_eq!(seen, [[0, 0, 0], [1, 0, 0], [1, 1, 0], [1, 1, 0]]);
    }

    #[test]
    fn one_that_fails_does_not_hold_up_the_others() {
        let (facts, seen) = performed(&[Some(true), Some(false), Some(true)]);
        assert_eq!(facts.unwrap_err().to_string(), "number 1 fails");
        assert_eq!(seen, [[0, 0, 0], [3, 0, 0], [3, 3, 0], [3, 3, 3]]);
    }

    #[test]
    #[should_panic(expected = "number 1 panics")]
    fn a_panic_goes_on_in_the_thread_that_waits() {
        let _ = performed(&[Some(true), None, Some(true)]);
    }

    #[test]
    fn who_waits_for_threads_that_never_come_is_let_go() {
        let stops = Stops::new(3);
        thread::scope(|scope| {
            let waiting = scope.spawn(|| stops.stop());
            stops.abandon();
            assert!(!waiting.join().unwrap());
        });
        assert!(!stops.stop());
    }
}
