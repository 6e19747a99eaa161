//! libc's own heap: C code (zstd's contexts) uses it in every build, whatever the global allocator is.

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
    fn memory_in_use_stays_as_it_is() {
        let kept = vec![7_u8; 100_000];
        drop(vec![0_u8; 100_000]);
        super::trim();
        assert!(kept.iter().all(|&byte| byte == 7));
    }
}
