//! What this binary was built from and how, as its build script recorded it.

use serde::{Deserialize, Serialize};

/// Profile, revision and compiler of this binary.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Build {
    /// The Cargo profile's name.
    pub(crate) profile: String,
    /// The profile's `opt-level`.
    pub(crate) opt_level: String,
    /// Whether `debug_assert!` is compiled in.
    pub(crate) debug_assertions: bool,
    /// The git revision, with `-dirty` where the sources differed from it; empty outside a git
    /// checkout.
    pub(crate) revision: String,
    /// The version of the package.
    pub(crate) package_version: String,
    /// The compiler, as `rustc --version` writes it.
    pub(crate) rustc: String,
    /// The target triple.
    pub(crate) target: String,
}

impl Build {
    /// The facts of this binary.
    pub(crate) fn current() -> Self {
        Self {
            profile: env!("ALLOQUET_PROFILE").to_owned(),
            opt_level: env!("ALLOQUET_OPT_LEVEL").to_owned(),
            debug_assertions: cfg!(debug_assertions),
            revision: env!("ALLOQUET_REVISION").to_owned(),
            package_version: env!("CARGO_PKG_VERSION").to_owned(),
            rustc: env!("ALLOQUET_RUSTC").to_owned(),
            target: env!("ALLOQUET_TARGET").to_owned(),
        }
    }
}
