//! How an allocator is set for a worker: the variables of its environment, and whether it is allowed huge pages.
//!
//! Settings are written for any allocator, whatever this build's is: one binary starts the workers of all. What a text
//! cannot show to be wrong, such as an option that jemalloc does not have, fails where the worker reads its settings back.

pub(crate) mod family;
mod presets;

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use anyhow::{Result, bail, ensure};
use serde::{Deserialize, Serialize};

use self::family::{Family, family};
pub(crate) use self::presets::{PRESETS, presets};

/// The text for no settings at all.
pub(crate) const DEFAULT: &str = "default";

/// What a worker is started with, besides what every worker has.
///
/// Its text is `NAME=value;NAME=value;thp=off` with the names in order, or `default`.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SetupSettings {
    /// Variables of the environment, by name.
    pub(crate) variables: BTreeMap<String, String>,
    /// Whether the process is allowed transparent huge pages; `None`: as the machine has it.
    pub(crate) thp: Option<bool>,
}

impl SetupSettings {
    /// Reads settings that are written for the allocator `allocator`, by its name in the CSV.
    ///
    /// The parts of `text` stand between semicolons. Each is one of
    ///
    /// * a variable: `MIMALLOC_PURGE_DELAY=0`;
    /// * glibc's tunables: `glibc.malloc.hugetlb=1`, several with colons between them;
    /// * mimalloc's options: `purge_delay=0`;
    /// * jemalloc's: `dirty_decay_ms:0,muzzy_decay_ms:0`;
    /// * `thp=off` or `thp=on`;
    /// * the name of a preset, [`presets()`], or `default`.
    ///
    /// # Errors
    ///
    /// The allocator is unknown, or it has no such setting, or the value makes no sense, or something is set twice. The
    /// error says what there is.
    pub(crate) fn parse(allocator: &str, text: &str) -> Result<Self> {
        let Some(family) = family(allocator) else {
            bail!(
                "there is no allocator '{allocator}': there are {}",
                family::names().join(", ")
            );
        };
        let mut settings = Self::default();
        for part in parts(text) {
            settings.add(allocator, family, part)?;
        }
        Ok(settings)
    }

    /// As in the CSV: the text, empty for `default`.
    pub(crate) fn column(&self) -> String {
        if *self == Self::default() {
            String::new()
        } else {
            self.to_string()
        }
    }

    /// Adds one part.
    fn add(&mut self, allocator: &str, family: Family, part: &str) -> Result<()> {
        if let Some(value) = part.strip_prefix("thp=") {
            let on = match value {
                "on" => true,
                "off" => false,
                _ => bail!("thp is on or off, not '{value}'"),
            };
            ensure!(
                self.thp.replace(on).is_none_or(|before| before == on),
                "thp is set twice"
            );
            return Ok(());
        }
        if !part.contains(['=', ':']) {
            let Some(preset) = presets(allocator).find(|preset| preset.name == part) else {
                let names: Vec<_> = presets(allocator).map(|preset| preset.name).collect();
                bail!(
                    "{allocator} has no preset '{part}': it has {}. {}",
                    names.join(", "),
                    family.forms(allocator)
                );
            };
            return parts(preset.text).try_for_each(|part| self.add(allocator, family, part));
        }
        let (name, value) = family.variable(allocator, part)?;
        match self.variables.get_mut(&name) {
            None => {
                self.variables.insert(name, value);
            }
            Some(before) => match family.joint(&name) {
                Some(joint) => {
                    before.push(joint);
                    before.push_str(&value);
                }
                None => bail!("{name} is set twice"),
            },
        }
        Ok(())
    }
}

/// The parts of a text that say something: `default` says nothing.
fn parts(text: &str) -> impl Iterator<Item = &str> {
    text.split(';')
        .map(str::trim)
        .filter(|part| !part.is_empty() && *part != DEFAULT)
}

/// Whether `text` is written for `allocator`: whether each of its parts is of a form that is that allocator's. A value may
/// make no sense all the same; [`SetupSettings::parse`] says so.
pub(crate) fn takes(allocator: &str, text: &str) -> bool {
    let Some(family) = family(allocator) else {
        return false;
    };
    parts(text).all(|part| {
        let is_preset = || presets(allocator).any(|preset| preset.name == part);
        part.starts_with("thp=") || is_preset() || family.is_form(part)
    })
}

/// The canonical text.
impl fmt::Display for SetupSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let variables = self
            .variables
            .iter()
            .map(|(name, value)| format!("{name}={value}"));
        let thp = self
            .thp
            .map(|on| format!("thp={}", if on { "on" } else { "off" }));
        let parts: Vec<String> = variables.chain(thp).collect();
        f.write_str(if parts.is_empty() { DEFAULT } else { "" })?;
        f.write_str(&parts.join(";"))
    }
}

/// Reads the canonical text, of any allocator.
impl FromStr for SetupSettings {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        let mut settings = Self::default();
        for part in parts(text) {
            match part.split_once('=') {
                Some(("thp", "on")) => settings.thp = Some(true),
                Some(("thp", "off")) => settings.thp = Some(false),
                Some((name, value)) => {
                    settings.variables.insert(name.to_owned(), value.to_owned());
                }
                None => bail!("'{part}' is no setting: a setting is NAME=value or thp=off"),
            }
        }
        Ok(settings)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(allocator: &str, text: &str) -> String {
        match SetupSettings::parse(allocator, text) {
            Ok(settings) => settings.to_string(),
            Err(error) => format!("error: {error}"),
        }
    }

    #[test]
    fn every_form_has_one_canonical_text() {
        for (allocator, written, canonical) in [
            ("system", "", "default"),
            ("system", "default", "default"),
            ("snmalloc", "default;thp=off", "thp=off"),
            (
                "mimalloc",
                "MIMALLOC_PURGE_DELAY=0; MIMALLOC_ALLOW_THP=0",
                "MIMALLOC_ALLOW_THP=0;MIMALLOC_PURGE_DELAY=0",
            ),
            (
                "mimalloc-v2",
                "thp=off;purge_delay=0",
                "MIMALLOC_PURGE_DELAY=0;thp=off",
            ),
            (
                "jemalloc",
                "dirty_decay_ms:0,muzzy_decay_ms:0",
                "_RJEM_MALLOC_CONF=dirty_decay_ms:0,muzzy_decay_ms:0",
            ),
            (
                "jemalloc",
                "_RJEM_MALLOC_CONF=thp:always",
                "_RJEM_MALLOC_CONF=thp:always",
            ),
            (
                "jemalloc",
                "thp:always;dirty_decay_ms:0",
                "_RJEM_MALLOC_CONF=thp:always,dirty_decay_ms:0",
            ),
            ("jemalloc-override", "thp:always", "MALLOC_CONF=thp:always"),
            (
                "system",
                "glibc.malloc.hugetlb=1",
                "GLIBC_TUNABLES=glibc.malloc.hugetlb=1",
            ),
            (
                "system",
                "MALLOC_ARENA_MAX=2;glibc.malloc.hugetlb=1;glibc.malloc.tcache_count=0",
                "GLIBC_TUNABLES=glibc.malloc.hugetlb=1:glibc.malloc.tcache_count=0;MALLOC_ARENA_MAX=2",
            ),
            ("system", "two-arenas;thp=off", "MALLOC_ARENA_MAX=2;thp=off"),
        ] {
            assert_eq!(text(allocator, written), canonical, "{allocator} {written}");
            // And it is read back as what it is, both ways.
            assert_eq!(text(allocator, canonical), canonical, "{allocator}");
            let parsed: SetupSettings = canonical.parse().unwrap();
            assert_eq!(parsed.to_string(), canonical);
        }
    }

    #[test]
    fn what_makes_no_sense_is_an_error_that_says_what_there_is() {
        for (allocator, written, error) in [
            (
                "tcmalloc",
                "default",
                "there is no allocator 'tcmalloc': there are system, mimalloc,",
            ),
            (
                "jemalloc",
                "purge-now",
                "jemalloc has no preset 'purge-now': it has default, purge-at-once,",
            ),
            (
                "jemalloc",
                "MALLOC_CONF=thp:always",
                "jemalloc is built with a prefix and reads _RJEM_MALLOC_CONF, not MALLOC_CONF",
            ),
            (
                "jemalloc-override",
                "_RJEM_MALLOC_CONF=thp:always",
                "jemalloc-override is built without a prefix and reads MALLOC_CONF, not _RJEM_MALLOC_CONF",
            ),
            (
                "jemalloc",
                "dirty_decay_ms:",
                "'dirty_decay_ms:' is no option of jemalloc: one is name:value",
            ),
            (
                "jemalloc",
                "purge_delay=0",
                "jemalloc has no setting 'purge_delay=0'",
            ),
            (
                "mimalloc",
                "dirty_decay_ms:0",
                "mimalloc has no setting 'dirty_decay_ms:0'",
            ),
            (
                "mimalloc",
                "purge_delay=soon",
                "MIMALLOC_PURGE_DELAY is a number, on or off, not 'soon'",
            ),
            (
                "mimalloc",
                "purge_delay=",
                "MIMALLOC_PURGE_DELAY is a number, on or off, not ''",
            ),
            (
                "snmalloc",
                "purge_delay=0",
                "snmalloc has no setting 'purge_delay=0': it has none but thp=off",
            ),
            (
                "system",
                "MALLOC_ARENA_MAX=two",
                "MALLOC_ARENA_MAX is a number, not 'two'",
            ),
            (
                "system",
                "MALLOC_MMAP_THRESHOLD=131072",
                "glibc has no variable MALLOC_MMAP_THRESHOLD: it has MALLOC_ARENA_MAX,",
            ),
            (
                "system",
                "glibc.malloc.hugetlb=yes",
                "glibc.malloc.hugetlb is a number, not 'yes'",
            ),
            (
                "system",
                "glibc.malloc.hugetlb=1:glibc.malloc.tcache_count",
                "'glibc.malloc.tcache_count' is no tunable: one is glibc.malloc.NAME=number",
            ),
            ("system", "thp=never", "thp is on or off, not 'never'"),
            ("system", "thp=off;thp=on", "thp is set twice"),
            (
                "system",
                "MALLOC_ARENA_MAX=2;two-arenas",
                "MALLOC_ARENA_MAX is set twice",
            ),
            (
                "mimalloc",
                "MALLOC_ARENA_MAX=2",
                "mimalloc has no setting 'MALLOC_ARENA_MAX=2'",
            ),
        ] {
            let said = text(allocator, written);
            assert!(
                said.starts_with(&format!("error: {error}")),
                "{allocator} {written}: {said}"
            );
        }
    }

    #[test]
    fn a_text_is_taken_by_those_it_is_written_for() {
        let names = family::names();
        let takers = |text: &str| -> Vec<&str> {
            let takers = names.iter().filter(|name| takes(name, text));
            takers.copied().collect()
        };
        assert_eq!(takers("default"), names);
        assert_eq!(takers("thp=off"), names);
        assert_eq!(
            takers("purge_delay=0"),
            ["mimalloc", "mimalloc-v2", "mimalloc-override"]
        );
        assert_eq!(
            takers("dirty_decay_ms:0;thp=off"),
            ["jemalloc", "jemalloc-override"]
        );
        assert_eq!(takers("MALLOC_ARENA_MAX=2"), ["system", "dhat"]);
        assert_eq!(takers("glibc.malloc.hugetlb=1"), ["system", "dhat"]);
        // A value that makes no sense is still meant for them, and the wrong variable too: both are errors, not silence.
        assert_eq!(takers("MALLOC_ARENA_MAX=two"), ["system", "dhat"]);
        assert_eq!(
            takers("MALLOC_CONF=thp:always"),
            ["jemalloc", "jemalloc-override"]
        );
        assert_eq!(takers("two-arenas"), ["system", "dhat"]);
        assert!(takers("no-such-preset").is_empty());
    }

    #[test]
    fn settings_travel_as_json() {
        let settings = SetupSettings::parse("mimalloc", "purge_delay=0;thp=off").unwrap();
        let json = serde_json::to_string(&settings).unwrap();
        assert_eq!(
            serde_json::from_str::<SetupSettings>(&json).unwrap(),
            settings
        );
    }
}
