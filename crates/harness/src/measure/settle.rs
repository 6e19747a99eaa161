//! After the work: what stays resident once everything was dropped, for how long, and what the allocator's own purge does
//! about it.

use std::time::Duration;

use alloquet_report::series::Point;
use alloquet_report::verify::{NOT_PURGED, PURGE_DID_NOTHING};
use anyhow::Result;

use super::looks::Looks;
use crate::allocator;

/// When to look, after everything was dropped.
const SETTLED: [Duration; 3] = [
    Duration::from_millis(100),
    Duration::from_secs(1),
    Duration::from_secs(5),
];

/// When to look once more after a purge: allocators may leave it to a thread of their own.
const PURGED: Duration = Duration::from_millis(100);

/// A purge that changes less did nothing.
const LEAST_BYTES: u64 = 1 << 20;

/// The place for all looks of a sample.
pub(super) fn looks() -> Looks {
    Looks::new(6 + SETTLED.len())
}

/// Goes on once everything was dropped and threads have ended, and purges. Nothing else runs meanwhile.
pub(super) fn settle(
    mut looks: Looks,
    threads_ended: bool,
    flags: &mut Vec<String>,
) -> Result<Vec<Point>> {
    if threads_ended {
        looks.look("joined")?;
    }
    for at in SETTLED {
        looks.wait_until(at);
        looks.look("settled")?;
    }
    looks.look("before-purge")?;
    let before = looks.last_rss_bytes();
    allocator::purge();
    looks.look("purged")?;
    std::thread::sleep(PURGED);
    looks.look("purged")?;
    if !allocator::purges() {
        flags.push(NOT_PURGED.to_owned());
    } else if before.abs_diff(looks.last_rss_bytes()) < LEAST_BYTES {
        flags.push(PURGE_DID_NOTHING.to_owned());
    }
    Ok(looks.points())
}
