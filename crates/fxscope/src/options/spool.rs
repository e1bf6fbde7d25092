//! Options of a run whose intervals other processes time.

use std::path::{Path, PathBuf};
use std::time::Duration;

use fxscope::spool::{LOST_AFTER, Spool};

use crate::terminal::{Failure, say};

/// Where intervals of a run are put for other processes.
#[derive(clap::Args)]
pub(crate) struct SpoolArgs {
    /// Have other processes time intervals through this folder, which is made: fxscope work DIR, here and on other hosts that have the
    /// folder. --jobs says how many processes there are, this one included. Counts do not depend on it (docs/jobs.md).
    #[arg(long, value_name = "DIR", requires = "jobs")]
    spool: Option<PathBuf>,
    /// Take a process to be dead that has shown no sign of life for so long, and have its interval timed by others.
    #[arg(long, value_name = "SECONDS", requires = "spool", default_value_t = USUAL, value_parser = clap::value_parser!(u64).range(2..=86_400))]
    lost_after: u64,
}

/// After how many seconds a process is taken to be dead, by default.
pub(crate) const USUAL: u64 = LOST_AFTER.as_secs();

impl SpoolArgs {
    /// Returns the folder, if there is one.
    pub(crate) fn folder(&self) -> Option<&Path> {
        self.spool.as_deref()
    }

    /// Begins to use the folder for a run of this many processes.
    pub(crate) fn open(&self, processes: Option<u16>) -> Result<Option<Spool>, Failure> {
        let Some(folder) = &self.spool else { return Ok(None) };
        let processes = usize::from(processes.unwrap_or(1));
        let notify = |what: &str| say(&format!("--spool: {what}"));
        let spool = Spool::open(folder, processes, Duration::from_secs(self.lost_after), notify);
        spool.map(Some).map_err(|why| format!("--spool: {why}").into())
    }
}
