//! What an allocator says of the memory that it holds.

use std::fmt;

use alloquet_report::format::mib;

/// An allocator's own figures, bytes of this process; `None` where it does not tell.
///
/// What an allocator cannot tell is not made up here: mimalloc, for example, does not count what is live in a build for
/// production. Each figure holds at one moment only as far as no other thread allocates meanwhile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Statistics {
    /// In blocks that were handed out and not freed, rounded up to the allocator's sizes.
    ///
    /// * glibc: `mallinfo2`, `uordblks` and `hblkhd`; what threads cache for themselves counts as handed out.
    /// * jemalloc: `stats.allocated` without `tcache_bytes`, which threads cache for themselves.
    /// * mimalloc, snmalloc: not told.
    pub(crate) live_bytes: Option<u64>,
    /// What it can use without asking the system, live or free, its own records included: at most this is resident.
    ///
    /// * glibc: `arena` and `hblkhd`.
    /// * jemalloc: `stats.resident` and muzzy pages.
    /// * mimalloc 3: `committed`, what was ever used of its arenas: a purge does not make it less.
    /// * mimalloc 2: `committed` too, but of each arena the whole, 1 GiB from the first on.
    /// * snmalloc: what its threads took of the ranges that they share.
    pub(crate) committed_bytes: Option<u64>,
    /// Of the committed, what is neither live nor metadata: freed and kept, or never handed out.
    ///
    /// * glibc: `fordblks`.
    /// * jemalloc: the difference.
    /// * mimalloc, snmalloc: not told.
    pub(crate) retained_bytes: Option<u64>,
    /// Given back to the system since the process started.
    ///
    /// * jemalloc: dirty pages that were purged, `dirty_purged` of all arenas.
    /// * mimalloc: `purged` and `reset`.
    /// * glibc, snmalloc: not told.
    pub(crate) purged_bytes: Option<u64>,
    /// The allocator's own records.
    ///
    /// * jemalloc: `stats.metadata`.
    /// * glibc: not told; the header of a block counts as live.
    /// * mimalloc, snmalloc: not told.
    pub(crate) metadata_bytes: Option<u64>,
    /// What it takes to be in memory. A page that was never touched counts, so this is a maximum.
    ///
    /// * jemalloc: `stats.resident`.
    /// * glibc, mimalloc, snmalloc: not told.
    pub(crate) resident_bytes: Option<u64>,
    /// Address space that it holds, whether memory stands behind it or not.
    ///
    /// * jemalloc: `stats.mapped` and `stats.retained`.
    /// * mimalloc: `reserved`.
    /// * glibc, snmalloc: not told.
    pub(crate) reserved_bytes: Option<u64>,
}

impl Statistics {
    /// The figures by their names, the most telling first.
    pub(crate) fn figures(&self) -> [(&'static str, Option<u64>); 7] {
        [
            ("live", self.live_bytes),
            ("committed", self.committed_bytes),
            ("retained", self.retained_bytes),
            ("purged", self.purged_bytes),
            ("metadata", self.metadata_bytes),
            ("resident", self.resident_bytes),
            ("reserved", self.reserved_bytes),
        ]
    }
}

/// What is told, such as `live 1.5 MiB, committed 2.0 MiB`.
impl fmt::Display for Statistics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let told = self
            .figures()
            .into_iter()
            .filter_map(|(name, bytes)| Some(format!("{name} {}", mib(bytes?))));
        let told: Vec<String> = told.collect();
        f.write_str(if told.is_empty() { "none" } else { "" })?;
        f.write_str(&told.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_told_is_shown() {
        let statistics = Statistics {
            live_bytes: Some(3 << 20),
            purged_bytes: Some(0),
            ..Statistics::default()
        };
        let expected = format!("live {}, purged {}", mib(3 << 20), mib(0));
        assert_eq!(statistics.to_string(), expected);
        assert_eq!(Statistics::default().to_string(), "none");
    }
}
