//! libc's own heap: C code (zstd's contexts) uses it in every build whose allocator does not take its place, whatever the
//! global allocator is.

use std::fmt;

use alloquet_report::format::mib;

use super::Statistics;

/// The call of [`trim`]; `None` where libc has none.
pub(super) const TRIM: Option<&str> = if cfg!(all(target_os = "linux", target_env = "gnu")) {
    Some("malloc_trim(0)")
} else {
    None
};

/// glibc's heap as `mallinfo2` tells it, bytes. In a build of another allocator this is the heap of C code alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CHeap {
    /// `arena`: taken from the system for arenas, the heap at `brk` among them.
    pub(crate) arena_bytes: u64,
    /// `hblkhd`: in blocks with a mapping of their own.
    pub(crate) mapped_bytes: u64,
    /// `uordblks`: in use in arenas. What threads cache for themselves (`tcache`) counts.
    pub(crate) used_bytes: u64,
    /// `fordblks`: free in arenas. Pages in the middle that were given back count too.
    pub(crate) free_bytes: u64,
    /// `keepcost`: free at the end of the main arena, so that trimming gives it back.
    pub(crate) keep_bytes: u64,
}

impl CHeap {
    /// In use, in arenas and in mappings.
    pub(crate) fn live_bytes(&self) -> u64 {
        self.used_bytes + self.mapped_bytes
    }

    /// The same in the terms of all allocators.
    pub(crate) fn statistics(&self) -> Statistics {
        Statistics {
            live_bytes: Some(self.live_bytes()),
            committed_bytes: Some(self.arena_bytes + self.mapped_bytes),
            retained_bytes: Some(self.free_bytes),
            ..Statistics::default()
        }
    }
}

/// Such as `live 1.0 MiB, committed 3.0 MiB, retained 2.0 MiB, of which 1.5 MiB at the end of the heap`.
impl fmt::Display for CHeap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}, of which {} at the end of the heap",
            self.statistics(),
            mib(self.keep_bytes)
        )
    }
}

/// Asks glibc, of 2.33 or later; `None` where libc cannot be asked.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub(crate) fn mallinfo2() -> Option<CHeap> {
    type Mallinfo2 = unsafe extern "C" fn() -> libc::mallinfo2;
    // Looked up and not linked, so that the program starts with an older glibc too.
    // SAFETY: the name ends in a NUL, and `RTLD_DEFAULT` is no handle that could be closed.
    let function = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"mallinfo2".as_ptr()) };
    if function.is_null() {
        return None;
    }
    // SAFETY: it is glibc's function of that name, whose signature this is.
    let function = unsafe { std::mem::transmute::<*mut libc::c_void, Mallinfo2>(function) };
    // SAFETY: takes nothing, and locks each arena while it looks.
    let info = unsafe { function() };
    // `usize` has 64 bits at most.
    Some(CHeap {
        arena_bytes: info.arena as u64,
        mapped_bytes: info.hblkhd as u64,
        used_bytes: info.uordblks as u64,
        free_bytes: info.fordblks as u64,
        keep_bytes: info.keepcost as u64,
    })
}

/// Asks glibc, of 2.33 or later; `None` where libc cannot be asked.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub(crate) fn mallinfo2() -> Option<CHeap> {
    None
}

/// Gives back what is free in it, in all arenas; nothing where libc has no such call.
pub(super) fn trim() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: takes any padding and any state of the heap, and may be called from any thread.
    unsafe {
        libc::malloc_trim(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_in_use_stays_as_it_is() {
        let kept = vec![7_u8; 100_000];
        drop(vec![0_u8; 100_000]);
        trim();
        assert!(kept.iter().all(|&byte| byte == 7));
    }

    #[test]
    fn arenas_are_in_use_or_free() {
        let Some(heap) = mallinfo2() else { return };
        assert_eq!(heap.used_bytes + heap.free_bytes, heap.arena_bytes);
        assert!(heap.keep_bytes <= heap.free_bytes);
        let statistics = heap.statistics();
        let told = |bytes: Option<u64>| bytes.unwrap_or_default();
        assert_eq!(
            told(statistics.live_bytes) + told(statistics.retained_bytes),
            told(statistics.committed_bytes)
        );
    }
}
