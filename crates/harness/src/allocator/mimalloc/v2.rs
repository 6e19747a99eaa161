//! mimalloc 2: its name, and where it keeps its options.

use libmimalloc_sys::{_mi_option_last, mi_option_t};

pub(super) const NAME: &str = "mimalloc-v2";

/// The options by their place in `mi_option_e` of mimalloc 2.3, without those that do nothing anymore.
///
/// Neither mimalloc nor its crates export names for most of them, and the places change between
/// versions. mimalloc keeps some sizes in KiB; a variable for one has no such ending.
pub(super) const OPTIONS: &[(&str, mi_option_t)] = &[
    ("show_errors", 0),
    ("show_stats", 1),
    ("verbose", 2),
    ("eager_commit", 3),
    ("arena_eager_commit", 4),
    ("purge_decommits", 5),
    ("allow_large_os_pages", 6),
    ("reserve_huge_os_pages", 7),
    ("reserve_huge_os_pages_at", 8),
    ("reserve_os_memory_kib", 9),
    ("abandoned_page_purge", 12),
    ("eager_commit_delay", 14),
    ("purge_delay", 15),
    ("use_numa_nodes", 16),
    ("disallow_os_alloc", 17),
    ("os_tag", 18),
    ("max_errors", 19),
    ("max_warnings", 20),
    ("max_segment_reclaim", 21),
    ("destroy_on_exit", 22),
    ("arena_reserve_kib", 23),
    ("arena_purge_mult", 24),
    ("purge_extend_delay", 25),
    ("abandoned_reclaim_on_free", 26),
    ("disallow_arena_alloc", 27),
    ("retry_on_oom", 28),
    ("visit_abandoned", 29),
    ("guarded_min", 30),
    ("guarded_max", 31),
    ("guarded_precise", 32),
    ("guarded_sample_rate", 33),
    ("guarded_sample_seed", 34),
    ("target_segments_per_thread", 35),
    ("generic_collect", 36),
    ("allow_thp", 37),
];

const _: () = assert!(
    _mi_option_last == 38,
    "mimalloc has other options now: look up their places in mi_option_e"
);

#[cfg(test)]
mod tests {
    use super::super::Mimalloc;
    use crate::allocator::Allocator;

    #[test]
    fn the_places_of_the_options_are_those_of_this_version() {
        assert!(Mimalloc::version().version.starts_with("2."));
        let settings = Mimalloc::read_settings();
        // Defaults that differ from their neighbours', of mimalloc 2.3 on 64-bit Linux.
        assert_eq!(settings["purge_delay"], "10");
        assert_eq!(settings["eager_commit_delay"], "1");
        assert_eq!(settings["max_segment_reclaim"], "10");
        assert_eq!(settings["arena_purge_mult"], "10");
        assert_eq!(settings["arena_reserve_kib"], (1024 * 1024).to_string());
        assert_eq!(settings["allow_thp"], "1");
    }
}
