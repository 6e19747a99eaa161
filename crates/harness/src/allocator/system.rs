//! The system's allocator: glibc's malloc on GNU/Linux.

use std::alloc::System;
use std::fs;
use std::process::{Command, Stdio};

use super::{Settings, Version};

pub(super) type Inner = System;
pub(super) const INNER: Inner = System;
pub(super) const NAME: &str = "system";
pub(super) const SETTINGS_VARIABLES: &[&str] = &["MALLOC_*", "GLIBC_TUNABLES"];

/// The variables that glibc takes, by the tunables they set. Some end in an underscore, and glibc
/// says nothing of one that lacks it.
const VARIABLES: &[(&str, &str)] = &[
    ("MALLOC_ARENA_MAX", "glibc.malloc.arena_max"),
    ("MALLOC_ARENA_TEST", "glibc.malloc.arena_test"),
    ("MALLOC_CHECK_", "glibc.malloc.check"),
    ("MALLOC_MMAP_MAX_", "glibc.malloc.mmap_max"),
    ("MALLOC_MMAP_THRESHOLD_", "glibc.malloc.mmap_threshold"),
    ("MALLOC_PERTURB_", "glibc.malloc.perturb"),
    ("MALLOC_TOP_PAD_", "glibc.malloc.top_pad"),
    ("MALLOC_TRIM_THRESHOLD_", "glibc.malloc.trim_threshold"),
];

pub(super) fn version() -> Version {
    Version {
        version: crate::sys::libc_version(),
        source: "gnu_get_libc_version()",
    }
}

/// The tunables of glibc's malloc. Its listing does not tell one that is not set from 0.
///
/// malloc cannot be asked. The loader of this process can (glibc 2.33 and later): run by itself,
/// with the same environment, it lists the values that malloc will see.
pub(super) fn read_settings() -> Settings {
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
        name.starts_with("glibc.malloc.")
            .then(|| (name.to_owned(), written(value)))
    };
    listing.lines().filter_map(tunable).collect()
}

fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

fn written(value: u64) -> String {
    match value {
        0 => "0 or not set".to_owned(),
        value => value.to_string(),
    }
}

/// What the environment asks for, in the terms of [`read_settings`].
pub(super) fn asked_settings(environment: &Settings) -> Settings {
    let plain = |value: &str| number(value).map_or_else(|| value.to_owned(), written);
    let mut asked = Settings::new();
    for (variable, value) in environment {
        // `MALLOC_CONF` is jemalloc's, where that was built to take the names of libc.
        if variable.starts_with("MALLOC_") && variable != "MALLOC_CONF" {
            let known = VARIABLES.iter().find(|(name, _)| name == variable);
            let name = known.map_or(variable.as_str(), |(_, tunable)| tunable);
            asked.insert(name.to_owned(), plain(value));
        }
    }
    // Where both name a tunable, `GLIBC_TUNABLES` wins.
    let tunables = environment.get("GLIBC_TUNABLES").map_or("", String::as_str);
    for (name, value) in tunables
        .split(':')
        .filter_map(|tunable| tunable.split_once('='))
    {
        asked.insert(name.to_owned(), plain(value));
    }
    asked
}

/// Whether there is a setting `name`, though [`read_settings`] did not read it.
pub(super) fn has_unread(name: &str, settings: &Settings) -> bool {
    name.starts_with("glibc.") && (settings.is_empty() || !name.starts_with("glibc.malloc."))
}

/// `malloc_trim`; other C libraries than glibc have none.
pub(super) const PURGES: bool = cfg!(target_env = "gnu");

/// Nothing of its own: libc's heap is trimmed in every build.
pub(super) fn purge() {}

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
    fn variables_are_asked_settings() {
        let asked = asked_settings(&settings([
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
        assert!(has_unread("glibc.cpu.hwcaps", &readable));
        assert!(!has_unread("glibc.malloc.arenas", &readable));
        assert!(has_unread("glibc.malloc.arena_max", &Settings::new()));
        assert!(!has_unread("MALLOC_MMAP_THRESHOLD", &Settings::new()));
    }
}
