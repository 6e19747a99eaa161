//! The limits that control groups set on this process, versions 1 and 2. Their paths stay here:
//! they can name hosts.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// The tightest limits on this process's groups and their parents; nothing where there is none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct CgroupLimits {
    /// Where memory can be limited: `v1`, `v2`, or `none`.
    pub(crate) memory_version: String,
    /// Memory that may be used before something is killed, page cache included, in bytes.
    pub(crate) memory_max_bytes: Option<u64>,
    /// Memory from which on the kernel reclaims, in bytes (v2 only).
    pub(crate) memory_high_bytes: Option<u64>,
    /// Swap that may be used (v2), or memory and swap together (v1), in bytes.
    pub(crate) swap_max_bytes: Option<u64>,
    /// CPU time a second, in CPUs.
    pub(crate) cpus: Option<f64>,
}

impl CgroupLimits {
    /// The limits on this process.
    pub(crate) fn now() -> Self {
        let read = |path: &Path| std::fs::read_to_string(path).ok();
        let groups = read(Path::new("/proc/self/cgroup")).unwrap_or_default();
        let mounts = read(Path::new("/proc/self/mountinfo")).unwrap_or_default();
        Self::of(&groups, &mounts, read)
    }

    /// The limits for a `/proc/self/cgroup` and a `/proc/self/mountinfo`, with the limit files as
    /// `read` returns them.
    fn of(groups: &str, mounts: &str, read: impl Fn(&Path) -> Option<String>) -> Self {
        let memory_v1 = folders(groups, mounts, Some("memory"));
        let cpu_v1 = folders(groups, mounts, Some("cpu"));
        let v2 = folders(groups, mounts, None);
        let tightest = |folders: &[PathBuf], file: &str| {
            let bytes = |folder: &PathBuf| limited_bytes(&read(&folder.join(file))?);
            folders.iter().filter_map(bytes).min()
        };

        let has = |folders: &[PathBuf], file: &str| {
            folders
                .iter()
                .any(|folder| read(&folder.join(file)).is_some())
        };
        let memory_version = if has(&memory_v1, "memory.limit_in_bytes") {
            "v1"
        } else if has(&v2, "memory.max") || has(&v2, "memory.current") || has(&v2, "memory.stat") {
            "v2"
        } else {
            "none"
        };

        let cpus_v1 = cpu_v1.iter().filter_map(|folder| {
            let number = |file: &str| read(&folder.join(file))?.trim().parse::<f64>().ok();
            Some((number("cpu.cfs_quota_us")?, number("cpu.cfs_period_us")?))
        });
        let cpus_v2 = v2.iter().filter_map(|folder| {
            let line = read(&folder.join("cpu.max"))?;
            let (quota, period) = line.trim().split_once(' ')?;
            Some((quota.parse().ok()?, period.parse().ok()?))
        });
        let cpus = cpus_v1
            .chain(cpus_v2)
            .filter(|&(quota, period)| quota > 0.0 && period > 0.0);

        Self {
            memory_version: memory_version.to_owned(),
            memory_max_bytes: tightest(&memory_v1, "memory.limit_in_bytes")
                .or(tightest(&v2, "memory.max")),
            memory_high_bytes: tightest(&v2, "memory.high"),
            swap_max_bytes: tightest(&memory_v1, "memory.memsw.limit_in_bytes")
                .or(tightest(&v2, "memory.swap.max")),
            cpus: cpus
                .map(|(quota, period)| quota / period)
                .min_by(f64::total_cmp),
        }
    }
}

/// The folders of this process's group of memory and its parents, of version 1 and of version 2.
pub(super) fn memory_folders() -> (Vec<PathBuf>, Vec<PathBuf>) {
    let groups = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    (
        folders(&groups, &mounts, Some("memory")),
        folders(&groups, &mounts, None),
    )
}

/// Memory in use by this process's group, page cache included, in bytes; `None` where no group of memory tells.
pub(super) fn memory_used_bytes() -> Option<u64> {
    let (v1, v2) = memory_folders();
    let used = |folders: &[PathBuf], file: &str| {
        let text = std::fs::read_to_string(folders.first()?.join(file)).ok()?;
        text.trim().parse().ok()
    };
    used(&v1, "memory.usage_in_bytes").or_else(|| used(&v2, "memory.current"))
}

/// The bytes a limit file names; nothing for `max`, or for the huge number that means the same in
/// version 1.
fn limited_bytes(text: &str) -> Option<u64> {
    const UNLIMITED: u64 = 1 << 60;
    text.trim().parse().ok().filter(|&bytes| bytes < UNLIMITED)
}

/// The folders of the process's group and its parents as far as they are mounted, for a version 1
/// controller or, with none, for version 2.
fn folders(groups: &str, mounts: &str, controller: Option<&str>) -> Vec<PathBuf> {
    let group = groups.lines().find_map(|line| {
        let mut parts = line.splitn(3, ':');
        let (_, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
        let found = match controller {
            Some(controller) => controllers.split(',').any(|one| one == controller),
            None => controllers.is_empty(),
        };
        found.then(|| Path::new(path))
    });
    let mount = mounts.lines().find_map(|line| {
        let (place, kind) = line.split_once(" - ")?;
        let mut kind = kind.split(' ');
        let (filesystem, options) = (kind.next()?, kind.nth(1)?);
        let found = match controller {
            Some(controller) => {
                filesystem == "cgroup" && options.split(',').any(|one| one == controller)
            }
            None => filesystem == "cgroup2",
        };
        let mut place = place.split(' ').skip(3);
        found.then_some((Path::new(place.next()?), Path::new(place.next()?)))
    });
    let (Some(group), Some((root, mount))) = (group, mount) else {
        return Vec::new();
    };
    // Inside a container the group's path can be the host's, of which only the mounted part exists.
    let below = group.strip_prefix(root).unwrap_or(Path::new(""));
    below.ancestors().map(|part| mount.join(part)).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    fn limits(groups: &str, mounts: &str, files: &[(&str, &str)]) -> CgroupLimits {
        let files: HashMap<_, _> = files
            .iter()
            .map(|&(path, text)| (PathBuf::from(path), text.to_owned()))
            .collect();
        CgroupLimits::of(groups, mounts, |path| files.get(path).cloned())
    }

    #[test]
    fn version_2_takes_the_tightest_parent() {
        let limits = limits(
            "0::/user/job\n",
            "30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw\n",
            &[
                ("/sys/fs/cgroup/user/job/memory.max", "max\n"),
                ("/sys/fs/cgroup/user/memory.max", "1048576\n"),
                ("/sys/fs/cgroup/user/job/cpu.max", "150000 100000\n"),
                ("/sys/fs/cgroup/user/cpu.max", "max 100000\n"),
            ],
        );
        let expected = CgroupLimits {
            memory_version: "v2".to_owned(),
            memory_max_bytes: Some(1_048_576),
            cpus: Some(1.5),
            ..CgroupLimits::default()
        };
        assert_eq!(limits, expected);
    }

    #[test]
    fn version_1_reads_the_controllers_own_mounts() {
        let limits = limits(
            "4:memory:/docker/abc\n2:cpu,cpuacct:/docker/abc\n0::/\n",
            "35 31 0:32 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n\
             32 31 0:29 /docker/abc /sys/fs/cgroup/cpu ro - cgroup cgroup rw,cpu,cpuacct\n",
            &[
                (
                    "/sys/fs/cgroup/memory/memory.limit_in_bytes",
                    "9223372036854771712\n",
                ),
                (
                    "/sys/fs/cgroup/memory/memory.memsw.limit_in_bytes",
                    "2097152\n",
                ),
                ("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n"),
                ("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n"),
            ],
        );
        let expected = CgroupLimits {
            memory_version: "v1".to_owned(),
            swap_max_bytes: Some(2_097_152),
            ..CgroupLimits::default()
        };
        assert_eq!(limits, expected);
    }

    #[test]
    fn without_control_groups_there_are_no_limits() {
        assert_eq!(limits("", "", &[]).memory_version, "none");
    }
}
