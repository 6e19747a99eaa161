//! What the operating system says of this process and this machine. Reads; writes only `clear_refs`, the CPUs to run on
//! and, around the start of another process, whether there are huge pages.
//!
//! What systems have each in their own way is in `linux` or `macos`, which hold the same names. What reads `/proc` or
//! control groups and nothing else is here: where there are none, it finds none and says so.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "macos")]
mod macos;

#[cfg(target_os = "linux")]
use self::linux as system;
#[cfg(target_os = "macos")]
use self::macos as system;

#[cfg(not(any(target_os = "linux", target_os = "macos")))]
compile_error!(
    "alloquet measures by /proc, so it needs Linux (macOS has a part of it); on other systems run it in a Linux container or VM"
);

pub(crate) mod build;
pub(crate) mod cgroup;
pub(crate) mod group;
pub(crate) mod machine;
pub(crate) mod mapping;
pub(crate) mod memory;
pub(crate) mod pagemap;
pub(crate) mod plant;
mod proc;
pub(crate) mod smaps;
pub(crate) mod smaps_rollup;
pub(crate) mod spoilers;
pub(crate) mod usage;

pub(crate) use self::system::{
    CAN_EXPLAIN, CAN_PIN, HAS_HUGE_PAGES, LEFT_OUT, affinity, libc_version, process, thp,
};
