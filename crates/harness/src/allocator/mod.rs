//! The global allocator of this build: exactly one, chosen by a Cargo feature, under the counting wrapper unless the build
//! is `bare`.
//!
//! Each allocator is one file with a unit struct that is an [`Allocator`]. `docs/allocators.md` says how to add one.

mod blocks;
mod c_heap;
mod counting;
#[cfg(feature = "dhat")]
mod dhat;
mod footprint;
#[cfg(feature = "jemalloc")]
mod jemalloc;
#[cfg(any(feature = "mimalloc", feature = "mimalloc-v2"))]
mod mimalloc;
mod profile;
#[cfg(feature = "snmalloc")]
mod snmalloc;
mod statistics;
#[cfg(any(
    feature = "dhat",
    not(any(
        feature = "jemalloc",
        feature = "mimalloc",
        feature = "mimalloc-v2",
        feature = "snmalloc"
    ))
))]
mod system;
#[cfg(test)]
mod tests;

use std::alloc::GlobalAlloc;
use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

pub(crate) use self::blocks::{Block, Blocks, Hook};
pub(crate) use self::c_heap::{CHeap, mallinfo2};
use self::counting::Counting;
pub(crate) use self::counting::HeapCounts;
pub(crate) use self::footprint::SHARED_WITH_C;
pub(crate) use self::profile::start_profile;
pub(crate) use self::statistics::Statistics;

/// Makes `Chosen` the allocator of the feature that is on, or the last one where none is, and refuses two. The features
/// that were looked at are in brackets.
macro_rules! choose {
    ([$($before:tt)*] $feature:tt => $allocator:ty, $($rest:tt)*) => {
        #[cfg(all(feature = $feature, not(any($(feature = $before),*))))]
        type Chosen = $allocator;
        #[cfg(all(feature = $feature, any($(feature = $before),*)))]
        compile_error!(
            "a build has exactly one allocator: pass one of --features mimalloc, mimalloc-v2, jemalloc, snmalloc, dhat, or \
             none for the system's. To compare several, build one binary each and measure them together \
             (scripts/run-matrix.sh)"
        );
        choose!([$($before)* $feature] $($rest)*);
    };
    ([$($before:tt)*] $allocator:ty) => {
        #[cfg(not(any($(feature = $before),*)))]
        type Chosen = $allocator;
    };
}

choose!(
    []
    "dhat" => dhat::Dhat,
    "jemalloc" => jemalloc::Jemalloc,
    "mimalloc" => mimalloc::Mimalloc,
    "mimalloc-v2" => mimalloc::Mimalloc,
    "snmalloc" => snmalloc::Snmalloc,
    system::System
);

#[cfg_attr(not(feature = "bare"), global_allocator)]
static GLOBAL: Counting<<Chosen as Allocator>::Inner> = Counting::new(Chosen::INNER, footprint::of);

/// The allocator of a build without the counting wrapper, where [`GLOBAL`] is nobody's and counts nothing.
#[cfg(feature = "bare")]
#[global_allocator]
static BARE: <Chosen as Allocator>::Inner = Chosen::INNER;

/// What an allocator is asked. All of it is about this process.
trait Allocator {
    /// What allocates.
    type Inner: GlobalAlloc;
    /// The one of that type.
    const INNER: Self::Inner;
    /// As in the CSV.
    const NAME: &'static str;
    /// The variables that it honours; a trailing `*` stands for any ending.
    const SETTINGS_VARIABLES: &'static [&'static str];
    /// The call of [`Self::purge`] as its manual names it; `None` where there is none to make.
    const PURGE: Option<&'static str>;

    /// The version, from the library itself if it can be asked.
    fn version() -> Version;

    /// Its effective options, as far as it says.
    fn read_settings() -> Settings;

    /// What its variables in `environment` ask for, in the terms of [`Self::read_settings`]. What makes no sense is asked
    /// too, so that it is not found among what was read.
    fn asked_settings(environment: &Settings) -> Settings;

    /// Whether there is a setting `name`, though [`Self::read_settings`], which read `settings`, did not read it.
    fn has_unread(name: &str, settings: &Settings) -> bool;

    /// What it says of its memory.
    fn statistics() -> Statistics;

    /// Gives back to the system what is free, as far as it can be made to from this thread.
    fn purge();
}

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
    /// `system`, `mimalloc`, `mimalloc-v2`, `mimalloc-override`, `jemalloc`, `jemalloc-override`, `snmalloc` or `dhat`.
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
    Chosen::NAME
}

/// The version of this build's allocator.
pub(crate) fn version() -> Version {
    Chosen::version()
}

/// The variables that this build's allocator honours; a trailing `*` stands for any ending.
pub(crate) fn settings_variables() -> &'static [&'static str] {
    Chosen::SETTINGS_VARIABLES
}

/// The allocator variables of this process, [`RECORDED_VARIABLES`].
pub(crate) fn recorded_environment() -> Settings {
    let variables = std::env::vars_os().filter_map(|(name, value)| {
        let name = name.into_string().ok()?;
        matches_any(RECORDED_VARIABLES, &name).then(|| (name, value.to_string_lossy().into_owned()))
    });
    variables.collect()
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
        settings: Chosen::read_settings(),
        environment: recorded_environment(),
    }
}

/// Holds what the environment asks of this build's allocator against what the allocator says.
pub(crate) fn check_settings(facts: &AllocatorFacts) -> SettingsCheck {
    let mut check = SettingsCheck::default();
    for (name, value) in Chosen::asked_settings(&facts.environment) {
        match facts.settings.get(&name) {
            Some(effective) if *effective == value => {}
            Some(effective) => {
                check
                    .refused
                    .push(format!("{name} was to be {value} and is {effective}"));
            }
            None if Chosen::has_unread(&name, &facts.settings) => check.unread.push(name),
            None => check.refused.push(format!("{name} is no setting of it")),
        }
    }
    check
}

/// What a purge called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Purge {
    /// The allocator's own call; `None` where it has none, so that nothing was done to it.
    pub(crate) allocator: Option<&'static str>,
    /// The call on libc's own heap; `None` where libc has none.
    pub(crate) c_heap: Option<&'static str>,
}

/// The calls, or that there was none to make: `nothing on snmalloc, which has no such call; malloc_trim(0) on libc's heap`.
impl fmt::Display for Purge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.allocator {
            Some(call) => f.write_str(call)?,
            None => write!(f, "nothing on {}, which has no such call", name())?,
        }
        match self.c_heap {
            Some(call) if self.allocator != self.c_heap => write!(f, "; {call} on libc's heap"),
            _ => Ok(()),
        }
    }
}

/// Gives back to the system what is free in this build's allocator and in libc's own heap, as far as they do that when
/// told to by this thread, and says what it called. What other threads cache they give back themselves, by this call or by
/// ending.
pub(crate) fn purge() -> Purge {
    Chosen::purge();
    c_heap::trim();
    Purge {
        allocator: Chosen::PURGE,
        c_heap: c_heap::TRIM,
    }
}

/// The call by which this build's allocator gives back what is free; `None` where it has none.
pub(crate) fn purge_call() -> Option<&'static str> {
    Chosen::PURGE
}

/// Whether this build's allocator can be told to give back what is free.
pub(crate) fn purges() -> bool {
    purge_call().is_some()
}

/// What this build's allocator says of its memory.
pub(crate) fn statistics() -> Statistics {
    Chosen::statistics()
}

/// Whether the counting wrapper is built in. Without it there is nothing to start.
pub(crate) fn can_count() -> bool {
    cfg!(not(feature = "bare"))
}

/// Counts from here on, if [`can_count`]. Call it before anything that should be counted.
pub(crate) fn start_counting() {
    if can_count() {
        GLOBAL.start();
    }
}

/// Counts from here on, if [`can_count`], and knows every live block; `hook` is what a halt does. Call it before anything that should be
/// explained.
pub(crate) fn start_explaining(hook: Hook) {
    if can_count() {
        GLOBAL.start_explaining(hook);
    }
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
