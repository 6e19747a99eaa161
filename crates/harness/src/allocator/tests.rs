//! What holds of every allocator, each in its own build: `cargo test -p alloquet --features NAME allocator::`.

use std::process::Command;
use std::sync::mpsc::channel;
use std::thread;

use super::*;
use crate::sys::memory::Resident;

const MIB: u64 = 1 << 20;
/// Set in a process of [`alone`].
const ALONE: &str = "ALLOQUET_TEST_ALONE";

/// Whether this process runs the test `name` of this file and no other. If not, it starts one that does and expects it to
/// pass: what other tests allocate at the same time is not to be measured.
fn alone(name: &str) -> bool {
    if std::env::var_os(ALONE).is_some() {
        return true;
    }
    let test = format!("allocator::tests::{name}");
    let output = Command::new(std::env::current_exe().unwrap())
        .args([&test, "--exact", "--nocapture", "--test-threads=1"])
        .env(ALONE, "1")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && said.contains("1 passed"),
        "{said}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    false
}

fn rss() -> u64 {
    Resident::now().unwrap().rss_bytes
}

/// Touched blocks of 16 bytes to 4 MiB, `bytes` in all; small and large ones in turn, so that neither is in one piece.
fn blocks(bytes: usize) -> Vec<Vec<u8>> {
    let sizes = [
        16,
        200,
        512,
        3_000,
        64,
        40_000,
        1_024,
        130_000,
        96,
        700_000,
        8_192,
        4 << 20,
    ];
    let mut left = bytes;
    let mut blocks = Vec::new();
    // 4 MiB of each size in turn, without so many small ones that the list itself would count.
    for round in 0.. {
        let size = sizes[round % sizes.len()];
        for _ in 0..((4 << 20) / size).min(5_000) {
            if left < size {
                return blocks;
            }
            left -= size;
            blocks.push(vec![1; size]);
        }
    }
    blocks
}

#[test]
fn facts_name_this_build() {
    let facts = facts();
    assert_eq!(facts.name, name());
    assert!(
        facts
            .version
            .starts_with(|first: char| first.is_ascii_digit()),
        "{facts:?}"
    );
}

#[test]
fn a_purge_says_what_it_called() {
    let purged = purge();
    assert_eq!(purged.allocator.is_some(), purges());
    let said = purged.to_string();
    match name() {
        "snmalloc" => assert!(said.starts_with("nothing on snmalloc"), "{said}"),
        "system" | "dhat" => assert_eq!(said, "malloc_trim(0)"),
        _ => assert!(said.ends_with("; malloc_trim(0) on libc's heap"), "{said}"),
    }
}

/// The bar: within 10 MiB of where it was, on this thread and on another that lives on.
#[test]
fn a_purge_on_each_thread_gives_back_what_was_freed() {
    if !alone("a_purge_on_each_thread_gives_back_what_was_freed") {
        return;
    }
    let (told, tell) = channel();
    let (go, wait) = channel::<()>();
    let worker = thread::spawn(move || {
        for _ in 0..2 {
            wait.recv().unwrap();
            let held = blocks(200_000_000);
            told.send(()).unwrap();
            wait.recv().unwrap();
            drop(held);
            purge();
            told.send(()).unwrap();
        }
        // Lives until the other has looked.
        let _ = wait.recv();
    });
    purge();
    let before = rss();
    for _ in 0..2 {
        let mine = blocks(200_000_000);
        go.send(()).unwrap();
        tell.recv().unwrap();
        let held = rss();
        assert!(held > before + 380 * MIB, "{held} of {before}");
        go.send(()).unwrap();
        tell.recv().unwrap();
        drop(mine);
        purge();
        let after = rss();
        println!("before {before}, held {held}, after {after}");
        // snmalloc keeps it all, and says that it did nothing.
        if purges() {
            assert!(after < before + 10 * MIB, "{after} of {before}");
        } else {
            assert!(after > before + 200 * MIB, "{after} of {before}");
        }
    }
    drop(go);
    worker.join().unwrap();
}

/// What a thread that ended left, and what was freed by another thread than the one that allocated it.
#[test]
fn a_purge_gives_back_what_an_ended_thread_left() {
    if !alone("a_purge_gives_back_what_an_ended_thread_left") {
        return;
    }
    thread::spawn(|| drop(blocks(1_000_000))).join().unwrap();
    purge();
    let before = rss();
    thread::spawn(|| drop(blocks(200_000_000))).join().unwrap();
    let mine = thread::spawn(|| blocks(200_000_000)).join().unwrap();
    drop(mine);
    purge();
    let after = rss();
    println!("before {before}, after {after}");
    if purges() {
        assert!(after < before + 10 * MIB, "{after} of {before}");
    }
}

#[test]
fn statistics_follow_what_is_allocated() {
    if !alone("statistics_follow_what_is_allocated") {
        return;
    }
    let empty = statistics();
    let held = blocks(100_000_000);
    let full = statistics();
    println!("{empty}\n{full}");
    let grown = |figure: fn(&Statistics) -> Option<u64>| {
        Some(figure(&full)?.saturating_sub(figure(&empty)?))
    };
    // Sizes are rounded up, by a quarter at most.
    let near = 100_000_000..125_000_000;
    if let Some(live) = grown(|of| of.live_bytes) {
        assert!(near.contains(&live), "{live}");
    }
    // mimalloc 2 commits an arena as a whole before it is used.
    let committed = match name() {
        "mimalloc-v2" => full.committed_bytes,
        _ => grown(|of| of.committed_bytes),
    };
    let bar = match name() {
        "mimalloc-v2" => 100_000_000..2_000_000_000,
        _ => 95_000_000..150_000_000,
    };
    match committed {
        Some(committed) => assert!(bar.contains(&committed), "{committed}"),
        None => assert!(mallinfo2().is_none(), "nothing told"),
    }
    drop(held);
    let freed = statistics();
    purge();
    let purged = statistics();
    println!("{freed}\n{purged}");
    if let (Some(before), Some(after)) = (empty.live_bytes, freed.live_bytes) {
        assert!(after < before + 5_000_000, "{after} of {before}");
    }
    if let (Some(before), Some(after)) = (full.purged_bytes, purged.purged_bytes) {
        assert!(after > before + 80_000_000, "{after} of {before}");
    }
}

#[test]
fn each_allocator_tells_what_it_is_said_to() {
    let told = statistics().figures().map(|(_, bytes)| bytes.is_some());
    let [
        live,
        committed,
        retained,
        purged,
        metadata,
        resident,
        reserved,
    ] = told;
    assert!(committed || !cfg!(target_env = "gnu"));
    let jemalloc = name().starts_with("jemalloc");
    assert_eq!([metadata, resident], [jemalloc; 2]);
    assert_eq!(
        [purged, reserved],
        [jemalloc || name().starts_with("mimalloc"); 2]
    );
    let glibc = matches!(name(), "system" | "dhat") && mallinfo2().is_some();
    assert_eq!([live, retained], [jemalloc || glibc; 2]);
}

/// Where C code's memory comes from: libc's heap, unless the build is one of an allocator that takes its place.
#[test]
fn the_c_heap_is_libcs_unless_it_is_overridden() {
    if !alone("the_c_heap_is_libcs_unless_it_is_overridden") {
        return;
    }
    let libc_live = || mallinfo2().map_or(0, |heap| heap.live_bytes());
    let own = || {
        statistics()
            .live_bytes
            .or(statistics().committed_bytes)
            .unwrap_or(0)
    };
    let (libc_before, own_before) = (libc_live(), own());
    let pointers: Vec<*mut libc::c_void> = (0..16_384)
        .map(|_| {
            // SAFETY: any size may be asked for, and the pointer is freed below.
            let pointer = unsafe { libc::malloc(4096) };
            assert!(!pointer.is_null());
            // SAFETY: the block has 4096 bytes.
            unsafe { pointer.cast::<u8>().write_bytes(1, 4096) };
            pointer
        })
        .collect();
    let (libc_grown, own_grown) = (
        libc_live().saturating_sub(libc_before),
        own().saturating_sub(own_before),
    );
    for pointer in pointers {
        // SAFETY: it came from `malloc` and is freed once.
        unsafe { libc::free(pointer) };
    }
    println!("libc {libc_grown}, {} {own_grown}", name());
    let (in_libc, in_own) = match name() {
        "system" | "dhat" => (mallinfo2().is_some(), mallinfo2().is_some()),
        "mimalloc-override" | "jemalloc-override" => (false, true),
        _ => (mallinfo2().is_some(), false),
    };
    assert_eq!(libc_grown > 60 * MIB, in_libc, "{libc_grown}");
    assert_eq!(own_grown > 60 * MIB, in_own, "{own_grown}");
}

#[test]
fn counting_starts_unless_the_build_is_bare() {
    if !alone("counting_starts_unless_the_build_is_bare") {
        return;
    }
    start_counting();
    let held = blocks(10_000_000);
    let counts = heap_counts();
    drop(held);
    assert_eq!(is_counting(), can_count());
    assert_eq!(counts.live_bytes >= 10_000_000, can_count(), "{counts:?}");
    assert_eq!(can_count(), !cfg!(feature = "bare"));
}

/// dhat counts what the wrapper counts.
#[test]
fn the_peak_of_a_profile_is_the_counted_one() {
    if !alone("the_peak_of_a_profile_is_the_counted_one") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("dhat-heap.json");
    start_counting();
    reset_peak();
    let profile = start_profile(&path);
    assert_eq!(profile.is_some(), cfg!(feature = "dhat"));
    let Some(profile) = profile else { return };
    // Large blocks: the wrapper counts the records that dhat keeps of each as well.
    let block = |size: usize| vec![1_u8; size];
    let mut held: Vec<Vec<u8>> = (1..=200).map(|i| block(i * 2_000)).collect();
    held.truncate(20);
    held.extend((0..10).map(|_| block(1_000_000)));
    let (counted, profiled) = (heap_counts().peak_bytes, profile.peak_bytes());
    drop(profile);
    println!("counted {counted}, profiled {profiled}");
    assert!(profiled > 40_200_000);
    if can_count() {
        assert!(
            counted.abs_diff(profiled) < profiled / 100,
            "{counted}, {profiled}"
        );
    }
    let json: serde_json::Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    assert_eq!(json["mode"], "rust-heap");
}

#[test]
fn patterns_match_whole_names_or_prefixes() {
    assert!(matches_any(RECORDED_VARIABLES, "MALLOC_ARENA_MAX"));
    assert!(matches_any(RECORDED_VARIABLES, "_RJEM_MALLOC_CONF"));
    assert!(!matches_any(RECORDED_VARIABLES, "GLIBC_TUNABLES_TOO"));
    assert!(!matches_any(RECORDED_VARIABLES, "PATH"));
}

#[test]
fn an_empty_environment_asks_nothing() {
    let facts = AllocatorFacts {
        environment: Settings::new(),
        ..facts()
    };
    assert_eq!(check_settings(&facts), SettingsCheck::default());
}

#[test]
fn what_makes_no_sense_is_refused() {
    let refused = |pairs: &[(&str, &str)]| {
        let environment = pairs
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let facts = AllocatorFacts {
            environment: environment.collect(),
            ..facts()
        };
        check_settings(&facts).refused.len()
    };
    let nonsense: &[&[(&str, &str)]] = match name() {
        "system" | "dhat" => &[
            &[("MALLOC_ARENA_MAX", "two")],
            &[("MALLOC_ARENA_MAX", "0")],
            &[("MALLOC_CHECK_", "7")],
            &[("MALLOC_MMAP_THRESHOLD", "131072")],
            &[("GLIBC_TUNABLES", "glibc.malloc.hugetlb")],
            &[("GLIBC_TUNABLES", "glibc.malloc.nothing=1")],
        ],
        "jemalloc" => &[
            &[("_RJEM_MALLOC_CONF", "dirty_decay_ms")],
            &[("_RJEM_MALLOC_CONF", "dirty_decay:0")],
        ],
        "jemalloc-override" => &[
            &[("MALLOC_CONF", "dirty_decay_ms")],
            &[("MALLOC_CONF", "dirty_decay:0")],
        ],
        "snmalloc" => &[],
        _ => &[
            &[("MIMALLOC_PURGE_DELAY", "soon")],
            &[("MIMALLOC_NOTHING", "1")],
        ],
    };
    // Without a loader that lists tunables nothing can be held against them.
    if !facts().settings.is_empty() {
        for pairs in nonsense {
            assert_eq!(refused(pairs), 1, "{pairs:?}");
        }
    }
}
