//! Helper programs: started, monitored, and terminated after a time limit.

use std::collections::VecDeque;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
pub use rustix::process::Signal;
use rustix::process::{Pid, PidfdFlags, kill_process};

/// Maximum bytes kept of a helper's standard error; of more, the last are kept.
const MAX_KEPT: usize = 64 << 10;
/// Polling interval of a waiting caller.
const STEP: Duration = Duration::from_millis(10);
/// How often a caller that may have to stop looks.
const LOOK: Duration = Duration::from_millis(500);
/// How long a helper may take to exit after SIGTERM.
const GRACE: Duration = Duration::from_secs(2);

/// How a helper ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// It exited by itself, or a signal from elsewhere ended it.
    Itself(ExitStatus),
    /// It did not exit in time and was terminated.
    Late,
}

/// A program that runs for fxscope. Its standard error is read as it arrives, so that it never blocks on a full pipe. Dropping
/// the helper terminates the program.
pub struct Helper {
    child: Child,
    /// Becomes readable when the program exits, so that nobody need poll; kernels before 5.3 do not have it.
    exit: Option<OwnedFd>,
    said: Arc<Mutex<VecDeque<u8>>>,
    listener: Option<JoinHandle<()>>,
}

impl Helper {
    /// Starts a program with the standard streams that the caller has set.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn start(mut command: Command) -> io::Result<Helper> {
        let mut child = command.spawn()?;
        let exit = rustix::process::pidfd_open(Pid::from_child(&child), PidfdFlags::empty()).ok();
        let said = Arc::new(Mutex::new(VecDeque::new()));
        let listener = child.stderr.take().map(|stream| {
            let said = Arc::clone(&said);
            std::thread::spawn(move || listen(stream, &said))
        });
        Ok(Helper { child, exit, said, listener })
    }

    /// Starts a program in a new process group, which Ctrl-C does not reach, and reads its standard error.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn start_apart(mut command: Command) -> io::Result<Helper> {
        command.stderr(Stdio::piped()).process_group(0);
        Helper::start(command)
    }

    /// Returns its process ID.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends it a signal, unless it has ended.
    pub fn signal(&self, signal: Signal) {
        // The signal fails only if the program has exited in the meantime.
        let _ = kill_process(Pid::from_child(&self.child), signal);
    }

    /// Waits up to `patience`, then terminates it: first with SIGTERM, then with SIGKILL.
    ///
    /// # Errors
    /// When waiting fails.
    pub fn wait(&mut self, patience: Duration) -> io::Result<Ended> {
        if let Some(status) = self.ended_within(patience)? {
            return Ok(Ended::Itself(status));
        }
        self.end()?;
        Ok(Ended::Late)
    }

    /// Returns its exit status, or `None` if it has not exited within `patience`.
    ///
    /// # Errors
    /// When waiting fails.
    pub fn ended_within(&mut self, patience: Duration) -> io::Result<Option<ExitStatus>> {
        let begin = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait()? {
                return Ok(Some(status));
            }
            let left = patience.saturating_sub(begin.elapsed());
            if left.is_zero() {
                return Ok(None);
            }
            match (&self.exit, Timespec::try_from(left)) {
                // A signal to fxscope ends the poll early; the loop polls again.
                (Some(exit), Ok(left)) => {
                    let _ = poll(&mut [PollFd::new(exit, PollFlags::IN)], Some(&left));
                }
                _ => std::thread::sleep(STEP.min(left)),
            }
        }
    }

    /// Waits until it exits; returns its exit status, or `None` as soon as `stopped` returns true, which is asked twice a second.
    ///
    /// # Errors
    /// When waiting fails.
    pub fn wait_unless(&mut self, stopped: &dyn Fn() -> bool) -> io::Result<Option<ExitStatus>> {
        while !stopped() {
            if let Some(status) = self.ended_within(LOOK)? {
                return Ok(Some(status));
            }
        }
        Ok(None)
    }

    /// Returns what it has written to standard error so far, at most the last 64 KiB.
    #[must_use]
    pub fn said(&self) -> String {
        let said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&said.iter().copied().collect::<Vec<u8>>()).into_owned()
    }

    /// Returns what it has written to standard error, once it has exited. Its children may keep the pipe open; they are not
    /// waited for.
    #[must_use]
    pub fn last_words(&mut self) -> String {
        let begin = Instant::now();
        if let Some(listener) = &self.listener {
            while !listener.is_finished() && begin.elapsed() < GRACE {
                std::thread::sleep(STEP);
            }
        }
        self.said()
    }

    /// Terminates it and its descendants.
    fn end(&mut self) -> io::Result<ExitStatus> {
        let mut started = Vec::new();
        add_descendants(self.child.id(), &mut started);
        let all = |signal| {
            for &process in &started {
                let _ = kill_process(process, signal);
            }
        };
        self.signal(Signal::TERM);
        all(Signal::TERM);
        let ended = self.ended_within(GRACE)?;
        all(Signal::KILL);
        match ended {
            Some(status) => Ok(status),
            None => {
                self.child.kill()?;
                self.child.wait()
            }
        }
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        if let Ok(None) = self.child.try_wait() {
            let _ = self.end();
        }
    }
}

/// Adds the descendants of a process, if the kernel lists them (proc_tid_children(5)).
fn add_descendants(process: u32, found: &mut Vec<Pid>) {
    let children = std::fs::read_to_string(format!("/proc/{process}/task/{process}/children")).unwrap_or_default();
    for child in children.split_whitespace().filter_map(|word| word.parse::<u32>().ok()) {
        found.extend(Pid::from_raw(child as i32));
        add_descendants(child, found);
    }
}

/// Reads to the end and keeps the last bytes.
fn listen(mut stream: impl Read, said: &Mutex<VecDeque<u8>>) {
    let mut buffer = [0; 4096];
    while let Ok(count @ 1..) = stream.read(&mut buffer) {
        let mut said = said.lock().unwrap_or_else(PoisonError::into_inner);
        said.extend(&buffer[..count]);
        let beyond = said.len().saturating_sub(MAX_KEPT);
        said.drain(..beyond);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Helper {
        let mut command = Command::new("sh");
        command.args(["-c", script]).stdin(Stdio::null()).stdout(Stdio::null());
        Helper::start_apart(command).expect("a shell")
    }

    #[test]
    fn standard_error_of_a_helper_is_available_after_its_exit() {
        let mut helper = shell("echo no such event >&2; exit 3");
        let Ended::Itself(status) = helper.wait(Duration::from_secs(60)).expect("waited for") else { panic!("late") };
        assert_eq!((status.code(), helper.last_words().as_str()), (Some(3), "no such event\n"));
    }

    #[test]
    fn a_sleeping_helper_is_terminated_in_time() {
        let begin = Instant::now();
        assert_eq!(shell("exec sleep 1000").wait(Duration::from_millis(100)).expect("waited for"), Ended::Late);
        assert_eq!(
            shell("trap '' TERM; while :; do sleep 1; done").wait(Duration::ZERO).expect("waited for"),
            Ended::Late
        );
        assert!(begin.elapsed() < Duration::from_secs(60), "{:?}", begin.elapsed());
    }

    #[test]
    fn descendants_of_a_helper_are_terminated_with_it() {
        let mut helper = shell("sleep 1000; true");
        while fs_children(helper.id()).is_empty() {
            std::thread::sleep(STEP);
        }
        let mut started = Vec::new();
        add_descendants(helper.id(), &mut started);
        assert_eq!(helper.wait(Duration::ZERO).expect("waited for"), Ended::Late);
        let gone = |process: &Pid| rustix::process::test_kill_process(*process).is_err();
        let begin = Instant::now();
        while !started.iter().all(gone) {
            // A zombie exists until its new parent has waited for it.
            assert!(begin.elapsed() < Duration::from_secs(60), "{started:?}");
            std::thread::sleep(STEP);
        }
    }

    fn fs_children(process: u32) -> String {
        std::fs::read_to_string(format!("/proc/{process}/task/{process}/children")).unwrap_or_default()
    }

    #[test]
    fn a_helper_that_floods_standard_error_does_not_block_and_only_a_bounded_part_is_kept() {
        let mut helper = shell("i=0; while [ $i -lt 40 ]; do printf '%65536s' x >&2; i=$((i+1)); done; echo end >&2");
        assert!(matches!(helper.wait(Duration::from_secs(60)).expect("waited for"), Ended::Itself(_)));
        let said = helper.last_words();
        assert!(said.ends_with("xend\n") && said.len() == MAX_KEPT, "{}", said.len());
    }
}
