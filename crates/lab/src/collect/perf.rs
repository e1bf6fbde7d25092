//! Programs under perf.

use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use fxscope_host::{Ended, Helper, Signal};
use fxscope_jitter::Time;

use crate::{Error, Progress};

/// Largest output of perf, bytes.
pub(crate) const MAX_OUTPUT_BYTES: u64 = 1 << 30;
/// Interval at which a run under perf is checked.
const LOOK: Duration = Duration::from_millis(500);
/// Time that perf may take to start the program.
const START: Duration = Duration::from_secs(30);
/// Time that perf has to end after it was asked to.
const GRACE: Duration = Duration::from_secs(10);

/// Runs a program under perf, for at most `limit`. If either fails, the message says `when`, and what to do `instead`.
pub(crate) fn run_under(
    mut perf: Command,
    program: &[OsString],
    limit: Option<Time>,
    when: &str,
    instead: &str,
    progress: &dyn Progress,
) -> Result<(), Error> {
    perf.arg("--").args(program);
    let name = Path::new(perf.get_program()).display().to_string();
    let mut helper = Helper::start(perf).map_err(|e| {
        format!("cannot start {name}: {e}; install it (Debian: apt-get install linux-perf) or name it with --perf")
    })?;
    let status = supervise(&mut helper, &name, limit, progress)?;
    if status.success() {
        return Ok(());
    }
    let why = match status.code() {
        Some(code) => format!("ended with status {code}"),
        None => "was killed by a signal".to_owned(),
    };
    let hint = permission_hint();
    Err(format!("perf, or the program under it, {why}{when}; nothing is recorded{hint}{instead}").into())
}

/// Waits for perf, until a signal arrives, perf starts no program, or it takes too long.
fn supervise(perf: &mut Helper, name: &str, limit: Option<Time>, progress: &dyn Progress) -> Result<ExitStatus, Error> {
    let (begin, mut busy) = (Instant::now(), Instant::now());
    loop {
        if let Some(status) = perf.ended_within(LOOK)? {
            return Ok(status);
        }
        if progress.stop_requested() {
            perf.signal(Signal::TERM);
            perf.wait(GRACE)?;
            return Err(Error::Stopped);
        }
        if has_children(perf.id()) {
            busy = Instant::now();
        }
        if busy.elapsed() > START {
            let seconds = START.as_secs();
            return Err(format!(
                "{name} has started no program within {seconds} s and was stopped; nothing is recorded. It is not perf, or hangs: name \
                 another one with --perf"
            )
            .into());
        }
        if limit.is_some_and(|limit| begin.elapsed() > Duration::from_nanos(limit.ns())) {
            let limit = limit.map_or(String::new(), |limit| limit.to_string());
            return Err(format!(
                "perf and the program under it did not end within {limit} (--timeout) and were stopped; nothing is recorded"
            )
            .into());
        }
    }
}

/// First bytes of what `perf record` and `perf stat record` write.
const RECORDING: &[u8] = b"PERFILE2";
/// How long perf may take to write a recording as text.
const WRITING: Duration = Duration::from_secs(600);

/// What a recording of perf has, as text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recorded {
    /// Counts of `perf stat record`.
    Counts,
    /// Events of `perf record`.
    Events,
}

/// Returns the text that `perf` makes of a recording, if `bytes`, the contents of `file`, are one; otherwise the bytes.
///
/// # Errors
/// If perf cannot be started or cannot read the file.
pub fn recorded_text(perf: &Path, file: &Path, bytes: Vec<u8>, what: Recorded) -> Result<Vec<u8>, Error> {
    if !bytes.starts_with(RECORDING) {
        return Ok(bytes);
    }
    let arguments: &[&str] = match what {
        Recorded::Counts => &["stat", "report", "-i"],
        Recorded::Events => &["script", "--show-switch-events", "--ns", "-i"],
    };
    let failed = |e: std::io::Error| Error::from(format!("{}: {e}", file.display()));
    let text = tempfile::NamedTempFile::new().map_err(failed)?;
    let mut command = Command::new(perf);
    command.args(arguments).arg(file).env("LC_ALL", "C").stdin(Stdio::null());
    // `perf stat report` writes to standard error.
    match what {
        Recorded::Counts => command.stdout(Stdio::null()).stderr(text.reopen().map_err(failed)?),
        Recorded::Events => command.stdout(text.reopen().map_err(failed)?).stderr(Stdio::piped()),
    };
    let mut helper = Helper::start(command).map_err(|e| {
        format!(
            "{}: is a recording of perf, which only perf can read, and {} cannot be started ({e}): install it (Debian: apt-get \
             install linux-perf), name it with --perf, or give the text of `perf {} FILE`",
            file.display(),
            perf.display(),
            arguments.join(" ")
        )
    })?;
    let ended = helper.wait(WRITING).map_err(failed)?;
    let bytes = fxscope_host::read(text.path(), MAX_OUTPUT_BYTES).map_err(|e| e.to_string())?;
    match ended {
        Ended::Itself(status) if status.success() => Ok(bytes),
        _ => {
            let said = helper.last_words();
            let text = if said.is_empty() { String::from_utf8_lossy(&bytes).into_owned() } else { said };
            let why = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or("no message");
            Err(format!("{}: perf cannot read this recording ({why})", file.display()).into())
        }
    }
}

/// Returns whether a process has children, according to the kernel (proc_tid_children(5)).
fn has_children(process: u32) -> bool {
    let children = std::fs::read_to_string(format!("/proc/{process}/task/{process}/children"));
    // Kernels without this file (CONFIG_PROC_CHILDREN) do not say: assume yes.
    children.map_or(true, |children| !children.trim().is_empty())
}

/// Returns a hint if the system's settings may forbid counting.
fn permission_hint() -> String {
    let paranoid = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").ok();
    match paranoid.as_deref().map(str::trim).and_then(|text| text.parse::<i32>().ok()) {
        Some(level) if level > 0 => format!(
            " (/proc/sys/kernel/perf_event_paranoid is {level}: programs of your own can be counted up to 2, without the kernel \
             (collect report --user), CPUs up to 0; its administrator can set it)"
        ),
        _ => String::new(),
    }
}
