//! `fxscope collect`: the report's counts from the machine itself, through perf.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use fxscope::jitter::Time;
use fxscope::lab::{self, collect};
use fxscope::record::{self, Run};

use super::console::Console;
use super::import::keep;
use super::{Failure, Outcome, interrupt};

/// Count what the report needs on a real machine, through perf, in as many runs of the program as that takes.
///
/// The program is run once for each group of events: 1 time for a single report, 5 for a brief, 11 for a standard, 17 for a
/// detailed one. Its input, output and errors pass through each time, so it must be able to run again. perf's output is
/// read as fxscope import perf reads it. Runs that took another time than the first, by more than a twentieth, are named:
/// their counts do not fit together.
#[derive(clap::Args)]
pub struct Args {
    /// How much the report is to have.
    #[arg(long, value_enum, default_value_t = Level::Standard)]
    level: Level,
    /// Measure everything so many times: reports and compare then know how much runs differ.
    #[arg(short, long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100))]
    repeat: u32,
    /// Count these CPUs, each for itself, whatever runs there (perf's -a -A -C); needs the right to. Without it, all threads
    /// of the program are counted together.
    #[arg(long, value_name = "LIST")]
    cpus: Option<String>,
    /// Count user code only.
    #[arg(long)]
    user: bool,
    /// Add the measured runs to a record file, which is made when it does not exist.
    #[arg(short, value_name = "FILE.fxr")]
    output: PathBuf,
    /// Keep perf's own output in this folder, a file for each run of the program.
    #[arg(long, value_name = "FOLDER")]
    keep: Option<PathBuf>,
    /// The machine whose events are counted: a name that `fxscope machine list` shows, or the path of a machine's folder.
    #[arg(short, long, default_value = "a64fx")]
    machine: String,
    /// The perf to use.
    #[arg(long, value_name = "PATH", default_value = "perf")]
    perf: PathBuf,
    /// Give up a run of the program that takes longer than this, such as 300s; without it, none is given up.
    #[arg(long, value_name = "TIME")]
    timeout: Option<Time>,
    /// Count although this computer's processor is another one, whose events of the same numbers mean something else.
    #[arg(long)]
    any_processor: bool,
    /// The program and its arguments.
    #[arg(required = true, trailing_var_arg = true, value_name = "PROGRAM [ARGS]")]
    command: Vec<OsString>,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
enum Level {
    /// Time, rates and memory throughput: one run.
    Single = 1,
    /// Cycle accounting in large parts, busy rates, cache misses: five runs.
    Brief,
    /// All parts of cycle accounting, instruction mix: eleven runs.
    Standard,
    /// Micro-operations, gathers, prefetch, transfers: seventeen runs.
    Detailed,
}

/// Measures, and shows what was found.
pub(super) fn collect(args: &Args) -> Outcome {
    record::Target::check(&args.output)?;
    let wanted = collect::ReportCounts {
        level: args.level as u8,
        repeat: args.repeat,
        cpus: args.cpus.clone(),
        user: args.user,
        keep: args.keep.clone(),
        machine: args.machine.clone(),
        perf: args.perf.clone(),
        timeout: args.timeout,
        any_processor: args.any_processor,
        command: args.command.clone(),
    };
    keep(&measured(collect::report_counts(&wanted, &Console::catching_signals(false)?))?, &args.output)?;
    Ok(ExitCode::SUCCESS)
}

/// The runs of a measurement, unless a signal has ended it.
pub(super) fn measured(runs: Result<Vec<Run>, lab::Error>) -> Result<Vec<Run>, Failure> {
    match runs {
        Err(lab::Error::Stopped) => {
            let message = format!("{} ended the measurement; nothing is recorded", interrupt::name());
            Err(Failure { status: interrupt::status(), message })
        }
        runs => Ok(runs?),
    }
}
