//! snmalloc, by the crate `snmalloc-rs`.

use snmalloc_rs::SnMalloc;

use super::{Settings, Version};

pub(super) type Inner = SnMalloc;
pub(super) const INNER: Inner = SnMalloc;
pub(super) const NAME: &str = "snmalloc";
pub(super) const SETTINGS_VARIABLES: &[&str] = &[];

/// snmalloc cannot be asked, so the version is that of the crate which carries its source.
pub(super) fn version() -> Version {
    Version {
        version: env!("ALLOQUET_SNMALLOC_VERSION").to_owned(),
        source: "snmalloc-rs in Cargo.lock",
    }
}

/// Empty: snmalloc has no run-time settings.
pub(super) fn read_settings() -> Settings {
    Settings::new()
}

/// What `_environment` asks for, in the terms of [`read_settings`]: nothing.
pub(super) fn asked_settings(_environment: &Settings) -> Settings {
    Settings::new()
}

/// Whether there is a setting `_name`, though [`read_settings`] did not read it: there is none.
pub(super) fn has_unread(_name: &str, _settings: &Settings) -> bool {
    false
}

/// snmalloc has no call that gives back what is free.
pub(super) const PURGES: bool = false;

/// Does nothing.
pub(super) fn purge() {}
