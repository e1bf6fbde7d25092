//! Runs that the user waits for: with a line that shows how far they are, and signals that end them.

use std::sync::atomic::Ordering;

use fxscope::record::Run;
use fxscope::{Control, Progress, Session, Window};

use super::Failure;
use super::interrupt::{self, STOP};
use super::progress::ProgressLine;

/// Runs the program; `traced` is what a trace is taken of.
pub(super) fn simulate(session: Session, quiet: bool, traced: Option<&mut Window<'_>>) -> Result<Run, Failure> {
    simulate_with(session, quiet, |session, watch| match traced {
        Some(window) => session.run_traced(watch, window),
        None => session.run(watch),
    })
}

/// Runs the program with `run` until it ends or a signal asks for its end. From then on signals wait: results are being
/// written, which takes a moment and must not be cut short.
pub(super) fn simulate_with(
    mut session: Session,
    quiet: bool,
    run: impl FnOnce(Session, &mut dyn FnMut(Progress) -> Control) -> Run,
) -> Result<Run, Failure> {
    let progress = ProgressLine::new(!quiet);
    interrupt::catch_for(&progress)?;
    if progress.has_terminal() {
        let line = progress.clone();
        session.watch_terminal(move |at_line_start| line.make_way(at_line_start));
    }
    let mut watch = |p| {
        progress.show(&p);
        if STOP.load(Ordering::Relaxed) { Control::Stop } else { Control::Continue }
    };
    let run = run(session, &mut watch);
    interrupt::save();
    progress.end();
    Ok(run)
}
