//! The result of a run, and the file that keeps it.
//!
//! A [`Run`] says what was run, on which machine, and what was counted where. Simulated and measured runs
//! are the same type; everything a user looks at is made from it. Counts are keyed by the names of the
//! machine's own PMU events, so that the type knows no machine.
//!
//! [`append`] and [`load`] keep runs in a file: an SQLite database with the suffix `.fxr` that any SQLite
//! client can read. A file is replaced as a whole, and a digest over a run's rows tells damage from data.

mod counts;
mod file;
mod pack;
mod read;
mod run;
mod schema;
mod write;

pub use counts::{Counts, Names, Region, Tallies, Thread};
pub use file::{RecordError, Target, append, append_all, load};
pub use run::{CodeFile, Description, Finish, Host, HotSpot, Interval, Intervals, Mode, Origin, Pages, Run};

/// The region that every run has: all of it.
pub const ALL: &str = "all";

/// The name of the pass of runs that count everything in one.
pub const ONE_PASS: &str = "run";

/// What tells a file's contents from others: SHA-256 as hexadecimal digits.
#[must_use]
pub fn digest(contents: &[u8]) -> String {
    use sha2::Digest as _;
    sha2::Sha256::digest(contents).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The same of contents that are read a piece at a time.
///
/// # Errors
/// Those of reading.
pub fn digest_of(mut contents: impl std::io::Read) -> std::io::Result<String> {
    use sha2::Digest as _;
    let (mut hash, mut piece) = (sha2::Sha256::new(), vec![0; 1 << 20]);
    loop {
        match contents.read(&mut piece) {
            Ok(0) => return Ok(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()),
            Ok(bytes) => hash.update(&piece[..bytes]),
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Suffix of record files, without the dot.
pub const SUFFIX: &str = "fxr";
