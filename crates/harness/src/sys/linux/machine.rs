//! What there is to learn of this machine, by `/proc` and `/sys`.

use std::fs;

use crate::sys::machine::MachineMemory;

/// The CPU's model name; empty where it is not known.
pub(crate) fn cpu_model() -> String {
    model_in(&read("/proc/cpuinfo"))
}

/// The machine's memory.
pub(crate) fn memory() -> MachineMemory {
    let meminfo = read("/proc/meminfo");
    let bytes = |key| meminfo_bytes(&meminfo, key);
    let used = bytes("SwapTotal").zip(bytes("SwapFree"));
    MachineMemory {
        memory_bytes: bytes("MemTotal"),
        swap_bytes: bytes("SwapTotal"),
        swap_used_bytes: used.map(|(total, free)| total.saturating_sub(free)),
        available_bytes: bytes("MemAvailable"),
    }
}

/// Processes that ran or waited for a CPU, the mean of the last minute.
pub(crate) fn load() -> Option<f64> {
    read("/proc/loadavg")
        .split_whitespace()
        .next()?
        .parse()
        .ok()
}

/// How huge pages are set, as the kernel writes it; empty if it has none.
pub(crate) fn thp_setting(name: &str) -> String {
    read(&format!("/sys/kernel/mm/transparent_hugepage/{name}"))
}

fn read(path: &str) -> String {
    fs::read_to_string(path)
        .map(|text| text.trim().to_owned())
        .unwrap_or_default()
}

fn model_in(cpuinfo: &str) -> String {
    // x86 says "model name"; Arm mostly says only who made it and the part's number.
    let value = |key: &str| {
        let found = cpuinfo
            .lines()
            .filter_map(|line| line.split_once(':'))
            .find(|(name, _)| name.trim() == key);
        found.map(|(_, value)| value.trim().to_owned())
    };
    value("model name")
        .or_else(|| {
            Some(format!(
                "implementer {} part {}",
                value("CPU implementer")?,
                value("CPU part")?
            ))
        })
        .unwrap_or_default()
}

/// The value of a line of `/proc/meminfo`, in bytes.
fn meminfo_bytes(meminfo: &str, key: &str) -> Option<u64> {
    let (_, value) = meminfo
        .lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(name, _)| *name == key)?;
    value
        .trim()
        .strip_suffix(" kB")?
        .parse::<u64>()
        .ok()?
        .checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::machine::Machine;
    use crate::sys::spoilers::Moment;

    #[test]
    fn cpu_models_of_both_families() {
        assert_eq!(
            model_in("processor\t: 0\nmodel name\t: A B\nmodel name\t: C\n"),
            "A B"
        );
        assert_eq!(
            model_in("CPU implementer\t: 0x41\nCPU part\t: 0xd0c\n"),
            "implementer 0x41 part 0xd0c"
        );
    }

    #[test]
    fn meminfo_is_in_bytes() {
        assert_eq!(
            meminfo_bytes("MemTotal:       24684096 kB\nMemFree: 1 kB", "MemTotal"),
            Some(24_684_096 * 1024)
        );
        assert_eq!(meminfo_bytes("MemFree: 1 kB", "SwapTotal"), None);
    }

    #[test]
    fn this_machine_has_memory_and_a_kernel() {
        let machine = Machine::now();
        assert!(machine.memory_bytes.is_some_and(|bytes| bytes > 0));
        assert!(machine.kernel.starts_with("Linux "));
        assert!(machine.cpus > 0);
    }

    #[test]
    fn this_moment_can_be_read() {
        let moment = Moment::now();
        assert!(moment.available_bytes.is_some_and(|bytes| bytes > 0));
        assert!(moment.load.is_some_and(|load| load >= 0.0));
    }
}
