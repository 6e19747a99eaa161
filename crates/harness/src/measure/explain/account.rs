//! Page-exact accounting: what each resident page of this process holds. Arithmetic only; what it is told comes from
//! [`halt`](super::halt).

use crate::allocator::Block;
use crate::sys::pagemap::{PAGE, Place};
use crate::sys::smaps::{Mapping, Of};

/// Pages of a huge page, and so of what is looked at together.
pub(super) const WINDOW: usize = 512;

/// glibc lets an arena grow within so much address space, aligned to as much.
const ARENA_BYTES: u64 = 64 << 20;

/// A guard is no larger than this, reserved space is no smaller.
const MOST_GUARD_BYTES: u64 = 64 << 10;

/// What a mapping is, as far as its pages are not looked at one by one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    /// Anonymous memory: each page is looked at.
    Heap,
    /// The same, and the C library's: what `brk` gave it, or an arena of its own.
    CArena,
    /// The binary, its libraries and their data, and what the kernel maps into each process.
    Image,
    /// A thread's stack.
    Stack,
    /// Another file, or memory that is shared like one.
    File,
}

/// What classes are told by, besides the mappings.
pub(super) struct Facts<F> {
    /// An address in the stack of the thread that asks.
    pub(super) stack: u64,
    /// Whether the C library's heap is the one whose blocks are known.
    pub(super) shared_with_c: bool,
    /// Whether any page in a range of addresses ever held a block.
    pub(super) ever_held: F,
}

impl<F: Fn(u64, u64) -> bool> Facts<F> {
    /// What the mapping at `index` is.
    pub(super) fn class(&self, mappings: &[Mapping], index: usize) -> Class {
        let mapping = &mappings[index];
        let before = index
            .checked_sub(1)
            .map(|index| &mappings[index])
            .filter(|before| before.end == mapping.start);
        let behind = mappings
            .get(index + 1)
            .filter(|behind| behind.start == mapping.end);
        let held = || (self.ever_held)(mapping.start, mapping.end);
        match mapping.of {
            Of::Brk => Class::CArena,
            Of::Stack => Class::Stack,
            Of::Kernel => Class::Image,
            Of::File if is_image(mappings, mapping) => Class::Image,
            Of::File => Class::File,
            Of::Anonymous if (mapping.start..mapping.end).contains(&self.stack) => Class::Stack,
            // What a file's data has beyond the file follows it.
            Of::Anonymous if before.is_some_and(|before| is_image(mappings, before)) && !held() => {
                Class::Image
            }
            Of::Anonymous if before.is_some_and(is_guard) && mapping.accessible && !held() => {
                Class::Stack
            }
            Of::Anonymous
                if mapping.start.is_multiple_of(ARENA_BYTES)
                    && behind.is_some_and(|behind| {
                        is_closed(behind) && behind.end >= mapping.start + ARENA_BYTES
                    })
                    && (self.shared_with_c || !held()) =>
            {
                Class::CArena
            }
            Of::Anonymous => Class::Heap,
        }
    }
}

/// Whether a mapping is of a file of which code may run somewhere.
fn is_image(mappings: &[Mapping], mapping: &Mapping) -> bool {
    mapping.of == Of::File
        && mapping.file.1 != 0
        && mappings
            .iter()
            .any(|other| other.executable && other.file == mapping.file)
}

fn is_closed(mapping: &Mapping) -> bool {
    mapping.of == Of::Anonymous && !mapping.accessible
}

fn is_guard(mapping: &Mapping) -> bool {
    is_closed(mapping) && mapping.end - mapping.start <= MOST_GUARD_BYTES
}

/// One page of anonymous memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Page {
    /// Where it is.
    pub(super) place: Place,
    /// Whether it ever held a part of a block.
    pub(super) ever_held: bool,
    /// Whether it is one of this program's own tables.
    pub(super) own: bool,
    /// Whether it is all zeros in a huge page, and so was most likely never written to.
    pub(super) untouched: bool,
}

impl Page {
    /// A page that is nowhere and nothing.
    pub(super) const NOWHERE: Self = Self {
        place: Place::Nowhere,
        ever_held: false,
        own: false,
        untouched: false,
    };
}

/// Tells of pages.
pub(super) trait Pages {
    /// Looks at the pages from number `first` on, at most [`WINDOW`] of them and never beyond the next multiple of that.
    /// `huge` says that some of the mapping are in huge pages.
    fn look(&mut self, first: u64, huge: bool, pages: &mut [Page]);

    /// The length in bytes of the chunk that C's malloc mapped for itself at this page, if it looks like one.
    fn mapped_chunk(&mut self, page: u64) -> Option<u64>;
}

/// Bytes by what they are. The fields that have no other word are resident.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Totals {
    /// Asked for and live, resident or not.
    pub(super) live: u64,
    /// The part of [`Self::live`] in pages that are not in memory because nobody wrote to them.
    pub(super) live_nowhere: u64,
    /// The part of it that is swapped out.
    pub(super) live_swapped: u64,
    /// The part of it in pages that only a huge page made resident.
    pub(super) live_untouched: u64,
    /// Pages that only a huge page made resident.
    pub(super) rounding: u64,
    /// Headers of live blocks, and the bytes of their size class beyond what was asked for.
    pub(super) overhead: u64,
    /// In pages that once held a block, what is live in none now.
    pub(super) freed: u64,
    /// Pages of the C library's arenas that never held a known block.
    pub(super) c_arenas: u64,
    /// Chunks that C's malloc mapped for themselves.
    pub(super) c_mapped: u64,
    /// Other anonymous pages that never held a known block.
    pub(super) never_held: u64,
    /// Marked to be dropped when memory is short; no longer in the three above.
    pub(super) lazily_freed: u64,
    /// This program's own tables.
    pub(super) own: u64,
    /// The binary and its libraries.
    pub(super) image: u64,
    /// Stacks.
    pub(super) stacks: u64,
    /// Files and shared memory.
    pub(super) files: u64,
}

/// Bytes of one page that blocks take.
#[derive(Clone, Copy, Default)]
struct Taken {
    live: u64,
    overhead: u64,
}

/// Walks along blocks in the order of their addresses.
struct Cursor<'a> {
    blocks: &'a [Block],
}

impl Cursor<'_> {
    /// Skips the blocks that end at or before an address.
    fn skip_to(&mut self, address: u64) {
        let passed = self.blocks.partition_point(|block| end(block) <= address);
        self.blocks = &self.blocks[passed..];
    }

    /// What blocks take of the page at an address, which is not below that of the call before.
    fn take(&mut self, address: u64) -> Taken {
        let behind = address + PAGE;
        let within = |from: u64, to: u64| to.min(behind).saturating_sub(from.max(address));
        let mut taken = Taken::default();
        while let [block, rest @ ..] = self.blocks {
            let begin = block.address - u64::from(block.header);
            if begin >= behind {
                break;
            }
            let live = within(block.address, block.address + block.size);
            taken.live += live;
            taken.overhead += within(begin, end(block)) - live;
            if end(block) > behind {
                break;
            }
            self.blocks = rest;
        }
        taken
    }
}

fn end(block: &Block) -> u64 {
    block.address + block.size + u64::from(block.slack)
}

/// Accounts for all mappings, given in the order of their addresses as are the `blocks`, which do not overlap. Chunks
/// that C mapped for themselves are looked for until `c_mapped` bytes of them are found, resident or not.
pub(super) fn account(
    mappings: impl Iterator<Item = (Mapping, Class)>,
    blocks: &[Block],
    c_mapped: u64,
    pages: &mut impl Pages,
) -> Totals {
    let mut totals = Totals {
        live: blocks.iter().map(|block| block.size).sum(),
        ..Totals::default()
    };
    let mut cursor = Cursor { blocks };
    let mut live_seen = 0;
    let mut to_find = c_mapped;
    for (mapping, class) in mappings {
        match class {
            Class::Image => totals.image += mapping.rss,
            Class::Stack => totals.stacks += mapping.rss,
            Class::File => totals.files += mapping.rss,
            Class::Heap | Class::CArena => {
                cursor.skip_to(mapping.start);
                let found = heap(&mapping, class, &mut cursor, &mut to_find, pages);
                live_seen += found.live;
                totals.add(&found);
            }
        }
    }
    totals.live_nowhere = totals.live.saturating_sub(live_seen);
    totals
}

/// Accounts for a mapping page by page. `live` of the result is what was seen in memory or swapped out.
fn heap(
    mapping: &Mapping,
    class: Class,
    cursor: &mut Cursor<'_>,
    to_find: &mut u64,
    pages: &mut impl Pages,
) -> Totals {
    let mut totals = Totals::default();
    let mut window = [Page::NOWHERE; WINDOW];
    let mut chunk_end = 0;
    // In pages, so that reserved space is left as soon as all that is there was seen.
    let mut to_see = (mapping.rss + mapping.swap) / PAGE;
    let mut first = mapping.start / PAGE;
    let last = mapping.end / PAGE;
    while first < last && to_see > 0 {
        let count = (WINDOW - first as usize % WINDOW).min((last - first) as usize);
        let window = &mut window[..count];
        pages.look(first, mapping.huge > 0, window);
        for (page, number) in window.iter().zip(first..) {
            let address = number * PAGE;
            let taken = cursor.take(address);
            match page.place {
                Place::Nowhere => continue,
                Place::Swapped => {
                    totals.live += taken.live;
                    totals.live_swapped += taken.live;
                    to_see = to_see.saturating_sub(1);
                    continue;
                }
                Place::Resident => to_see = to_see.saturating_sub(1),
            }
            totals.live += taken.live;
            let rest = PAGE.saturating_sub(taken.live + taken.overhead);
            let is_empty = rest == PAGE;
            if page.own {
                totals.own += PAGE;
                continue;
            }
            if page.untouched {
                totals.live_untouched += taken.live;
                totals.rounding += PAGE;
                continue;
            }
            if is_empty && chunk_end <= address && *to_find > 0 {
                let chunk = pages.mapped_chunk(number).filter(|&bytes| {
                    bytes <= *to_find && bytes <= mapping.end.saturating_sub(address)
                });
                if let Some(bytes) = chunk {
                    chunk_end = address + bytes;
                    *to_find -= bytes;
                }
            }
            totals.overhead += taken.overhead;
            let holder = if is_empty && address < chunk_end {
                &mut totals.c_mapped
            } else if page.ever_held {
                &mut totals.freed
            } else if class == Class::CArena {
                &mut totals.c_arenas
            } else {
                &mut totals.never_held
            };
            *holder += rest;
        }
        first += count as u64;
    }
    totals.free_lazily(mapping.lazy_free);
    totals
}

impl Totals {
    /// Bytes that are resident.
    pub(super) fn resident(&self) -> u64 {
        let live = self.live - self.live_nowhere - self.live_swapped - self.live_untouched;
        live + self.rounding
            + self.overhead
            + self.freed
            + self.c_arenas
            + self.c_mapped
            + self.never_held
            + self.lazily_freed
            + self.own
            + self.image
            + self.stacks
            + self.files
    }

    /// Adds what was found in one mapping, but for the live bytes, which are known.
    fn add(&mut self, found: &Self) {
        self.live_swapped += found.live_swapped;
        self.live_untouched += found.live_untouched;
        self.rounding += found.rounding;
        self.overhead += found.overhead;
        self.freed += found.freed;
        self.c_arenas += found.c_arenas;
        self.c_mapped += found.c_mapped;
        self.never_held += found.never_held;
        self.lazily_freed += found.lazily_freed;
        self.own += found.own;
    }

    /// Of what nothing is live in, `bytes` are marked to be dropped: first those that once held blocks.
    fn free_lazily(&mut self, bytes: u64) {
        let mut left = bytes;
        for holder in [&mut self.freed, &mut self.never_held, &mut self.c_arenas] {
            let marked = left.min(*holder);
            *holder -= marked;
            left -= marked;
            self.lazily_freed += marked;
        }
    }
}

#[cfg(test)]
mod tests;
