//! A folder through which other processes, also on other hosts, time intervals of a run.
//!
//! | File | What it is |
//! |---|---|
//! | `run` | a run uses the folder; its modification time changes every [`BEAT`] |
//! | `interval-000007` | interval 7 waits for somebody who times it |
//! | `claimed-000007` | somebody times it, and changes its modification time every [`BEAT`] |
//! | `counts-000007` | what it has counted |
//! | `failed-000007` | why it cannot be timed, as text |
//! | `draft-…` | a file that is being written |
//!
//! The process that renames `interval-000007` to `claimed-000007` times it: only one can. A claim whose time stays the same is given up, and the
//! interval waits again. So it may be timed twice, with the same counts. Times are compared with earlier ones of the same file, never with
//! the clock of a host. Counts say which interval they are of by a digest of its file, so that what was left over by another run is not taken.

mod files;
mod helper;
mod leader;

use std::time::Duration;

pub use files::time_file;
pub use helper::{Helper, help};
pub use leader::Spool;

/// How often a file shows that its process lives.
pub const BEAT: Duration = Duration::from_millis(500);

/// How often the folder is looked at.
const LOOK: Duration = Duration::from_millis(50);

/// After how long without a beat a process is taken to be dead, by default.
pub const LOST_AFTER: Duration = Duration::from_secs(30);

/// Why a folder, or a file in it, cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SpoolError {
    /// The host's.
    #[error("{path}: {source}")]
    Host {
        /// The folder or the file.
        path: String,
        /// The host's error.
        source: std::io::Error,
    },
    /// A file is not what it should be.
    #[error("{path}: {why}")]
    Parcel {
        /// The file.
        path: String,
        /// What is wrong.
        why: fxscope_checkpoint::parcel::ParcelError,
    },
    /// This process is to time all intervals.
    #[error("with --jobs 1, this process times all intervals itself; give how many processes there are")]
    Alone,
    /// A run uses the folder.
    #[error(
        "{0}: a run uses this folder, or one that was killed has; give another one, or remove it if that run has ended"
    )]
    InUse(String),
    /// No run uses the folder.
    #[error("{0}: no run has begun to use this folder (fxscope run --jobs N --spool {0})")]
    NoRun(String),
    /// The run has been killed.
    #[error("{0}: the run that uses this folder shows no sign of life any more")]
    Dead(String),
}
