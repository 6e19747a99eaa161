//! snmalloc, by the crate `snmalloc-rs`.

use snmalloc_rs::SnMalloc;

use super::{Allocator, Settings, Statistics, Version};

/// snmalloc: nothing to set, nothing to purge, and one figure.
pub(super) struct Snmalloc;

impl Allocator for Snmalloc {
    type Inner = SnMalloc;
    const INNER: Self::Inner = SnMalloc;
    const NAME: &'static str = "snmalloc";
    const SETTINGS_VARIABLES: &'static [&'static str] = &[];
    /// There is no call that gives back what is free.
    const PURGE: Option<&'static str> = None;

    /// snmalloc cannot be asked, so the version is that of the crate which carries its source.
    fn version() -> Version {
        Version {
            version: env!("ALLOQUET_SNMALLOC_VERSION").to_owned(),
            source: "snmalloc-rs in Cargo.lock",
        }
    }

    /// Empty: snmalloc has no run-time settings.
    fn read_settings() -> Settings {
        Settings::new()
    }

    fn asked_settings(_environment: &Settings) -> Settings {
        Settings::new()
    }

    fn has_unread(_name: &str, _settings: &Settings) -> bool {
        false
    }

    fn statistics() -> Statistics {
        let taken = SnMalloc::memory_stats().current_memory_usage;
        Statistics {
            // `usize` has 64 bits at most.
            committed_bytes: Some(taken as u64),
            ..Statistics::default()
        }
    }

    fn purge() {}
}
