//! `fxscope run`: a program on a modelled machine.

use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use fxscope::Mode;
use fxscope::lab::simulate;
use fxscope::record::{self, Finish, Run};
use fxscope::report::render::{json, terminal};

use super::console::Console;
use super::interrupt;
use super::konata::{TraceArgs, TraceTarget};
use super::output::{self, Target};
use super::scenario::{self, MODES, ScenarioArgs};
use super::{FAILED, Failure, Outcome, say, style};

/// Run a program on a modelled machine, and show what its PMU would have counted.
///
/// The program's input, output and exit status pass through untouched; what fxscope says itself goes to
/// standard error. Exit status: the program's own; 128 + n when signal n ended it; 130 after Ctrl-C (SIGINT), 143 after SIGTERM,
/// 129 after SIGHUP: each ends the run, and what was simulated is reported and recorded (a second one ends fxscope at once);
/// 0 at the instruction limit; 127 when the program does not exist, 126 when it is no program that can run, 125 when anything else
/// is wrong: the machine, the outputs, or all threads waiting for ever.
///
/// The program's environment is HOME, PATH, LANG, USER, TERM and PWD, every variable whose name starts with
/// OMP_, GOMP_, KMP_, XOS_ or MALLOC_, and those given with -e.
///
/// The program may read files anywhere, write and delete below the current directory and /tmp, and open no network
/// sockets. /dev/shm is its own, empty at first. What it was refused is told at the end, with the switch that would have
/// allowed it.
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    scenario: ScenarioArgs,
    /// Add the run to a record file, which is made when it does not exist.
    #[arg(short, value_name = "FILE.fxr")]
    output: Option<PathBuf>,
    /// Write the counts as JSON to a file, or to standard output (-); what the program writes to its standard output then goes
    /// to standard error.
    #[arg(long, value_name = "FILE|-")]
    json: Option<PathBuf>,
    #[command(flatten)]
    trace: TraceArgs,
    /// How much of the machine takes part: everything, or results and instruction counts only.
    #[arg(long, default_value = "timing", value_parser = scenario::choice(MODES))]
    mode: Mode,
    /// Count by intervals of simulated time, too, such as 100us or 1ms: for the record, and for --json. At most 100,000
    /// intervals; the last one then lasts to the end.
    #[arg(long, value_name = "TIME", value_parser = scenario::interval_ns)]
    interval: Option<u64>,
    /// Count by intervals what happens in this region, and nothing else.
    #[arg(long, value_name = "NAME", requires = "interval")]
    interval_region: Option<String>,
    /// Do not print the summary and the progress line.
    #[arg(long, short)]
    quiet: bool,
    /// Say, after the summary, what of the host's kernel kept the program from the host (docs/running.md).
    #[arg(long, short, conflicts_with = "quiet")]
    verbose: bool,
    /// The program (AArch64 Linux) and its arguments.
    #[arg(required = true, trailing_var_arg = true, value_name = "PROGRAM [ARGS]")]
    command: Vec<OsString>,
}

/// Runs the program; the exit status is its own.
pub(super) fn run(args: &Args) -> Outcome {
    let mut scenario = args.scenario.scenario(&args.command)?;
    scenario.options.mode = args.mode;
    let scenario = scenario.with_intervals(args.interval, args.interval_region.as_deref());
    let prepared = scenario.prepare()?;
    // What cannot be written fails now and not after an hour.
    let record_target = args.output.as_deref().map(record::Target::check).transpose()?;
    let json_target = args.json.as_deref().map(Target::check).transpose()?;
    if args.interval.is_some() && args.mode == Mode::Functional {
        return Err("--interval: only --mode timing knows when something was counted".to_owned().into());
    }
    let mut trace = TraceTarget::check(&args.trace, args.mode)?;
    let stdio = output::program_streams(json_target.as_ref())?;
    let console = Console::catching_signals(args.quiet)?;
    let (run, barrier) = prepared.contained(stdio, |session| {
        let barrier = session.barrier().clone();
        let run = simulate(&console, session, |session, watch| match &mut trace {
            Some(trace) => session.run_traced(watch, &mut trace.window()),
            None => session.run(watch),
        });
        (run, barrier)
    })?;
    if let Some(name) = args.interval_region.as_deref().filter(|name| run.region(name).is_none()) {
        say(&format!(
            "--interval-region: the program has marked no region '{name}', so that its intervals have counted nothing"
        ));
    }
    show(args, &run);
    if args.verbose {
        say(&format!("barrier of the host's kernel: {barrier}"));
    }
    let saved = save(record_target, json_target, trace, &run);
    Ok(if saved { status(&run.finish) } else { ExitCode::from(FAILED) })
}

/// The exit status after a run.
fn status(finish: &Finish) -> ExitCode {
    match finish {
        Finish::Exited(_) | Finish::Killed { .. } => {
            // Statuses have eight bits.
            ExitCode::from(finish.exit_code().map_or(FAILED, |code| code as u8))
        }
        Finish::Limit | Finish::Unknown => ExitCode::SUCCESS,
        Finish::Stopped => ExitCode::from(interrupt::status()),
        Finish::Failed(_) => ExitCode::from(FAILED),
    }
}

/// Reports how the run ended, and prints the summary unless it is not wanted.
fn show(args: &Args, run: &Run) {
    match &run.finish {
        Finish::Killed { message, .. } => say(&format!("the program was {message}")),
        Finish::Failed(message) => say(&format!("the program cannot go on: {message}")),
        Finish::Stopped => say(&format!("{} ended the run; this is what was simulated until then", interrupt::name())),
        Finish::Exited(_) | Finish::Limit | Finish::Unknown => {}
    }
    if !args.quiet {
        let text = terminal::render(&fxscope::report::summary(run), style(&std::io::stderr()));
        let _ = std::io::stderr().write_all(text.as_bytes());
    }
}

/// Writes the outputs that were asked for, each whether or not the others can be. Whether all could be.
fn save(
    record_target: Option<record::Target>,
    json_target: Option<Target>,
    trace: Option<TraceTarget>,
    run: &Run,
) -> bool {
    let json = json_target.map_or(Ok(()), |target| target.write(&json::run(run)));
    let record = record_target.map_or(Ok(()), |target| Ok(target.append(std::slice::from_ref(run))?));
    let trace = trace.map_or(Ok(()), TraceTarget::write);
    let results: [Result<(), Failure>; 3] = [json, record, trace];
    let mut saved = true;
    for failure in results.into_iter().filter_map(Result::err) {
        say(&failure.message);
        saved = false;
    }
    saved
}
