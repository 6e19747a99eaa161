//! Linux, where everything can be measured.

pub(crate) mod affinity;
pub(super) mod machine;
pub(super) mod memory;
pub(crate) mod process;
pub(crate) mod thp;

/// What is not measured on this system, a line each.
pub(crate) const LEFT_OUT: &[&str] = &[];

/// Whether a process can tell what is in each of its pages.
pub(crate) const CAN_EXPLAIN: bool = true;

/// Whether a process can be kept on chosen CPUs.
pub(crate) const CAN_PIN: bool = true;

/// Whether there are transparent huge pages, to be allowed or not.
pub(crate) const HAS_HUGE_PAGES: bool = true;

/// The advice to give a mapping huge pages, where there is such.
pub(super) const HUGE_PAGES: Option<libc::c_int> = Some(libc::MADV_HUGEPAGE);

/// The advice to give it none.
pub(super) const NO_HUGE_PAGES: Option<libc::c_int> = Some(libc::MADV_NOHUGEPAGE);

/// The unit of `ru_inblock` in bytes, whatever the device's own; `None` where it counts no bytes.
pub(super) const BLOCK_BYTES: Option<u64> = Some(512);

/// The C library.
pub(super) const LIBC: &str = if cfg!(target_env = "gnu") {
    "glibc"
} else {
    "libc"
};

/// What tells the C library's version.
const LIBC_VERSION_SOURCE: &str = "gnu_get_libc_version()";

/// The C library's version, such as `2.36`, and what told it; `unknown` where the library has no way to tell.
#[cfg(target_env = "gnu")]
pub(crate) fn libc_version() -> (String, &'static str) {
    // SAFETY: takes nothing and returns a constant.
    let version = unsafe { libc::gnu_get_libc_version() };
    // SAFETY: glibc returns a NUL-terminated string with static lifetime.
    let version = unsafe { std::ffi::CStr::from_ptr(version) };
    (version.to_string_lossy().into_owned(), LIBC_VERSION_SOURCE)
}

/// The C library's version, such as `2.36`, and what told it; `unknown` where the library has no way to tell.
#[cfg(not(target_env = "gnu"))]
pub(crate) fn libc_version() -> (String, &'static str) {
    ("unknown".to_owned(), LIBC_VERSION_SOURCE)
}
