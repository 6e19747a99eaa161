//! Where resident memory is, at one moment of the work: an `explain` sample.
//!
//! The process knows every live block from its start ([`start`]). At the call of the allocator that it was told to
//! halt at ([`arm`]), or at once ([`here`]), it looks at each resident page and says what it holds. The work then goes
//! on and is verified as always.

mod account;
mod halt;
mod parts;

use std::collections::BTreeMap;
use std::sync::Arc;

use alloquet_core::{Ledger, Purpose};
use alloquet_report::parts::Part;
use anyhow::{Context, Result, anyhow};
use serde::{Deserialize, Serialize};

use self::halt::{Failure, Reading};
use crate::allocator;

/// Resident memory at one moment, by part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Explanation {
    /// Resident bytes then, by `smaps_rollup`. The parts sum to it.
    pub(crate) rss_bytes: u64,
    /// Counted live heap then, in requested bytes.
    pub(crate) heap_live_bytes: u64,
    /// Allocations and reallocations since the window opened.
    pub(crate) ordinal: u64,
    /// The waterfall, in order.
    pub(crate) parts: Vec<Part>,
    /// What the parts were made from, in bytes if the name does not say otherwise.
    pub(crate) statistics: BTreeMap<String, u64>,
}

/// Makes this process one that can explain itself. Call it before anything is allocated that should be known.
pub(crate) fn start() {
    allocator::start_explaining(halt::halt);
}

/// Explains the moment after call number `ordinal` of the window that opens next, of the calls that allocate or
/// reallocate; 0 is the moment before all of them.
pub(crate) fn arm(ordinal: u64) {
    allocator::halt_after(ordinal);
}

/// Tells of a reader's or writer's ledger as soon as it is there. Does nothing in a process that cannot explain itself.
pub(crate) fn register(ledger: &Arc<Ledger>) {
    if allocator::is_explaining() {
        halt::register(ledger);
    }
}

/// What [`arm`] asked for. Call it when the window is closed and what the work made is still held.
///
/// # Errors
///
/// The work made fewer calls, or `/proc` cannot be read.
pub(crate) fn take() -> Result<Explanation> {
    allocator::halt_if_due();
    let calls = allocator::heap_counts().ordinal;
    let reading = halt::take().with_context(|| {
        format!(
            "the work made {calls} allocations, and not the one at which it was to be explained: it is not the work of the heap sample"
        )
    })?;
    explanation(reading)
}

/// Where memory is now.
///
/// # Errors
///
/// This process was not started so that it could tell, or `/proc` cannot be read.
pub(crate) fn here() -> Result<Explanation> {
    allocator::halt();
    let reading = halt::take().context("this process does not know its blocks")?;
    explanation(reading)
}

fn explanation(reading: Result<Reading, Failure>) -> Result<Explanation> {
    let reading = reading.map_err(|failure| {
        anyhow!(
            "where memory is cannot be explained: cannot {} ({})",
            failure.what,
            failure.kind
        )
    })?;
    let totals = &reading.totals;
    let statistics = [
        ("blocks (count)", reading.blocks),
        ("mappings (count)", reading.mappings),
        ("live in known blocks", totals.live),
        ("live and not resident", totals.live_nowhere),
        ("live in huge pages, untouched", totals.live_untouched),
        ("live and swapped out", totals.live_swapped),
        ("headers and slack", totals.overhead),
        ("once in blocks", totals.freed),
        ("never in blocks, C arenas", totals.c_arenas),
        ("never in blocks, mapped C chunks", totals.c_mapped),
        ("never in blocks, other", totals.never_held),
        ("stacks", totals.stacks),
        ("binary and libraries", totals.image),
        ("seen by page and mapping", totals.resident()),
        ("ledger: codec", parts::ledger(&reading, Purpose::Codec)),
        ("mallinfo2: arenas", reading.c_heap.arena_bytes),
        ("mallinfo2: in use", reading.c_heap.used_bytes),
        ("mallinfo2: free", reading.c_heap.free_bytes),
        ("mallinfo2: mapped", reading.c_heap.mapped_bytes),
        ("known blocks in C arenas", reading.known_in_arenas),
        ("known blocks, mapped by C", reading.known_mapped),
    ];
    Ok(Explanation {
        rss_bytes: reading.rss,
        heap_live_bytes: reading.counted_live,
        ordinal: reading.ordinal,
        parts: parts::parts(&reading, allocator::SHARED_WITH_C),
        statistics: statistics
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value))
            .collect(),
    })
}
