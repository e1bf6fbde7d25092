//! The progress line of a long run.

use std::io::{IsTerminal as _, Write as _};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use fxscope::Progress;
use fxscope::report::render::quantity::quantity;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Returns a bar on standard error that shows how many runs of a batch are done.
pub(super) fn bar(runs: u64) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(runs), ProgressDrawTarget::stderr());
    let template = "{bar:20} {pos} of {len} runs, {elapsed}, {eta} left  {wide_msg}";
    bar.set_style(ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar
}

/// Returns a bar on standard error that shows how many seconds of a measurement have passed.
pub(super) fn seconds_bar(whole: Duration) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(whole.as_secs().max(1)), ProgressDrawTarget::stderr());
    let style = ProgressStyle::with_template("{bar:40} {pos} of {len} s");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar
}

/// Time for which a run must last, and the program not use the terminal, before the line appears.
const PATIENCE: Duration = Duration::from_secs(1);

/// A line on standard error, redrawn during a run; silent if standard error is not a terminal. The line is removed
/// before the program uses the terminal, and never drawn behind an unfinished line of the program. Clones share the
/// line.
#[derive(Clone)]
pub(super) struct ProgressLine {
    start: Instant,
    /// `None` without a terminal.
    terminal: Option<Arc<Mutex<Terminal>>>,
}

/// State of the terminal.
struct Terminal {
    bar: ProgressBar,
    /// Whether the line is shown.
    shown: bool,
    /// Whether the program left the cursor at the beginning of a line.
    at_line_start: bool,
    /// When the program last used it; initially, the start of the run.
    last_use: Instant,
}

impl ProgressLine {
    pub(super) fn new(wanted: bool) -> ProgressLine {
        let start = Instant::now();
        let terminal = (wanted && std::io::stderr().is_terminal()).then(|| {
            let style = ProgressStyle::with_template("{msg}").unwrap_or_else(|_| ProgressStyle::default_spinner());
            let bar = ProgressBar::new_spinner().with_style(style);
            Arc::new(Mutex::new(Terminal { bar, shown: false, at_line_start: true, last_use: start }))
        });
        ProgressLine { start, terminal }
    }

    /// Returns whether there is a terminal, which the program may use as well.
    pub(super) fn has_terminal(&self) -> bool {
        self.terminal.is_some()
    }

    /// Shows the progress of the run.
    pub(super) fn show(&self, progress: &Progress) {
        let Some(mut terminal) = self.lock().filter(|t| t.at_line_start && t.last_use.elapsed() >= PATIENCE) else {
            return;
        };
        let mips = |instructions: u64| instructions as f64 / 1e6 / self.start.elapsed().as_secs_f64();
        let executed = mips(progress.instructions.saturating_sub(progress.skipped));
        let skipped = match mips(progress.skipped) {
            skipped if skipped < 0.05 => String::new(),
            skipped => format!(", {skipped:.1} skipped"),
        };
        terminal.show(format!(
            "fxscope: simulated {}   instructions {}   {executed:.1} MIPS{skipped}",
            quantity(progress.now_ns as f64 / 1e9, "s"),
            quantity(progress.instructions as f64, "instructions"),
        ));
    }

    /// Removes the line before the program uses the terminal; `at_line_start`: where it leaves the cursor.
    pub(super) fn make_way(&self, at_line_start: bool) {
        if let Some(mut terminal) = self.lock() {
            terminal.clear();
            (terminal.at_line_start, terminal.last_use) = (at_line_start, Instant::now());
        }
    }

    /// Removes the line, and ends an unfinished one of the program, so that fxscope's text starts on a new line.
    pub(super) fn end(&self) {
        if let Some(mut terminal) = self.lock() {
            terminal.clear();
            if !std::mem::replace(&mut terminal.at_line_start, true) {
                // Ignored: the terminal may be gone.
                let _ = writeln!(std::io::stderr());
            }
        }
    }

    fn lock(&self) -> Option<MutexGuard<'_, Terminal>> {
        self.terminal.as_ref().map(|terminal| terminal.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Terminal {
    fn show(&mut self, text: String) {
        if !std::mem::replace(&mut self.shown, true) {
            self.bar.reset();
        }
        self.bar.set_message(text);
        self.bar.tick();
    }

    fn clear(&mut self) {
        if std::mem::replace(&mut self.shown, false) {
            self.bar.finish_and_clear();
        }
    }
}
