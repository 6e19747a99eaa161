use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

/// Pages from a list; those that are not in it are nowhere.
#[derive(Default)]
struct Listed {
    pages: BTreeMap<u64, Page>,
    chunks: BTreeMap<u64, u64>,
}

impl Listed {
    fn new(pages: impl IntoIterator<Item = (u64, Page)>) -> Self {
        Self {
            pages: pages.into_iter().collect(),
            chunks: BTreeMap::new(),
        }
    }
}

impl Pages for Listed {
    fn look(&mut self, first: u64, _huge: bool, pages: &mut [Page]) {
        assert!(first % WINDOW as u64 + pages.len() as u64 <= WINDOW as u64);
        for (page, number) in pages.iter_mut().zip(first..) {
            *page = self.pages.get(&number).copied().unwrap_or(Page::NOWHERE);
        }
    }

    fn mapped_chunk(&mut self, page: u64) -> Option<u64> {
        self.chunks.get(&page).copied()
    }
}

const RESIDENT: Page = Page {
    place: Place::Resident,
    ..Page::NOWHERE
};
const HELD: Page = Page {
    ever_held: true,
    ..RESIDENT
};
const UNTOUCHED: Page = Page {
    untouched: true,
    ..HELD
};
const SWAPPED: Page = Page {
    place: Place::Swapped,
    ever_held: true,
    ..Page::NOWHERE
};

fn mapping(first: u64, pages: u64, resident: u64) -> Mapping {
    Mapping {
        start: first * PAGE,
        end: (first + pages) * PAGE,
        accessible: true,
        rss: resident * PAGE,
        ..Mapping::default()
    }
}

fn block(address: u64, size: u64, slack: u32, header: u32) -> Block {
    Block {
        address,
        size,
        slack,
        header,
    }
}

fn heap_of(mapping: Mapping, blocks: &[Block], pages: &mut Listed) -> Totals {
    account([(mapping, Class::Heap)].into_iter(), blocks, 0, pages)
}

#[test]
fn a_block_is_live_where_it_is_resident() {
    // Half of page 10, all of 11, which is nowhere, and the first byte of 12.
    let blocks = [block(10 * PAGE + 2048, 2048 + PAGE + 1, 7, 8)];
    let mut pages = Listed::new([(10, HELD), (12, HELD)]);
    let totals = heap_of(mapping(8, 100, 2), &blocks, &mut pages);
    let expected = Totals {
        live: 2048 + PAGE + 1,
        live_nowhere: PAGE,
        overhead: 8 + 7,
        freed: 2048 - 8 + PAGE - 8,
        ..Totals::default()
    };
    assert_eq!(totals, expected);
    assert_eq!(totals.resident(), 2 * PAGE);
}

#[test]
fn a_header_in_the_page_before_counts_there() {
    let blocks = [block(11 * PAGE, 16, 0, 8)];
    let mut pages = Listed::new([(10, HELD)]);
    let totals = heap_of(mapping(10, 2, 1), &blocks, &mut pages);
    assert_eq!((totals.overhead, totals.live_nowhere), (8, 16));
}

#[test]
fn zeros_in_a_huge_page_are_rounding() {
    let blocks = [block(512 * PAGE, 3 * PAGE, 0, 0)];
    let mut pages = Listed::new([
        (512, HELD),
        (513, UNTOUCHED),
        (514, UNTOUCHED),
        (515, UNTOUCHED),
    ]);
    let totals = heap_of(mapping(512, 512, 4), &blocks, &mut pages);
    assert_eq!(totals.live_untouched, 2 * PAGE);
    assert_eq!(totals.rounding, 3 * PAGE);
    assert_eq!(totals.resident(), 4 * PAGE);
}

#[test]
fn what_is_swapped_out_is_not_untouched() {
    let blocks = [block(10 * PAGE, 3 * PAGE, 0, 0)];
    let mut pages = Listed::new([(10, HELD), (11, SWAPPED)]);
    let swapped = Mapping {
        swap: PAGE,
        ..mapping(10, 3, 1)
    };
    let totals = heap_of(swapped, &blocks, &mut pages);
    assert_eq!((totals.live_swapped, totals.live_nowhere), (PAGE, PAGE));
    assert_eq!(totals.resident(), PAGE);
}

#[test]
fn lazily_freed_pages_once_held_blocks() {
    let lazy = Mapping {
        lazy_free: 3 * PAGE,
        ..mapping(10, 10, 4)
    };
    let mut pages = Listed::new([(10, HELD), (11, HELD), (12, RESIDENT), (13, RESIDENT)]);
    let totals = heap_of(lazy, &[], &mut pages);
    assert_eq!(totals.lazily_freed, 3 * PAGE);
    assert_eq!((totals.freed, totals.never_held), (0, PAGE));
}

#[test]
fn chunks_of_c_are_known_by_their_headers_as_long_as_some_are_missing() {
    let resident = (10..20).map(|page| (page, RESIDENT));
    let mut pages = Listed::new(resident);
    // The second claims more than libc has mapped, the third does not fit its mapping.
    pages.chunks = BTreeMap::from([(10, 4 * PAGE), (14, 3 * PAGE), (16, 1000 * PAGE)]);
    let found = account(
        [(mapping(10, 20, 10), Class::Heap)].into_iter(),
        &[],
        6 * PAGE,
        &mut pages,
    );
    assert_eq!((found.c_mapped, found.never_held), (4 * PAGE, 6 * PAGE));
}

#[test]
fn own_tables_are_counted_apart() {
    let own = Page {
        own: true,
        ..RESIDENT
    };
    let mut pages = Listed::new([(10, own), (11, RESIDENT)]);
    let totals = heap_of(mapping(10, 2, 2), &[], &mut pages);
    assert_eq!((totals.own, totals.never_held), (PAGE, PAGE));
}

#[test]
fn mappings_are_told_apart() {
    let file = |first, pages, inode, executable| Mapping {
        of: Of::File,
        file: (1, inode),
        executable,
        ..mapping(first, pages, 1)
    };
    let guard = |first, pages| Mapping {
        accessible: false,
        ..mapping(first, pages, 0)
    };
    let arena = ARENA_BYTES / PAGE;
    let mappings = [
        file(10, 5, 7, true),
        file(15, 1, 7, false),
        mapping(16, 2, 1),
        file(20, 9, 8, false),
        guard(30, 1),
        mapping(31, 512, 3),
        guard(600, 1),
        mapping(601, 512, 3),
        mapping(arena, 33, 33),
        guard(arena + 33, arena - 33),
        mapping(5 * arena, 99, 9),
    ];
    let facts = Facts {
        stack: (5 * arena + 1) * PAGE,
        shared_with_c: false,
        // The second of those behind a guard held a block.
        ever_held: |start: u64, _| start == 601 * PAGE,
    };
    let classes: Vec<_> = (0..mappings.len())
        .map(|index| facts.class(&mappings, index))
        .collect();
    use Class::{CArena, File, Heap, Image, Stack};
    let expected = [
        Image, Image, Image, File, Heap, Stack, Heap, Heap, CArena, Heap, Stack,
    ];
    assert_eq!(classes, expected);
}

/// Bytes free before a block, and its size, slack and header.
type Gap = (u64, u64, u32, u32);

/// Pages of any kind, with blocks laid over them that do not overlap.
fn anything() -> impl Strategy<Value = (Vec<Page>, Vec<Gap>, u64)> {
    let kinds = prop::sample::select(vec![Page::NOWHERE, RESIDENT, HELD, UNTOUCHED, SWAPPED]);
    let block = (
        0..9000_u64,
        1..20_000_u64,
        0..5000_u32,
        prop::sample::select(vec![0, 8, 16]),
    );
    (
        prop::collection::vec(kinds, 1..1500),
        prop::collection::vec(block, 0..100),
        0..50_u64,
    )
}

proptest! {
    /// Whatever lies where, every resident page is accounted for, once.
    #[test]
    fn all_that_is_resident_is_accounted_for((pages, gaps, lazy) in anything()) {
        const FIRST: u64 = 300;
        let count = pages.len() as u64;
        let resident = pages.iter().filter(|page| page.place == Place::Resident).count() as u64;
        let swapped = pages.iter().filter(|page| page.place == Place::Swapped).count() as u64;
        let mut at = FIRST * PAGE;
        let mut blocks = Vec::new();
        for (gap, size, slack, header) in gaps {
            let address = at + gap + u64::from(header);
            at = address + size + u64::from(slack);
            if at <= (FIRST + count) * PAGE {
                blocks.push(block(address, size, slack, header));
            }
        }
        let heap = Mapping {
            swap: swapped * PAGE,
            lazy_free: lazy * PAGE,
            ..mapping(FIRST, count, resident)
        };
        let files = Mapping { of: Of::File, ..mapping(9000, 10, 4) };
        let mut listed = Listed::new((FIRST..).zip(pages));
        let totals = account(
            [(heap, Class::Heap), (files, Class::File)].into_iter(),
            &blocks,
            0,
            &mut listed,
        );
        prop_assert_eq!(totals.resident(), (resident + 4) * PAGE);
        prop_assert_eq!(totals.live, blocks.iter().map(|block| block.size).sum::<u64>());
        prop_assert!(totals.lazily_freed <= lazy * PAGE);
    }
}
