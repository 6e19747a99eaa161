//! jemalloc, by the crate `tikv-jemallocator`.

use std::ffi::CStr;
use std::ptr::null_mut;

use tikv_jemalloc_ctl::raw;
use tikv_jemalloc_sys::mallctl;

use super::{Allocator, Settings, Statistics, Version};

/// jemalloc; with the feature `jemalloc-override` C code's too.
pub(super) struct Jemalloc;

/// Whether it takes libc's names, and with them the plain name of its variable.
const OVERRIDE: bool = cfg!(feature = "jemalloc-override");

/// The variable that it reads. The crate prefixes jemalloc's symbols, and with them the variable: such a build does not
/// read `MALLOC_CONF`.
const VARIABLE: &str = if OVERRIDE {
    "MALLOC_CONF"
} else {
    "_RJEM_MALLOC_CONF"
};

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

/// The arena that stands for all of them.
macro_rules! all_arenas {
    ($name:literal) => {
        concat!("stats.arenas.4096.", $name, "\0")
    };
}

impl Allocator for Jemalloc {
    type Inner = tikv_jemallocator::Jemalloc;
    const INNER: Self::Inner = tikv_jemallocator::Jemalloc;
    const NAME: &'static str = if OVERRIDE {
        "jemalloc-override"
    } else {
        "jemalloc"
    };
    const SETTINGS_VARIABLES: &'static [&'static str] = &[VARIABLE];
    const PURGE: Option<&'static str> = Some("thread.tcache.flush and arena.4096.purge");

    fn version() -> Version {
        Version {
            version: read("version\0", Ctl::Text),
            source: "mallctl \"version\"",
        }
    }

    fn read_settings() -> Settings {
        CONTROLS
            .iter()
            .map(|&(name, kind)| (name.trim_end_matches('\0').to_owned(), read(name, kind)))
            .collect()
    }

    /// A later entry of an option wins.
    fn asked_settings(environment: &Settings) -> Settings {
        let options = environment.get(VARIABLE).map_or("", String::as_str);
        options
            .split(',')
            .filter(|option| !option.trim().is_empty())
            .map(|option| option.split_once(':').unwrap_or((option, "no value")))
            .map(|(name, value)| (format!("opt.{}", name.trim()), value.trim().to_owned()))
            .collect()
    }

    fn has_unread(name: &str, _settings: &Settings) -> bool {
        // Every option is `opt` and a name, so it has two parts.
        !name.contains('\0')
            && raw::name_to_mib(format!("{name}\0").as_bytes(), &mut [0; 2]).is_ok()
    }

    fn statistics() -> Statistics {
        // The figures are those of the last epoch.
        // SAFETY: jemalloc declares the control as `uint64_t`.
        let renewed = unsafe { raw::write::<u64>(b"epoch\0", 1) };
        if renewed.is_err() {
            return Statistics::default();
        }
        let page = size("arenas.page\0");
        let pages = |count: Option<u64>| Some(count? * page?);
        let resident = size("stats.resident\0");
        let metadata = size("stats.metadata\0");
        // What threads cache was handed out to their caches, not to the program.
        let live = difference(size("stats.allocated\0"), size(all_arenas!("tcache_bytes")));
        let committed = sum(resident, pages(size(all_arenas!("pmuzzy"))));
        Statistics {
            live_bytes: live,
            committed_bytes: committed,
            retained_bytes: difference(committed, sum(live, metadata)),
            purged_bytes: pages(count(all_arenas!("dirty_purged"))),
            metadata_bytes: metadata,
            resident_bytes: resident,
            reserved_bytes: sum(size("stats.mapped\0"), size("stats.retained\0")),
        }
    }

    /// Empties this thread's cache into its arena, then gives back what is free in all arenas (4096 stands for them all).
    ///
    /// What another thread caches stays: it calls this itself, or ends.
    fn purge() {
        call(c"thread.tcache.flush");
        call(c"arena.4096.purge");
    }
}

fn sum(a: Option<u64>, b: Option<u64>) -> Option<u64> {
    Some(a? + b?)
}

/// At least 0: the figures are not all of one moment where other threads allocate.
fn difference(a: Option<u64>, b: Option<u64>) -> Option<u64> {
    Some(a?.saturating_sub(b?))
}

/// The value of the control `name`, which jemalloc declares as `size_t` and which ends in a NUL.
fn size(name: &str) -> Option<u64> {
    // SAFETY: each call here names a control of that type, and one of another size is an error.
    let value = unsafe { raw::read::<usize>(name.as_bytes()) };
    // `usize` has 64 bits at most.
    value.ok().map(|value| value as u64)
}

/// The value of the control `name`, which jemalloc declares as `uint64_t` and which ends in a NUL.
fn count(name: &str) -> Option<u64> {
    // SAFETY: each call here names a control of that type, and one of another size is an error.
    unsafe { raw::read::<u64>(name.as_bytes()) }.ok()
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
        for (name, value) in Jemalloc::read_settings() {
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
        assert_eq!(Jemalloc::read_settings()["config.stats"], "true");
    }

    #[test]
    fn options_that_exist_are_known() {
        assert!(Jemalloc::has_unread(
            "opt.lg_extent_max_active_fit",
            &Settings::new()
        ));
        assert!(!Jemalloc::has_unread("opt.dirty_decay", &Settings::new()));
    }

    #[test]
    fn options_are_asked_settings() {
        let environment = Settings::from([(
            VARIABLE.to_owned(),
            "dirty_decay_ms:500, muzzy_decay_ms:-1,dirty_decay_ms:0".to_owned(),
        )]);
        let expected = [("opt.dirty_decay_ms", "0"), ("opt.muzzy_decay_ms", "-1")];
        let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(
            Jemalloc::asked_settings(&environment),
            Settings::from(expected)
        );
    }
}
