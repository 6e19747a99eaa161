//! What the name of a write strategy stands for: core's writer by one of its own strategies, or an older parquet crate.

use std::fmt;
use std::str::FromStr;

use alloquet_core::strategy::WRITE_PRESETS;
use alloquet_core::{StrategyError, WriteStrategy};
use anyhow::{Result, bail};

/// The name of the lane that is not core's.
const UPSTREAM_EAGER: &str = "upstream-eager";

/// Which writer, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WriteLane {
    /// Core's writer; the controls that need no other release are among its strategies.
    Core(WriteStrategy),
    /// The parquet crate as it was before arrow-rs #11149, of the feature `upstream-eager`.
    UpstreamEager,
}

impl WriteLane {
    /// Whether this build has it.
    ///
    /// # Errors
    ///
    /// It has not; the message says which feature does.
    pub(crate) fn check_build(self) -> Result<()> {
        if self == Self::UpstreamEager && !cfg!(feature = "upstream-eager") {
            bail!(
                "the strategy '{self}' is an older parquet crate, which this build leaves out: build with \
                 `--features upstream-eager`, or name the strategies to measure with --strategy"
            );
        }
        Ok(())
    }
}

impl FromStr for WriteLane {
    type Err = StrategyError;

    fn from_str(text: &str) -> Result<Self, StrategyError> {
        match text {
            UPSTREAM_EAGER => Ok(Self::UpstreamEager),
            _ => text.parse().map(Self::Core),
        }
    }
}

impl fmt::Display for WriteLane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Core(strategy) => strategy.fmt(f),
            Self::UpstreamEager => f.write_str(UPSTREAM_EAGER),
        }
    }
}

/// The names of the write strategies that this build has, in the order of tables.
pub(crate) fn write_strategies() -> Vec<&'static str> {
    let mut names = WRITE_PRESETS.to_vec();
    if WriteLane::UpstreamEager.check_build().is_ok() {
        names.push(UPSTREAM_EAGER);
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_shown() {
        for name in [&WRITE_PRESETS[..], &[UPSTREAM_EAGER]].concat() {
            assert_eq!(name.parse::<WriteLane>().unwrap().to_string(), name);
        }
        let error = "upstream-eagre".parse::<WriteLane>().unwrap_err();
        assert!(error.to_string().contains("upstream-eagre"), "{error}");
    }

    #[test]
    fn what_a_build_lacks_is_said_with_its_feature() {
        let checked = WriteLane::UpstreamEager.check_build();
        assert_eq!(checked.is_ok(), cfg!(feature = "upstream-eager"));
        if let Err(error) = checked {
            assert!(error.to_string().contains("--features upstream-eager"));
        }
        assert_eq!(
            write_strategies().contains(&UPSTREAM_EAGER),
            cfg!(feature = "upstream-eager")
        );
    }
}
