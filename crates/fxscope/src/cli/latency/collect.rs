//! `fxscope latency collect`: the counts that methods need, from the machine itself, through perf.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use fxscope::jitter::Time;
use fxscope::lab::collect;
use fxscope::record;

use super::super::Outcome;
use super::super::collect::measured;
use super::super::console::Console;
use super::super::import::keep;

/// Count what predictions of slower memory need on a real machine, through perf.
///
/// The processor decides what is counted (fxscope latency methods lists those that are known), in one run of the program or two.
/// Memory controllers and caches beside them count the whole computer (perf's -a), which needs the right to, and no other program
/// that uses memory meanwhile; --own leaves them out. Events that the system does not offer are named, and the methods that need
/// them are not available then.
#[derive(clap::Args)]
pub struct Args {
    /// Run the program so many times and take the means.
    #[arg(short, long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100))]
    repeat: u32,
    /// Count by intervals of so many milliseconds, too.
    #[arg(short = 'I', long, value_name = "MS", conflicts_with = "repeat", value_parser = clap::value_parser!(u32).range(1..=3_600_000))]
    interval: Option<u32>,
    /// Count the program alone; events of the whole computer are left out.
    #[arg(long)]
    own: bool,
    /// Add the measured run to a record file, which is made when it does not exist.
    #[arg(short, value_name = "FILE.fxr")]
    output: PathBuf,
    /// Keep perf's own output in this folder.
    #[arg(long, value_name = "FOLDER")]
    keep: Option<PathBuf>,
    /// The processor whose events are counted. Without it, the one of this computer.
    #[arg(long, value_name = "NAME")]
    processor: Option<String>,
    /// The perf to use.
    #[arg(long, value_name = "PATH", default_value = "perf")]
    perf: PathBuf,
    /// Give up a run of the program that takes longer than this, such as 300s; without it, none is given up.
    #[arg(long, value_name = "TIME")]
    timeout: Option<Time>,
    /// The program and its arguments.
    #[arg(required = true, trailing_var_arg = true, value_name = "PROGRAM [ARGS]")]
    command: Vec<OsString>,
}

/// Measures, and shows what was found.
pub(super) fn collect(args: &Args) -> Outcome {
    record::Target::check(&args.output)?;
    let wanted = collect::LatencyCounts {
        repeat: args.repeat,
        interval: args.interval,
        own: args.own,
        keep: args.keep.clone(),
        processor: args.processor.clone(),
        perf: args.perf.clone(),
        timeout: args.timeout,
        command: args.command.clone(),
    };
    keep(&measured(collect::latency_counts(&wanted, &Console::catching_signals(false)?))?, &args.output)?;
    Ok(ExitCode::SUCCESS)
}
