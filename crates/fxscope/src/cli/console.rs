//! Progress of a laboratory, on standard error.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use fxscope::lab;
use fxscope::{Progress, Session};
use indicatif::ProgressBar;

use super::progress::{ProgressLine, bar, seconds_bar};
use super::{Failure, interrupt, say};

/// Shows the progress of a laboratory: a bar for background runs, a line for the run in the foreground.
pub(super) struct Console {
    quiet: bool,
    bar: Mutex<Option<ProgressBar>>,
    line: Mutex<Option<ProgressLine>>,
}

impl Console {
    /// Creates a console that leaves signals to their default action. `quiet`: no messages and no line for the
    /// foreground run.
    pub(super) fn new(quiet: bool) -> Console {
        Console { quiet, bar: Mutex::new(None), line: Mutex::new(None) }
    }

    /// Returns a console whose first signal ends the laboratory, which can then show what it has so far.
    pub(super) fn catching_signals(quiet: bool) -> Result<Console, Failure> {
        interrupt::catch()?;
        Ok(Console::new(quiet))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl lab::Progress for Console {
    fn message(&self, text: &str) {
        if !self.quiet {
            say(text);
        }
    }

    fn batch_started(&self, runs: usize) {
        *lock(&self.bar) = Some(bar(runs as u64));
    }

    fn run_started(&self, name: &str) {
        if let Some(bar) = &*lock(&self.bar) {
            bar.set_message(name.to_owned());
        }
    }

    fn run_ended(&self, _name: &str) {
        if let Some(bar) = &*lock(&self.bar) {
            bar.inc(1);
        }
    }

    fn batch_ended(&self) {
        if let Some(bar) = lock(&self.bar).take() {
            bar.finish_and_clear();
        }
    }

    fn foreground_started(&self, session: &mut Session) {
        let line = ProgressLine::new(!self.quiet);
        interrupt::watch_over(&line);
        if line.has_terminal() {
            let line = line.clone();
            session.watch_terminal(move |at_line_start| line.make_way(at_line_start));
        }
        *lock(&self.line) = Some(line);
    }

    fn foreground_at(&self, how_far: &Progress) {
        if let Some(line) = &*lock(&self.line) {
            line.show(how_far);
        }
    }

    fn foreground_ended(&self) {
        interrupt::save();
        if let Some(line) = lock(&self.line).take() {
            line.end();
        }
    }

    fn measured(&self, elapsed: Duration, whole: Duration) {
        let mut bar = lock(&self.bar);
        let bar = bar.get_or_insert_with(|| seconds_bar(whole));
        // Redrawn as the trace is written, which needs no thread.
        if bar.position() != elapsed.as_secs() {
            bar.set_position(elapsed.as_secs());
        }
    }

    fn measurement_ended(&self) {
        self.batch_ended();
    }

    fn stop_requested(&self) -> bool {
        interrupt::received().is_some()
    }
}
