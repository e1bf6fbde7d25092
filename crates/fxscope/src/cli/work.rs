//! `fxscope work`: times intervals of a run that another process executes.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use fxscope::spool::{Helper, help, time_file};

use crate::options::spool::USUAL;
use crate::terminal::{Outcome, interrupt, say};

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
