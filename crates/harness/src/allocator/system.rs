//! The system's allocator: glibc's malloc on GNU/Linux.

use std::alloc::System;

use super::{Settings, Version};

pub(super) type Inner = System;
pub(super) const INNER: Inner = System;
pub(super) const NAME: &str = "system";
pub(super) const SETTINGS_VARIABLES: &[&str] = &["MALLOC_*", "GLIBC_TUNABLES"];

pub(super) fn version() -> Version {
    Version {
        version: crate::sys::libc_version(),
        source: "gnu_get_libc_version()",
    }
}

/// Empty: glibc offers no way to ask what its malloc was set to, so its settings are known from the environment alone.
pub(super) fn read_settings() -> Settings {
    Settings::new()
}

/// What `_environment` asks for, in the terms of [`read_settings`]: nothing that could be held against it.
pub(super) fn asked_settings(_environment: &Settings) -> Settings {
    Settings::new()
}
