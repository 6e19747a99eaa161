//! A setup: one binary with its allocator set in one way, a column of the tables.

use alloquet_report::format::listed;
use anyhow::{Context, Result, ensure};

use super::binary::Binary;
use crate::output::remark;
use crate::plan::Settings;
use crate::settings::{SetupSettings, takes};

/// One binary and the settings that its workers are started with.
#[derive(Clone, Debug)]
pub(crate) struct Setup {
    /// Which binary.
    pub(crate) binary: Binary,
    /// With what.
    pub(crate) settings: SetupSettings,
}

impl Setup {
    /// The setups that `asked` makes of `binaries`, in the order of the binaries.
    ///
    /// # Errors
    ///
    /// A setting is none of the allocator that it is for, no binary takes it, or two setups are the same.
    pub(crate) fn all(binaries: &[Binary], asked: &Settings) -> Result<Vec<Self>> {
        let mut setups: Vec<Self> = Vec::new();
        let names = binaries.iter().map(allocator);
        let names = listed(names.map(str::to_owned), usize::MAX);
        for binary in binaries {
            for text in texts(binary, asked) {
                let settings = SetupSettings::parse(allocator(binary), text)
                    .with_context(|| format!("settings of {}", allocator(binary)))?;
                let setup = Self {
                    binary: binary.clone(),
                    settings,
                };
                ensure!(
                    !setups.iter().any(|other| other.is(&setup)),
                    "{} is to be measured twice with the settings '{}'",
                    binary.label,
                    setup.settings
                );
                setups.push(setup);
            }
        }
        match asked {
            Settings::Defaults => {}
            Settings::Rows(rows) => {
                let lacking: Vec<String> = rows
                    .iter()
                    .map(|(name, _)| name)
                    .filter(|name| binaries.iter().all(|binary| allocator(binary) != *name))
                    .fold(Vec::new(), |mut names, name| {
                        if !names.contains(name) {
                            names.push(name.clone());
                        }
                        names
                    });
                if !lacking.is_empty() {
                    remark(format_args!(
                        "note: no binary of this run has {}; there are {names} (scripts/run-matrix.sh builds each)",
                        listed(lacking, usize::MAX)
                    ));
                }
            }
            Settings::Given(texts) => {
                for text in texts {
                    // The parser's own words say what is wrong with it.
                    if let [binary] = binaries {
                        SetupSettings::parse(allocator(binary), text)?;
                    }
                    ensure!(
                        binaries.iter().any(|binary| takes(allocator(binary), text)),
                        "no allocator of this run takes the settings '{text}'; there are {names}"
                    );
                }
            }
        }
        ensure!(
            !setups.is_empty(),
            "none of the allocators of this run is to be measured; there are {names}"
        );
        Ok(setups)
    }

    fn is(&self, other: &Self) -> bool {
        self.binary.label == other.binary.label && self.settings == other.settings
    }
}

fn allocator(binary: &Binary) -> &str {
    &binary.environment.allocator.name
}

fn texts<'a>(binary: &Binary, asked: &'a Settings) -> Vec<&'a str> {
    match asked {
        Settings::Defaults => vec!["default"],
        Settings::Rows(rows) => {
            let rows = rows.iter();
            rows.filter(|(name, _)| name == allocator(binary))
                .map(|(_, text)| text.as_str())
                .collect()
        }
        Settings::Given(texts) => {
            let texts = texts.iter().map(String::as_str);
            texts
                .filter(|text| takes(allocator(binary), text))
                .collect()
        }
    }
}
