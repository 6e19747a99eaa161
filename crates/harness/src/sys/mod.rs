//! What the operating system says of this process and this machine. Reads; writes only `clear_refs`, the CPUs to run on
//! and, around the start of another process, whether there are huge pages.

#[cfg(not(target_os = "linux"))]
compile_error!(
    "alloquet measures by /proc, so it needs Linux; on other systems run it in a Linux container or VM"
);

pub(crate) mod affinity;
pub(crate) mod build;
pub(crate) mod cgroup;
pub(crate) mod group;
pub(crate) mod machine;
pub(crate) mod mapping;
pub(crate) mod memory;
pub(crate) mod pagemap;
pub(crate) mod plant;
pub(crate) mod smaps;
pub(crate) mod smaps_rollup;
pub(crate) mod spoilers;
pub(crate) mod thp;
pub(crate) mod usage;

/// The C library's version, such as `2.36`; `unknown` where the library has no way to tell.
#[cfg(target_env = "gnu")]
pub(crate) fn libc_version() -> String {
    // SAFETY: takes nothing and returns a constant.
    let version = unsafe { libc::gnu_get_libc_version() };
    // SAFETY: glibc returns a NUL-terminated string with static lifetime.
    let version = unsafe { std::ffi::CStr::from_ptr(version) };
    version.to_string_lossy().into_owned()
}

/// The C library's version, such as `2.36`; `unknown` where the library has no way to tell.
#[cfg(not(target_env = "gnu"))]
pub(crate) fn libc_version() -> String {
    "unknown".to_owned()
}
