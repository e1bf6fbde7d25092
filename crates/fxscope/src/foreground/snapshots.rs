//! Snapshots of a run: how they are taken, and what is said of them.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use fxscope::record::Run;
use fxscope::report::render::quantity::quantity;
use fxscope::snapshots::{Folder, Writer};
use fxscope::{Checkpoints, Control, Ending, Every, Notice, Progress, Session, Snapshots};

use crate::terminal::{Failure, interrupt, say};

/// The folder to which a run adds snapshots.
pub(crate) struct Keeping {
    path: PathBuf,
    folder: Folder,
    writer: Writer,
    every: Every,
}

impl Keeping {
    /// Returns the one of a folder that is locked, at a path as the user writes it.
    pub(crate) fn new(path: &Path, folder: Folder, snapshots: Snapshots) -> Result<Keeping, Failure> {
        let writer = folder.writer(snapshots.keep)?;
        interrupt::catch_requests()?;
        Ok(Keeping { path: path.to_owned(), folder, writer, every: snapshots.every })
    }

    /// Splits it into what the run's thread has, and what remains here.
    pub(crate) fn split(self, verbose: bool) -> (Taking, Kept) {
        let Keeping { path, folder, writer, every } = self;
        (Taking { writer, every, verbose }, Kept { path, folder })
    }
}

/// What takes snapshots on the run's thread.
pub(crate) struct Taking {
    writer: Writer,
    every: Every,
    verbose: bool,
}

impl Taking {
    /// Runs a session with snapshots.
    pub(crate) fn run(self, session: Session, watch: &mut dyn FnMut(Progress) -> Control) -> Ending {
        let verbose = self.verbose;
        let notify = |notice: &Notice| match notice {
            Notice::Taken { .. } if !verbose => {}
            notice => say(&notice.to_string()),
        };
        session
            .run_with_snapshots(watch, &mut Checkpoints::new(self.writer, self.every, &interrupt::requested, &notify))
    }
}

/// The folder of a run that is over or suspended.
pub(crate) struct Kept {
    path: PathBuf,
    folder: Folder,
}

impl Kept {
    /// Notes that the run has ended. Returns whether that could be noted.
    pub(crate) fn ended(&self) -> bool {
        self.folder.set_ended(true).map_err(|why| say(&why.to_string())).is_ok()
    }

    /// Says how to continue a suspended run. Returns the exit status.
    pub(crate) fn suspended(&self, snapshot: u64, instructions: u64, output: Option<&Path>) -> ExitCode {
        // It may have ended once, and been continued from an earlier snapshot.
        if let Err(why) = self.folder.set_ended(false) {
            say(&why.to_string());
        }
        let at = quantity(instructions as f64, "instructions");
        let redirection = output.map(|path| format!(" >> {}", path.display())).unwrap_or_default();
        say(&format!(
            "{}: the run is suspended in snapshot {snapshot}, at {at} instructions; continue it with: fxscope resume {}{redirection}",
            interrupt::name(),
            self.path.display(),
        ));
        ExitCode::from(interrupt::status())
    }
}

/// Returns the run, if it is over.
pub(crate) fn over(ending: Ending, kept: Option<&Kept>) -> Result<Run, ExitCode> {
    match (ending, kept) {
        (Ending::Run(run), _) => Ok(*run),
        (Ending::Suspended { snapshot, instructions, output }, Some(kept)) => {
            Err(kept.suspended(snapshot, instructions, output.as_deref()))
        }
        (Ending::Suspended { .. }, None) => Err(ExitCode::from(interrupt::status())),
    }
}
