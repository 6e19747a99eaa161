//! Memory taken past the global allocator, for planted cases.

use std::num::NonZeroUsize;

/// Takes `bytes` from C's malloc, fills them and never frees them. Says whether there were so many.
pub(crate) fn c_leak(bytes: NonZeroUsize) -> bool {
    // SAFETY: any size may be asked for.
    let block = unsafe { libc::malloc(bytes.get()) };
    // Else the compiler knows that nobody looks, and leaves it all out.
    let block = std::hint::black_box(block);
    if block.is_null() {
        return false;
    }
    // SAFETY: the block holds so many bytes and is nobody else's.
    let filled = unsafe { libc::memset(block, 1, bytes.get()) };
    std::hint::black_box(filled);
    true
}
