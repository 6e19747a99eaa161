//! Settings that are worth a row, by name.

/// Settings by a name that says what they are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Preset {
    /// How it is called.
    pub(crate) name: &'static str,
    /// What it stands for, as it could be written instead.
    pub(crate) text: &'static str,
    /// What it is for.
    pub(crate) purpose: &'static str,
}

const fn preset(name: &'static str, text: &'static str, purpose: &'static str) -> Preset {
    Preset {
        name,
        text,
        purpose,
    }
}

const GLIBC: &[Preset] = &[
    preset(
        "default",
        "",
        "the mmap threshold grows with what is freed, up to 32 MiB",
    ),
    preset(
        "fixed-threshold",
        "MALLOC_MMAP_THRESHOLD_=131072",
        "128 KiB and more are always mapped, and given back when they are freed",
    ),
    preset(
        "keep",
        "MALLOC_MMAP_THRESHOLD_=33554432;MALLOC_TRIM_THRESHOLD_=1073741824",
        "what is freed is kept, up to 1 GiB: fewest faults, most RSS",
    ),
    preset(
        "two-arenas",
        "MALLOC_ARENA_MAX=2",
        "at most two arenas, however many threads there are",
    ),
    preset(
        "huge-pages",
        "glibc.malloc.hugetlb=1",
        "huge pages are asked for (THP by madvise)",
    ),
];

const MIMALLOC: &[Preset] = &[
    preset(
        "default",
        "",
        "huge pages are allowed, freed memory is given back after a delay",
    ),
    preset(
        "no-thp",
        "MIMALLOC_ALLOW_THP=0",
        "no huge pages: what was never touched takes no memory",
    ),
    preset(
        "purge-at-once",
        "MIMALLOC_PURGE_DELAY=0",
        "freed memory is given back at once",
    ),
    preset(
        "no-thp-purge-at-once",
        "MIMALLOC_ALLOW_THP=0;MIMALLOC_PURGE_DELAY=0",
        "both: the least RSS",
    ),
];

const JEMALLOC: &[Preset] = &[
    preset(
        "default",
        "",
        "freed pages are given back over 10 s, while the program allocates",
    ),
    preset(
        "purge-at-once",
        "dirty_decay_ms:0,muzzy_decay_ms:0",
        "freed pages are given back at once: the least RSS, the most faults",
    ),
    preset(
        "background",
        "background_thread:true",
        "a thread gives freed pages back, while nothing is allocated too",
    ),
    preset(
        "half-second",
        "dirty_decay_ms:500,muzzy_decay_ms:-1",
        "freed pages go lazily over 0.5 s: the kernel takes them when it needs memory",
    ),
    preset(
        "huge-pages",
        "thp:always",
        "huge pages are asked for (THP by madvise)",
    ),
];

const SNMALLOC: &[Preset] = &[preset("default", "", "it has no settings")];

/// The presets of each allocator, by its name in the CSV.
pub(crate) const PRESETS: &[(&str, &[Preset])] = &[
    ("system", GLIBC),
    ("mimalloc", MIMALLOC),
    ("mimalloc-v2", MIMALLOC),
    ("mimalloc-override", MIMALLOC),
    ("jemalloc", JEMALLOC),
    ("jemalloc-override", JEMALLOC),
    ("snmalloc", SNMALLOC),
    ("dhat", GLIBC),
];

/// The presets of `allocator`; none where there is no such allocator.
pub(crate) fn presets(allocator: &str) -> impl Iterator<Item = &'static Preset> {
    let found = PRESETS.iter().find(|(name, _)| *name == allocator);
    found.map_or(&[][..], |(_, presets)| presets).iter()
}

#[cfg(test)]
mod tests {
    use super::super::{SetupSettings, family};
    use super::*;

    #[test]
    fn every_preset_of_every_allocator_is_valid() {
        let named: Vec<_> = PRESETS.iter().map(|(name, _)| *name).collect();
        assert_eq!(named, family::names());
        for (allocator, presets) in PRESETS {
            let mut seen = Vec::new();
            for preset in *presets {
                let settings = SetupSettings::parse(allocator, preset.name).unwrap();
                assert_eq!(
                    settings,
                    SetupSettings::parse(allocator, preset.text).unwrap()
                );
                assert!(!seen.contains(&settings), "{allocator} {}", preset.name);
                seen.push(settings);
            }
            assert_eq!(presets[0].name, "default");
        }
    }
}
