//! The line that shows how far a long run is.

use std::io::IsTerminal as _;
use std::time::{Duration, Instant};

use fxscope::Progress;
use fxscope::report::render::quantity::quantity;
use indicatif::{ProgressBar, ProgressStyle};

/// Runs shorter than this show nothing.
const PATIENCE: Duration = Duration::from_secs(1);

/// A line on standard error, redrawn while a run goes on; silent when that is no terminal.
pub(super) struct ProgressLine {
    start: Instant,
    wanted: bool,
    bar: Option<ProgressBar>,
}

impl ProgressLine {
    pub(super) fn new(wanted: bool) -> ProgressLine {
        ProgressLine { start: Instant::now(), wanted: wanted && std::io::stderr().is_terminal(), bar: None }
    }

    /// Shows how far the run is.
    pub(super) fn show(&mut self, progress: &Progress) {
        let elapsed = self.start.elapsed();
        if !self.wanted || elapsed < PATIENCE {
            return;
        }
        let bar = self.bar.get_or_insert_with(|| {
            let style = ProgressStyle::with_template("{msg}").unwrap_or_else(|_| ProgressStyle::default_spinner());
            ProgressBar::new_spinner().with_style(style)
        });
        let mips = progress.instructions as f64 / 1e6 / elapsed.as_secs_f64();
        bar.set_message(format!(
            "fxscope: simulated {}   instructions {}   {mips:.1} MIPS",
            quantity(progress.now_ns as f64 / 1e9, "s"),
            quantity(progress.instructions as f64, "instructions"),
        ));
        bar.tick();
    }

    /// Removes the line.
    pub(super) fn clear(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
