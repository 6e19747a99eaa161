//! How a file's row groups are dealt to the threads that read it.

use std::fmt::Display;

use alloquet_report::format::plural;
use anyhow::{Result, ensure};

/// Runs of row groups, one for each thread, as even as they can be.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Shares {
    row_groups: usize,
    threads: usize,
}

impl Shares {
    /// Deals `row_groups` of the file `name` to `threads`.
    ///
    /// # Errors
    ///
    /// There are fewer row groups than threads.
    pub(super) fn new(row_groups: usize, threads: usize, name: &impl Display) -> Result<Self> {
        ensure!(
            threads == 1 || row_groups >= threads,
            "{name} has {}, which cannot be shared by {threads} threads: use as many threads at most",
            plural(row_groups as u64, "row group")
        );
        Ok(Self {
            row_groups,
            threads,
        })
    }

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.threads
    }

    /// The row groups of share number `share`; `None` where one thread has them all.
    pub(super) fn of(&self, share: usize) -> Option<Vec<usize>> {
        let start = |share: usize| share * self.row_groups / self.threads;
        (self.threads > 1).then(|| (start(share)..start(share + 1)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_group_is_in_one_share() {
        for (row_groups, threads) in [(2, 2), (7, 3), (5, 4), (64, 7)] {
            let shares = Shares::new(row_groups, threads, &"a.parquet").unwrap();
            let dealt: Vec<Vec<usize>> = (0..threads)
                .map(|share| shares.of(share).unwrap())
                .collect();
            assert_eq!(dealt.concat(), (0..row_groups).collect::<Vec<_>>());
            let sizes = dealt.iter().map(Vec::len);
            assert!(sizes.clone().max().unwrap() - sizes.min().unwrap() <= 1);
        }
        assert_eq!(Shares::new(3, 1, &"a.parquet").unwrap().of(0), None);
    }

    #[test]
    fn fewer_row_groups_than_threads_are_refused() {
        let error = Shares::new(1, 2, &"a.parquet").unwrap_err().to_string();
        assert!(
            error.starts_with("a.parquet has 1 row group, ") && error.contains("2 threads"),
            "{error}"
        );
        assert!(Shares::new(0, 1, &"a.parquet").is_ok());
    }
}
