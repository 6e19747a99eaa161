//! The command `env`: what this binary and this machine are, for reading and for a recorded run.

use std::fmt;

use alloquet_report::format::mib;
use anyhow::Result;
use serde::{Deserialize, Serialize};

use crate::allocator::{self as this_allocator, AllocatorFacts};
use crate::cli::{EnvArgs, TextFormat};
use crate::output::print;
use crate::sys::LEFT_OUT;
use crate::sys::build::Build;
use crate::sys::machine::Machine;
use crate::sys::spoilers::{Moment, spoilers};

/// Everything that figures of this binary on this machine depend on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Environment {
    /// The allocator of the build, read back from it.
    pub(crate) allocator: AllocatorFacts,
    /// How the binary was built.
    pub(crate) build: Build,
    /// The machine, without its name.
    pub(crate) machine: Machine,
}

impl Environment {
    /// Collects the facts.
    pub(crate) fn collect() -> Self {
        Self {
            allocator: this_allocator::facts(),
            build: Build::current(),
            machine: Machine::now(),
        }
    }
}

/// Runs the command.
///
/// # Errors
///
/// The facts cannot be written as JSON.
pub(crate) fn run(args: &EnvArgs) -> Result<()> {
    let environment = Environment::collect();
    match args.format {
        TextFormat::Text => {
            let spoilers = spoilers(&environment.machine, &environment.build, &Moment::now());
            let mut text = format!("{environment}\nWhat spoils a measurement now\n");
            if spoilers.is_empty() {
                text.push_str(
                    "  nothing that was looked for: huge pages, swap, load, the build, limits\n",
                );
            }
            for spoiler in spoilers {
                text.push_str(&format!("  {spoiler}\n"));
            }
            print(text)
        }
        TextFormat::Json => print(serde_json::to_string_pretty(&environment)? + "\n"),
    }
}

impl fmt::Display for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            allocator,
            build,
            machine,
        } = self;
        writeln!(f, "Allocator")?;
        line(f, "name", &allocator.name)?;
        line(
            f,
            "version",
            format_args!("{} (by {})", allocator.version, allocator.version_source),
        )?;
        line(
            f,
            "honours",
            or_none(&allocator.settings_variables.join(", ")),
        )?;
        for (variable, value) in &allocator.environment {
            line(f, "set", format_args!("{variable}={value}"))?;
        }
        for (name, value) in &allocator.settings {
            line(f, name, value)?;
        }
        if allocator.settings.is_empty() {
            line(f, "settings", "none that could be read back")?;
        }

        line(f, "statistics now", this_allocator::statistics())?;
        line(
            f,
            "gives back what is free by",
            this_allocator::purge_call().unwrap_or("nothing: it has no such call"),
        )?;
        if !this_allocator::can_count() {
            line(f, "heap", "not counted: the build is of the feature `bare`")?;
        }
        if let Some(heap) = this_allocator::mallinfo2() {
            line(f, "libc's heap now", heap)?;
        }

        writeln!(f, "\nBuild")?;
        line(f, "version", &build.package_version)?;
        line(f, "revision", or_none(&build.revision))?;
        line(
            f,
            "profile",
            format_args!("{} (opt-level {})", build.profile, build.opt_level),
        )?;
        line(
            f,
            "debug assertions",
            if build.debug_assertions { "on" } else { "off" },
        )?;
        line(f, "compiler", &build.rustc)?;
        line(f, "target", &build.target)?;

        let cgroup = &machine.cgroup;
        writeln!(f, "\nMachine")?;
        line(
            f,
            "CPU",
            format_args!("{} × {}", machine.cpus, machine.cpu_model),
        )?;
        line(f, "memory", bytes(machine.memory_bytes, "unknown"))?;
        line(f, "swap", bytes(machine.swap_bytes, "unknown"))?;
        line(f, "kernel", &machine.kernel)?;
        line(f, "libc", &machine.libc)?;
        line(f, "page size", format_args!("{} bytes", machine.page_bytes))?;
        line(
            f,
            "huge pages",
            format_args!("{} (defrag {})", machine.thp.enabled, machine.thp.defrag),
        )?;
        line(
            f,
            "in this process",
            match machine.thp.process_enabled {
                Some(true) => "huge pages are allowed",
                Some(false) => "huge pages are off",
                None => "the kernel does not say",
            },
        )?;
        line(
            f,
            "cgroup memory",
            format_args!(
                "{} ({})",
                bytes(cgroup.memory_max_bytes, "no limit"),
                cgroup.memory_version
            ),
        )?;
        line(
            f,
            "cgroup high",
            bytes(cgroup.memory_high_bytes, "no limit"),
        )?;
        line(f, "cgroup swap", bytes(cgroup.swap_max_bytes, "no limit"))?;
        line(
            f,
            "cgroup CPUs",
            cgroup
                .cpus
                .map_or("no limit".to_owned(), |cpus| format!("{cpus}")),
        )?;
        if !LEFT_OUT.is_empty() {
            writeln!(f, "\nNot measured on this system")?;
        }
        LEFT_OUT.iter().try_for_each(|what| writeln!(f, "  {what}"))
    }
}

fn line(f: &mut fmt::Formatter<'_>, name: &str, value: impl fmt::Display) -> fmt::Result {
    writeln!(f, "  {name:<33} {value}")
}

fn bytes(bytes: Option<u64>, absent: &str) -> String {
    bytes.map_or_else(|| absent.to_owned(), mib)
}

fn or_none(text: &str) -> &str {
    if text.is_empty() { "none" } else { text }
}
