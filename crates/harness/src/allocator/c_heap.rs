//! libc's own heap: C code (zstd's contexts) uses it in every build, whatever the global allocator is.

/// What libc says of its own heap (`mallinfo2`), in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LibcHeap {
    /// In use, in arenas and in mappings of their own; what threads cache for themselves counts.
    pub(crate) in_use_bytes: u64,
    /// Free in arenas.
    pub(crate) free_bytes: u64,
}

/// Asks libc; `None` where it has no such call.
pub(crate) fn libc_heap() -> Option<LibcHeap> {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        // SAFETY: takes nothing, and locks each arena while it looks.
        let info = unsafe { libc::mallinfo2() };
        // `usize` has 64 bits at most.
        Some(LibcHeap {
            in_use_bytes: (info.uordblks + info.hblkhd) as u64,
            free_bytes: info.fordblks as u64,
        })
    }
    #[cfg(not(all(target_os = "linux", target_env = "gnu")))]
    None
}

/// Gives back what is free in it; nothing where libc has no such call.
pub(super) fn trim() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: takes any padding and any state of the heap, and may be called from any thread.
    unsafe {
        libc::malloc_trim(0);
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn what_c_takes_is_in_use() {
        const BYTES: usize = 64 << 20;
        let Some(before) = super::libc_heap() else {
            return;
        };
        // SAFETY: any size may be asked for.
        let block = std::hint::black_box(unsafe { libc::malloc(BYTES) });
        let held = super::libc_heap().unwrap();
        // SAFETY: it came from `malloc`, or is null, and is not used again.
        unsafe { libc::free(block) };
        // Other tests allocate and free meanwhile.
        assert!(
            held.in_use_bytes > before.in_use_bytes + (BYTES / 2) as u64,
            "{before:?} {held:?}"
        );
    }

    #[test]
    fn memory_in_use_stays_as_it_is() {
        let kept = vec![7_u8; 100_000];
        drop(vec![0_u8; 100_000]);
        super::trim();
        assert!(kept.iter().all(|&byte| byte == 7));
    }
}
