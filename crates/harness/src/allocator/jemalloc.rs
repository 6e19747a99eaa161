//! jemalloc, by the crate `tikv-jemallocator`.

use std::ffi::CStr;
use std::ptr::null_mut;

use tikv_jemalloc_ctl::raw;
use tikv_jemalloc_sys::mallctl;
use tikv_jemallocator::Jemalloc;

use super::{Settings, Version};

pub(super) type Inner = Jemalloc;
pub(super) const INNER: Inner = Jemalloc;
pub(super) const NAME: &str = "jemalloc";
// The crate prefixes jemalloc's symbols, and with them the variable: `MALLOC_CONF` is not read.
pub(super) const SETTINGS_VARIABLES: &[&str] = &["_RJEM_MALLOC_CONF"];

/// How jemalloc's C code declares a value.
#[derive(Clone, Copy)]
enum Ctl {
    Bool,
    Unsigned,
    Size,
    SignedSize,
    Text,
}

/// `config.stats` must be true for any of jemalloc's statistics to be more than zeros.
const CONTROLS: &[(&str, Ctl)] = &[
    ("config.stats\0", Ctl::Bool),
    ("opt.background_thread\0", Ctl::Bool),
    ("opt.dirty_decay_ms\0", Ctl::SignedSize),
    ("opt.hpa\0", Ctl::Bool),
    ("opt.metadata_thp\0", Ctl::Text),
    ("opt.muzzy_decay_ms\0", Ctl::SignedSize),
    ("opt.narenas\0", Ctl::Unsigned),
    ("opt.oversize_threshold\0", Ctl::Size),
    ("opt.percpu_arena\0", Ctl::Text),
    ("opt.retain\0", Ctl::Bool),
    ("opt.tcache\0", Ctl::Bool),
    ("opt.tcache_max\0", Ctl::Size),
    ("opt.thp\0", Ctl::Text),
];

pub(super) fn version() -> Version {
    Version {
        version: read("version\0", Ctl::Text),
        source: "mallctl \"version\"",
    }
}

pub(super) fn read_settings() -> Settings {
    CONTROLS
        .iter()
        .map(|&(name, kind)| (name.trim_end_matches('\0').to_owned(), read(name, kind)))
        .collect()
}

/// The value of the control `name`, which ends in a NUL.
fn read(name: &str, kind: Ctl) -> String {
    let name = name.as_bytes();
    let value = match kind {
        // SAFETY: jemalloc declares the control as C's `bool`, one byte.
        Ctl::Bool => unsafe { raw::read::<u8>(name) }.map(|value| (value != 0).to_string()),
        // SAFETY: jemalloc declares the control as `unsigned`.
        Ctl::Unsigned => unsafe { raw::read::<u32>(name) }.map(|value| value.to_string()),
        // SAFETY: jemalloc declares the control as `size_t`.
        Ctl::Size => unsafe { raw::read::<usize>(name) }.map(|value| value.to_string()),
        // SAFETY: jemalloc declares the control as `ssize_t`.
        Ctl::SignedSize => unsafe { raw::read::<isize>(name) }.map(|value| value.to_string()),
        // SAFETY: jemalloc declares the control as a string that lives as long as the process.
        Ctl::Text => unsafe { raw::read_str(name) }.map(|value| {
            String::from_utf8_lossy(value.strip_suffix(b"\0").unwrap_or(value)).into_owned()
        }),
    };
    value.unwrap_or_else(|error| format!("not readable: {error}"))
}

/// What `_RJEM_MALLOC_CONF` asks for, in the terms of [`read_settings`]: a later entry of an option
/// wins.
pub(super) fn asked_settings(environment: &Settings) -> Settings {
    let options = environment
        .get("_RJEM_MALLOC_CONF")
        .map_or("", String::as_str);
    options
        .split(',')
        .filter_map(|option| option.split_once(':'))
        .map(|(name, value)| (format!("opt.{}", name.trim()), value.trim().to_owned()))
        .collect()
}

/// Whether there is a setting `name`, though [`read_settings`] did not read it.
pub(super) fn has_unread(name: &str, _settings: &Settings) -> bool {
    // Every option is `opt` and a name, so it has two parts.
    !name.contains('\0') && raw::name_to_mib(format!("{name}\0").as_bytes(), &mut [0; 2]).is_ok()
}

pub(super) const PURGES: bool = true;

/// Empties this thread's cache into its arena, then gives back what is free in all arenas (4096 stands for them all).
pub(super) fn purge() {
    call(c"thread.tcache.flush");
    call(c"arena.4096.purge");
}

/// Calls a control that takes nothing and returns nothing. One that fails, such as the cache's where there is none, has
/// nothing to give back.
fn call(name: &CStr) -> bool {
    // SAFETY: `name` ends in a NUL, and null pointers stand for no value in either direction.
    let failed = unsafe { mallctl(name.as_ptr(), null_mut(), null_mut(), null_mut(), 0) };
    failed == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_control_is_readable() {
        for (name, value) in read_settings() {
            assert!(!value.starts_with("not readable"), "{name}: {value}");
        }
    }

    #[test]
    fn the_purge_is_there() {
        assert!(call(c"thread.tcache.flush"));
        assert!(call(c"arena.4096.purge"));
        assert!(!call(c"arena.purge"));
    }

    #[test]
    fn statistics_are_built_in() {
        assert_eq!(read_settings()["config.stats"], "true");
    }

    #[test]
    fn options_that_exist_are_known() {
        assert!(has_unread("opt.lg_extent_max_active_fit", &Settings::new()));
        assert!(!has_unread("opt.dirty_decay", &Settings::new()));
    }

    #[test]
    fn options_are_asked_settings() {
        let environment = Settings::from([(
            "_RJEM_MALLOC_CONF".to_owned(),
            "dirty_decay_ms:500, muzzy_decay_ms:-1,dirty_decay_ms:0".to_owned(),
        )]);
        let expected = [("opt.dirty_decay_ms", "0"), ("opt.muzzy_decay_ms", "-1")];
        let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(asked_settings(&environment), Settings::from(expected));
    }
}
