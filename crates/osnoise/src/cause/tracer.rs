//! Starts and stops the kernel's tracers.

use std::cell::Cell;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use fxscope_host::{Ended, Helper, Signal};
use fxscope_hostinfo::cpus;

use super::{Event, Parser, Start, ThreadKind};

/// A running tracer.
pub struct Tracer {
    what: &'static str,
    complete: bool,
    spool: PathBuf,
    perf: PathBuf,
    how: How,
}

enum How {
    /// An instance of tracefs, its original settings, and the thread that copies its output.
    Files {
        instance: PathBuf,
        undo: Vec<(PathBuf, String)>,
        stop: Arc<AtomicBool>,
        copying: JoinHandle<io::Result<()>>,
    },
    Perf(Helper),
}

/// A tracefs setting: a file of the instance (or of tracefs itself, if its path begins with a slash), and its value.
type Setting = (String, String);

/// Settings for the osnoise tracer without its own workload threads, so that it reports what happens to ours.
#[must_use]
pub fn osnoise_settings(cores: &[u32]) -> Vec<Setting> {
    let events = ["irq_noise", "softirq_noise", "thread_noise", "nmi_noise"];
    let mut settings = common_settings(cores);
    settings.push(("/osnoise/options".to_owned(), "NO_OSNOISE_WORKLOAD".to_owned()));
    settings.push(("current_tracer".to_owned(), "osnoise".to_owned()));
    settings.extend(events.map(|event| (format!("events/osnoise/{event}/enable"), "1".to_owned())));
    settings
}

/// Settings for interrupt and scheduler events.
#[must_use]
pub fn plain_settings(cores: &[u32]) -> Vec<Setting> {
    let events = ["irq/enable", "irq_vectors/enable", "sched/sched_switch/enable"];
    let mut settings = common_settings(cores);
    settings.extend(events.map(|event| (format!("events/{event}"), "1".to_owned())));
    settings
}

fn common_settings(cores: &[u32]) -> Vec<Setting> {
    // A mask in hexadecimal words of 32 cores, highest first.
    let words = cores.iter().max().map_or(1, |core| core / 32 + 1);
    let word = |w: u32| cores.iter().filter(|&&core| core / 32 == w).fold(0u32, |mask, core| mask | 1 << (core % 32));
    let mask = (0..words).rev().map(|w| format!("{:08x}", word(w))).collect::<Vec<_>>().join(",");
    vec![("trace_clock".to_owned(), "mono".to_owned()), ("tracing_cpumask".to_owned(), mask)]
}

/// Starts the best tracer that this host and its permissions allow, writing to `spool`. Returns reasons why better ones
/// are unavailable.
pub fn start(root: &Path, perf: &Path, cores: &[u32], spool: &Path) -> (Option<Tracer>, Vec<String>) {
    let mut reasons = Vec::new();
    let places = ["sys/kernel/tracing", "sys/kernel/debug/tracing"].map(|place| root.join(place));
    match places.iter().find(|place| place.join("available_tracers").exists()) {
        None if fs::read_dir(&places[0]).is_err_and(|e| e.kind() == io::ErrorKind::PermissionDenied) => {
            reasons.push("the kernel's tracers require root: run with sudo to have interrupts named".to_owned());
        }
        None => reasons.push(
            "the kernel's tracers cannot be reached: tracefs is not there (mount -t tracefs nodev /sys/kernel/tracing, \
             where the kernel has it)"
                .to_owned(),
        ),
        Some(tracefs) => match files(tracefs, cores, spool) {
            Ok(tracer) => return (Some(tracer), reasons),
            Err(e) => reasons.push(format!(
                "{}: {e}; naming interrupts requires root",
                tracefs.display()
            )),
        },
    }
    match switches(perf, cores, spool) {
        Ok(tracer) => {
            reasons.push("so interrupts, and time taken by hypervisor or hardware, remain unnamed".to_owned());
            (Some(tracer), reasons)
        }
        Err(e) => {
            reasons.push(e);
            (None, reasons)
        }
    }
}

fn files(tracefs: &Path, cores: &[u32], spool: &Path) -> io::Result<Tracer> {
    let tracers = fs::read_to_string(tracefs.join("available_tracers"))?;
    let options = fs::read_to_string(tracefs.join("osnoise/options")).unwrap_or_default();
    let osnoise = tracers.split_whitespace().any(|t| t == "osnoise") && options.contains("OSNOISE_WORKLOAD");
    let instance = tracefs.join(format!("instances/fxscope-{}", std::process::id()));
    fs::create_dir(&instance)?;
    let settings = if osnoise { osnoise_settings(cores) } else { plain_settings(cores) };
    let mut undo = Vec::new();
    let apply = || {
        for (path, value) in settings {
            match path.strip_prefix('/') {
                Some(shared) => {
                    let on = options.split_whitespace().any(|option| option == "OSNOISE_WORKLOAD");
                    undo.extend(on.then(|| (tracefs.join(shared), "OSNOISE_WORKLOAD".to_owned())));
                    fs::write(tracefs.join(shared), value)?;
                }
                // Processors differ in the interrupt events they have.
                None if path == "events/irq_vectors/enable" && !instance.join(&path).exists() => {}
                None => fs::write(instance.join(path), value)?,
            }
        }
        let pipe = File::open(instance.join("trace_pipe"))?;
        rustix::io::ioctl_fionbio(&pipe, true)?;
        let out = File::create(spool)?;
        let stop = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&stop);
        let copying = std::thread::Builder::new().name(OWN.to_owned());
        Ok((stop, copying.spawn(move || copy(pipe, out, &seen))?))
    };
    match apply() {
        Ok((stop, copying)) => {
            let what = if osnoise { "the osnoise tracer" } else { "interrupt and scheduler events" };
            let how = How::Files { instance, undo, stop, copying };
            Ok(Tracer { what, complete: true, spool: spool.to_owned(), perf: PathBuf::new(), how })
        }
        Err(error) => {
            clean(&instance, &undo);
            Err(error)
        }
    }
}

/// Copies output until asked to stop and no more arrives.
fn copy(mut from: File, mut to: File, stop: &AtomicBool) -> io::Result<()> {
    let mut buffer = vec![0; 1 << 16];
    loop {
        let last = stop.load(Ordering::Relaxed);
        match from.read(&mut buffer) {
            Ok(0) if last => return Ok(()),
            Ok(0) => std::thread::sleep(Duration::from_millis(200)),
            Ok(n) => to.write_all(&buffer[..n])?,
            Err(e) if e.kind() == io::ErrorKind::WouldBlock && last => return Ok(()),
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => std::thread::sleep(Duration::from_millis(200)),
            Err(e) => return Err(e),
        }
    }
}

fn clean(instance: &Path, undo: &[(PathBuf, String)]) {
    // If this fails, nothing more can be done about it.
    let _ = fs::write(instance.join("current_tracer"), "nop");
    for (path, value) in undo {
        let _ = fs::write(path, value);
    }
    let _ = fs::remove_dir(instance);
}

fn switches(perf: &Path, cores: &[u32], spool: &Path) -> Result<Tracer, String> {
    let mut command = Command::new(perf);
    command.args(["record", "-q", "-e", "dummy:u", "--switch-events", "-k", "CLOCK_MONOTONIC", "-m", "1024", "-C"]);
    command.arg(cpus::format_list(cores)).arg("-o").arg(spool);
    command.stdin(Stdio::null()).stdout(Stdio::null());
    let mut perf_record = Helper::start_apart(command).map_err(|e| {
        format!(
            "perf, which names tasks and kernel threads, cannot be started ({e}); Debian: apt-get install linux-perf"
        )
    })?;
    // perf exits at once if it lacks permission.
    if let Ok(Some(_)) = perf_record.ended_within(Duration::from_millis(500)) {
        let text = perf_record.last_words();
        let first = text.lines().map(str::trim).find(|line| !line.is_empty() && *line != "Error:");
        let why = first.unwrap_or("no message");
        return Err(format!(
            "perf may not tell which threads run ({why}): run this as root, or have /proc/sys/kernel/perf_event_paranoid \
             set to 0"
        ));
    }
    let (what, how) = ("context switches through perf", How::Perf(perf_record));
    Ok(Tracer { what, complete: false, spool: spool.to_owned(), perf: perf.to_owned(), how })
}

impl Tracer {
    /// Returns what it reports.
    #[must_use]
    pub fn what(&self) -> &'static str {
        self.what
    }

    /// Returns whether it reports everything that the kernel does.
    #[must_use]
    pub fn complete(&self) -> bool {
        self.complete
    }

    /// Stops the tracer and returns its text.
    ///
    /// # Errors
    /// A message if the tracer produced nothing.
    pub fn stop(self) -> Result<Box<dyn BufRead>, String> {
        match self.how {
            How::Files { instance, undo, stop, copying } => {
                stop.store(true, Ordering::Relaxed);
                let copied = copying.join().map_err(|_| "the tracer's output is incomplete".to_owned());
                clean(&instance, &undo);
                copied?.map_err(|e| format!("the tracer's output is incomplete: {e}"))?;
                let file = File::open(&self.spool).map_err(|e| format!("{}: {e}", self.spool.display()))?;
                Ok(Box::new(BufReader::new(file)))
            }
            How::Perf(mut record) => {
                // If it has already ended, its output is read below.
                record.signal(Signal::INT);
                if record.wait(PATIENCE).map_err(|e| format!("perf record: {e}"))? == Ended::Late {
                    let seconds = PATIENCE.as_secs();
                    return Err(format!(
                        "perf record did not end within {seconds} s when it was asked to, and was killed: detours have no names \
                         (--perf names another perf, --causes none does without)"
                    ));
                }
                let file = script(&self.perf, &self.spool)?;
                Ok(Box::new(BufReader::new(file)))
            }
        }
    }
}

/// How long perf may take to end, or produce no output, before it is killed.
const PATIENCE: Duration = Duration::from_secs(20);
/// Maximum size of perf's text, bytes.
const MOST_TEXT: u64 = 4 << 30;

/// Converts perf's recording to text, in an unnamed file next to it.
fn script(perf: &Path, spool: &Path) -> Result<File, String> {
    let failed = |e: io::Error| format!("perf script: {e}");
    let path = spool.with_extension("txt");
    let out = File::create(&path).map_err(failed)?;
    let text = File::open(&path).map_err(failed)?;
    fs::remove_file(&path).map_err(failed)?;
    let mut command = Command::new(perf);
    command.args(["script", "--show-switch-events", "--ns", "-F", "comm,tid,cpu,time", "-i"]).arg(spool);
    command.stdin(Stdio::null()).stdout(out);
    let mut script = Helper::start_apart(command).map_err(failed)?;
    let (mut written, mut since) = (0, Instant::now());
    while script.ended_within(Duration::from_millis(200)).map_err(failed)?.is_none() {
        let bytes = text.metadata().map_err(failed)?.len();
        if bytes > MOST_TEXT {
            return Err(format!(
                "perf script wrote more than {} GiB and was killed: detours have no names",
                MOST_TEXT >> 30
            ));
        }
        if bytes != written {
            (written, since) = (bytes, Instant::now());
        } else if since.elapsed() > PATIENCE {
            let seconds = PATIENCE.as_secs();
            return Err(format!("perf script wrote nothing for {seconds} s and was killed: detours have no names"));
        }
    }
    Ok(text)
}

/// Returns the events in a tracer's text. `lost` counts events that the tracer lost.
pub fn events(text: impl BufRead, lost: &Cell<u64>) -> impl Iterator<Item = Event> {
    let mut parser = Parser::new(Start::Line, who);
    // Text that is not UTF-8 comes from a name and costs only that line.
    text.split(b'\n').map_while(Result::ok).filter_map(move |line| {
        let event = parser.line(&String::from_utf8_lossy(&line));
        lost.set(parser.lost());
        event
    })
}

/// The thread that copies the tracer's output.
const OWN: &str = "fxnoise/events";

/// Whose a thread of this host is.
fn who(name: &str, number: u32) -> ThreadKind {
    if number == 0 {
        return ThreadKind::Idle;
    }
    // All other threads of the measurement are measuring threads.
    if name.starts_with("fxnoise/") && name != OWN {
        return ThreadKind::Measuring;
    }
    if name == OWN || name == "perf" || fs::exists(format!("/proc/self/task/{number}")).unwrap_or_default() {
        return ThreadKind::Helper;
    }
    let status = fs::read_to_string(format!("/proc/{number}/status")).unwrap_or_default();
    let flag = status.lines().find_map(|line| line.strip_prefix("Kthread:"));
    let kernel = match flag {
        Some(flag) => flag.trim() == "1",
        // Kernels before 6.7 do not report it, and threads may have ended: these are names of kernel threads.
        None if status.is_empty() || !status.contains("VmSize:") => {
            const NAMES: [&str; 7] = ["kworker/", "ksoftirqd/", "migration/", "rcu", "irq/", "kcompactd", "kswapd"];
            !status.is_empty() || NAMES.iter().any(|known| name.starts_with(known))
        }
        None => false,
    };
    if kernel { ThreadKind::Kernel } else { ThreadKind::Program }
}
