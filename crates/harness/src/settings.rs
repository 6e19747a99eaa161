//! Stub until the allocators' part is merged.

use std::collections::BTreeMap;
use std::fmt;

use anyhow::Result;
use serde::{Deserialize, Serialize};

/// Settings of an allocator.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SetupSettings {
    /// Variables.
    pub(crate) variables: BTreeMap<String, String>,
    /// Huge pages.
    pub(crate) thp: Option<bool>,
}

impl SetupSettings {
    /// Parses.
    pub(crate) fn parse(_allocator: &str, text: &str) -> Result<Self> {
        let mut settings = Self::default();
        for item in text.split(';').filter(|item| *item != "default") {
            match item.split_once('=') {
                Some(("thp", value)) => settings.thp = Some(value == "on"),
                Some((name, value)) => {
                    settings.variables.insert(name.to_owned(), value.to_owned());
                }
                None => anyhow::bail!("no setting: {item}"),
            }
        }
        Ok(settings)
    }
}

/// Whether.
pub(crate) fn takes(allocator: &str, text: &str) -> bool {
    SetupSettings::parse(allocator, text).is_ok()
}

impl fmt::Display for SetupSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut items: Vec<String> = self
            .variables
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        if let Some(thp) = self.thp {
            items.push(format!("thp={}", if thp { "on" } else { "off" }));
        }
        f.write_str(&items.join(";"))
    }
}

/// A preset.
pub(crate) struct Preset {
    /// Name.
    pub(crate) name: &'static str,
}

/// Presets.
pub(crate) fn presets(_allocator: &str) -> &'static [Preset] {
    &[Preset { name: "default" }]
}
