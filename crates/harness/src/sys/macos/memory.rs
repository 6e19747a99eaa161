//! Resident memory of this process, by mach's `task_info`. Nothing here allocates.

use std::io;

use crate::sys::memory::Resident;

/// What [`resident`] asks.
pub(crate) const RESIDENT_SOURCE: &str = "task_info";

/// What [`Statm`] asks.
pub(crate) const STATM_SOURCE: &str = "task_info";

/// What the kernel says of this process.
fn basic_info() -> io::Result<libc::mach_task_basic_info> {
    // SAFETY: it is all numbers, of which zero is one.
    let mut info = unsafe { std::mem::zeroed::<libc::mach_task_basic_info>() };
    let mut count = libc::MACH_TASK_BASIC_INFO_COUNT;
    #[expect(deprecated, reason = "for one number another crate is too much")]
    // SAFETY: reads a number that was set before `main`.
    let task = unsafe { libc::mach_task_self() };
    // SAFETY: `info` has room for the `count` words of what is asked for, and both live until it returns.
    let failed = unsafe {
        libc::task_info(
            task,
            libc::MACH_TASK_BASIC_INFO,
            (&raw mut info).cast(),
            &raw mut count,
        )
    };
    if failed == libc::KERN_SUCCESS {
        Ok(info)
    } else {
        Err(io::ErrorKind::Other.into())
    }
}

/// Reads the state now: sizes alone. Which part files back it does not tell.
///
/// # Errors
///
/// The kernel refuses.
pub(crate) fn resident() -> io::Result<Resident> {
    let info = basic_info()?;
    Ok(Resident {
        peak_bytes: info.resident_size_max,
        rss_bytes: info.resident_size,
        anon_bytes: None,
        file_bytes: None,
        thp_enabled: None,
    })
}

/// Resident bytes again and again.
#[derive(Debug)]
pub(crate) struct Statm;

impl Statm {
    /// Opens nothing.
    ///
    /// # Errors
    ///
    /// None.
    pub(crate) fn open() -> io::Result<Self> {
        Ok(Self)
    }

    /// Resident bytes now.
    ///
    /// # Errors
    ///
    /// The kernel refuses.
    pub(crate) fn rss_bytes(&self) -> io::Result<u64> {
        Ok(basic_info()?.resident_size)
    }
}

/// Refuses: the peak is that of the whole process.
///
/// # Errors
///
/// Always.
pub(crate) fn reset_peak() -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}
