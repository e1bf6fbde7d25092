//! `fxscope latency collect`: the counts that methods need, from a real machine, through perf.

use std::ffi::OsString;
use std::path::PathBuf;

use fxscope::jitter::Time;
use fxscope::lab::collect::{LatencyCounts, latency_counts};
use fxscope::record;

use crate::cli::collect::STOPPED;
use crate::cli::import::keep;
use crate::terminal::{Console, Outcome, unless_stopped};

/// Count the events that predictions of slower memory need on a real machine, through perf.
///
/// The processor decides which events are counted (`fxscope latency methods` lists the known processors), in one or two
/// runs of the program. Memory controllers and shared caches count for the whole computer (perf -a), which needs
/// permission, and requires that no other program uses memory meanwhile; --own leaves them out. Events that the system
/// does not offer are named, and methods that need them are unavailable.
#[derive(clap::Args)]
pub struct Args {
    /// Run the program this many times and take the means.
    #[arg(short, long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100))]
    repeat: u32,
    /// Count by intervals of this many milliseconds, too.
    #[arg(short = 'I', long, value_name = "MS", conflicts_with = "repeat", value_parser = clap::value_parser!(u32).range(1..=3_600_000))]
    interval: Option<u32>,
    /// Count the program alone; leave out events of the whole computer.
    #[arg(long)]
    own: bool,
    /// Add the measured run to this record file, which is created if needed.
    #[arg(short, long, value_name = "FILE.fxr")]
    output: PathBuf,
    /// Keep perf's own output in this folder.
    #[arg(long, value_name = "FOLDER")]
    keep: Option<PathBuf>,
    /// Processor whose events are counted; default: that of this computer.
    #[arg(long, value_name = "NAME")]
    processor: Option<String>,
    /// The perf program to use.
    #[arg(long, value_name = "PATH", default_value = "perf")]
    perf: PathBuf,
    /// Stop a run of the program that takes longer than this, such as 300s; default: no limit.
    #[arg(long, value_name = "TIME")]
    timeout: Option<Time>,
    /// The program and its arguments.
    #[arg(required = true, trailing_var_arg = true, value_name = "PROGRAM [ARGS]")]
    command: Vec<OsString>,
}

/// Measures, and shows the results.
pub(super) fn collect(args: &Args) -> Outcome {
    record::Target::check(&args.output)?;
    let wanted = LatencyCounts {
        repeat: args.repeat,
        interval: args.interval,
        own: args.own,
        keep: args.keep.clone(),
        processor: args.processor.clone(),
        perf: args.perf.clone(),
        timeout: args.timeout,
        command: args.command.clone(),
    };
    let measured = latency_counts(&wanted, &Console::catching_signals(false)?);
    keep(&unless_stopped(measured, STOPPED)?, &args.output)
}
