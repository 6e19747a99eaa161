//! The waterfall: from live heap to resident memory, part by part.

use alloquet_core::Purpose;
use alloquet_report::format::mib;
use alloquet_report::parts::{LAST, Part, Source};

use super::account::Totals;
use super::halt::Reading;

/// The parts in the order of the waterfall. They sum to what was resident.
pub(super) fn parts(reading: &Reading, shared_with_c: bool) -> Vec<Part> {
    use Source::{Derived, Measured};

    let totals = &reading.totals;
    let c_side = CSide::of(reading, shared_with_c);
    let mut parts = Parts::default();

    let mut outside = totals.live as i64;
    for (&purpose, &bytes) in Purpose::ALL.iter().zip(&reading.ledger) {
        if purpose != Purpose::Codec {
            let name = format!("live-{purpose}").replace(' ', "-");
            parts.add(&name, bytes as i64, Measured, "live heap, by the ledger");
            outside -= bytes as i64;
        }
    }
    parts.add(
        "live-outside-ledger",
        outside,
        Measured,
        "counted live heap that the ledger does not know",
    );
    parts.add(
        "live-never-touched",
        -((totals.live_nowhere + totals.live_untouched) as i64),
        if totals.live_untouched > 0 { Derived } else { Measured },
        &format!(
            "live bytes in pages that are not resident ({}, by pagemap), or that are all zeros in a huge page ({}, taken \
             for never written)",
            mib(totals.live_nowhere),
            mib(totals.live_untouched)
        ),
    );
    parts.add(
        "live-swapped-out",
        -(totals.live_swapped as i64),
        Measured,
        "live bytes in pages that are swapped out, by pagemap",
    );
    parts.add(
        "c-heap",
        (c_side.in_arenas + totals.c_mapped) as i64,
        Derived,
        &format!(
            "in use by C code: {} in chunks of their own, known by their headers and resident by pagemap; {} of {} in \
             arenas, by mallinfo2; the ledger knows of {} in codecs",
            mib(totals.c_mapped),
            mib(c_side.in_arenas),
            mib(c_side.asked),
            mib(ledger(reading, Purpose::Codec))
        ),
    );
    let pages = if shared_with_c { 0 } else { totals.never_held };
    parts.add(
        "allocator-metadata",
        (totals.overhead + pages) as i64,
        Derived,
        &format!(
            "headers, and bytes of size classes beyond what was asked for ({}, measured where blocks are); pages that \
             never held a block and are nothing else ({})",
            mib(totals.overhead),
            mib(pages)
        ),
    );
    parts.add(
        "freed-but-kept",
        (c_side.freed + c_side.free_of_c) as i64,
        Derived,
        &format!(
            "pages and parts of pages that once held a block and hold none ({}), and free chunks of C's ({})",
            mib(c_side.freed),
            mib(c_side.free_of_c)
        ),
    );
    parts.add(
        "lazily-freed",
        totals.lazily_freed as i64,
        Measured,
        "LazyFree in smaps: the kernel takes it when memory is short",
    );
    parts.add(
        "huge-page-rounding",
        totals.rounding as i64,
        Derived,
        "pages of zeros in a huge page, resident because another part of it was touched",
    );
    parts.add(
        "file-backed",
        totals.files as i64,
        Measured,
        "mapped files but for the binary and its libraries, and shared memory, by smaps",
    );
    parts.add(
        "stacks-and-binary",
        (totals.stacks + totals.image) as i64,
        Derived,
        &format!(
            "stacks ({}; a thread's is what lies behind a guard and never held a block), the binary, its libraries and \
             their data ({})",
            mib(totals.stacks),
            mib(totals.image)
        ),
    );
    parts.add(
        "own-tables",
        totals.own as i64,
        Measured,
        "what this sample needs to explain itself; a bare sample has none of it",
    );
    let left = reading.rss as i64 - parts.sum;
    parts.add(
        LAST,
        left,
        Derived,
        "resident and none of the above, or the other way round",
    );
    parts.list
}

/// What the ledgers say of one purpose.
pub(super) fn ledger(reading: &Reading, purpose: Purpose) -> u64 {
    let found = Purpose::ALL
        .iter()
        .zip(&reading.ledger)
        .find(|(other, _)| **other == purpose);
    found.map_or(0, |(_, &bytes)| bytes)
}

#[derive(Default)]
struct Parts {
    list: Vec<Part>,
    sum: i64,
}

impl Parts {
    fn add(&mut self, name: &str, bytes: i64, source: Source, how: &str) {
        self.sum += bytes;
        self.list.push(Part {
            part: name.to_owned(),
            bytes,
            source,
            how: how.to_owned(),
        });
    }
}

/// How the C library's arenas are shared between what is in use and what is free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct CSide {
    /// What mallinfo2 says is in use there by others than known blocks.
    asked: u64,
    /// The part of it that can be resident.
    in_arenas: u64,
    /// What of pages that once held a block is free.
    freed: u64,
    /// What of C's own pages is free.
    free_of_c: u64,
}

impl CSide {
    fn of(reading: &Reading, shared_with_c: bool) -> Self {
        let Totals {
            c_arenas, freed, ..
        } = reading.totals;
        let asked = reading
            .c_heap
            .used_bytes
            .saturating_sub(reading.known_in_arenas);
        // C's pages first. Where blocks are C's too, C's chunks lie in pages that were once theirs as well.
        let in_own = asked.min(c_arenas);
        let among_blocks = if shared_with_c {
            (asked - in_own).min(freed)
        } else {
            0
        };
        Self {
            asked,
            in_arenas: in_own + among_blocks,
            freed: freed - among_blocks,
            free_of_c: (c_arenas - in_own).min(reading.c_heap.free_bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::allocator::CHeap;

    fn reading(totals: Totals, c_heap: CHeap) -> Reading {
        Reading {
            rss: totals.resident(),
            totals,
            blocks: 1,
            counted_live: totals.live,
            ordinal: 1,
            mappings: 1,
            ledger: [0; Purpose::ALL.len()],
            c_heap,
            known_in_arenas: 0,
            known_mapped: 0,
        }
    }

    fn bytes(parts: &[Part], name: &str) -> i64 {
        parts.iter().find(|part| part.part == name).unwrap().bytes
    }

    #[test]
    fn the_ledger_splits_what_is_live_and_codecs_are_c() {
        let totals = Totals {
            live: 1000,
            live_nowhere: 300,
            c_arenas: 500,
            ..Totals::default()
        };
        let c_heap = CHeap {
            arena_bytes: 500,
            used_bytes: 400,
            free_bytes: 60,
            ..CHeap::default()
        };
        let mut reading = reading(totals, c_heap);
        for (bytes, &purpose) in reading.ledger.iter_mut().zip(Purpose::ALL) {
            *bytes = match purpose {
                Purpose::Page => 600,
                Purpose::PageStore => 50,
                Purpose::Codec => 390,
                _ => 0,
            };
        }
        let parts = parts(&reading, false);
        assert_eq!(bytes(&parts, "live-page"), 600);
        assert_eq!(bytes(&parts, "live-page-store"), 50);
        assert_eq!(bytes(&parts, "live-outside-ledger"), 350);
        assert_eq!(bytes(&parts, "live-never-touched"), -300);
        assert_eq!(bytes(&parts, "c-heap"), 400);
        assert_eq!(bytes(&parts, "freed-but-kept"), 60);
        // libc knows nothing of the rest of its pages.
        assert_eq!(bytes(&parts, "left-over"), 40);
        assert!(parts.iter().all(|part| part.part != "live-codec"));
    }

    #[test]
    fn one_heap_for_both_is_shared_by_what_libc_says_is_in_use() {
        let totals = Totals {
            freed: 1000,
            c_arenas: 100,
            never_held: 30,
            ..Totals::default()
        };
        let c_heap = CHeap {
            used_bytes: 5250,
            ..CHeap::default()
        };
        let mut reading = reading(totals, c_heap);
        reading.known_in_arenas = 5000;
        let shared = parts(&reading, true);
        assert_eq!(bytes(&shared, "c-heap"), 250);
        assert_eq!(bytes(&shared, "freed-but-kept"), 850);
        // glibc has no such pages, so nobody is said to.
        assert_eq!(bytes(&shared, "left-over"), 30);
        assert_eq!(bytes(&parts(&reading, false), "allocator-metadata"), 30);
    }

    proptest! {
        #[test]
        fn parts_sum_to_what_is_resident(
            amounts in prop::collection::vec(0..1_u64 << 40, 20),
            rss in 0..1_u64 << 42,
            shared in any::<bool>(),
        ) {
            let totals = Totals {
                live: amounts[0],
                live_nowhere: amounts[1],
                live_swapped: amounts[2],
                live_untouched: amounts[3],
                rounding: amounts[4],
                overhead: amounts[5],
                freed: amounts[6],
                c_arenas: amounts[7],
                c_mapped: amounts[8],
                never_held: amounts[9],
                lazily_freed: amounts[10],
                own: amounts[11],
                image: amounts[12],
                stacks: amounts[13],
                files: amounts[14],
            };
            let c_heap = CHeap { used_bytes: amounts[15], free_bytes: amounts[16], ..CHeap::default() };
            let live = totals.live + totals.live_nowhere + totals.live_swapped + totals.live_untouched;
            let mut reading = reading(Totals { live, ..totals }, c_heap);
            reading.rss = rss;
            reading.known_in_arenas = amounts[17];
            reading.ledger[2] = amounts[18];
            let parts = parts(&reading, shared);
            prop_assert_eq!(parts.iter().map(|part| part.bytes).sum::<i64>(), rss as i64);
            let names: std::collections::BTreeSet<_> = parts.iter().map(|part| &part.part).collect();
            prop_assert_eq!(names.len(), parts.len());
        }
    }
}
