//! What spoils a measurement on this machine now, as far as it can be seen beforehand.

use alloquet_report::format::mib;

use super::build::Build;
use super::machine::Machine;
use super::system::machine as of_system;

/// What changes from moment to moment.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Moment {
    /// Swap in use, in bytes.
    pub(crate) swap_used_bytes: u64,
    /// Memory that can be had without swapping, in bytes.
    pub(crate) available_bytes: Option<u64>,
    /// Processes that ran or waited for a CPU, the mean of the last minute.
    pub(crate) load: Option<f64>,
    /// Memory in use by this process's control group, page cache included, in bytes.
    pub(crate) group_used_bytes: Option<u64>,
}

impl Moment {
    /// Reads it.
    pub(crate) fn now() -> Self {
        let memory = of_system::memory();
        Self {
            swap_used_bytes: memory.swap_used_bytes.unwrap_or(0),
            available_bytes: memory.available_bytes,
            load: of_system::load(),
            group_used_bytes: super::cgroup::memory_used_bytes(),
        }
    }
}

/// One sentence for each thing that spoils a measurement, and what to do about it.
pub(crate) fn spoilers(machine: &Machine, build: &Build, moment: &Moment) -> Vec<String> {
    let mut found = Vec::new();
    if machine.thp.enabled == "always" {
        found.push(
            "transparent huge pages are \"always\": every allocator gets them, asked or not, and memory that was never \
             touched is resident; measure with --set thp=off too"
                .to_owned(),
        );
    }
    if moment.swap_used_bytes > 0 {
        found.push(format!(
            "{} of swap is in use: what is swapped out is missing from RSS; free memory, or swapoff -a",
            mib(moment.swap_used_bytes)
        ));
    }
    let busy = 0.5 * machine.cpus as f64;
    if let Some(load) = moment.load.filter(|load| *load > busy) {
        found.push(format!(
            "the load is {load:.1} on {} CPUs: times are of a busy machine; wait, or compare heap, RSS and faults alone",
            machine.cpus
        ));
    }
    if build.opt_level != "3" || build.debug_assertions {
        found.push(format!(
            "this build (profile {}, opt-level {}, debug assertions {}) is not what a service runs: build with --release",
            build.profile,
            build.opt_level,
            if build.debug_assertions { "on" } else { "off" }
        ));
    }
    let near = |limit: u64, used: u64, what: &str| {
        let left = limit.saturating_sub(used);
        (left < limit / 4).then(|| {
            format!(
                "{} of the {} that {what} are left: the kernel reclaims, or kills, near the limit",
                mib(left),
                mib(limit)
            )
        })
    };
    let cgroup = &machine.cgroup;
    if let Some((limit, used)) = cgroup.memory_max_bytes.zip(moment.group_used_bytes) {
        found.extend(near(limit, used, "the control group may use"));
    }
    if let Some((limit, available)) = machine.memory_bytes.zip(moment.available_bytes) {
        found.extend(near(
            limit,
            limit.saturating_sub(available),
            "the machine has",
        ));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quiet() -> (Machine, Build, Moment) {
        let mut machine = Machine::now();
        machine.thp.enabled = "madvise".to_owned();
        machine.cpus = 2;
        machine.memory_bytes = Some(8 << 30);
        machine.cgroup.memory_max_bytes = None;
        let mut build = Build::current();
        build.opt_level = "3".to_owned();
        build.debug_assertions = false;
        let moment = Moment {
            available_bytes: Some(7 << 30),
            load: Some(0.3),
            ..Moment::default()
        };
        (machine, build, moment)
    }

    #[test]
    fn a_quiet_machine_spoils_nothing() {
        let (machine, build, moment) = quiet();
        assert_eq!(spoilers(&machine, &build, &moment), Vec::<String>::new());
    }

    #[test]
    fn each_thing_is_told_by_itself() {
        let told = |change: &dyn Fn(&mut Machine, &mut Build, &mut Moment)| {
            let (mut machine, mut build, mut moment) = quiet();
            change(&mut machine, &mut build, &mut moment);
            let found = spoilers(&machine, &build, &moment);
            assert_eq!(found.len(), 1, "{found:?}");
            found[0].clone()
        };
        assert!(told(&|m, _, _| m.thp.enabled = "always".to_owned()).contains("thp=off"));
        assert!(told(&|_, _, m| m.swap_used_bytes = 5 << 20).starts_with("5.0 MiB of swap"));
        assert!(told(&|_, _, m| m.load = Some(1.7)).starts_with("the load is 1.7 on 2 CPUs"));
        assert!(told(&|_, b, _| b.opt_level = "0".to_owned()).contains("opt-level 0"));
        assert!(told(&|_, b, _| b.debug_assertions = true).contains("debug assertions on"));
        assert!(told(&|_, _, m| m.available_bytes = Some(1 << 30)).contains("the machine has"));
        let limited = told(&|m, _, moment| {
            m.cgroup.memory_max_bytes = Some(512 << 20);
            moment.group_used_bytes = Some(500 << 20);
        });
        assert!(limited.starts_with("12.0 MiB of the 512.0 MiB that the control group may use"));
    }
}
