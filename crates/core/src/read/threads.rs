//! [`Shares`]: all columns of a reader, decoded batch by batch by one thread or by several.
//!
//! Threads take share after share of the same batch, and none goes on to the next batch. So no more is held than one thread holds,
//! but for what each works with.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use arrow_schema::ArrowError;
use parquet::arrow::arrow_reader::RowSelector;
use parquet::errors::{ParquetError, Result};

use super::share::{Pieces, Share};
use crate::decode::column::uneven;

/// The columns of a reader.
pub(super) struct Shares {
    shares: Arc<[Mutex<Share>]>,
    helpers: Vec<Helper>,
    results: Receiver<Vec<ShareResult>>,
}

/// A thread that waits for batches.
struct Helper {
    /// Dropped when the thread is to end.
    batches: Option<Sender<Arc<Batch>>>,
    thread: Option<JoinHandle<()>>,
}

/// The rows of a batch, and how many shares of it were taken.
struct Batch {
    steps: Vec<RowSelector>,
    taken: AtomicUsize,
    shares: Arc<[Mutex<Share>]>,
}

/// The arrays of one share.
type ShareResult = (usize, Result<Pieces, ArrowError>);

impl Shares {
    /// Starts `threads` less one threads.
    ///
    /// # Errors
    /// Where the system starts none.
    pub(super) fn try_new(shares: Vec<Share>, threads: usize) -> Result<Self> {
        let (sender, results) = channel();
        let helpers = (1..threads.min(shares.len())).map(|_| Helper::start(sender.clone()));
        let helpers = helpers.collect::<io::Result<_>>().map_err(|error| {
            ParquetError::General(format!("cannot start {threads} threads: {error}"))
        })?;
        Ok(Self {
            shares: shares.into_iter().map(Mutex::new).collect(),
            helpers,
            results,
        })
    }

    /// The arrays of the rows that `steps` select, in no order, and how many rows they have.
    pub(super) fn next(&mut self, steps: Vec<RowSelector>) -> Result<Pieces, ArrowError> {
        let batch = Arc::new(Batch {
            steps,
            taken: AtomicUsize::new(0),
            shares: Arc::clone(&self.shares),
        });
        // Whoever is gone takes no share: the others do.
        let is_there = |helper: &&Helper| {
            let batches = helper.batches.as_ref();
            batches.is_some_and(|batches| batches.send(Arc::clone(&batch)).is_ok())
        };
        let working = self.helpers.iter().filter(is_there).count();
        let mut results = batch.work();
        for _ in 0..working {
            results.extend(self.results.recv().into_iter().flatten());
        }
        // Of several errors the same one is given each time, as far as that is possible.
        results.sort_by_key(|(share, _)| *share);
        let mut pieces = Vec::new();
        let mut rows = None;
        let is_whole = results.len() == self.shares.len();
        for (_, result) in results {
            let (of_share, now) = result?;
            let before = *rows.get_or_insert(now);
            if before != now {
                return Err(uneven(before, now).into());
            }
            pieces.extend(of_share);
        }
        if !is_whole {
            return Err(ArrowError::ParquetError(
                "a thread of the reader has ended and its columns are missing".into(),
            ));
        }
        Ok((pieces, rows.unwrap_or(0)))
    }
}

impl Batch {
    /// Takes shares until none is left.
    fn work(&self) -> Vec<ShareResult> {
        let mut results = Vec::new();
        loop {
            let at = self.taken.fetch_add(1, Ordering::Relaxed);
            let Some(share) = self.shares.get(at) else {
                return results;
            };
            let mut share = share.lock().unwrap_or_else(PoisonError::into_inner);
            let result = share.next(&self.steps);
            if result.is_err() {
                // The batch has failed: nobody needs to begin another share of it.
                self.taken.fetch_max(self.shares.len(), Ordering::Relaxed);
            }
            results.push((at, result));
        }
    }
}

impl Helper {
    fn start(results: Sender<Vec<ShareResult>>) -> io::Result<Self> {
        let (batches, incoming) = channel::<Arc<Batch>>();
        let thread = thread::Builder::new().name("alloquet-decode".into());
        let thread = thread.spawn(move || {
            for batch in incoming {
                let done = batch.work();
                // The shares must be free before the reader hears of it.
                drop(batch);
                if results.send(done).is_err() {
                    return;
                }
            }
        })?;
        Ok(Self {
            batches: Some(batches),
            thread: Some(thread),
        })
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        self.batches = None;
        if let Some(thread) = self.thread.take() {
            // It ends by itself, and catches what panics in it.
            let _ = thread.join();
        }
    }
}
