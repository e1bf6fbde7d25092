//! `fxscope run`: runs a program on a modelled machine.

use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use fxscope::lab::simulate;
use fxscope::pmu::Metrics;
use fxscope::record::{self, Finish, Run};
use fxscope::report::Options;
use fxscope::report::render::{json, terminal};
use fxscope::spool::Spool;
use fxscope::{Control, Ending, EngineChoice, HostProtection, Mode, Progress, Session};

use super::checkpoint::{CheckpointArgs, Kept, over};
use super::console::Console;
use super::interrupt;
use super::konata::{TraceArgs, TraceTarget};
use super::output::{self, Target};
use super::scenario::{self, MODES, ScenarioArgs};
use super::spool::SpoolArgs;
use super::status::{FAILED, NO_PROGRESS};
use super::{Failure, Outcome, say, style};

/// The engines by name.
const ENGINES: &[(&str, EngineChoice)] = &[
    ("auto", EngineChoice::Auto),
    ("translator", EngineChoice::Translator),
    ("interpreter", EngineChoice::Interpreter),
];

/// Processes that ended abnormally and are shown.
const SHOWN_FAILURES: usize = 8;

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
    #[arg(long, default_value = "timing", value_parser = scenario::choice(MODES))]
    mode: Mode,
    /// What executes the program's code: the interpreter, or the translator, which turns code that is executed often into the host's. auto:
    /// the translator with --sample and --jobs and, after the first 50 million instructions of a process, in functional mode and for what is
    /// not timed with --from or --until; otherwise the interpreter. Results and counts are the same.
    #[arg(long, default_value = "auto", value_parser = scenario::choice(ENGINES))]
    engine: EngineChoice,
    /// Time intervals of the run at the same time, on this many threads of the host, for programs of one thread. Counts do not depend on the
    /// number; they differ by some hundredths of a percent from those without --jobs (docs/jobs.md).
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    jobs: Option<u16>,
    #[command(flatten)]
    spool: SpoolArgs,
    /// Also count by intervals of simulated time, such as 100us or 1ms, for the record and for --json. At most 100,000
    /// intervals; the last one then extends to the end.
    #[arg(long, value_name = "TIME", value_parser = scenario::interval_ns)]
    interval: Option<u64>,
    /// Sample the call stacks of all threads at intervals of simulated time, such as 10us, for the record: `fxscope export` shows them in
    /// other tools' viewers. Functions need frame pointers (docs/exports.md).
    #[arg(long, value_name = "TIME", value_parser = scenario::interval_ns)]
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
    let mut scenario = args.scenario.scenario_of(&args.command, args.region.as_deref())?;
    scenario.options.mode = args.mode;
    scenario.options.engine = args.engine;
    scenario.options.stack_ns = args.stacks;
    scenario.options.data = args.data;
    scenario.options.jobs = args.jobs.map(usize::from);
    let scenario = scenario.with_intervals(args.interval, args.interval_region.as_deref());
    if args.trace.is_wanted() && scenario.options.sample.is_some() {
        return Err("--sample: a trace needs each instruction timed; leave --sample or --konata out".to_owned().into());
    }
    if args.trace.is_wanted() && args.checkpoints.folder().is_some() {
        return Err("--checkpoint: a trace cannot be continued; leave --checkpoint or --konata out".to_owned().into());
    }
    if args.data && (args.trace.is_wanted() || args.checkpoints.folder().is_some()) {
        let why = "neither a trace nor snapshots have the objects that exist; leave --data or the other option out";
        return Err(format!("--data: {why}").into());
    }
    if args.jobs.is_some() && (args.trace.is_wanted() || args.checkpoints.folder().is_some()) {
        let why = "a trace and snapshots are of a run in one piece; leave --jobs or the other option out";
        return Err(format!("--jobs: {why}").into());
    }
    let without_blocks = args.trace.is_wanted() || args.checkpoints.folder().is_some();
    if let Some((option, argument)) = scenario.option_about_heap_blocks().filter(|_| without_blocks) {
        let why = format!(
            "neither a trace nor snapshots have the blocks that exist; leave {argument} or the other option out"
        );
        return Err(format!("--{option}: {why}").into());
    }
    let prepared = scenario.prepare()?;
    // Errors of the outputs are reported now, not after an hour.
    let record_target = args.output.as_deref().map(record::Target::check).transpose()?;
    let json_target = args.json.as_deref().map(Target::check).transpose()?;
    let timed = [
        ("interval", args.interval.is_some(), "intervals need"),
        ("stacks", args.stacks.is_some(), "call stacks are sampled in"),
        ("data", args.data, "misses need"),
    ];
    if let Some((option, _, what)) = timed.iter().find(|(_, given, _)| *given && args.mode == Mode::Functional) {
        return Err(format!("--{option}: {what} simulated time; use --mode timing").into());
    }
    let mut trace = TraceTarget::check(&args.trace, args.mode)?;
    let stdio = output::program_streams(json_target.as_ref())?;
    let console = Console::catching_signals(args.quiet)?;
    let keeping = args.checkpoints.start(&scenario, &prepared, (args.output.as_ref(), args.json.as_ref()))?;
    let (taking, kept) = keeping.map(|keeping| keeping.split(args.verbose)).unzip();
    let prepared = match args.checkpoints.folder() {
        Some(folder) => prepared.protecting(folder),
        None => prepared,
    };
    // Its thread begins before the program's, which may not access the folder.
    let spool = args.spool.open(args.jobs)?;
    let prepared = match args.spool.folder() {
        Some(folder) => prepared.protecting(folder),
        None => prepared,
    };
    if args.json.is_some() || !args.quiet {
        // What shows metrics after the run does not wait for their tables. Without a thread they are read then.
        let _ = std::thread::Builder::new().spawn(Metrics::built_in);
    }
    let (ending, protection) = prepared.contained(stdio, |session| {
        let protection = session.protection().clone();
        let ending = simulate(&console, session, |session, watch| match (taking, &mut trace) {
            (Some(taking), _) => Ok(taking.run(session, watch)),
            (None, Some(trace)) => Ok(Ending::Run(Box::new(session.run_traced(watch, &mut trace.window())))),
            (None, None) => whole(session, (args.jobs, spool), watch).map(|run| Ending::Run(Box::new(run))),
        });
        (ending, protection)
    })?;
    let run = match over(ending?, kept.as_ref()) {
        Ok(run) => run,
        Err(status) => return Ok(status),
    };
    let protection = args.verbose.then_some(protection);
    let outputs = Outputs { quiet: args.quiet, protection, interval_region: args.interval_region.as_deref() };
    Ok(finished(&run, &outputs, (record_target, json_target, trace), kept.as_ref()))
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

/// How a run that is over is shown.
pub(super) struct Outputs<'a> {
    pub quiet: bool,
    /// The kernel's protection of the host, if that is wanted.
    pub protection: Option<HostProtection>,
    /// The region whose intervals were wanted.
    pub interval_region: Option<&'a str>,
}

/// Shows a run that is over, and writes its results. Returns the exit status.
pub(super) fn finished(
    run: &Run,
    outputs: &Outputs<'_>,
    targets: (Option<record::Target>, Option<Target>, Option<TraceTarget>),
    kept: Option<&Kept>,
) -> ExitCode {
    if let Some(name) = outputs.interval_region.filter(|name| run.region(name).is_none()) {
        say(&format!("--interval-region: the program marked no region '{name}', so its intervals counted nothing"));
    }
    if let Some(part) = run.part.as_ref().filter(|part| part.executions == 0) {
        say(&format!("{}: the part never began, and nothing was timed; check the name, or the number", part.options));
    }
    show(outputs.quiet, run);
    if let Some(protection) = &outputs.protection {
        say(&format!("protection by the host's kernel: {protection}"));
    }
    let saved = save(targets, run);
    // A run that a signal ended without a snapshot can continue from the last one.
    let over = kept.filter(|_| saved && !matches!(run.finish, Finish::Stopped));
    if saved && over.is_none_or(Kept::ended) { status(&run.finish) } else { ExitCode::from(FAILED) }
}

/// Returns the exit status after a run.
fn status(finish: &Finish) -> ExitCode {
    match finish {
        Finish::Exited(_) | Finish::Killed { .. } => {
            // Statuses have eight bits.
            ExitCode::from(finish.exit_code().map_or(FAILED, |code| code as u8))
        }
        Finish::Limit | Finish::Unknown => ExitCode::SUCCESS,
        Finish::Stopped => ExitCode::from(interrupt::status()),
        Finish::Failed(_) => ExitCode::from(FAILED),
        Finish::NoProgress(_) => ExitCode::from(NO_PROGRESS),
    }
}

/// Reports how the run ended, and prints the summary unless it is unwanted.
fn show(quiet: bool, run: &Run) {
    for failure in run.failures.iter().take(SHOWN_FAILURES) {
        say(failure);
    }
    if let Some(more @ 1..) = run.failures.len().checked_sub(SHOWN_FAILURES) {
        say(&format!("further processes that ended abnormally: {more}; the record and --json have them"));
    }
    match &run.finish {
        Finish::Killed { message, .. } => say(&format!("the program was {message}")),
        Finish::Failed(message) | Finish::NoProgress(message) => {
            say(&format!("the program cannot continue: {message}"));
        }
        Finish::Stopped => {
            say(&format!("{} ended the run; the results cover what was simulated until then", interrupt::name()))
        }
        Finish::Exited(_) | Finish::Limit | Finish::Unknown => {}
    }
    if !quiet {
        let text = terminal::render(&fxscope::report::summary_with(run, fxscope::hottest), style(&std::io::stderr()));
        let _ = std::io::stderr().write_all(text.as_bytes());
    }
}

/// Writes all outputs that were asked for, even if some fail. Returns whether all were written.
fn save(
    (record_target, json_target, trace): (Option<record::Target>, Option<Target>, Option<TraceTarget>),
    run: &Run,
) -> bool {
    let json = json_target.map_or(Ok(()), |target| {
        target.write(&json::run_with(run, &Options { hottest: fxscope::hottest, ..Options::default() }))
    });
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
