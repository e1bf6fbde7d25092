//! The result of a run, and the file that stores it.
//!
//! A [`Run`] says what was run, on which machine, and what was counted where. Simulated and measured runs have the same
//! type, and all reports are made from it. Counts are keyed by the names of the machine's own PMU events, so the type
//! is independent of the machine.
//!
//! [`append`] and [`load`] store runs in a file: an SQLite database with the suffix `.fxr`, readable by any SQLite
//! client. A file is always replaced as a whole; a digest over a run's rows detects damage.

mod calls;
mod counts;
mod data;
mod file;
pub mod functions;
mod pack;
mod part;
mod profile;
mod read;
mod read_calls;
mod read_data;
mod read_loops;
mod run;
mod sample;
mod schema;
mod write;
mod write_calls;

pub use calls::{CallContext, CallCount, Calls};
pub use counts::{Counts, Names, Region, Tallies, Thread};
pub use data::{Data, DataCounts, DataLine, DataObject, DataUser, ObjectKind, SourceLine};
pub use file::{RecordError, Target, append, append_all, load};
pub use part::Part;
pub use profile::{Accesses, Arithmetic, Loop, Profile, SourceLines, StackFrame, StackSample, Stacks};
pub use run::{
    CodeFile, Description, Finish, Host, HotSpot, Interval, Intervals, Mode, MpiCall, MpiFunction, Origin, Pages,
    Parallel, Process, Run,
};
pub use sample::{Replicates, Sample, Totals};

/// The region that every run has: the whole run.
pub const ALL: &str = "all";

/// Name of the pass in runs that count everything in a single pass.
pub const ONE_PASS: &str = "run";

/// Version of the record files that are written. All earlier ones can be read.
pub const VERSION: i32 = schema::VERSION;

/// Returns the tables of a record file as SQL.
#[must_use]
pub fn tables() -> &'static str {
    schema::SCHEMA.trim_start()
}

/// Returns the SHA-256 digest of a file's contents in hexadecimal.
#[must_use]
pub fn digest(contents: &[u8]) -> String {
    use sha2::Digest as _;
    sha2::Sha256::digest(contents).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns the digest of contents that are read piece by piece.
///
/// # Errors
/// Read errors.
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
