//! What the name of a read strategy stands for: core's reader by one of its own strategies, or the limit.

use std::fmt;
use std::str::FromStr;

use alloquet_core::strategy::BufferOwners;
use alloquet_core::{ReadStrategy, StrategyError};
use alloquet_report::cell::LIMIT;

/// Which reader, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReadLane {
    /// Core's reader; the control `upstream` is among its strategies.
    Core(ReadStrategy),
    /// Every value is read and folded, column after column and page after page, and nothing is kept: no batch is made. What a
    /// strategy that makes batches holds and takes beyond this is what batches cost.
    Limit,
}

impl ReadLane {
    /// The strategy that its pages are read with.
    pub(super) fn strategy(self) -> ReadStrategy {
        match self {
            Self::Core(strategy) => strategy,
            Self::Limit => ReadStrategy::Owned(BufferOwners::DIRECT),
        }
    }

    /// Whether core decodes the columns of one reader in several threads.
    pub(super) fn has_threads(self) -> bool {
        matches!(self, Self::Core(ReadStrategy::Owned(_)))
    }
}

impl FromStr for ReadLane {
    type Err = StrategyError;

    fn from_str(text: &str) -> Result<Self, StrategyError> {
        match text {
            LIMIT => Ok(Self::Limit),
            _ => text.parse().map(Self::Core),
        }
    }
}

impl fmt::Display for ReadLane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Core(strategy) => strategy.fmt(f),
            Self::Limit => f.write_str(LIMIT),
        }
    }
}

#[cfg(test)]
mod tests {
    use alloquet_core::strategy::READ_PRESETS;

    use super::*;

    #[test]
    fn names_are_read_as_they_are_shown() {
        for name in [&READ_PRESETS[..], &[LIMIT]].concat() {
            assert_eq!(name.parse::<ReadLane>().unwrap().to_string(), name);
        }
        assert!("limits".parse::<ReadLane>().is_err());
        assert!("limit,codec=shared".parse::<ReadLane>().is_err());
    }
}
