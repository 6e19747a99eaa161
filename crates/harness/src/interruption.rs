//! Ctrl-C as a flag, so that what was done is kept and what was half done is removed.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result};

/// Exit code of a program that Ctrl-C ended, as shells give it.
pub(crate) const INTERRUPTED: u8 = 130;

/// Whether the user pressed Ctrl-C.
#[derive(Clone, Debug)]
pub(crate) struct Interruption {
    flag: Arc<AtomicBool>,
}

impl Interruption {
    /// Catches Ctrl-C from here on; a second one ends the program at once. Asked again, it is the same flag.
    ///
    /// # Errors
    ///
    /// The system takes no signal handler.
    pub(crate) fn catch() -> Result<Self> {
        // The system takes one handler; several runs of one program share it.
        static FLAG: Mutex<Option<Arc<AtomicBool>>> = Mutex::new(None);
        let mut known = FLAG.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(flag) = &*known {
            return Ok(Self {
                flag: Arc::clone(flag),
            });
        }
        let flag = Arc::new(AtomicBool::new(false));
        let set = Arc::clone(&flag);
        ctrlc::set_handler(move || {
            if set.swap(true, Ordering::Relaxed) {
                std::process::exit(i32::from(INTERRUPTED));
            }
        })
        .context("cannot catch Ctrl-C")?;
        *known = Some(Arc::clone(&flag));
        Ok(Self { flag })
    }

    /// Whether it was pressed.
    pub(crate) fn happened(&self) -> bool {
        self.flag.load(Ordering::Relaxed)
    }
}
