//! dhat, by the crate of that name: the system's allocator, and a profile of who allocated what.
//!
//! It is not for figures: each allocation takes a lock and a backtrace, and `alloc_zeroed` touches every page.

use super::system::System;
use super::{Allocator, Settings, Statistics, Version};

/// dhat, over [`System`].
pub(super) struct Dhat;

impl Allocator for Dhat {
    type Inner = ::dhat::Alloc;
    const INNER: Self::Inner = ::dhat::Alloc;
    const NAME: &'static str = "dhat";
    const SETTINGS_VARIABLES: &'static [&'static str] = System::SETTINGS_VARIABLES;
    const PURGE: Option<&'static str> = System::PURGE;

    /// dhat cannot be asked, so the version is the crate's.
    fn version() -> Version {
        Version {
            version: env!("ALLOQUET_DHAT_VERSION").to_owned(),
            source: "dhat in Cargo.lock",
        }
    }

    fn read_settings() -> Settings {
        System::read_settings()
    }

    fn asked_settings(environment: &Settings) -> Settings {
        System::asked_settings(environment)
    }

    fn has_unread(name: &str, settings: &Settings) -> bool {
        System::has_unread(name, settings)
    }

    fn statistics() -> Statistics {
        System::statistics()
    }

    fn purge() {
        System::purge();
    }
}
