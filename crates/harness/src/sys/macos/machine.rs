//! What there is to learn of this machine, by `sysctl`.

use std::ffi::CStr;
use std::ptr;

use crate::sys::machine::MachineMemory;

/// The CPU's model name; empty where it is not known.
pub(crate) fn cpu_model() -> String {
    sysctl_text(c"machdep.cpu.brand_string").unwrap_or_default()
}

/// The machine's memory. How much of it can be had without swapping is not asked.
pub(crate) fn memory() -> MachineMemory {
    // `xsw_usage`: total, available and used, in bytes.
    let swap = sysctl(c"vm.swapusage");
    let swap = |place: usize| word(swap.as_ref()?, place);
    MachineMemory {
        memory_bytes: sysctl(c"hw.memsize").and_then(|memory| word(&memory, 0)),
        swap_bytes: swap(0),
        swap_used_bytes: swap(2),
        available_bytes: None,
    }
}

/// Processes that ran or waited for a CPU, the mean of the last minute.
pub(crate) fn load() -> Option<f64> {
    let mut load = 0.0;
    // SAFETY: there is room for the one number that is asked for.
    let count = unsafe { libc::getloadavg(&raw mut load, 1) };
    (count == 1).then_some(load)
}

/// How huge pages are set: there are none.
pub(crate) fn thp_setting(_name: &str) -> String {
    String::new()
}

/// The text of a name.
pub(crate) fn sysctl_text(name: &CStr) -> Option<String> {
    let bytes = sysctl(name)?;
    let text = CStr::from_bytes_until_nul(&bytes).ok()?;
    Some(text.to_string_lossy().trim().to_owned())
}

/// Number `place` of those that stand one after the other.
fn word(bytes: &[u8], place: usize) -> Option<u64> {
    let (words, _) = bytes.as_chunks::<8>();
    words.get(place).map(|word| u64::from_ne_bytes(*word))
}

/// The value of a name.
fn sysctl(name: &CStr) -> Option<Vec<u8>> {
    let mut value = vec![0_u8; 256];
    let mut length = value.len();
    // SAFETY: the name ends in a NUL, `value` has room for `length` bytes, and nothing is to be set.
    let failed = unsafe {
        libc::sysctlbyname(
            name.as_ptr(),
            value.as_mut_ptr().cast(),
            &raw mut length,
            ptr::null_mut(),
            0,
        )
    };
    value.truncate(length);
    (failed == 0).then_some(value)
}
