//! The system's allocator: glibc's malloc on GNU/Linux.

use std::alloc;
use std::fs;
use std::process::{Command, Stdio};

use super::{Allocator, Settings, Statistics, Version, c_heap};
use crate::settings::family::GLIBC_VARIABLES;

/// libc's malloc.
pub(super) struct System;

impl Allocator for System {
    type Inner = alloc::System;
    const INNER: Self::Inner = alloc::System;
    const NAME: &'static str = "system";
    const SETTINGS_VARIABLES: &'static [&'static str] = &["MALLOC_*", "GLIBC_TUNABLES"];
    const PURGE: Option<&'static str> = c_heap::TRIM;

    fn version() -> Version {
        let (version, source) = crate::sys::libc_version();
        Version { version, source }
    }

    /// The tunables of glibc's malloc. Its listing does not tell one that is not set from 0.
    ///
    /// malloc cannot be asked. The loader of this process can (glibc 2.33 and later): run by itself,
    /// with the same environment, it lists the values that malloc will see.
    fn read_settings() -> Settings {
        let listing = loader().and_then(|loader| {
            let mut command = Command::new(loader);
            command.arg("--list-tunables").stdin(Stdio::null());
            command
                .output()
                .ok()
                .filter(|output| output.status.success())
        });
        let listing = listing.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
        parse_tunables(&listing.unwrap_or_default())
    }

    /// A value that is no number, or that the loader takes otherwise than it was written, is asked as it was written: so
    /// it is not what the loader lists.
    fn asked_settings(environment: &Settings) -> Settings {
        let plain = |value: &str| number(value).map_or_else(|| value.to_owned(), written);
        let mut asked = Settings::new();
        for (variable, value) in environment {
            // `MALLOC_CONF` is jemalloc's, where that was built to take the names of libc.
            if variable.starts_with("MALLOC_") && variable != "MALLOC_CONF" {
                let known = GLIBC_VARIABLES.iter().find(|(name, _)| name == variable);
                let name = known.map_or(variable.as_str(), |(_, tunable)| tunable);
                asked.insert(name.to_owned(), plain(value));
            }
        }
        // Where both name a tunable, `GLIBC_TUNABLES` wins.
        let tunables = environment.get("GLIBC_TUNABLES").map_or("", String::as_str);
        for tunable in tunables.split(':').filter(|tunable| !tunable.is_empty()) {
            let (name, value) = tunable.split_once('=').unwrap_or((tunable, "no value"));
            asked.insert(name.to_owned(), plain(value));
        }
        asked
    }

    fn has_unread(name: &str, settings: &Settings) -> bool {
        // macOS's malloc has none of them.
        cfg!(not(target_os = "macos"))
            && name.starts_with("glibc.")
            && (settings.is_empty() || !name.starts_with("glibc.malloc."))
    }

    fn statistics() -> Statistics {
        c_heap::mallinfo2().map_or_else(Statistics::default, |heap| heap.statistics())
    }

    /// Nothing of its own: libc's heap is trimmed in every build.
    fn purge() {}
}

/// The path of the dynamic loader that is mapped into this process.
fn loader() -> Option<String> {
    let maps = fs::read_to_string("/proc/self/maps").ok()?;
    let paths = maps
        .lines()
        .filter_map(|line| Some(&line[line.find('/')?..]));
    let is_loader = |path: &&str| {
        path.rsplit('/')
            .next()
            .is_some_and(|name| name.starts_with("ld-") || name.starts_with("ld."))
    };
    paths.into_iter().find(is_loader).map(str::to_owned)
}

/// Reads lines such as `glibc.malloc.arena_max: 0x2 (min: 0x1, max: 0xffffffffffffffff)`.
fn parse_tunables(listing: &str) -> Settings {
    let tunable = |line: &str| {
        let (name, rest) = line.split_once(": ")?;
        let value = number(rest.split(' ').next()?)?;
        let least = rest
            .split_once("(min: ")
            .and_then(|(_, range)| number(range.split(',').next()?));
        // A tunable that may not be 0 and is was not set, or was set to 0 and did not take it.
        let shown = match (value, least) {
            (0, Some(1..)) => "not set".to_owned(),
            _ => written(value),
        };
        name.starts_with("glibc.malloc.")
            .then(|| (name.to_owned(), shown))
    };
    listing.lines().filter_map(tunable).collect()
}

/// The number that glibc reads in `text`; `None` where it would read another one than a person does, as in `010`.
fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None if text.len() > 1 && text.starts_with('0') => None,
        None => text.parse().ok(),
    }
}

fn written(value: u64) -> String {
    match value {
        0 => "0 or not set".to_owned(),
        value => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings<const N: usize>(pairs: [(&str, &str); N]) -> Settings {
        pairs
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into()
    }

    #[test]
    fn tunables_are_read_as_numbers() {
        let listing = "glibc.rtld.nns: 0x4 (min: 0x1, max: 0x10)\n\
            glibc.malloc.perturb: 0 (min: 0, max: 255)\n\
            glibc.malloc.mmap_threshold: 0x20000 (min: 0x0, max: 0xffffffffffffffff)\n";
        let expected = [
            ("glibc.malloc.mmap_threshold", "131072"),
            ("glibc.malloc.perturb", "0 or not set"),
        ];
        assert_eq!(parse_tunables(listing), settings(expected));
    }

    #[test]
    fn a_tunable_that_may_not_be_0_is_not_set() {
        let listing = "glibc.malloc.arena_max: 0x0 (min: 0x1, max: 0xffffffffffffffff)\n\
            glibc.malloc.arena_test: 0x2 (min: 0x1, max: 0xffffffffffffffff)\n";
        let expected = [
            ("glibc.malloc.arena_max", "not set"),
            ("glibc.malloc.arena_test", "2"),
        ];
        assert_eq!(parse_tunables(listing), settings(expected));
    }

    #[test]
    fn what_is_no_number_is_asked_as_it_was_written() {
        let asked = System::asked_settings(&settings([
            (
                "GLIBC_TUNABLES",
                "glibc.malloc.hugetlb:glibc.malloc.arena_max=12abc",
            ),
            ("MALLOC_MMAP_THRESHOLD_", "abc"),
            ("MALLOC_TOP_PAD_", "010"),
            ("MALLOC_TRIM_THRESHOLD_", "-1"),
        ]));
        let expected = [
            ("glibc.malloc.arena_max", "12abc"),
            ("glibc.malloc.hugetlb", "no value"),
            ("glibc.malloc.mmap_threshold", "abc"),
            ("glibc.malloc.top_pad", "010"),
            ("glibc.malloc.trim_threshold", "-1"),
        ];
        assert_eq!(asked, settings(expected));
    }

    #[test]
    fn variables_are_asked_settings() {
        let asked = System::asked_settings(&settings([
            (
                "GLIBC_TUNABLES",
                "glibc.malloc.hugetlb=1:glibc.malloc.arena_max=3",
            ),
            ("MALLOC_ARENA_MAX", "2"),
            ("MALLOC_CONF", "thp:always"),
            ("MALLOC_TOP_PAD_", "0"),
            ("MALLOC_MMAP_THRESHOLD", "4096"),
            ("MALLOC_TRIM_THRESHOLD_", "0x10"),
            ("MIMALLOC_ALLOW_THP", "0"),
        ]));
        let expected = [
            ("MALLOC_MMAP_THRESHOLD", "4096"),
            ("glibc.malloc.arena_max", "3"),
            ("glibc.malloc.hugetlb", "1"),
            ("glibc.malloc.top_pad", "0 or not set"),
            ("glibc.malloc.trim_threshold", "16"),
        ];
        assert_eq!(asked, settings(expected));
    }

    #[test]
    fn only_other_tunables_may_go_unread() {
        let readable = settings([("glibc.malloc.arena_max", "0")]);
        let on_glibc = cfg!(not(target_os = "macos"));
        assert_eq!(System::has_unread("glibc.cpu.hwcaps", &readable), on_glibc);
        assert!(!System::has_unread("glibc.malloc.arenas", &readable));
        assert_eq!(
            System::has_unread("glibc.malloc.arena_max", &Settings::new()),
            on_glibc
        );
        assert!(!System::has_unread(
            "MALLOC_MMAP_THRESHOLD",
            &Settings::new()
        ));
    }
}
