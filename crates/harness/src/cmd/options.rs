//! How tables are rendered for this terminal.

use alloquet_report::table::{Format, Options};

/// How tables are rendered here: as wide as the terminal.
pub(crate) fn options(format: Format) -> Options {
    let defaults = Options::default();
    let width = match format {
        Format::Terminal => terminal_width().unwrap_or(defaults.width),
        _ => defaults.width,
    };
    Options { width, ..defaults }
}

fn terminal_width() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(std::io::stdout()).ok()?;
    (size.ws_col >= 60).then_some(usize::from(size.ws_col))
}
