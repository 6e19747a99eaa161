//! mimalloc 3: its name, and where it keeps its options.

use libmimalloc_sys::{_mi_option_last, mi_option_t};

pub(super) const NAME: &str = if cfg!(feature = "mimalloc-override") {
    "mimalloc-override"
} else {
    "mimalloc"
};

/// The options by their place in `mi_option_e` of mimalloc 3.3, without those that do nothing anymore.
///
/// Neither mimalloc nor its crates export names for most of them, and the places change between
/// versions. mimalloc keeps some sizes in KiB; a variable for one has no such ending.
pub(super) const OPTIONS: &[(&str, mi_option_t)] = &[
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

#[cfg(test)]
mod tests {
    use super::super::Mimalloc;
    use crate::allocator::Allocator;

    #[test]
    fn the_places_of_the_options_are_those_of_this_version() {
        assert!(Mimalloc::version().version.starts_with("3."));
        let settings = Mimalloc::read_settings();
        // Defaults that differ from their neighbours', of mimalloc 3.3 on 64-bit Linux.
        assert_eq!(settings["purge_delay"], "1000");
        assert_eq!(settings["page_full_retain"], "2");
        assert_eq!(settings["arena_reserve_kib"], (1024 * 1024).to_string());
        assert_eq!(settings["allow_thp"], "1");
    }
}
