//! What is done at the moment to be explained, in the middle of a call of the allocator: everything is read, and
//! nothing is allocated.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use alloquet_core::{Ledger, Purpose};

use super::account::{Facts, Page, Pages, Totals, WINDOW, account};
use crate::allocator::{self, Block, Blocks, CHeap};
use crate::sys::mapping::{self, Table};
use crate::sys::pagemap::{Memory, PAGE, Pagemap, Place};
use crate::sys::smaps::{self, Mapping};

/// The kernel allows no more by default.
const MOST_MAPPINGS: usize = 65_536;

/// How many readers or writers at once can be told apart from the rest of the heap.
const MOST_LEDGERS: usize = 1024;

/// A place that is there already: to make one would change the heap.
static LEDGERS: Mutex<[Option<Arc<Ledger>>; MOST_LEDGERS]> =
    Mutex::new([const { None }; MOST_LEDGERS]);

static TAKEN: Mutex<Option<Result<Reading, Failure>>> = Mutex::new(None);

/// All that was read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reading {
    pub(super) rss: u64,
    pub(super) totals: Totals,
    pub(super) blocks: u64,
    pub(super) counted_live: u64,
    /// Calls since the window opened.
    pub(super) ordinal: u64,
    pub(super) mappings: u64,
    /// By purpose, in the order of [`Purpose::ALL`].
    pub(super) ledger: [u64; Purpose::ALL.len()],
    /// What libc says of its own heap.
    pub(super) c_heap: CHeap,
    /// The part of its arenas that known blocks take, headers included, and of its mapped chunks.
    pub(super) known_in_arenas: u64,
    pub(super) known_mapped: u64,
}

/// Why nothing could be read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Failure {
    pub(super) what: &'static str,
    pub(super) kind: io::ErrorKind,
}

/// Notes a ledger; one that finds no room is left out, and its bytes count as outside the ledger.
pub(super) fn register(ledger: &Arc<Ledger>) {
    let mut ledgers = LEDGERS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(place) = ledgers.iter_mut().find(|place| place.is_none()) {
        *place = Some(Arc::clone(ledger));
    }
}

/// Forgets the ledgers, and hands over what was read.
pub(super) fn take() -> Option<Result<Reading, Failure>> {
    LEDGERS
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .fill(None);
    TAKEN.lock().unwrap_or_else(PoisonError::into_inner).take()
}

/// The hook.
pub(super) fn halt(blocks: &Blocks) {
    let reading = read(blocks);
    // Taken by the hook and by `take` alone, which holds it for a moment and allocates nothing.
    *TAKEN.lock().unwrap_or_else(PoisonError::into_inner) = Some(reading);
}

fn read(blocks: &Blocks) -> Result<Reading, Failure> {
    let failed = |what| {
        move |error: io::Error| Failure {
            what,
            kind: error.kind(),
        }
    };
    if let Some(kind) = blocks.failed() {
        let what = "set memory aside for a list of the live blocks";
        return Err(Failure { what, kind });
    }
    let counts = allocator::heap_counts();
    let c_heap = allocator::mallinfo2().unwrap_or_default();
    let ledger = ledger_live();

    let no_memory = || failed("set memory aside for reading /proc/self/smaps");
    let mut sorted = Table::<Block>::new(blocks.count()).map_err(no_memory())?;
    let mut mappings = Table::<Mapping>::new(MOST_MAPPINGS).map_err(no_memory())?;
    let mut buffer = Table::<u8>::new(256 << 10).map_err(no_memory())?;
    let mut pages = RealPages::new(blocks).map_err(failed(
        "read /proc/self/pagemap and /proc/self/mem, by pages of 4 KiB",
    ))?;

    for (place, block) in sorted.iter_mut().zip(blocks.iter()) {
        *place = *block;
    }
    // A table has at least one place.
    let sorted = &mut sorted[..blocks.count()];
    sorted.sort_unstable_by_key(|block| block.address);
    let (known_in_arenas, known_mapped) = known_to_c(sorted);

    // Twice: after the first time all that reading needs is resident itself.
    let mut found = 0;
    let mut rss = 0;
    for _ in 0..2 {
        found = 0;
        smaps::read(&mut buffer, |mapping| {
            if let Some(place) = mappings.get_mut(found) {
                *place = mapping;
            }
            found += 1;
        })
        .map_err(failed("read /proc/self/smaps"))?;
        rss = smaps::resident(&mut buffer).map_err(failed("read /proc/self/smaps_rollup"))?;
    }

    let Some(mappings) = mappings.get(..found) else {
        let what = "list so many mappings";
        let kind = io::ErrorKind::QuotaExceeded;
        return Err(Failure { what, kind });
    };
    let here = 0_u8;
    let facts = Facts {
        stack: std::ptr::from_ref(&here).addr() as u64,
        shared_with_c: allocator::SHARED_WITH_C,
        ever_held: |start: u64, end: u64| blocks.ever_held_in(start / PAGE..end / PAGE),
    };
    let classed = (0..found).map(|index| (mappings[index], facts.class(mappings, index)));
    let totals = account(
        classed,
        sorted,
        c_heap.mapped_bytes.saturating_sub(known_mapped),
        &mut pages,
    );
    if let Some(kind) = pages.failed {
        let what = "read /proc/self/pagemap";
        return Err(Failure { what, kind });
    }
    Ok(Reading {
        rss,
        totals,
        blocks: blocks.count() as u64,
        counted_live: counts.live_bytes,
        ordinal: counts.ordinal,
        mappings: found as u64,
        ledger,
        c_heap,
        known_in_arenas,
        known_mapped,
    })
}

/// What all ledgers hold now. None is waited for: whoever holds the list may wait for the allocator.
fn ledger_live() -> [u64; Purpose::ALL.len()] {
    let mut live = [0; Purpose::ALL.len()];
    if let Ok(ledgers) = LEDGERS.try_lock() {
        for ledger in ledgers.iter().flatten() {
            for (bytes, &purpose) in live.iter_mut().zip(Purpose::ALL) {
                *bytes += ledger.live(purpose);
            }
        }
    }
    live
}

/// What known blocks take of the C library's arenas and of its mapped chunks, headers included.
fn known_to_c(blocks: &[Block]) -> (u64, u64) {
    if !allocator::SHARED_WITH_C {
        return (0, 0);
    }
    let mut arenas = 0;
    let mut mapped = 0;
    for block in blocks {
        let bytes = u64::from(block.header) + block.size + u64::from(block.slack);
        if block.header > 8 {
            mapped += bytes.next_multiple_of(PAGE);
        } else {
            arenas += bytes;
        }
    }
    (arenas, mapped)
}

/// Pages as the kernel tells of them.
struct RealPages<'a> {
    blocks: &'a Blocks,
    pagemap: Pagemap,
    memory: Memory,
    /// For the entries and the contents of one window.
    entries: Table<u64>,
    contents: Table<u8>,
    failed: Option<io::ErrorKind>,
}

impl<'a> RealPages<'a> {
    fn new(blocks: &'a Blocks) -> io::Result<Self> {
        let mut pages = Self {
            blocks,
            pagemap: Pagemap::open()?,
            memory: Memory::open()?,
            entries: Table::new(WINDOW)?,
            contents: Table::new(WINDOW * PAGE as usize)?,
            failed: None,
        };
        // Resident before anything is read.
        pages.entries.fill(1);
        pages.contents.fill(1);
        Ok(pages)
    }
}

impl Pages for RealPages<'_> {
    fn look(&mut self, first: u64, huge: bool, pages: &mut [Page]) {
        let entries = &mut self.entries[..pages.len()];
        if let Err(error) = self.pagemap.read(first, entries) {
            self.failed = Some(error.kind());
            entries.fill(0);
        }
        for ((page, &entry), number) in pages.iter_mut().zip(&*entries).zip(first..) {
            *page = Page {
                place: Place::of(entry),
                ever_held: self.blocks.ever_held(number),
                own: false,
                untouched: false,
            };
        }
        let last = first + pages.len() as u64;
        for own in mapping::tables() {
            for number in first.max(own.start / PAGE)..last.min(own.end / PAGE) {
                pages[(number - first) as usize].own = true;
            }
        }
        let can_be_huge = huge
            && pages.len() == WINDOW
            && pages
                .iter()
                .all(|page| page.place == Place::Resident && !page.own);
        // Unmapped meanwhile by another thread: then it is left as it was.
        if can_be_huge && self.memory.read(first * PAGE, &mut self.contents).is_ok() {
            let contents = self.contents.chunks_exact(PAGE as usize);
            for (page, contents) in pages.iter_mut().zip(contents) {
                page.untouched = is_zero(contents);
            }
        }
    }

    fn mapped_chunk(&mut self, page: u64) -> Option<u64> {
        // The size of what was skipped to align the chunk, always none in one that malloc made; its own size, with the
        // flag of a mapped one.
        const IS_MAPPED: u64 = 2;
        let mut header = [0; 16];
        self.memory.read(page * PAGE, &mut header).ok()?;
        let &[before, size] = header.as_chunks::<8>().0 else {
            return None;
        };
        let size = u64::from_ne_bytes(size);
        let is_chunk = u64::from_ne_bytes(before) == 0 && size % PAGE == IS_MAPPED;
        is_chunk
            .then(|| size - IS_MAPPED)
            .filter(|&bytes| bytes > 0)
    }
}

fn is_zero(bytes: &[u8]) -> bool {
    let (words, rest) = bytes.as_chunks::<8>();
    words.iter().all(|word| u64::from_ne_bytes(*word) == 0) && rest.iter().all(|&byte| byte == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeros_are_told_from_a_single_bit() {
        let mut bytes = [0; 4096];
        assert!(is_zero(&bytes));
        bytes[4095] = 1;
        assert!(!is_zero(&bytes));
    }

    #[test]
    fn known_blocks_are_in_arenas_or_mapped() {
        let block = |size, slack, header| Block {
            address: 0x1000,
            size,
            slack,
            header,
        };
        let blocks = [block(100, 4, 8), block(1 << 20, 4080, 16)];
        let expected = if allocator::SHARED_WITH_C {
            (112, (1 << 20) + 4096)
        } else {
            (0, 0)
        };
        assert_eq!(known_to_c(&blocks), expected);
    }
}
