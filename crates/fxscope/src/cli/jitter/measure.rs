//! `fxscope jitter measure`: the noise of this host, and its causes.

use std::path::PathBuf;
use std::time::Duration;

use fxscope::hostinfo::cpus;
use fxscope::jitter::Time;
use fxscope::lab::jitter;
use fxscope::osnoise::measure::Plan;
use fxscope::osnoise::trace::Method;

use super::super::console::Console;
use super::super::form::show;
use super::super::interrupt::{self, STOP};
use super::super::output::replaceable;
use super::super::{Failure, Outcome};

/// Measure the noise of this host: how much time the system takes from the cores, when, for how long, and why.
///
/// On each core a thread that is bound to it runs a loop of known time; time beyond that is a detour, and is recorded
/// with its start, length and core. Where permitted, the kernel's tracers name the cause of each detour. `fxscope
/// jitter show` shows a trace again, `fit` fits a model to it, `simulate` replays it. docs/jitter.md has an example.
#[derive(clap::Args)]
pub struct Args {
    /// Loop that the cores run.
    #[arg(long = "loop", value_enum, value_name = "LOOP", default_value_t = Loop::Fwq)]
    method: Loop,
    /// Cores, such as 0-3,8; default: all that this process may use.
    #[arg(long, value_name = "LIST")]
    cores: Option<String>,
    /// How long to measure; Ctrl-C, SIGTERM and SIGHUP end it earlier.
    #[arg(long, value_name = "TIME", default_value = "10s")]
    duration: Time,
    /// Length of a piece of work (fwq, dgemm) or of an interval (ftq); default: 100us, one block, 1ms.
    #[arg(long, value_name = "TIME")]
    quantum: Option<Time>,
    /// Shortest detour to record; default: 1us, or 2 % of the quantum if that is more.
    #[arg(long, value_name = "TIME")]
    threshold: Option<Time>,
    /// Blocks of the multiplication between two barriers (dgemm).
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    blocks: u32,
    /// Real-time priority of the measuring threads (SCHED_FIFO); programs without one do not interrupt them.
    #[arg(long, value_name = "1..99", value_parser = clap::value_parser!(u8).range(1..=99))]
    rt: Option<u8>,
    /// The clock.
    #[arg(long, value_enum, default_value_t = Clock::Counter)]
    clock: Clock,
    /// Source of the causes of detours.
    #[arg(long, value_enum, default_value_t = Causes::Auto)]
    causes: Causes,
    /// The perf program, which reports context switches where the kernel's tracers are not available.
    #[arg(long, value_name = "PATH", default_value = "perf")]
    perf: PathBuf,
    /// The trace to write, a file that is replaced atomically.
    #[arg(short, long, value_name = "FILE.fxn")]
    output: PathBuf,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Loop {
    /// Fixed work quantum: the same work over and over.
    Fwq,
    /// Fixed time quantum: work done in equal intervals.
    Ftq,
    /// Blocks of a matrix multiplication on all cores, then a barrier.
    Dgemm,
    /// Barriers of all cores, one after another.
    Barrier,
    /// Reads the clock repeatedly: finds the shortest detours.
    Spin,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Clock {
    /// The processor's counter (TSC, CNTVCT), if it runs at a constant rate.
    Counter,
    /// The system clock, CLOCK_MONOTONIC.
    System,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Causes {
    /// The kernel's osnoise tracer, its trace events, or perf's, whichever is permitted.
    Auto,
    /// Detours are not named; the kernel's own counts are still shown.
    None,
}

/// Shortest measurement.
const SHORTEST: Duration = Duration::from_millis(10);

/// Measures, attributes detours to causes, and shows the result.
pub(super) fn measure(args: &Args) -> Outcome {
    let plan = plan(args)?;
    let Some(place) = replaceable(&args.output)? else {
        return Err(
            format!("{}: is not a regular file; give the path of a file for the trace", args.output.display()).into()
        );
    };
    let perf = (args.causes == Causes::Auto).then_some(args.perf.as_path());
    interrupt::catch()?;
    let view = jitter::measure(&plan, perf, &place, &STOP, &Console::new(false))?;
    show(&jitter::trace_sheet(&view, &args.output.display().to_string()))
}

fn plan(args: &Args) -> Result<Plan, Failure> {
    let cores = args.cores.as_deref().map_or(Some(Vec::new()), cpus::parse_list);
    let cores = cores.filter(|cores| args.cores.is_none() || !cores.is_empty());
    let Some(cores) = cores else {
        let text = args.cores.as_deref().unwrap_or_default();
        return Err(format!("--cores '{text}' is not a list of cores; write it as 0-3,8").into());
    };
    let duration = Duration::from_nanos(args.duration.ns());
    if duration < SHORTEST {
        return Err(format!("--duration {}: give at least {} ms", args.duration, SHORTEST.as_millis()).into());
    }
    Ok(Plan {
        method: match args.method {
            Loop::Fwq => Method::Fwq,
            Loop::Ftq => Method::Ftq,
            Loop::Dgemm => Method::Dgemm,
            Loop::Barrier => Method::Barrier,
            Loop::Spin => Method::Spin,
        },
        cores,
        duration,
        quantum: args.quantum.map(Time::ns),
        threshold: args.threshold.map(Time::ns),
        blocks: args.blocks,
        priority: args.rt,
        system_clock: args.clock == Clock::System,
    })
}
