//! `fxscope jitter measure`: the noise of this host, and what it comes from.

use std::path::PathBuf;
use std::time::Duration;

use fxscope::hostinfo::cpus;
use fxscope::jitter::Time;
use fxscope::lab::jitter;
use fxscope::osnoise::measure::Plan;
use fxscope::osnoise::trace::Method;

use super::super::console::Console;
use super::super::interrupt::{self, STOP};
use super::super::output::replaceable;
use super::super::{Failure, Outcome};
use super::form::show;

/// Measure the noise of this host: what its system takes from the cores, when, for how long, and for what.
///
/// On each core a thread that is bound to it runs a loop whose time is known; what it takes longer is a detour, and is kept with its
/// time, length and core. Where that is permitted the kernel tells what each detour was. `fxscope jitter show` shows a trace
/// again, `fit` makes a model of it, `simulate` replays it. docs/jitter.md has an example.
#[derive(clap::Args)]
pub struct Args {
    /// What the cores do.
    #[arg(long = "loop", value_enum, value_name = "LOOP", default_value_t = Loop::Fwq)]
    method: Loop,
    /// The cores, as 0-3,8; all that this process may use without it.
    #[arg(long, value_name = "LIST")]
    cores: Option<String>,
    /// How long; Ctrl-C, SIGTERM and SIGHUP end it earlier.
    #[arg(long, value_name = "TIME", default_value = "10s")]
    duration: Time,
    /// A piece of work (fwq, dgemm), or an interval (ftq); without it 100us, one block, 1ms.
    #[arg(long, value_name = "TIME")]
    quantum: Option<Time>,
    /// Shortest detour to keep; without it 1us, or 2 % of the quantum if that is more.
    #[arg(long, value_name = "TIME")]
    threshold: Option<Time>,
    /// Blocks of the multiplication between two barriers (dgemm).
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    blocks: u32,
    /// Real-time priority of the measuring threads (SCHED_FIFO), which programs without one do not interrupt.
    #[arg(long, value_name = "1..99", value_parser = clap::value_parser!(u8).range(1..=99))]
    rt: Option<u8>,
    /// The clock.
    #[arg(long, value_enum, default_value_t = Clock::Counter)]
    clock: Clock,
    /// How causes are found.
    #[arg(long, value_enum, default_value_t = Causes::Auto)]
    causes: Causes,
    /// The perf program, which tells of context switches where the kernel's tracers are not to be had.
    #[arg(long, value_name = "PROGRAM", default_value = "perf")]
    perf: PathBuf,
    /// The trace, a file that is replaced as a whole.
    #[arg(short, long, value_name = "FILE.fxn")]
    output: PathBuf,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Loop {
    /// Fixed work quantum: the same work over and over.
    Fwq,
    /// Fixed time quantum: the work done in equal times.
    Ftq,
    /// Blocks of a matrix multiplication on all cores, then a barrier.
    Dgemm,
    /// Barriers of all cores, one after another.
    Barrier,
    /// Reads the clock over and over: finds the shortest detours.
    Spin,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Clock {
    /// The processor's counter (TSC, CNTVCT) where it runs at one rate.
    Counter,
    /// The system's, CLOCK_MONOTONIC.
    System,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Causes {
    /// The kernel's osnoise tracer, its events, or perf's, as far as permitted.
    Auto,
    /// No detour is named; what the kernel counts is told in any case.
    None,
}

/// Shortest measurement.
const SHORTEST: Duration = Duration::from_millis(10);

/// Measures, names, and shows.
pub(super) fn measure(args: &Args) -> Outcome {
    let plan = plan(args)?;
    let Some(place) = replaceable(&args.output)? else {
        return Err(format!("{}: is no file; a trace needs one", args.output.display()).into());
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
        return Err(format!("--cores '{text}' is no list of cores; write it as 0-3,8").into());
    };
    let duration = Duration::from_nanos(args.duration.ns());
    if duration < SHORTEST {
        return Err(format!("--duration {}: {} ms is the least", args.duration, SHORTEST.as_millis()).into());
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
