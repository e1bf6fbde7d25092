//! Functions shared by the integration tests of several crates.

pub mod browser;
pub mod markdown;

use std::fmt::Display;
use std::fs::OpenOptions;
use std::io::Write as _;

/// The variable that names the file in which skipped tests are listed; `make test` sets it and prints the list at its end.
pub const SKIPPED: &str = "FXSCOPE_SKIPPED";

/// Reports that the current test is skipped, wholly or in part, and `why`.
///
/// The report goes to standard error, bypassing the capture of test output, and as one line to the file that [`SKIPPED`] names.
///
/// # Panics
/// When that file cannot be written.
pub fn skip(why: impl Display) {
    let thread = std::thread::current();
    let line = format!("{}: {why}\n", thread.name().unwrap_or("a test"));
    // Standard error may be closed; the test is still skipped.
    let _ = write!(std::io::stderr(), "skipped: {line}");
    if let Some(path) = std::env::var_os(SKIPPED) {
        let file = OpenOptions::new().append(true).create(true).open(&path);
        let written = file.and_then(|mut file| file.write_all(line.as_bytes()));
        written.unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    }
}
