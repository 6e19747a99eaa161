//! The global allocator of this build: exactly one, chosen by a Cargo feature, always under the
//! counting wrapper.
//!
//! Each allocator is one file of the same shape: `Inner` and `INNER`, `NAME`, `SETTINGS_VARIABLES`,
//! `version()`, `read_settings()`, `asked_settings()`, `has_unread()`, `PURGES` and `purge()`. To add
//! one: its file, its feature, and a line in each group of `cfg`s here.

mod blocks;
mod c_heap;
mod counting;
mod footprint;
#[cfg(feature = "jemalloc")]
mod jemalloc;
#[cfg(feature = "mimalloc")]
mod mimalloc;
#[cfg(feature = "snmalloc")]
mod snmalloc;
#[cfg(not(any(feature = "jemalloc", feature = "mimalloc", feature = "snmalloc")))]
mod system;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub(crate) use self::blocks::{Block, Blocks, Hook};
pub(crate) use self::c_heap::{CHeap, mallinfo};
use self::counting::Counting;
pub(crate) use self::counting::HeapCounts;
pub(crate) use self::footprint::SHARED_WITH_C;
#[cfg(feature = "jemalloc")]
use self::jemalloc as chosen;
#[cfg(all(feature = "mimalloc", not(feature = "jemalloc")))]
use self::mimalloc as chosen;
#[cfg(all(
    feature = "snmalloc",
    not(any(feature = "jemalloc", feature = "mimalloc"))
))]
use self::snmalloc as chosen;
#[cfg(not(any(feature = "jemalloc", feature = "mimalloc", feature = "snmalloc")))]
use self::system as chosen;

#[cfg(any(
    all(feature = "jemalloc", feature = "mimalloc"),
    all(feature = "jemalloc", feature = "snmalloc"),
    all(feature = "mimalloc", feature = "snmalloc"),
))]
compile_error!(
    "a build has exactly one allocator: pass one of --features jemalloc, --features mimalloc, --features snmalloc, \
     or none for the system's. To compare several, build one binary each and measure them together (scripts/run-matrix.sh)"
);

#[global_allocator]
static GLOBAL: Counting<chosen::Inner> = Counting::new(chosen::INNER, footprint::of);

/// Names and values, of variables or of an allocator's options.
pub(crate) type Settings = BTreeMap<String, String>;

/// Variables that some allocator reads, whatever this build's allocator is: C code (zstd) uses
/// libc's in each build. A trailing `*` stands for any ending.
pub(crate) const RECORDED_VARIABLES: &[&str] = &[
    "MALLOC_*",
    "GLIBC_TUNABLES",
    "MIMALLOC_*",
    "_RJEM_MALLOC_CONF",
];

/// A version and where it was learnt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Version {
    /// As the allocator writes it.
    pub(crate) version: String,
    /// Who said so.
    pub(crate) source: &'static str,
}

/// What this build's allocator is and how it is set, read back from it in this process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct AllocatorFacts {
    /// `system`, `mimalloc`, `jemalloc` or `snmalloc`.
    pub(crate) name: String,
    /// The version as the allocator writes it.
    pub(crate) version: String,
    /// Where the version was learnt.
    pub(crate) version_source: String,
    /// The variables it honours; a trailing `*` stands for any ending.
    pub(crate) settings_variables: Vec<String>,
    /// Its effective options, as far as it says.
    pub(crate) settings: Settings,
    /// The allocator variables that this process was started with, [`RECORDED_VARIABLES`].
    pub(crate) environment: Settings,
}

/// Asked settings against the effective ones.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SettingsCheck {
    /// One clause for each asked setting that the allocator did not take, or does not have.
    pub(crate) refused: Vec<String>,
    /// The asked settings whose effect cannot be read back.
    pub(crate) unread: Vec<String>,
}

/// The name of this build's allocator, as in the CSV.
pub(crate) fn name() -> &'static str {
    chosen::NAME
}

/// The version of this build's allocator.
pub(crate) fn version() -> Version {
    chosen::version()
}

/// The variables that this build's allocator honours; a trailing `*` stands for any ending.
pub(crate) fn settings_variables() -> &'static [&'static str] {
    chosen::SETTINGS_VARIABLES
}

/// The allocator variables of this process, [`RECORDED_VARIABLES`].
pub(crate) fn recorded_environment() -> Settings {
    let variables = std::env::vars_os().filter_map(|(name, value)| {
        let name = name.into_string().ok()?;
        matches_any(RECORDED_VARIABLES, &name).then(|| (name, value.to_string_lossy().into_owned()))
    });
    variables.collect()
}

/// Whether `name` is an allocator's variable, [`RECORDED_VARIABLES`].
pub(crate) fn matches_recorded(name: &str) -> bool {
    matches_any(RECORDED_VARIABLES, name)
}

/// Everything about this build's allocator, read back from it.
pub(crate) fn facts() -> AllocatorFacts {
    let Version { version, source } = version();
    AllocatorFacts {
        name: name().to_owned(),
        version,
        version_source: source.to_owned(),
        settings_variables: settings_variables()
            .iter()
            .map(|&variable| variable.to_owned())
            .collect(),
        settings: chosen::read_settings(),
        environment: recorded_environment(),
    }
}

/// Holds what the environment asks of this build's allocator against what the allocator says.
pub(crate) fn check_settings(facts: &AllocatorFacts) -> SettingsCheck {
    let mut check = SettingsCheck::default();
    for (name, value) in chosen::asked_settings(&facts.environment) {
        match facts.settings.get(&name) {
            Some(effective) if *effective == value => {}
            Some(effective) => {
                check
                    .refused
                    .push(format!("{name} was to be {value} and is {effective}"));
            }
            None if chosen::has_unread(&name, &facts.settings) => check.unread.push(name),
            None => check.refused.push(format!("{name} is no setting of it")),
        }
    }
    check
}

/// Gives back to the system what is free in this build's allocator and in libc's own heap, as far as they do that when
/// told to; see [`purges`].
pub(crate) fn purge() {
    chosen::purge();
    c_heap::trim();
}

/// Whether this build's allocator can be told to give back what is free.
pub(crate) fn purges() -> bool {
    chosen::PURGES
}

/// Counts from here on. Call it before anything that should be counted.
pub(crate) fn start_counting() {
    GLOBAL.start();
}

/// Counts from here on and knows every live block; `hook` is what a halt does. Call it before anything that should be
/// explained.
pub(crate) fn start_explaining(hook: Hook) {
    GLOBAL.start_explaining(hook);
}

/// Whether every live block is known.
pub(crate) fn is_explaining() -> bool {
    GLOBAL.is_explaining()
}

/// Halts once the call number `ordinal` after the next [`reset_peak`] has been made and another one comes; see
/// [`Counting::halt_after`].
pub(crate) fn halt_after(ordinal: u64) {
    GLOBAL.halt_after(ordinal);
}

/// Halts now if the call to halt after has been made and no other came since.
pub(crate) fn halt_if_due() {
    GLOBAL.halt_if_due();
}

/// Halts now.
pub(crate) fn halt() {
    GLOBAL.halt();
}

/// Whether the heap is being counted.
pub(crate) fn is_counting() -> bool {
    GLOBAL.is_started()
}

/// Makes what is live now the peak.
pub(crate) fn reset_peak() {
    GLOBAL.reset_peak();
}

/// What was counted so far; zeros unless [`start_counting`] was called.
pub(crate) fn heap_counts() -> HeapCounts {
    GLOBAL.counts()
}

fn matches_any(patterns: &[&str], name: &str) -> bool {
    patterns
        .iter()
        .any(|pattern| match pattern.strip_suffix('*') {
            Some(prefix) => name.starts_with(prefix),
            None => *pattern == name,
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_name_this_build() {
        let facts = facts();
        assert_eq!(facts.name, name());
        assert!(
            facts
                .version
                .starts_with(|first: char| first.is_ascii_digit()),
            "{facts:?}"
        );
    }

    #[test]
    fn a_purge_gives_back_what_was_freed() {
        let rss = || crate::sys::memory::Resident::now().unwrap().rss_bytes;
        // Small blocks, which every allocator keeps when they are freed.
        let blocks: Vec<Vec<u8>> = (0..200_000).map(|_| vec![1; 512]).collect();
        let held = rss();
        drop(blocks);
        purge();
        let after = rss();
        // Other tests allocate meanwhile, so it need not be all of 100 MB.
        if purges() {
            assert!(after + 50_000_000 < held, "{after} of {held}");
        }
    }

    #[test]
    fn patterns_match_whole_names_or_prefixes() {
        assert!(matches_any(RECORDED_VARIABLES, "MALLOC_ARENA_MAX"));
        assert!(matches_any(RECORDED_VARIABLES, "_RJEM_MALLOC_CONF"));
        assert!(!matches_any(RECORDED_VARIABLES, "GLIBC_TUNABLES_TOO"));
        assert!(!matches_any(RECORDED_VARIABLES, "PATH"));
    }

    #[test]
    fn an_empty_environment_asks_nothing() {
        let facts = AllocatorFacts {
            environment: Settings::new(),
            ..facts()
        };
        assert_eq!(check_settings(&facts), SettingsCheck::default());
    }
}
