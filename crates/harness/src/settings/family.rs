//! What settings an allocator has and how they are written: the same for all builds of one library.

use anyhow::{Result, bail, ensure};

use super::presets::presets;

/// The variables that glibc takes, by the tunables they set. Some end in an underscore, and glibc
/// says nothing of one that lacks it.
pub(crate) const GLIBC_VARIABLES: &[(&str, &str)] = &[
    ("MALLOC_ARENA_MAX", "glibc.malloc.arena_max"),
    ("MALLOC_ARENA_TEST", "glibc.malloc.arena_test"),
    ("MALLOC_CHECK_", "glibc.malloc.check"),
    ("MALLOC_MMAP_MAX_", "glibc.malloc.mmap_max"),
    ("MALLOC_MMAP_THRESHOLD_", "glibc.malloc.mmap_threshold"),
    ("MALLOC_PERTURB_", "glibc.malloc.perturb"),
    ("MALLOC_TOP_PAD_", "glibc.malloc.top_pad"),
    ("MALLOC_TRIM_THRESHOLD_", "glibc.malloc.trim_threshold"),
];

const TUNABLES: &str = "GLIBC_TUNABLES";

/// jemalloc's variable where its symbols have the crate's prefix, and where they have not.
const PREFIXED: &str = "_RJEM_MALLOC_CONF";
const UNPREFIXED: &str = "MALLOC_CONF";

/// A library, as far as its settings go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Family {
    Glibc,
    Mimalloc,
    /// With the variable that it reads.
    Jemalloc(&'static str),
    /// Nothing to set.
    Snmalloc,
}

/// Every allocator by its name in the CSV.
const ALLOCATORS: &[(&str, Family)] = &[
    ("system", Family::Glibc),
    ("mimalloc", Family::Mimalloc),
    ("mimalloc-v2", Family::Mimalloc),
    ("mimalloc-override", Family::Mimalloc),
    ("jemalloc", Family::Jemalloc(PREFIXED)),
    ("jemalloc-override", Family::Jemalloc(UNPREFIXED)),
    ("snmalloc", Family::Snmalloc),
    ("dhat", Family::Glibc),
];

/// The settings of the allocator `name`; `None` where there is no such allocator.
pub(super) fn family(name: &str) -> Option<Family> {
    let found = ALLOCATORS.iter().find(|(allocator, _)| *allocator == name);
    found.map(|&(_, family)| family)
}

/// The names of all allocators.
pub(super) fn names() -> Vec<&'static str> {
    ALLOCATORS.iter().map(|&(name, _)| name).collect()
}

impl Family {
    /// Whether `part`, which has a `=` or a `:`, has a form of this family's.
    pub(super) fn is_form(self, part: &str) -> bool {
        let name = part.split(['=', ':']).next().unwrap_or_default();
        let is_assignment = part[name.len()..].starts_with('=');
        match self {
            Self::Glibc => {
                is_assignment
                    && (name == TUNABLES
                        || name.starts_with("glibc.")
                        || (name.starts_with("MALLOC_") && name != UNPREFIXED))
            }
            Self::Mimalloc => {
                is_assignment && (name.starts_with("MIMALLOC_") || is_lower_case(name))
            }
            Self::Jemalloc(_) if is_assignment => name == PREFIXED || name == UNPREFIXED,
            Self::Jemalloc(_) => part.contains(':') && is_lower_case(name),
            Self::Snmalloc => false,
        }
    }

    /// The variable that `part` asks for, and its value.
    pub(super) fn variable(self, allocator: &str, part: &str) -> Result<(String, String)> {
        ensure!(
            self.is_form(part),
            "{allocator} has no setting '{part}': {}",
            self.forms(allocator)
        );
        // A form of jemalloc's own has no `=` before its first colon.
        let assignment = part.split_once('=');
        match self {
            Self::Glibc => match assignment {
                Some((TUNABLES, value)) => tunables(value),
                Some((name, value)) if name.starts_with("MALLOC_") => {
                    let known: Vec<_> = GLIBC_VARIABLES.iter().map(|(name, _)| *name).collect();
                    ensure!(
                        known.contains(&name),
                        "glibc has no variable {name}: it has {}, and {TUNABLES}",
                        known.join(", ")
                    );
                    number(name, value)?;
                    Ok((name.to_owned(), value.to_owned()))
                }
                _ => tunables(part),
            },
            Self::Mimalloc => {
                let (name, value) = assignment.unwrap_or((part, ""));
                let variable = match name.strip_prefix("MIMALLOC_") {
                    Some(_) => name.to_owned(),
                    None => format!("MIMALLOC_{}", name.to_ascii_uppercase()),
                };
                mimalloc_value(&variable, value)?;
                Ok((variable, value.to_owned()))
            }
            Self::Jemalloc(variable) => {
                let prefix = if variable == PREFIXED {
                    "with"
                } else {
                    "without"
                };
                let options = match assignment {
                    Some((name, value)) if name == PREFIXED || name == UNPREFIXED => {
                        ensure!(
                            name == variable,
                            "{allocator} is built {prefix} a prefix and reads {variable}, not {name}: write {variable}={value}"
                        );
                        value
                    }
                    _ => part,
                };
                for option in options.split(',') {
                    ensure!(
                        option
                            .split_once(':')
                            .is_some_and(|(name, value)| is_lower_case(name) && !value.is_empty()),
                        "'{option}' is no option of jemalloc: one is name:value, as in dirty_decay_ms:0"
                    );
                }
                Ok((variable.to_owned(), options.to_owned()))
            }
            Self::Snmalloc => bail!("{allocator} has no settings"),
        }
    }

    /// What stands between two values of the variable `name` that are both to hold; `None` where there can be only one.
    pub(super) fn joint(self, name: &str) -> Option<char> {
        match self {
            Self::Glibc if name == TUNABLES => Some(':'),
            Self::Jemalloc(_) => Some(','),
            _ => None,
        }
    }

    /// What can be written, for an error.
    pub(super) fn forms(self, allocator: &str) -> String {
        let presets: Vec<_> = presets(allocator).map(|preset| preset.name).collect();
        let presets = presets.join(", ");
        match self {
            Self::Glibc => format!(
                "write MALLOC_ARENA_MAX=2, glibc.malloc.hugetlb=1, thp=off or a preset ({presets})"
            ),
            Self::Mimalloc => format!(
                "write MIMALLOC_PURGE_DELAY=0, purge_delay=0, thp=off or a preset ({presets})"
            ),
            Self::Jemalloc(_) => {
                format!("write dirty_decay_ms:0,muzzy_decay_ms:0, thp=off or a preset ({presets})")
            }
            Self::Snmalloc => "it has none but thp=off".to_owned(),
        }
    }
}

/// Whether `name` can be an option of mimalloc or jemalloc.
fn is_lower_case(name: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    name.starts_with(|first: char| first.is_ascii_lowercase()) && name.bytes().all(allowed)
}

/// glibc's tunables, with colons between them.
fn tunables(text: &str) -> Result<(String, String)> {
    for tunable in text.split(':') {
        match tunable.split_once('=') {
            Some((name, value)) if name.starts_with("glibc.malloc.") => number(name, value)?,
            // What the others take, such as lists of CPU features, is not for here.
            Some((name, _)) if name.starts_with("glibc.") => {}
            _ => bail!("'{tunable}' is no tunable: one is glibc.malloc.NAME=number"),
        }
    }
    Ok((TUNABLES.to_owned(), text.to_owned()))
}

/// A number as glibc reads it, so that it is the one that a person reads too.
fn number(name: &str, value: &str) -> Result<()> {
    let is_number = match value.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).is_ok(),
        None => value.parse::<u64>().is_ok() && (value == "0" || !value.starts_with(['0', '+'])),
    };
    ensure!(is_number, "{name} is a number, not '{value}'");
    Ok(())
}

/// What mimalloc takes: a number, with a unit where it is a size, or a word for yes or no.
fn mimalloc_value(name: &str, value: &str) -> Result<()> {
    let upper = value.to_ascii_uppercase();
    let digits = upper.strip_prefix('-').unwrap_or(&upper);
    let unit = digits.trim_start_matches(|digit: char| digit.is_ascii_digit());
    let has_digits = unit.len() < digits.len();
    let size = unit.strip_suffix("IB").or_else(|| unit.strip_suffix('B'));
    let is_unit = ["", "K", "M", "G", "T"].contains(&size.unwrap_or(unit));
    let is_word = ["TRUE", "FALSE", "YES", "NO", "ON", "OFF"].contains(&upper.as_str());
    ensure!(
        is_word || (has_digits && is_unit),
        "{name} is a number, on or off, not '{value}'"
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_allocator_of_this_build_is_among_them() {
        assert!(names().contains(&crate::allocator::name()));
    }

    #[test]
    fn numbers_are_read_as_glibc_reads_them() {
        for value in ["0", "131072", "0x20000"] {
            assert!(number("x", value).is_ok(), "{value}");
        }
        // Octal to glibc, a huge number, and its first digits.
        for value in ["", "010", "-1", "+1", "12abc", "1M", "0x"] {
            assert!(number("x", value).is_err(), "{value}");
        }
    }

    #[test]
    fn mimalloc_takes_numbers_units_and_words() {
        for value in ["0", "-1", "64K", "1GiB", "2mb", "yes", "off"] {
            assert!(mimalloc_value("x", value).is_ok(), "{value}");
        }
        for value in ["", "-", "K", "1.5", "1KK", "maybe"] {
            assert!(mimalloc_value("x", value).is_err(), "{value}");
        }
    }
}
