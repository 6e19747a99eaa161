//! macOS, as far as it tells what Linux does: resident size and its peak by mach's `task_info`, CPU time and faults by
//! `getrusage`, the machine by `sysctl`.
//!
//! It is type-checked and linted for `aarch64-apple-darwin`, on Linux; it was never linked or run.

pub(crate) mod affinity;
pub(super) mod machine;
pub(super) mod memory;
pub(crate) mod process;
pub(crate) mod thp;

/// What is not measured on this system, a line each.
pub(crate) const LEFT_OUT: &[&str] = &[
    "explain samples: the system has no /proc that tells of mappings and pages",
    "max RSS of the window alone: the peak cannot be reset, so it includes what came before (noted in each sample)",
    "RSS by anonymous and file-backed, Pss, private dirty, lazily freed and huge pages",
    "bytes read from disks: only operations are counted",
    "memory limits while the work is done: max RSS is held against them afterwards",
    "CPUs to run on, and settings of huge pages",
    "statistics and settings of libc's own heap, and giving back what is free in it",
    "workers end at the end of their work, not at once, where this program is killed",
];

/// Whether a process can tell what is in each of its pages.
pub(crate) const CAN_EXPLAIN: bool = false;

/// Whether a process can be kept on chosen CPUs.
pub(crate) const CAN_PIN: bool = false;

/// Whether there are transparent huge pages, to be allowed or not.
pub(crate) const HAS_HUGE_PAGES: bool = false;

/// The advice to give a mapping huge pages, where there is such.
pub(super) const HUGE_PAGES: Option<libc::c_int> = None;

/// The advice to give it none.
pub(super) const NO_HUGE_PAGES: Option<libc::c_int> = None;

/// The unit of `ru_inblock` in bytes; `None`: it counts operations.
pub(super) const BLOCK_BYTES: Option<u64> = None;

/// The C library.
pub(super) const LIBC: &str = "libSystem of macOS";

/// The version of the system that the C library is a part of, such as `15.1`, and what told it; `unknown` where it does
/// not tell.
pub(crate) fn libc_version() -> (String, &'static str) {
    let version = machine::sysctl_text(c"kern.osproductversion");
    let version = version.unwrap_or_else(|| "unknown".to_owned());
    (version, "sysctl kern.osproductversion")
}
