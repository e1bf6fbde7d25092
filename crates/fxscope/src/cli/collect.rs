//! `fxscope collect`: counts for the report from a real machine, through perf.

use std::ffi::OsString;
use std::path::PathBuf;

use fxscope::jitter::Time;
use fxscope::lab::collect::{ReportCounts, report_counts};
use fxscope::record;

use super::import::keep;
use crate::options::choice::described_choice;
use crate::terminal::{Console, Outcome, unless_stopped};

/// Count the events of the report on a real machine, through perf, in as many runs of the program as needed.
///
/// The program runs once for each group of events: once for a single report, 5 times for a brief, 11 for a standard and
/// 17 for a detailed one. Its input, output and errors pass through each time, so it must be possible to run it
/// repeatedly. perf's output is read as by `fxscope import perf`. Runs whose time differs from the first by more than 5
/// % are reported: their counts cannot be combined.
#[derive(clap::Args)]
pub struct Args {
    /// Level of detail of the report.
    #[arg(long, default_value = "standard", value_parser = described_choice(ReportCounts::LEVELS))]
    level: u8,
    /// Repeat the whole measurement this many times, so that reports and compare know the variation between runs.
    #[arg(short, long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100))]
    repeat: u32,
    /// Count everything that runs on these CPUs, each CPU separately (perf -a -A -C); needs permission. Default: count
    /// all threads of the program together.
    #[arg(long, value_name = "LIST")]
    cpus: Option<String>,
    /// Count user code only.
    #[arg(long)]
    user: bool,
    /// Add the measured runs to this record file, which is created if needed.
    #[arg(short, long, value_name = "FILE.fxr")]
    output: PathBuf,
    /// Keep perf's output in this folder, one file per run of the program.
    #[arg(long, value_name = "FOLDER")]
    keep: Option<PathBuf>,
    /// Machine whose events are counted: a name shown by `fxscope machine list`, or the path of a machine's folder.
    #[arg(short, long, default_value = "a64fx")]
    machine: String,
    /// The perf program to use.
    #[arg(long, value_name = "PATH", default_value = "perf")]
    perf: PathBuf,
    /// Stop a run of the program that takes longer than this, such as 300s; default: no limit.
    #[arg(long, value_name = "TIME")]
    timeout: Option<Time>,
    /// Count even if this computer has a different processor, where the same event numbers mean something else.
    #[arg(long)]
    any_processor: bool,
    /// The program and its arguments.
    #[arg(required = true, trailing_var_arg = true, value_name = "PROGRAM [ARGS]")]
    command: Vec<OsString>,
}

/// What an interrupted measurement means.
pub(super) const STOPPED: &str = "the measurement; nothing is recorded";

/// Measures, and shows the results.
pub(super) fn collect(args: &Args) -> Outcome {
    record::Target::check(&args.output)?;
    let wanted = ReportCounts {
        level: args.level,
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
    let measured = report_counts(&wanted, &Console::catching_signals(false)?);
    keep(&unless_stopped(measured, STOPPED)?, &args.output)
}
