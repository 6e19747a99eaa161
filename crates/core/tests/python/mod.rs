//! Scripts beside the tests, run with the Python that `scripts/python-env.sh` makes.

use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;

/// Runs a script of this folder, and gives its standard output. `None` where Python or what it needs
/// cannot be had, which is said; in CI that is a failure.
///
/// # Panics
/// The script fails, or this is CI and there is no Python.
pub(crate) fn run_script(name: &str, arguments: &[&OsStr]) -> Option<String> {
    let crate_folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let output = Command::new("bash")
        .arg(crate_folder.join("../../scripts/python-env.sh"))
        .output();
    let python = match output {
        Ok(output) if output.status.success() => String::from_utf8(output.stdout).unwrap(),
        other => {
            assert!(
                std::env::var_os("CI").is_none(),
                "CI must have what scripts/requirements.txt lists: {other:?}"
            );
            eprintln!("skipped: what scripts/requirements.txt lists cannot be had: {other:?}");
            return None;
        }
    };
    let output = Command::new(python.trim())
        .arg(crate_folder.join("tests").join(name))
        .args(arguments)
        .output()
        .unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}{errors}");
    Some(said)
}
