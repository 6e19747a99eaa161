//! What a memory figure depends on besides the program: CPU, memory, kernel, libc, huge pages,
//! swap, limits. The host's name is not among it.

use std::fs;

use alloquet_report::format::mib;
use serde::{Deserialize, Serialize};

use super::cgroup::CgroupLimits;
use super::libc_version;
use super::memory::Resident;

/// The facts of this machine. What could not be learnt is empty or absent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Machine {
    /// The CPU's model name.
    pub(crate) cpu_model: String,
    /// The CPUs that this process may run on.
    pub(crate) cpus: usize,
    /// Memory of the machine in bytes.
    pub(crate) memory_bytes: Option<u64>,
    /// Swap space of the machine in bytes.
    pub(crate) swap_bytes: Option<u64>,
    /// Kernel name, release and architecture.
    pub(crate) kernel: String,
    /// The C library and its version.
    pub(crate) libc: String,
    /// The size of a page in bytes.
    pub(crate) page_bytes: usize,
    /// Transparent huge pages.
    pub(crate) thp: Thp,
    /// The limits on this process's control groups.
    pub(crate) cgroup: CgroupLimits,
}

/// How transparent huge pages are set. They decide more of the resident size than the buffers do.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Thp {
    /// The system's `enabled`: `always`, `madvise` or `never`; empty if the kernel has none.
    pub(crate) enabled: String,
    /// The system's `defrag`.
    pub(crate) defrag: String,
    /// Whether this process is allowed any (`THP_enabled`); an allocator can give that up for the
    /// whole process.
    pub(crate) process_enabled: Option<bool>,
}

impl Machine {
    /// Reads the facts.
    pub(crate) fn now() -> Self {
        let meminfo = read("/proc/meminfo");
        let uname = rustix::system::uname();
        let [sysname, release, machine] =
            [uname.sysname(), uname.release(), uname.machine()].map(|text| text.to_string_lossy());
        let family = if cfg!(target_env = "gnu") {
            "glibc"
        } else {
            "libc"
        };
        Self {
            cpu_model: cpu_model(&read("/proc/cpuinfo")),
            cpus: std::thread::available_parallelism().map_or(0, usize::from),
            memory_bytes: meminfo_bytes(&meminfo, "MemTotal"),
            swap_bytes: meminfo_bytes(&meminfo, "SwapTotal"),
            kernel: format!("{sysname} {release} {machine}"),
            libc: format!("{family} {}", libc_version()),
            page_bytes: rustix::param::page_size(),
            thp: Thp::now(),
            cgroup: CgroupLimits::now(),
        }
    }
}

impl Machine {
    /// One line for the heading of a table.
    pub(crate) fn summary(&self) -> String {
        let memory = self
            .memory_bytes
            .map_or_else(String::new, |bytes| format!(", {}", mib(bytes)));
        format!(
            "{}, {} CPUs{memory}, {}, {}, THP {}",
            self.cpu_model,
            self.cpus,
            self.kernel,
            self.libc,
            self.thp.summary()
        )
    }
}

impl Thp {
    /// Reads the settings.
    pub(crate) fn now() -> Self {
        let setting = |name: &str| {
            chosen(&read(&format!(
                "/sys/kernel/mm/transparent_hugepage/{name}"
            )))
        };
        Self {
            enabled: setting("enabled"),
            defrag: setting("defrag"),
            process_enabled: Resident::now()
                .ok()
                .and_then(|resident| resident.thp_enabled),
        }
    }

    /// The short form of the CSV: the system's `enabled`, or `off` where this process is allowed
    /// none.
    pub(crate) fn summary(&self) -> &str {
        if self.process_enabled == Some(false) {
            "off"
        } else {
            &self.enabled
        }
    }
}

fn read(path: &str) -> String {
    fs::read_to_string(path)
        .map(|text| text.trim().to_owned())
        .unwrap_or_default()
}

/// The word in brackets.
fn chosen(setting: &str) -> String {
    let word = setting
        .split_once('[')
        .and_then(|(_, rest)| rest.split_once(']'));
    word.map_or(setting, |(word, _)| word).to_owned()
}

fn cpu_model(cpuinfo: &str) -> String {
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
pub(super) fn meminfo_bytes(meminfo: &str, key: &str) -> Option<u64> {
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

    #[test]
    fn the_chosen_setting_is_in_brackets() {
        assert_eq!(chosen("always [madvise] never"), "madvise");
        assert_eq!(chosen(""), "");
    }

    #[test]
    fn cpu_models_of_both_families() {
        assert_eq!(
            cpu_model("processor\t: 0\nmodel name\t: A B\nmodel name\t: C\n"),
            "A B"
        );
        assert_eq!(
            cpu_model("CPU implementer\t: 0x41\nCPU part\t: 0xd0c\n"),
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
    fn a_process_without_huge_pages_says_off() {
        let thp = Thp {
            enabled: "madvise".to_owned(),
            defrag: String::new(),
            process_enabled: Some(false),
        };
        assert_eq!(thp.summary(), "off");
    }
}
