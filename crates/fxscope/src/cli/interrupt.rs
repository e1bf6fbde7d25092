//! Signals that end a run but keep its results: Ctrl-C, a closed terminal, and a batch system's time limit.

use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Arc, Mutex, Once, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGXFSZ};
use signal_hook::iterator::Signals;

use super::Failure;
use super::progress::ProgressLine;
use super::status::SIGNAL;

/// Set by the first signal: the command ends and keeps its results so far.
pub(super) static STOP: AtomicBool = AtomicBool::new(false);
/// The first signal; 0 before one was received.
static RECEIVED: AtomicI32 = AtomicI32::new(0);
/// Whether results are being written, which is brief and must not be interrupted.
static SAVING: AtomicBool = AtomicBool::new(false);
/// The current progress line, which must be cleared before fxscope ends.
static LINE: Mutex<Option<ProgressLine>> = Mutex::new(None);
/// Signals that follow the first one within this time belong to the same event: when a terminal closes, the kernel and
/// the shell send SIGHUP; timeout(1) sends SIGTERM to the process and to its group.
const ONE_EVENT: Duration = Duration::from_millis(200);

/// Catches signals: the first one sets [`STOP`], a second one ends fxscope at once. SIGHUP stays ignored if it is
/// already, as under nohup(1).
pub(super) fn catch() -> Result<(), Failure> {
    static CAUGHT: Once = Once::new();
    let mut failure = None;
    CAUGHT.call_once(|| {
        let hangup = (!ignores(SIGHUP)).then_some(SIGHUP);
        let signals = Signals::new([SIGINT, SIGTERM].into_iter().chain(hangup));
        let started = signals.and_then(|signals| {
            let thread = std::thread::Builder::new().name("fxscope/signals".to_owned());
            thread.spawn(move || follow(signals)).map(drop)
        });
        failure = started.err();
    });
    failure.map_or(Ok(()), |e| Err(format!("signals such as Ctrl-C cannot be caught: {e}").into()))
}

/// Catches SIGUSR1, which asks for a snapshot.
pub(super) fn catch_requests() -> Result<(), Failure> {
    let flag = Arc::clone(snapshot_flag());
    signal_hook::flag::register(SIGUSR1, flag).map(drop).map_err(|e| format!("SIGUSR1 cannot be caught: {e}").into())
}

/// Returns whether a snapshot has been asked for since the last call.
pub(super) fn requested() -> bool {
    // Rarely true: no write then.
    snapshot_flag().load(Ordering::Relaxed) && snapshot_flag().swap(false, Ordering::Relaxed)
}

/// Set by SIGUSR1.
fn snapshot_flag() -> &'static Arc<AtomicBool> {
    static FLAG: OnceLock<Arc<AtomicBool>> = OnceLock::new();
    FLAG.get_or_init(Arc::default)
}

/// Makes `line` show the progress of a run; the results of the preceding run are written.
pub(super) fn watch_over(line: &ProgressLine) {
    SAVING.store(false, Ordering::Relaxed);
    *LINE.lock().unwrap_or_else(PoisonError::into_inner) = Some(line.clone());
}

/// Makes further signals wait until results are written.
pub(super) fn save() {
    SAVING.store(true, Ordering::Relaxed);
}

/// Returns the signal that was received.
pub(super) fn received() -> Option<i32> {
    Some(RECEIVED.load(Ordering::Relaxed)).filter(|&signal| signal != 0)
}

/// Returns the exit status after a signal: 128 plus its number, as in shells.
pub(super) fn status() -> u8 {
    SIGNAL + received().unwrap_or(SIGINT) as u8
}

/// Returns the name of the signal that was received.
pub(super) fn name() -> &'static str {
    match received() {
        Some(SIGTERM) => "SIGTERM",
        Some(SIGHUP) => "SIGHUP",
        _ => "SIGINT (Ctrl-C)",
    }
}

/// Makes writes beyond the limit of the size of files (`ulimit -f`) fail with an error; SIGXFSZ would end fxscope and
/// lose its results.
pub(super) fn survive_file_size_limit() {
    // If it cannot be caught, the default action remains.
    let _ = signal_hook::flag::register(SIGXFSZ, Arc::new(AtomicBool::new(false)));
}

fn follow(mut signals: Signals) {
    let mut first: Option<Instant> = None;
    for signal in signals.forever() {
        match first {
            None => {
                first = Some(Instant::now());
                RECEIVED.store(signal, Ordering::Relaxed);
                STOP.store(true, Ordering::Relaxed);
            }
            Some(first) if first.elapsed() > ONE_EVENT && !SAVING.load(Ordering::Relaxed) => {
                if let Some(line) = &*LINE.lock().unwrap_or_else(PoisonError::into_inner) {
                    line.end();
                }
                std::process::exit(i32::from(SIGNAL) + signal);
            }
            Some(_) => {}
        }
    }
}

/// Returns whether this process ignores a signal (proc_pid_status(5)).
fn ignores(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| u64::from_str_radix(line.strip_prefix("SigIgn:")?.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}
