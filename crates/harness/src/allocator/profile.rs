//! A profile of who allocated what, in a build with the feature `dhat`.

use std::path::Path;

/// A profile that is being taken. Dropping it writes the file.
#[must_use = "a profile ends where it is dropped"]
pub(crate) struct Profile {
    #[cfg(feature = "dhat")]
    _profiler: ::dhat::Profiler,
}

impl Profile {
    /// Ends the profile and writes its file.
    pub(crate) fn finish(self) {}
}

#[cfg(test)]
impl Profile {
    /// The most requested bytes that were live at once since the profile was started.
    ///
    /// Blocks from before do not count, neither while they live nor when they are freed. The counting wrapper, which is
    /// around dhat, counts dhat's own records too (70 bytes a live block, more or less): hold this against the counted peak
    /// of another build.
    pub(crate) fn peak_bytes(&self) -> u64 {
        #[cfg(feature = "dhat")]
        return ::dhat::HeapStats::get().max_bytes as u64;
        #[cfg(not(feature = "dhat"))]
        0
    }
}

/// Starts a profile that is written to `path` when it is dropped; `None` in a build without the feature `dhat`, which has
/// none to take. There can be one at a time.
pub(crate) fn start_profile(path: &Path) -> Option<Profile> {
    #[cfg(feature = "dhat")]
    return Some(Profile {
        _profiler: ::dhat::Profiler::builder().file_name(path).build(),
    });
    #[cfg(not(feature = "dhat"))]
    {
        let _ = path;
        None
    }
}
