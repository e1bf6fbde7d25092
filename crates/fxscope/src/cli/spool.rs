//! Intervals of a run that other processes time: the options of the run, and `fxscope work`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use fxscope::spool::{Helper, LOST_AFTER, Spool, help, time_file};

use super::{Failure, Outcome, interrupt, say};

/// Where intervals of a run are put for other processes.
#[derive(clap::Args)]
pub(super) struct SpoolArgs {
    /// Have other processes time intervals through this folder, which is made: fxscope work DIR, here and on other hosts that have the
    /// folder. --jobs says how many processes there are, this one included. Counts do not depend on it (docs/jobs.md).
    #[arg(long, value_name = "DIR", requires = "jobs")]
    spool: Option<PathBuf>,
    /// Take a process to be dead that has shown no sign of life for so long, and have its interval timed by others.
    #[arg(long, value_name = "SECONDS", requires = "spool", default_value_t = USUAL, value_parser = clap::value_parser!(u64).range(2..=86_400))]
    lost_after: u64,
}

/// After how many seconds a process is taken to be dead, by default.
const USUAL: u64 = LOST_AFTER.as_secs();

impl SpoolArgs {
    /// Returns the folder, if there is one.
    pub(super) fn folder(&self) -> Option<&Path> {
        self.spool.as_deref()
    }

    /// Begins to use the folder for a run of this many processes.
    pub(super) fn open(&self, processes: Option<u16>) -> Result<Option<Spool>, Failure> {
        let Some(folder) = &self.spool else { return Ok(None) };
        let processes = usize::from(processes.unwrap_or(1));
        if processes < 2 {
            let why = "with --jobs 1, this process times all intervals itself; give how many processes there are";
            return Err(format!("--spool: {why}").into());
        }
        let notify = |what: &str| say(&format!("--spool: {what}"));
        let spool = Spool::open(folder, processes, Duration::from_secs(self.lost_after), notify);
        spool.map(Some).map_err(|why| format!("--spool: {why}").into())
    }
}

/// Time intervals of a run that another process executes.
///
/// fxscope run --jobs N --spool DIR -- PROGRAM executes a program and puts intervals of it into a folder; this command times those that
/// wait there, until the run is over. Start it as often as there are cores to use, on this host and on others that have the folder, before
/// or after the run; the program, its files and the machine need not be there. What the run counts does not depend on it. If it is
/// killed, others time what it has begun with. Ctrl-C and SIGTERM end it after the interval that it times.
#[derive(clap::Args)]
pub struct Args {
    /// The folder of the run; with --counts, the file of an interval.
    #[arg(value_name = "DIR")]
    place: PathBuf,
    /// Time one interval, whose file is named in place of the folder, and write what it counts to this file.
    #[arg(long, value_name = "FILE")]
    counts: Option<PathBuf>,
    /// Take the run to be dead when it has shown no sign of life for so long, and wait so long for one to begin.
    #[arg(long, value_name = "SECONDS", default_value_t = USUAL, value_parser = clap::value_parser!(u64).range(2..=86_400))]
    lost_after: u64,
    /// Do not say at the end how many intervals were timed.
    #[arg(long, short)]
    quiet: bool,
}

/// Times intervals.
pub(super) fn work(args: &Args) -> Outcome {
    if let Some(counts) = &args.counts {
        time_file(&args.place, counts)?;
        return Ok(ExitCode::SUCCESS);
    }
    interrupt::catch()?;
    let helper =
        Helper { lost_after: Duration::from_secs(args.lost_after), stopped: &|| interrupt::received().is_some() };
    let timed = help(&args.place, &helper)?;
    if !args.quiet {
        say(&format!("intervals timed: {timed}"));
    }
    Ok(match interrupt::received() {
        Some(_) => ExitCode::from(interrupt::status()),
        None => ExitCode::SUCCESS,
    })
}
