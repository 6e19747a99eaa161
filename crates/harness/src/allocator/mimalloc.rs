//! mimalloc, by the crate `mimalloc`.

use ::mimalloc::MiMalloc;
use libmimalloc_sys::{_mi_option_last, mi_collect, mi_option_get, mi_option_t, mi_version};

use super::{Settings, Version};

pub(super) type Inner = MiMalloc;
pub(super) const INNER: Inner = MiMalloc;
pub(super) const NAME: &str = "mimalloc";
pub(super) const SETTINGS_VARIABLES: &[&str] = &["MIMALLOC_*"];

/// The options by their place in `mi_option_e` of mimalloc 3.3, without those that do nothing
/// anymore.
///
/// Neither mimalloc nor its crates export names for most of them, and the places change between
/// versions. mimalloc keeps some sizes in KiB; a variable for one has no such ending.
const OPTIONS: &[(&str, mi_option_t)] = &[
    ("show_errors", 0),
    ("show_stats", 1),
    ("verbose", 2),
    ("arena_eager_commit", 4),
    ("purge_decommits", 5),
    ("allow_large_os_pages", 6),
    ("reserve_huge_os_pages", 7),
    ("reserve_huge_os_pages_at", 8),
    ("reserve_os_memory_kib", 9),
    ("purge_delay", 15),
    ("use_numa_nodes", 16),
    ("disallow_os_alloc", 17),
    ("os_tag", 18),
    ("max_errors", 19),
    ("max_warnings", 20),
    ("destroy_on_exit", 22),
    ("arena_reserve_kib", 23),
    ("arena_purge_mult", 24),
    ("disallow_arena_alloc", 26),
    ("retry_on_oom", 27),
    ("visit_abandoned", 28),
    ("guarded_min", 29),
    ("guarded_max", 30),
    ("guarded_precise", 31),
    ("guarded_sample_rate", 32),
    ("guarded_sample_seed", 33),
    ("generic_collect", 34),
    ("page_reclaim_on_free", 35),
    ("page_full_retain", 36),
    ("page_max_candidates", 37),
    ("max_vabits", 38),
    ("pagemap_commit", 39),
    ("page_commit_on_demand", 40),
    ("page_max_reclaim", 41),
    ("page_cross_thread_max_reclaim", 42),
    ("allow_thp", 43),
    ("minimal_purge_size_kib", 44),
    ("arena_max_object_size_kib", 45),
    ("arena_is_numa_local", 46),
];

const _: () = assert!(
    _mi_option_last == 47,
    "mimalloc has other options now: look up their places in mi_option_e"
);

pub(super) fn version() -> Version {
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

pub(super) fn read_settings() -> Settings {
    let read = |&(name, option): &(&str, mi_option_t)| {
        // SAFETY: `option` is below `_mi_option_last`; the first read of an option parses its
        // variable, and nothing here changes options or the environment at the same time.
        let value = unsafe { mi_option_get(option) };
        (name.to_owned(), value.to_string())
    };
    OPTIONS.iter().map(read).collect()
}

/// What the `MIMALLOC_*` variables ask for, in the terms of [`read_settings`].
pub(super) fn asked_settings(environment: &Settings) -> Settings {
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

/// Whether there is a setting `name`, though [`read_settings`] did not read it under that name: a
/// variable for a size may carry a unit, so the two are not compared.
pub(super) fn has_unread(name: &str, settings: &Settings) -> bool {
    settings.contains_key(&format!("{name}_kib"))
}

pub(super) const PURGES: bool = true;

/// Collects this thread's heap and gives back what is free in all arenas, at once and not after `purge_delay`.
pub(super) fn purge() {
    // SAFETY: it may be called at any time, from any thread.
    unsafe { mi_collect(true) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_places_of_the_options_are_those_of_this_version() {
        let settings = read_settings();
        // Defaults that differ from their neighbours', of mimalloc 3.3 on 64-bit Linux.
        assert_eq!(settings["purge_delay"], "1000");
        assert_eq!(settings["arena_reserve_kib"], (1024 * 1024).to_string());
        assert_eq!(settings["allow_thp"], "1");
    }

    #[test]
    fn variables_are_asked_settings() {
        let environment = Settings::from([
            ("MIMALLOC_ALLOW_THP".to_owned(), "no".to_owned()),
            ("MIMALLOC_PURGE_DELAY".to_owned(), "0".to_owned()),
            ("MALLOC_ARENA_MAX".to_owned(), "2".to_owned()),
        ]);
        let asked = asked_settings(&environment);
        let expected = [
            ("allow_thp".to_owned(), "0".to_owned()),
            ("purge_delay".to_owned(), "0".to_owned()),
        ];
        assert_eq!(asked, Settings::from(expected));
    }
}
