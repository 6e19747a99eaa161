//! mimalloc, by the crate `mimalloc`: C version 3, or 2 with the feature `mimalloc-v2`.

use std::ffi::{CStr, c_char, c_void};
use std::ptr::null_mut;

use libmimalloc_sys::{mi_collect, mi_free, mi_option_get, mi_option_t, mi_version};
use serde::Deserialize;

#[cfg(feature = "mimalloc-v2")]
mod v2;
#[cfg(not(feature = "mimalloc-v2"))]
mod v3;

#[cfg(feature = "mimalloc-v2")]
use self::v2::{NAME, OPTIONS};
#[cfg(not(feature = "mimalloc-v2"))]
use self::v3::{NAME, OPTIONS};
use super::{Allocator, Settings, Statistics, Version};

unsafe extern "C" {
    /// In both versions; the crate declares it for 3 only.
    fn mi_stats_get_json(buffer_bytes: usize, buffer: *mut c_char) -> *mut c_char;
}

/// mimalloc; with the feature `mimalloc-override` C code's too.
pub(super) struct Mimalloc;

impl Allocator for Mimalloc {
    type Inner = ::mimalloc::MiMalloc;
    const INNER: Self::Inner = ::mimalloc::MiMalloc;
    const NAME: &'static str = NAME;
    const SETTINGS_VARIABLES: &'static [&'static str] = &["MIMALLOC_*"];
    const PURGE: Option<&'static str> = Some("mi_collect(true)");

    fn version() -> Version {
        // SAFETY: returns a constant.
        let packed = unsafe { mi_version() };
        Version {
            version: format!(
                "{}.{}.{}",
                packed / 10_000,
                packed / 100 % 100,
                packed % 100
            ),
            source: "mi_version()",
        }
    }

    fn read_settings() -> Settings {
        let read = |&(name, option): &(&str, mi_option_t)| {
            // SAFETY: `option` is below `_mi_option_last`; the first read of an option parses its
            // variable, and nothing here changes options or the environment at the same time.
            let value = unsafe { mi_option_get(option) };
            (name.to_owned(), value.to_string())
        };
        OPTIONS.iter().map(read).collect()
    }

    fn asked_settings(environment: &Settings) -> Settings {
        let mut asked = Settings::new();
        for (variable, value) in environment {
            let Some(option) = variable.strip_prefix("MIMALLOC_") else {
                continue;
            };
            let option = option.to_ascii_lowercase();
            let value = match value.to_ascii_uppercase().as_str() {
                "" | "TRUE" | "YES" | "ON" => "1".to_owned(),
                "FALSE" | "NO" | "OFF" => "0".to_owned(),
                _ => value.clone(),
            };
            asked.insert(option, value);
        }
        asked
    }

    /// A variable for a size may carry a unit, so the two are not compared.
    fn has_unread(name: &str, settings: &Settings) -> bool {
        settings.contains_key(&format!("{name}_kib"))
    }

    fn statistics() -> Statistics {
        #[cfg(feature = "mimalloc-v2")]
        // SAFETY: adds this thread's counts to the process's, and may be called at any time.
        unsafe {
            libmimalloc_sys::mi_stats_merge();
        }
        // SAFETY: without a buffer it allocates one, of mimalloc's own.
        let text = unsafe { mi_stats_get_json(0, null_mut()) };
        if text.is_null() {
            return Statistics::default();
        }
        // SAFETY: mimalloc ends its text with a NUL, and it is freed below.
        let json = unsafe { CStr::from_ptr(text) }.to_bytes().to_vec();
        // SAFETY: the text is ours to free, by mimalloc, and is not used anymore.
        unsafe { mi_free(text.cast::<c_void>()) };
        parse(&json).unwrap_or_default()
    }

    /// Collects this thread's heap and gives back what is free in all arenas, at once and not after `purge_delay`.
    ///
    /// What another thread's heap keeps stays: it calls this itself, or ends.
    fn purge() {
        // SAFETY: it may be called at any time, from any thread.
        unsafe { mi_collect(true) };
    }
}

/// A figure that goes up and down, bytes.
#[derive(Deserialize)]
struct Count {
    current: i64,
}

/// The part of mimalloc's JSON that is of use. It has figures of what is live as well, which are zeros, or only ever grow,
/// in a build for production.
#[derive(Deserialize)]
struct Told {
    reserved: Count,
    committed: Count,
    purged: i64,
    reset: i64,
}

fn parse(json: &[u8]) -> Option<Statistics> {
    let told: Told = serde_json::from_slice(json).ok()?;
    let bytes = |value: i64| u64::try_from(value).ok();
    Some(Statistics {
        committed_bytes: bytes(told.committed.current),
        purged_bytes: bytes(told.purged + told.reset),
        reserved_bytes: bytes(told.reserved.current),
        ..Statistics::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_read_from_json() {
        let json = br#"{"stat_version": 5, "process": {"rss_current": 7}, "pages": {"total": 1, "peak": 1, "current": 1},
            "reserved": {"total": 9, "peak": 9, "current": 8}, "committed": {"total": 9, "peak": 9, "current": 5},
            "reset": 1, "purged": 3, "malloc_bins": []}"#;
        let expected = Statistics {
            committed_bytes: Some(5),
            purged_bytes: Some(4),
            reserved_bytes: Some(8),
            ..Statistics::default()
        };
        assert_eq!(parse(json), Some(expected));
        assert_eq!(parse(b"{}"), None);
    }

    #[test]
    fn variables_are_asked_settings() {
        let environment = Settings::from([
            ("MIMALLOC_ALLOW_THP".to_owned(), "no".to_owned()),
            ("MIMALLOC_PURGE_DELAY".to_owned(), "0".to_owned()),
            ("MALLOC_ARENA_MAX".to_owned(), "2".to_owned()),
        ]);
        let asked = Mimalloc::asked_settings(&environment);
        let expected = [
            ("allow_thp".to_owned(), "0".to_owned()),
            ("purge_delay".to_owned(), "0".to_owned()),
        ];
        assert_eq!(asked, Settings::from(expected));
    }
}
