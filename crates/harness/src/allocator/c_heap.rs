//! libc's own heap: C code (zstd's contexts) uses it in every build, whatever the global allocator is.

/// Gives back what is free in it; nothing where libc has no such call.
pub(super) fn trim() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: takes any padding and any state of the heap, and may be called from any thread.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// What libc says of its own heap, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CHeap {
    /// Taken by `brk` and by arenas, in use or free.
    pub(crate) arenas: u64,
    /// In use there, with the chunks' headers and what threads keep in their caches.
    pub(crate) in_use: u64,
    /// Free there.
    pub(crate) free: u64,
    /// In chunks that were mapped for themselves.
    pub(crate) mapped: u64,
}

/// Asks libc; zeros where it has no such call.
pub(crate) fn mallinfo() -> CHeap {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        // SAFETY: takes nothing, and may be called from any thread.
        let info = unsafe { libc::mallinfo2() };
        CHeap {
            arenas: info.arena as u64,
            in_use: info.uordblks as u64,
            free: info.fordblks as u64,
            mapped: info.hblkhd as u64,
        }
    }
    #[cfg(not(all(target_os = "linux", target_env = "gnu")))]
    CHeap::default()
}

#[cfg(test)]
mod tests {
    #[cfg(target_env = "gnu")]
    #[test]
    fn libc_knows_what_is_in_use() {
        const BYTES: usize = 64 << 20;
        // SAFETY: any size may be asked for.
        let block = std::hint::black_box(unsafe { libc::malloc(BYTES) });
        let info = super::mallinfo();
        assert!(info.in_use + info.mapped >= BYTES as u64, "{info:?}");
        assert!(info.in_use + info.free == info.arenas, "{info:?}");
        // SAFETY: the block is malloc's.
        unsafe { libc::free(block) };
    }

    #[test]
    fn memory_in_use_stays_as_it_is() {
        let kept = vec![7_u8; 100_000];
        drop(vec![0_u8; 100_000]);
        super::trim();
        assert!(kept.iter().all(|&byte| byte == 7));
    }
}
