//! The live blocks of a process that explains itself, and the pages that ever held one.
//!
//! All of it lies in memory of its own, never in the allocator it watches, behind a lock that is held for the whole of
//! every call of the allocator: whoever holds the lock sees no block half made. That is slow, and only an `explain`
//! sample pays for it.

use std::cell::{Cell, UnsafeCell};
use std::io;
use std::ops::{Deref, DerefMut, Range};
use std::sync::atomic::{AtomicBool, Ordering};

use super::footprint::Footprint;
use crate::sys::mapping::{Table, Zeroable};
use crate::sys::pagemap::PAGE;

/// Addresses of user space have no more bits than this on the systems that are measured.
const ADDRESS_BITS: u32 = 48;
const PAGES: u64 = (1 << ADDRESS_BITS) / PAGE;

/// A live block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Block {
    /// Where it begins; 0 in a free place of a table.
    pub(crate) address: u64,
    /// Bytes asked for.
    pub(crate) size: u64,
    /// Bytes behind those that are the block's too.
    pub(crate) slack: u32,
    /// Bytes before it that describe it.
    pub(crate) header: u32,
}

// SAFETY: zeros are numbers.
unsafe impl Zeroable for Block {}

/// What is done at the moment to be explained, with everything that would change the heap kept waiting.
pub(crate) type Hook = fn(&Blocks);

/// The blocks, and what to do when.
pub(crate) struct Blocks {
    /// Open addressing; its length is a power of two. `None` before the start, or when there was no memory for it.
    table: Option<Table<Block>>,
    count: usize,
    size: u64,
    /// A bit for each page of the address space that ever held a part of a block. Only what is touched of it is
    /// resident, 4 KiB for each 128 MiB of addresses in use.
    pages: Option<Table<u64>>,
    failed: Option<io::ErrorKind>,
    /// Runs at the moment to be explained.
    pub(super) hook: Option<Hook>,
    /// How many calls after the window opened that moment is.
    pub(super) halt_after: Option<u64>,
    /// The same in calls of the process, once the window is open.
    pub(super) halt_at: Option<u64>,
}

impl Blocks {
    pub(super) const fn new() -> Self {
        Self {
            table: None,
            count: 0,
            size: 0,
            pages: None,
            failed: None,
            hook: None,
            halt_after: None,
            halt_at: None,
        }
    }

    /// Sets aside room for the first blocks.
    pub(super) fn start(&mut self, hook: Hook) {
        self.hook = Some(hook);
        let made = Table::new(1 << 16).and_then(|table| {
            self.table = Some(table);
            self.pages = Some(Table::new(PAGES.div_ceil(64) as usize)?);
            Ok(())
        });
        self.note(made);
    }

    /// Why the blocks are not all known, if they are not.
    pub(crate) fn failed(&self) -> Option<io::ErrorKind> {
        self.failed
    }

    /// Blocks that are live.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Bytes that were asked for, of all live blocks.
    #[cfg(test)]
    pub(super) fn size(&self) -> u64 {
        self.size
    }

    /// The live blocks, in no order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Block> {
        let table = self.table.as_deref().unwrap_or_default();
        table.iter().filter(|block| block.address != 0)
    }

    /// Whether page number `page` ever held a part of a block.
    pub(crate) fn ever_held(&self, page: u64) -> bool {
        let word = self
            .pages
            .as_ref()
            .and_then(|pages| pages.get((page / 64) as usize));
        word.is_some_and(|word| word >> (page % 64) & 1 == 1)
    }

    /// Whether any of these pages did.
    pub(crate) fn ever_held_in(&self, pages: Range<u64>) -> bool {
        let words = self.pages.as_deref().unwrap_or_default();
        let mut page = pages.start;
        while page < pages.end {
            if words
                .get((page / 64) as usize)
                .is_none_or(|&word| word == 0)
            {
                page = (page / 64 + 1) * 64;
            } else if self.ever_held(page) {
                return true;
            } else {
                page += 1;
            }
        }
        false
    }

    /// Enters a new block.
    pub(super) fn insert(&mut self, block: *const u8, size: usize, footprint: Footprint) {
        let block = Block {
            address: block.addr() as u64,
            size: size as u64,
            slack: u32::try_from(footprint.usable.saturating_sub(size)).unwrap_or(u32::MAX),
            header: footprint.header as u32,
        };
        if self
            .table
            .as_ref()
            .is_some_and(|table| self.count >= table.len() / 2)
        {
            let grown = self.grow();
            self.note(grown);
        }
        let Some(table) = &mut self.table else { return };
        // Where it could not grow it may be full; the last place stays free, for searches end there.
        if self.count + 1 < table.len() {
            place(table, block);
            self.count += 1;
            self.size += block.size;
        }
        self.mark(&block);
    }

    /// Takes out the block at an address and returns it; `None` for one from before the start.
    pub(super) fn remove(&mut self, block: *const u8) -> Option<Block> {
        let address = block.addr() as u64;
        let table = self.table.as_mut()?;
        let mask = table.len() - 1;
        let mut hole = slot(address, mask);
        while table[hole].address != address {
            if table[hole].address == 0 {
                return None;
            }
            hole = (hole + 1) & mask;
        }
        let found = table[hole];
        // What lies behind and could lie in the hole moves up, so that no search ends too early.
        let mut next = hole;
        loop {
            next = (next + 1) & mask;
            let moving = table[next];
            if moving.address == 0 {
                break;
            }
            let wanted = slot(moving.address, mask);
            if next.wrapping_sub(wanted) & mask >= next.wrapping_sub(hole) & mask {
                table[hole] = moving;
                hole = next;
            }
        }
        table[hole] = Block::default();
        self.count -= 1;
        self.size -= found.size;
        Some(found)
    }

    /// Puts back a block that [`Self::remove`] took out.
    pub(super) fn restore(&mut self, block: Block) {
        if let Some(table) = &mut self.table {
            place(table, block);
            self.count += 1;
            self.size += block.size;
        }
    }

    fn grow(&mut self) -> io::Result<()> {
        let Some(old) = &self.table else {
            return Ok(());
        };
        let mut new = Table::new(old.len() * 2)?;
        for &block in old.iter().filter(|block| block.address != 0) {
            place(&mut new, block);
        }
        self.table = Some(new);
        Ok(())
    }

    fn mark(&mut self, block: &Block) {
        let Some(pages) = &mut self.pages else { return };
        let first = (block.address - u64::from(block.header)) / PAGE;
        let last = (block.address + block.size + u64::from(block.slack) - 1) / PAGE;
        for word in first / 64..=last / 64 {
            let from = first.saturating_sub(word * 64).min(63);
            let to = (last - word * 64).min(63);
            if let Some(bits) = pages.get_mut(word as usize) {
                *bits |= (u64::MAX << from) & (u64::MAX >> (63 - to));
            }
        }
    }

    fn note(&mut self, result: io::Result<()>) {
        if let Err(error) = result {
            self.failed = Some(error.kind());
        }
    }
}

/// Where a search for an address begins: its high bits times an odd number that spreads them.
fn slot(address: u64, mask: usize) -> usize {
    (((address >> 3).wrapping_mul(0x9e37_79b9_7f4a_7c15)) >> 20) as usize & mask
}

/// Writes a block to the first free place; there must be one.
fn place(table: &mut [Block], block: Block) {
    let mask = table.len() - 1;
    let mut at = slot(block.address, mask);
    while table[at].address != 0 {
        at = (at + 1) & mask;
    }
    table[at] = block;
}

thread_local! {
    /// Whether this thread is in a [`Hook`]. It has no destructor and so needs no memory.
    static IN_HOOK: Cell<bool> = const { Cell::new(false) };
}

/// [`Blocks`] behind a lock that spins, because every other would need memory or may not be taken in an allocator.
pub(super) struct Locked {
    held: AtomicBool,
    blocks: UnsafeCell<Blocks>,
}

// SAFETY: the blocks are reached through a `Guard` alone, of which there is one at a time.
unsafe impl Sync for Locked {}

impl Locked {
    pub(super) const fn new() -> Self {
        Self {
            held: AtomicBool::new(false),
            blocks: UnsafeCell::new(Blocks::new()),
        }
    }

    /// The blocks, once nobody else has them; `None` in a hook of this thread, which has them already.
    pub(super) fn lock(&self) -> Option<Guard<'_>> {
        if IN_HOOK.get() {
            return None;
        }
        let mut spins = 0_u32;
        while self
            .held
            .compare_exchange_weak(false, true, Ordering::Acquire, Ordering::Relaxed)
            .is_err()
        {
            spins += 1;
            if spins.is_multiple_of(64) {
                std::thread::yield_now();
            }
            std::hint::spin_loop();
        }
        Some(Guard { locked: self })
    }
}

/// The blocks, held.
pub(super) struct Guard<'a> {
    locked: &'a Locked,
}

impl Guard<'_> {
    /// Runs the hook. What this thread allocates in it passes unseen.
    pub(super) fn run_hook(&mut self) {
        if let Some(hook) = self.hook {
            IN_HOOK.set(true);
            hook(self);
            IN_HOOK.set(false);
        }
    }
}

impl Deref for Guard<'_> {
    type Target = Blocks;

    fn deref(&self) -> &Blocks {
        // SAFETY: `lock` made this guard the only one, until it is dropped.
        unsafe { &*self.locked.blocks.get() }
    }
}

impl DerefMut for Guard<'_> {
    fn deref_mut(&mut self) -> &mut Blocks {
        // SAFETY: as in `deref`, and the guard is borrowed alone.
        unsafe { &mut *self.locked.blocks.get() }
    }
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        self.locked.held.store(false, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::collections::btree_map::Entry;
    use std::ptr::without_provenance;

    use super::*;

    fn started() -> Blocks {
        let mut blocks = Blocks::new();
        blocks.start(|_| ());
        assert_eq!(blocks.failed(), None);
        blocks
    }

    const fn footprint(usable: usize) -> Footprint {
        Footprint { usable, header: 8 }
    }

    #[test]
    fn it_is_what_a_map_would_be() {
        let mut blocks = started();
        let mut expected = BTreeMap::new();
        let mut random = 1_u64;
        // Few addresses, so that chains form and are broken, and more blocks than the first table takes.
        for step in 0..400_000_usize {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let address = 0x7f00_0000_0000 + (random >> 46) as usize * 16;
            let pointer = without_provenance(address);
            match expected.entry(address) {
                Entry::Occupied(known) if random >> 20 & 1 == 0 => {
                    let removed = blocks.remove(pointer).map(|block| block.size);
                    assert_eq!(removed, Some(known.remove()));
                }
                Entry::Occupied(_) => {}
                Entry::Vacant(new) => {
                    blocks.insert(pointer, step + 1, footprint(step + 9));
                    new.insert(step as u64 + 1);
                }
            }
        }
        assert!(expected.len() > 1 << 15);
        assert_eq!(blocks.count(), expected.len());
        assert_eq!(blocks.size(), expected.values().sum::<u64>());
        let found: BTreeMap<_, _> = blocks
            .iter()
            .map(|block| (block.address as usize, block.size))
            .collect();
        assert_eq!(found, expected);
        assert!(
            blocks
                .iter()
                .all(|block| (block.slack, block.header) == (8, 8))
        );
        assert_eq!(blocks.remove(without_provenance(0x1000)), None);
    }

    #[test]
    fn pages_remember() {
        let mut blocks = started();
        // The header reaches back into the page before, the slack into the one behind.
        let pointer = without_provenance(100 * 4096 + 4);
        blocks.insert(pointer, 70 * 4096 - 4, footprint(70 * 4096 + 1));
        blocks.remove(pointer);
        let held: Vec<_> = (0..300).filter(|&page| blocks.ever_held(page)).collect();
        assert_eq!(held, (99..=170).collect::<Vec<_>>());
        assert!(!blocks.ever_held(u64::MAX / PAGE));
        assert!(blocks.ever_held_in(170..171) && blocks.ever_held_in(0..100));
        assert!(!blocks.ever_held_in(171..1_000_000) && !blocks.ever_held_in(0..99));
    }

    #[test]
    fn a_hook_does_not_wait_for_itself() {
        static LOCKED: Locked = Locked::new();
        static RAN: AtomicBool = AtomicBool::new(false);
        let mut guard = LOCKED.lock().unwrap();
        guard.start(|_| RAN.store(LOCKED.lock().is_none(), Ordering::Relaxed));
        guard.run_hook();
        drop(guard);
        assert!(RAN.load(Ordering::Relaxed));
        assert!(LOCKED.lock().is_some());
    }
}
