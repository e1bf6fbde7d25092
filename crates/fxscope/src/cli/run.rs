//! `fxscope run`: runs a program on a modelled machine.

use std::ffi::OsString;
use std::path::PathBuf;

use fxscope::lab::simulate;
use fxscope::pmu::Metrics;
use fxscope::record::Run;
use fxscope::spool::Spool;
use fxscope::{Control, Ending, EngineChoice, Kept, Mode, Prepared, Progress, Scenario, Session, interval_ns};

use crate::foreground::{Results, over};
use crate::options::choice::{ENGINES, MODES, choice};
use crate::options::{CheckpointArgs, ScenarioArgs, SpoolArgs, TraceArgs};
use crate::terminal::{Console, Failure, Outcome, output};

/// Run a program on a modelled machine, and show what its PMU would have counted.
///
/// The program's input, output and exit status pass through unchanged; messages of fxscope go to standard error. Exit
/// status: the program's own; 128 + n if signal n ended it; 130 after Ctrl-C (SIGINT), 143 after SIGTERM, 129 after
/// SIGHUP: the first signal ends the run, and what was simulated is reported and recorded (a second one ends fxscope at
/// once); 0 at the instruction limit, and at --until with --stop; 124 if the program made no progress (--no-progress); 127 if the program does not exist, 126 if it cannot be executed, 125 if anything
/// else is wrong: the machine, the outputs, or a deadlock of all threads.
///
/// The program's environment is HOME, PATH, LANG, USER, TERM and PWD, every variable whose name starts with OMP_,
/// GOMP_, KMP_, XOS_ or MALLOC_, and those given with -e.
///
/// The program may read files anywhere, write and delete below the current directory and /tmp, and open no network
/// sockets. It has its own, initially empty /dev/shm. Accesses that were refused are listed at the end, with the option
/// that would have allowed them.
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    scenario: ScenarioArgs,
    /// Add the run to this record file, which is created if needed.
    #[arg(short, long, value_name = "FILE.fxr")]
    output: Option<PathBuf>,
    /// Write the counts as JSON to this file, or to standard output (-); the program's standard output then goes to
    /// standard error.
    #[arg(long, value_name = "FILE|-")]
    json: Option<PathBuf>,
    #[command(flatten)]
    checkpoints: CheckpointArgs,
    #[command(flatten)]
    trace: TraceArgs,
    /// What is simulated: the whole machine, or results and instruction counts only.
    #[arg(long, default_value = "timing", value_parser = choice(MODES))]
    mode: Mode,
    /// What executes the program's code: the interpreter, or the translator, which turns code that is executed often into the host's. auto:
    /// the translator with --sample and --jobs and, after the first 50 million instructions of a process, in functional mode and for what is
    /// not timed with --from or --until; otherwise the interpreter. Results and counts are the same.
    #[arg(long, default_value = "auto", value_parser = choice(ENGINES))]
    engine: EngineChoice,
    /// Time intervals of the run at the same time, on this many threads of the host, for programs of one thread. Counts do not depend on the
    /// number; they differ by some hundredths of a percent from those without --jobs (docs/jobs.md).
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    jobs: Option<u16>,
    #[command(flatten)]
    spool: SpoolArgs,
    /// Also count by intervals of simulated time, such as 100us or 1ms, for the record and for --json. At most 100,000
    /// intervals; the last one then extends to the end.
    #[arg(long, value_name = "TIME", value_parser = interval_ns)]
    interval: Option<u64>,
    /// Sample the call stacks of all threads at intervals of simulated time, such as 10us, for the record: `fxscope export` shows them in
    /// other tools' viewers. Functions need frame pointers (docs/exports.md).
    #[arg(long, value_name = "TIME", value_parser = interval_ns)]
    stacks: Option<u64>,
    /// Attribute misses to data: variables, heap blocks and mappings by the call that made them, stacks; and find lines that threads
    /// share (docs/data.md). The run takes longer; what it counts stays the same.
    #[arg(long)]
    data: bool,
    /// Time only the executions of this region. What is between them keeps caches and branch predictors up to date (docs/parts.md).
    #[arg(long, value_name = "NAME")]
    region: Option<String>,
    /// Count by intervals in this region only.
    #[arg(long, value_name = "NAME", requires = "interval")]
    interval_region: Option<String>,
    /// Do not print the summary and the progress line.
    #[arg(long, short)]
    quiet: bool,
    /// Report, after the summary, which protections of the host's kernel contained the program (docs/running.md).
    #[arg(long, short, conflicts_with = "quiet")]
    verbose: bool,
    /// The program (AArch64 Linux) and its arguments.
    #[arg(required = true, trailing_var_arg = true, value_name = "PROGRAM [ARGS]")]
    command: Vec<OsString>,
}

/// Runs the program; the exit status is the program's.
pub(super) fn run(args: &Args) -> Outcome {
    let scenario = scenario(args)?;
    let prepared = scenario.prepare()?;
    let (output, json) = (args.output.as_deref(), args.json.as_deref());
    let mut results = Results::check((output, json), args.quiet, args.interval_region.as_deref())?;
    results.trace = args.trace.open(&scenario)?;
    let stdio = output::program_streams(results.json())?;
    let console = Console::catching_signals(args.quiet)?;
    let keeping = args.checkpoints.start(&scenario, &prepared, (output, json))?;
    let (taking, kept) = keeping.map(|keeping| keeping.split(args.verbose)).unzip();
    // Its thread begins before the program's, which may not access the folder.
    let spool = args.spool.open(args.jobs)?;
    let protected = [args.checkpoints.folder(), args.spool.folder()];
    let prepared = protected.into_iter().flatten().fold(prepared, Prepared::protecting);
    if args.json.is_some() || !args.quiet {
        // What shows metrics after the run does not wait for their tables. Without a thread they are read then.
        let _ = std::thread::Builder::new().spawn(Metrics::built_in);
    }
    let trace = &mut results.trace;
    let (ending, protection) = prepared.contained(stdio, |session| {
        let protection = session.protection().clone();
        let ending = simulate(&console, session, |session, watch| match (taking, trace) {
            (Some(taking), _) => Ok(taking.run(session, watch)),
            (None, Some(trace)) => Ok(Ending::Run(Box::new(session.run_traced(watch, &mut trace.window())))),
            (None, None) => whole(session, (args.jobs, spool), watch).map(|run| Ending::Run(Box::new(run))),
        });
        (ending, protection)
    })?;
    match over(ending?, kept.as_ref()) {
        Ok(run) => Ok(results.finish(&run, args.verbose.then_some(&protection), kept.as_ref())),
        Err(status) => Ok(status),
    }
}

/// Returns what the options ask for.
fn scenario(args: &Args) -> Result<Scenario, Failure> {
    let mut scenario = args.scenario.scenario_of(&args.command, args.region.as_deref())?;
    scenario.options.mode = args.mode;
    scenario.options.engine = args.engine;
    scenario.options.stack_ns = args.stacks;
    scenario.options.data = args.data;
    scenario.options.jobs = args.jobs.map(usize::from);
    let scenario = scenario.with_intervals(args.interval, args.interval_region.as_deref());
    scenario.check_kept(Kept { trace: args.trace.is_wanted(), snapshots: args.checkpoints.folder().is_some() })?;
    Ok(scenario)
}

/// Runs a program to its end, in intervals if `jobs` host threads are to time them, or other processes.
fn whole(
    session: Session,
    (jobs, spool): (Option<u16>, Option<Spool>),
    watch: &mut dyn FnMut(Progress) -> Control,
) -> Result<Run, fxscope::Error> {
    match (jobs, spool) {
        (Some(_), Some(spool)) => session.run_in_spool(spool, watch),
        (Some(jobs), None) => session.run_in_jobs(jobs.into(), watch),
        (None, _) => Ok(session.run(watch)),
    }
}
