//! What a block takes beyond the bytes that were asked for, as far as the allocator of this build says.

/// One block's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Footprint {
    /// Bytes from the block's address on that are its own; not fewer than were asked for.
    pub(crate) usable: usize,
    /// Bytes before it that describe it.
    pub(crate) header: usize,
}

/// Whether the C library's heap is this build's allocator, so that C's blocks lie among those that are counted.
pub(crate) const SHARED_WITH_C: bool = cfg!(not(any(
    feature = "jemalloc",
    feature = "mimalloc",
    feature = "mimalloc-v2",
    feature = "snmalloc"
)));

/// The footprint of a live block.
///
/// # Safety
///
/// `block` came from this build's allocator and was not given back.
pub(super) unsafe fn of(block: *const u8) -> Footprint {
    // SAFETY: the caller's promise is the same.
    unsafe { chosen(block) }
}

/// glibc writes a chunk's size right before the block, with three flags; a chunk that was mapped for itself has the
/// size of its padding before that.
#[cfg(all(
    target_env = "gnu",
    not(any(
        feature = "jemalloc",
        feature = "mimalloc",
        feature = "mimalloc-v2",
        feature = "snmalloc"
    ))
))]
unsafe fn chosen(block: *const u8) -> Footprint {
    const IS_MAPPED: usize = 2;
    const WORD: usize = size_of::<usize>();
    // SAFETY: `block` is a live one of malloc's.
    let usable = unsafe { libc::malloc_usable_size(block.cast_mut().cast()) };
    // SAFETY: glibc keeps the chunk's size in the word before each live block.
    let place = unsafe { block.sub(WORD) };
    // SAFETY: the word is there and aligned as every block is.
    let size = unsafe { place.cast::<usize>().read() };
    let header = if size & IS_MAPPED == 0 {
        WORD
    } else {
        2 * WORD
    };
    Footprint { usable, header }
}

/// Other C libraries' headers are not known.
#[cfg(all(
    not(target_env = "gnu"),
    not(any(
        feature = "jemalloc",
        feature = "mimalloc",
        feature = "mimalloc-v2",
        feature = "snmalloc"
    ))
))]
unsafe fn chosen(block: *const u8) -> Footprint {
    #[cfg(not(target_os = "macos"))]
    // SAFETY: `block` is a live one of malloc's.
    let usable = unsafe { libc::malloc_usable_size(block.cast_mut().cast()) };
    #[cfg(target_os = "macos")]
    // SAFETY: `block` is a live one of malloc's.
    let usable = unsafe { libc::malloc_size(block.cast()) };
    Footprint { usable, header: 0 }
}

/// jemalloc describes blocks elsewhere.
#[cfg(feature = "jemalloc")]
unsafe fn chosen(block: *const u8) -> Footprint {
    // SAFETY: `block` is a live one of jemalloc's.
    let usable = unsafe { tikv_jemalloc_sys::malloc_usable_size(block.cast()) };
    Footprint { usable, header: 0 }
}

/// mimalloc describes blocks elsewhere.
#[cfg(all(
    any(feature = "mimalloc", feature = "mimalloc-v2"),
    not(feature = "jemalloc")
))]
unsafe fn chosen(block: *const u8) -> Footprint {
    // SAFETY: `block` is a live one of mimalloc's.
    let usable = unsafe { libmimalloc_sys::mi_usable_size(block.cast()) };
    Footprint { usable, header: 0 }
}

/// snmalloc describes blocks elsewhere.
#[cfg(all(
    feature = "snmalloc",
    not(any(feature = "jemalloc", feature = "mimalloc", feature = "mimalloc-v2"))
))]
unsafe fn chosen(block: *const u8) -> Footprint {
    let usable = snmalloc_rs::SnMalloc.usable_size(block).unwrap_or(0);
    Footprint { usable, header: 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_holds_what_was_asked_for() {
        for bytes in [1, 24, 100, 4096, 300_000, 40 << 20] {
            let block = std::hint::black_box(vec![0_u8; bytes]);
            // SAFETY: the block is live and this build's allocator's.
            let Footprint { usable, header } = unsafe { of(block.as_ptr()) };
            assert!(
                (bytes..=2 * bytes + 64).contains(&usable),
                "{usable} of {bytes}"
            );
            assert!(header <= 16);
            if SHARED_WITH_C && cfg!(target_env = "gnu") && bytes >= 40 << 20 {
                assert_eq!((usable + header) % 4096, 0, "mapped for itself");
            }
        }
    }
}
