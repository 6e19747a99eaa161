//! Turns a panic of a decoder on damaged input into an error.
//!
//! The parquet crate's decoders index and slice by numbers that a file supplies, and some damaged files make them
//! panic. A service must not go down for that, nor must a file be able to fill its log. So the first call of [`catch`]
//! installs a panic hook, once in a process. The hook says nothing of a panic that `catch` turns into an error, whose text
//! then tells the place and the message; every other panic goes on to the hook that was there before. A hook that the
//! program sets later replaces this one and sees, and prints, these panics too; they still become errors.
//!
//! What such panics are, in parquet 60.1.0 on damaged pages (the tests in `tests/fuzz` find and print them, each with
//! an input): dictionary keys that are too large (`fixed_len_byte_array.rs`), a dictionary-encoded page without a dictionary
//! (`column/reader/decoder.rs`, `fixed_len_byte_array.rs`), more values asked for than the page has (`byte_array.rs`,
//! `byte_stream_split_decoder.rs`), lengths and bit widths of delta encodings (`delta_byte_array.rs`, `decoding.rs`), children of a
//! map of different lengths (`map_array.rs`), and boolean pages that end too early (arrow-buffer's `bit_util.rs` and
//! `bit_chunk_iterator.rs`). What would end the process instead, or never end, cannot be caught and is refused before a decoder sees it:
//! see `page/trusted.rs` and `format/schema.rs`.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::panic::{self, AssertUnwindSafe, PanicHookInfo, catch_unwind};
use std::sync::Once;
use std::thread;

thread_local! {
    /// Whether this thread runs something whose panic becomes an error.
    static CATCHING: Cell<bool> = const { Cell::new(false) };
    /// Where the last panic of that kind was.
    static PLACE: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Runs `f`; a panic becomes `Err` with its place and message, and nothing is printed.
pub(crate) fn catch<T>(f: impl FnOnce() -> T) -> Result<T, String> {
    install_hook();
    let outer = CATCHING.replace(true);
    // State that the panic may have torn is dropped or fused by each caller, never used again.
    let result = catch_unwind(AssertUnwindSafe(f));
    CATCHING.set(outer);
    result.map_err(|payload| {
        let place = PLACE
            .take()
            .map_or_else(String::new, |place| format!(" at {place}"));
        format!(
            "the decoder panicked{place} ({}): most likely the file is damaged",
            message(payload.as_ref())
        )
    })
}

fn install_hook() {
    static INSTALLED: Once = Once::new();
    // A thread that unwinds may not change the hook: then one that does not will.
    if INSTALLED.is_completed() || thread::panicking() {
        return;
    }
    INSTALLED.call_once(|| {
        let previous = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if CATCHING.get() {
                PLACE.set(place(info));
            } else {
                previous(info);
            }
        }));
    });
}

/// File and line, from the crate's folder on: where sources lie on the machine that built this is nobody's business.
fn place(info: &PanicHookInfo<'_>) -> Option<String> {
    let location = info.location()?;
    let file = location.file();
    let file = match file.rsplit_once("/src/") {
        Some((folder, rest)) => {
            let name = folder.rsplit('/').next().unwrap_or(folder);
            format!("{name}/src/{rest}")
        }
        None => file.to_owned(),
    };
    Some(format!("{file}:{}", location.line()))
}

fn message(payload: &(dyn Any + Send)) -> &str {
    payload
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| payload.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    /// The environment variable that names what a child process is to do.
    const CHILD: &str = "ALLOQUET_GUARD_CHILD";

    /// Runs the test `name` of this module in a process of its own, as `case`, and returns what it printed to
    /// standard error.
    fn stderr_of(name: &str, case: &str) -> String {
        let output = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "--nocapture"])
            .arg(format!("guard::tests::{name}"))
            .env(CHILD, case)
            .env("RUST_BACKTRACE", "1")
            .output()
            .unwrap();
        let stdout = String::from_utf8_lossy(&output.stdout);
        assert!(
            output.status.success() && stdout.contains("1 passed"),
            "{stdout}"
        );
        String::from_utf8(output.stderr).unwrap()
    }

    fn caught(text: &'static str) -> String {
        catch(|| panic::panic_any(text)).unwrap_err()
    }

    #[test]
    fn a_panic_is_an_error_with_place_and_message() {
        let error = caught("out of range");
        assert!(error.contains(" at core/src/guard.rs:"), "{error}");
        assert!(error.contains("(out of range)"), "{error}");
        let text = catch(|| panic!("{} of {}", 7, 5)).unwrap_err();
        assert!(text.contains("(7 of 5)"), "{text}");
        assert!(
            catch(|| panic::panic_any(1u8))
                .unwrap_err()
                .contains("no message")
        );
        assert_eq!(catch(|| 5), Ok(5));
    }

    #[test]
    fn nothing_is_printed_of_what_is_caught() {
        match std::env::var(CHILD).as_deref() {
            Err(_) => {
                for case in ["plain", "nested", "threads"] {
                    assert_eq!(
                        stderr_of("nothing_is_printed_of_what_is_caught", case),
                        "",
                        "{case}"
                    );
                }
            }
            Ok("plain") => {
                for _ in 0..3 {
                    caught("secret");
                }
            }
            Ok("nested") => {
                let outer = catch(|| {
                    caught("inner");
                    panic!("outer");
                });
                assert!(outer.is_err_and(|error| error.contains("outer")));
            }
            Ok(_) => thread::scope(|scope| {
                for _ in 0..4 {
                    scope.spawn(|| caught("in a thread"));
                }
            }),
        }
    }

    #[test]
    fn other_panics_are_printed_as_before() {
        let name = "other_panics_are_printed_as_before";
        match std::env::var(CHILD).as_deref() {
            Err(_) => {
                let printed = stderr_of(name, "default hook");
                assert!(printed.contains("not caught here"), "{printed}");
                assert!(!printed.contains("caught and silent"), "{printed}");
                let printed = stderr_of(name, "own hook");
                assert_eq!(printed, "own hook: not caught here\n");
                let printed = stderr_of(name, "later hook");
                assert_eq!(
                    printed,
                    "own hook: caught and silent\nown hook: not caught here\n"
                );
            }
            Ok(case) => {
                let own = |info: &PanicHookInfo<'_>| {
                    eprintln!("own hook: {}", message(info.payload()));
                };
                match case {
                    "own hook" => panic::set_hook(Box::new(own)),
                    "later hook" => {
                        assert_eq!(catch(|| 1), Ok(1));
                        panic::set_hook(Box::new(own));
                    }
                    _ => {}
                }
                caught("caught and silent");
                let elsewhere = thread::spawn(|| panic::panic_any("not caught here")).join();
                assert!(elsewhere.is_err());
            }
        }
    }

    #[test]
    fn a_thread_that_unwinds_can_still_catch() {
        struct OnDrop<'a>(&'a Cell<bool>);
        impl Drop for OnDrop<'_> {
            fn drop(&mut self) {
                self.0.set(catch(|| 1) == Ok(1));
            }
        }
        let dropped = Cell::new(false);
        let outer = catch(|| {
            let _guard = OnDrop(&dropped);
            panic!("while this unwinds");
        });
        assert!(outer.is_err() && dropped.get());
    }
}
