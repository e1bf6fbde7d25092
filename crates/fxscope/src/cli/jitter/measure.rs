//! `fxscope jitter measure`: the noise of this host, and what it comes from.

use std::cell::{Cell, RefCell};
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use fxscope::host::OutputFile;
use fxscope::hostinfo::cpus::{self, Host};
use fxscope::jitter::Time;
use fxscope::osnoise::cause::{self, Naming, Tracer};
use fxscope::osnoise::measure::{self, Plan, Watch, native};
use fxscope::osnoise::trace::{Method, Reader};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::super::interrupt::{self, STOP};
use super::super::output::{failure, folder, replaceable};
use super::super::{Failure, Outcome, say};
use super::trace;

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
    let host = Host::read(Path::new("/"));
    let cores = measure::cores(&plan.cores, &native::allowed()?, &host)?;
    let output = place.path();
    let scratch = tempfile::Builder::new().prefix(".fxscope-").tempdir_in(folder(output));
    let scratch = scratch.map_err(|e| failure(output, &e))?;
    let (tracer, reasons) = match args.causes {
        Causes::Auto => cause::start(Path::new("/"), &args.perf, &cores, &scratch.path().join("events")),
        Causes::None => (None, vec!["detours have no names as --causes none asks for it".to_owned()]),
    };
    announce(&plan, &cores, tracer.as_ref());
    let measured = record(&plan, output);
    name(tracer, &reasons, &host, &place, measured)?;
    let view = trace::look(output)?;
    trace::sheet(&view, &args.output.display().to_string()).show()
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

/// Says what happens now.
fn announce(plan: &Plan, cores: &[u32], tracer: Option<&Tracer>) {
    let named = tracer.map_or("nothing that names detours".to_owned(), |tracer| tracer.what().to_owned());
    let (method, time) = (plan.method.name(), Time(plan.duration.as_nanos() as f64));
    say(&format!("measuring core {} for {time} by {method}, with {named}", cpus::format_list(cores)));
}

/// Measures into the file, which has all up to the last second if this is cut off.
fn record(plan: &Plan, output: &Path) -> Result<(), Failure> {
    interrupt::catch()?;
    let bar = ProgressBar::with_draw_target(Some(plan.duration.as_secs().max(1)), ProgressDrawTarget::stderr());
    let style = ProgressStyle::with_template("{bar:40} {pos} of {len} s");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    // It is drawn when the trace is written, not by a thread of its own.
    let told = Cell::new(0);
    let progress = |ns: u64| {
        let seconds = ns / 1_000_000_000;
        if told.replace(seconds) != seconds {
            bar.set_position(seconds);
        }
    };
    let file = RefCell::new(Late { path: output.to_owned(), file: None });
    let done = measure::run(plan, &mut *file.borrow_mut(), Watch { stop: &STOP, progress: &progress });
    bar.finish_and_clear();
    done?;
    Ok(())
}

/// A file that is made when there is something to write: what stood there before is lost with the measurement's begin only.
struct Late {
    path: PathBuf,
    file: Option<BufWriter<File>>,
}

impl Write for Late {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(BufWriter::new(File::create(&self.path)?)),
        };
        file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.as_mut().map_or(Ok(()), Write::flush)
    }
}

/// Stops the tracer, and names the detours of the trace by what it told.
fn name(
    tracer: Option<Tracer>,
    reasons: &[String],
    host: &Host,
    place: &OutputFile,
    measured: Result<(), Failure>,
) -> Result<(), Failure> {
    let output = place.path();
    let complete = tracer.as_ref().is_some_and(Tracer::complete);
    let mut what = tracer.as_ref().map(Tracer::what);
    // It is stopped in any case.
    let text = tracer.map(Tracer::stop);
    measured?;
    let mut said = reasons.to_vec();
    let text = match text {
        Some(Ok(text)) => text,
        Some(Err(why)) => {
            said.push(why);
            what = None;
            Box::new(io::empty()) as Box<dyn io::BufRead>
        }
        None => Box::new(io::empty()),
    };
    let lost = Cell::new(0);
    let notes = || {
        let mut notes = said.clone();
        notes.extend(what.map(|what| format!("detours are named by {what}")));
        let lost = lost.get();
        notes.extend(
            (lost > 0).then(|| format!("the tracer lost {lost} events: detours of theirs have wrong names or none")),
        );
        notes
    };
    let trace = reader(output)?;
    let recognised = cause::recognise(reader(output)?, host.realtime_limit);
    let recognised = recognised.map_err(|e| format!("{}: {e}", output.display()))?;
    let naming = Naming {
        start: trace.header().monotonic_start,
        complete,
        virtual_machine: host.virtual_machine == Some(true),
        recognised: &recognised,
    };
    let named = place.replace(|file| {
        let named = cause::name(trace, cause::events(text, &lost), naming, BufWriter::new(file), &notes);
        named.map(drop).map_err(io::Error::other)
    });
    named.map_err(|e| format!("{}: {e}", output.display()).into())
}

/// The trace that was measured.
fn reader(output: &Path) -> Result<Reader<BufReader<File>>, Failure> {
    let file = File::open(output).map_err(|e| format!("{}: cannot be read ({e})", output.display()))?;
    Ok(Reader::new(BufReader::new(file)).map_err(|e| format!("{}: {e}", output.display()))?)
}
