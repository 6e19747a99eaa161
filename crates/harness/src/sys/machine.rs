//! What a memory figure depends on besides the program: CPU, memory, kernel, libc, huge pages,
//! swap, limits. The host's name is not among it.

use alloquet_report::format::mib;
use serde::{Deserialize, Serialize};

use super::cgroup::CgroupLimits;
use super::libc_version;
use super::memory::Resident;
use super::system::{LIBC, machine as of_system};

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

/// The machine's memory as the system tells it, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct MachineMemory {
    pub(super) memory_bytes: Option<u64>,
    pub(super) swap_bytes: Option<u64>,
    pub(super) swap_used_bytes: Option<u64>,
    /// What can be had without swapping.
    pub(super) available_bytes: Option<u64>,
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
        let memory = of_system::memory();
        let uname = rustix::system::uname();
        let [sysname, release, machine] =
            [uname.sysname(), uname.release(), uname.machine()].map(|text| text.to_string_lossy());
        Self {
            cpu_model: of_system::cpu_model(),
            cpus: std::thread::available_parallelism().map_or(0, usize::from),
            memory_bytes: memory.memory_bytes,
            swap_bytes: memory.swap_bytes,
            kernel: format!("{sysname} {release} {machine}"),
            libc: format!("{LIBC} {}", libc_version().0),
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
        let setting = |name| chosen(&of_system::thp_setting(name));
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

/// The word in brackets.
fn chosen(setting: &str) -> String {
    let word = setting
        .split_once('[')
        .and_then(|(_, rest)| rest.split_once(']'));
    word.map_or(setting, |(word, _)| word).to_owned()
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
    fn a_process_without_huge_pages_says_off() {
        let thp = Thp {
            enabled: "madvise".to_owned(),
            defrag: String::new(),
            process_enabled: Some(false),
        };
        assert_eq!(thp.summary(), "off");
    }
}
