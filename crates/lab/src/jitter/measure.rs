//! The noise of this host, and its causes.

use std::cell::{Cell, RefCell};
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use fxscope_host::OutputFile;
use fxscope_hostinfo::cpus::{self, Host};
use fxscope_jitter::Time;
use fxscope_osnoise::cause::{self, EventContext, Tracer};
use fxscope_osnoise::measure::{self, Control, Plan, native};
use fxscope_osnoise::trace::{Method, Reader};
use fxscope_osnoise::view::View;

use super::trace;
use crate::{Error, Progress};

/// Shortest measurement.
const SHORTEST: Duration = Duration::from_millis(10);

/// What to measure, as options say it.
#[derive(Clone, Debug)]
pub struct MeasureOptions {
    /// The loop that the cores run.
    pub method: Method,
    /// A list of cores, such as `0-3,8`; `None`: all that this process may use.
    pub cores: Option<String>,
    /// How long to measure.
    pub duration: Time,
    /// Length of a piece of work or of an interval; `None`: the loop's own.
    pub quantum: Option<Time>,
    /// Shortest detour to record; `None`: 1 us, or 2 % of the quantum if that is more.
    pub threshold: Option<Time>,
    /// Blocks of the multiplication between two barriers.
    pub blocks: u32,
    /// Real-time priority of the threads.
    pub priority: Option<u8>,
    /// Whether to read the system's clock instead of the processor's counter.
    pub system_clock: bool,
}

impl MeasureOptions {
    /// Returns the plan of the measurement.
    ///
    /// # Errors
    /// If the cores are no list, or the measurement is too short.
    pub fn plan(&self) -> Result<Plan, Error> {
        let cores = match &self.cores {
            None => Vec::new(),
            Some(text) => cpus::parse_list(text)
                .filter(|cores| !cores.is_empty())
                .ok_or_else(|| format!("--cores '{text}' is not a list of cores; write it as 0-3,8"))?,
        };
        let duration = Duration::from_nanos(self.duration.ns());
        if duration < SHORTEST {
            return Err(format!("--duration {}: give at least {} ms", self.duration, SHORTEST.as_millis()).into());
        }
        Ok(Plan {
            method: self.method,
            cores,
            duration,
            quantum: self.quantum.map(Time::ns),
            threshold: self.threshold.map(Time::ns),
            blocks: self.blocks,
            priority: self.priority,
            system_clock: self.system_clock,
        })
    }
}

/// Measures the noise of this host into a trace: on each core a thread that is bound to it runs a loop of known time. Then
/// names the causes of the detours, as far as the kernel permits. `perf` is the perf program that reports context switches
/// if the kernel's tracers are not available; without it no detour is named. `stop` ends the measurement early.
///
/// # Errors
/// If cores, clock or files cannot be used as asked.
pub fn measure(
    plan: &Plan,
    perf: Option<&Path>,
    place: &OutputFile,
    stop: &AtomicBool,
    progress: &dyn Progress,
) -> Result<View, Error> {
    let host = Host::read(Path::new("/"));
    let cores = measure::cores(&plan.cores, &native::allowed()?, &host).map_err(|e| e.to_string())?;
    let output = place.path();
    let folder = output.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let scratch = tempfile::Builder::new().prefix(".fxscope-").tempdir_in(folder);
    let scratch = scratch.map_err(|e| format!("{}: {}", output.display(), fxscope_host::write_error(&e)))?;
    let (tracer, reasons) = match perf {
        Some(perf) => cause::start(Path::new("/"), perf, &cores, &scratch.path().join("events")),
        None => (None, vec!["detours are not named because of --causes none".to_owned()]),
    };
    announce(plan, &cores, tracer.as_ref(), progress);
    let measured = record(plan, output, stop, progress);
    name(tracer, &reasons, &host, place, measured)?;
    trace::look(output)
}

/// Announces the measurement.
fn announce(plan: &Plan, cores: &[u32], tracer: Option<&Tracer>, progress: &dyn Progress) {
    let named = tracer.map_or("no source of causes".to_owned(), |tracer| tracer.what().to_owned());
    let (method, time) = (plan.method.name(), Time(plan.duration.as_nanos() as f64));
    progress.message(&format!("measuring core {} for {time} by {method}, with {named}", cpus::format_list(cores)));
}

/// Measures into the file; if it is interrupted, the file has everything up to the last second.
fn record(plan: &Plan, output: &Path, stop: &AtomicBool, progress: &dyn Progress) -> Result<(), Error> {
    let file = RefCell::new(Late { path: output.to_owned(), file: None });
    let whole = plan.duration;
    let elapsed = |ns: u64| progress.measured(Duration::from_nanos(ns), whole);
    let done = measure::run(plan, &mut *file.borrow_mut(), Control { stop, progress: &elapsed });
    progress.measurement_ended();
    done.map_err(|e| e.to_string())?;
    Ok(())
}

/// A file that is created at the first write: an older file is only lost once the measurement has started.
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

/// Stops the tracer, and names the detours of the trace by its events.
fn name(
    tracer: Option<Tracer>,
    reasons: &[String],
    host: &Host,
    place: &OutputFile,
    measured: Result<(), Error>,
) -> Result<(), Error> {
    let output = place.path();
    let complete = tracer.as_ref().is_some_and(Tracer::complete);
    let mut what = tracer.as_ref().map(Tracer::what);
    // Stopped in any case.
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
            (lost > 0).then(|| format!("the tracer lost {lost} events: their detours have wrong names or none")),
        );
        notes
    };
    let trace = reader(output)?;
    let recognised = cause::recognise(reader(output)?, host.realtime_limit);
    let recognised = recognised.map_err(|e| format!("{}: {e}", output.display()))?;
    let naming = EventContext {
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

/// Opens the trace that was measured.
fn reader(output: &Path) -> Result<Reader<BufReader<File>>, Error> {
    let file = File::open(output).map_err(|e| format!("{}: cannot be read ({e})", output.display()))?;
    Ok(Reader::new(BufReader::new(file)).map_err(|e| format!("{}: {e}", output.display()))?)
}
