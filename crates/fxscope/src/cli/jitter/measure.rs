//! `fxscope jitter measure`: the noise of this host, and its causes.

use std::path::PathBuf;

use fxscope::jitter::Time;
use fxscope::lab::jitter::{self, MeasureOptions};
use fxscope::osnoise::trace::Method;

use crate::options::choice::described_choice;
use crate::terminal::interrupt::{self, STOP};
use crate::terminal::output::regular;
use crate::terminal::{Console, Outcome, show};

/// Measure the noise of this host: how much time the system takes from the cores, when, for how long, and why.
///
/// On each core a thread that is bound to it runs a loop of known time; time beyond that is a detour, and is recorded
/// with its start, length and core. Where permitted, the kernel's tracers name the cause of each detour. `fxscope
/// jitter show` shows a trace again, `fit` fits a model to it, `simulate` replays it. docs/jitter.md has an example.
#[derive(clap::Args)]
pub struct Args {
    /// Loop that the cores run.
    #[arg(long = "loop", value_name = "LOOP", default_value = "fwq", value_parser = described_choice(Method::LOOPS))]
    method: Method,
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

/// Measures, attributes detours to causes, and shows the result.
pub(super) fn measure(args: &Args) -> Outcome {
    let options = MeasureOptions {
        method: args.method,
        cores: args.cores.clone(),
        duration: args.duration,
        quantum: args.quantum,
        threshold: args.threshold,
        blocks: args.blocks,
        priority: args.rt,
        system_clock: args.clock == Clock::System,
    };
    let plan = options.plan()?;
    let place = regular(&args.output, " for the trace")?;
    let perf = (args.causes == Causes::Auto).then_some(args.perf.as_path());
    interrupt::catch()?;
    let view = jitter::measure(&plan, perf, &place, &STOP, &Console::new(false))?;
    show(&[jitter::trace_sheet(&view, &args.output.display().to_string()).document()])
}
