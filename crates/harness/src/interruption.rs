//! Ctrl-C as a flag, so that what was done is kept and what was half done is removed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result};

/// Exit code of a program that Ctrl-C ended, as shells give it.
pub(crate) const INTERRUPTED: u8 = 130;

/// Whether the user pressed Ctrl-C.
#[derive(Clone, Debug)]
pub(crate) struct Interruption {
    flag: Arc<AtomicBool>,
}

impl Interruption {
    /// Catches Ctrl-C from here on; a second one ends the program at once.
    ///
    /// # Errors
    ///
    /// The system takes no signal handler.
    pub(crate) fn catch() -> Result<Self> {
        let flag = Arc::new(AtomicBool::new(false));
        let set = Arc::clone(&flag);
        ctrlc::set_handler(move || {
            if set.swap(true, Ordering::Relaxed) {
                std::process::exit(i32::from(INTERRUPTED));
            }
        })
        .context("cannot catch Ctrl-C")?;
        Ok(Self { flag })
    }

    /// Whether it was pressed.
    pub(crate) fn happened(&self) -> bool {
        self.flag.load(Ordering::Relaxed)
    }
}
