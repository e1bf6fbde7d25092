//! Snapshots of a run: the options that ask for them, and what is said of them.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use fxscope::record::Run;
use fxscope::report::render::quantity::quantity;
use fxscope::snapshots::{Folder, Writer};
use fxscope::{Checkpoints, Control, Ending, Every, Notice, Prepared, Progress, Scenario, Session, Snapshots, Start};

use super::{Failure, interrupt, say};

/// When snapshots of a run are taken, and where they are.
#[derive(clap::Args)]
pub(super) struct CheckpointArgs {
    /// Save snapshots of the run in this folder, which is made: fxscope resume DIR continues the run from the newest. SIGTERM, SIGINT
    /// and SIGHUP then save one before they end fxscope; SIGUSR1 saves one, and the run continues (docs/checkpoints.md).
    #[arg(long, value_name = "DIR")]
    checkpoint: Option<PathBuf>,
    /// How often: after a time of the host, such as 30s, 10min or 2h, or after instructions, such as 500M or 2G.
    #[arg(long, value_name = "EVERY", default_value = "10min", requires = "checkpoint", value_parser = Every::parse)]
    every: Every,
    /// Keep the newest N snapshots.
    #[arg(long, value_name = "N", default_value_t = 2, requires = "checkpoint", value_parser = clap::value_parser!(u16).range(1..=1000))]
    keep: u16,
}

impl CheckpointArgs {
    /// Returns the folder, if snapshots are asked for.
    pub(super) fn folder(&self) -> Option<&Path> {
        self.checkpoint.as_deref()
    }

    /// Makes the folder for a run with these outputs.
    pub(super) fn start(
        &self,
        scenario: &Scenario,
        prepared: &Prepared,
        (output, json): (Option<&PathBuf>, Option<&PathBuf>),
    ) -> Result<Option<Keeping>, Failure> {
        let Some(path) = &self.checkpoint else { return Ok(None) };
        if scenario.options.clock == fxscope::linux::ClockSource::Host {
            return Err("--checkpoint: the host's clock cannot be saved; use --clock simulated".to_owned().into());
        }
        let snapshots = Snapshots { every: self.every, keep: self.keep.into() };
        let mut start = Start::new(scenario, prepared, snapshots)?;
        (start.output, start.json) = (output.cloned(), json.cloned());
        let folder = Folder::create(path, &start.to_bytes()?)?;
        Ok(Some(Keeping::new(path, folder, snapshots)?))
    }
}

/// The folder to which a run adds snapshots.
pub(super) struct Keeping {
    path: PathBuf,
    folder: Folder,
    writer: Writer,
    every: Every,
}

impl Keeping {
    /// Returns the one of a folder that is locked, at a path as the user writes it.
    pub(super) fn new(path: &Path, folder: Folder, snapshots: Snapshots) -> Result<Keeping, Failure> {
        let writer = folder.writer(snapshots.keep)?;
        interrupt::catch_requests()?;
        Ok(Keeping { path: path.to_owned(), folder, writer, every: snapshots.every })
    }

    /// Splits it into what the run's thread has, and what remains here.
    pub(super) fn split(self, verbose: bool) -> (Taking, Kept) {
        let Keeping { path, folder, writer, every } = self;
        (Taking { writer, every, verbose }, Kept { path, folder })
    }
}

/// What takes snapshots on the run's thread.
pub(super) struct Taking {
    writer: Writer,
    every: Every,
    verbose: bool,
}

impl Taking {
    /// Runs a session with snapshots.
    pub(super) fn run(self, session: Session, watch: &mut dyn FnMut(Progress) -> Control) -> Ending {
        let verbose = self.verbose;
        let notify = |notice: &Notice| match notice {
            Notice::NotRemoved(why) => say(&format!("older snapshots stay: {why}")),
            Notice::Trouble(why) => say(&format!("no snapshot was taken: {why}")),
            Notice::Taken { number, instructions, bytes, took } if verbose => {
                let (at, mib) = (quantity(*instructions as f64, "instructions"), *bytes as f64 / f64::from(1 << 20));
                say(&format!("snapshot {number} at {at} instructions: {mib:.1} MiB in {:.2} s", took.as_secs_f64()));
            }
            Notice::Taken { .. } => {}
        };
        session
            .run_with_snapshots(watch, &mut Checkpoints::new(self.writer, self.every, &interrupt::requested, &notify))
    }
}

/// The folder of a run that is over or suspended.
pub(super) struct Kept {
    path: PathBuf,
    folder: Folder,
}

impl Kept {
    /// Notes that the run has ended. Returns whether that could be noted.
    pub(super) fn ended(&self) -> bool {
        self.folder.set_ended(true).map_err(|why| say(&why.to_string())).is_ok()
    }

    /// Says how to continue a suspended run. Returns the exit status.
    pub(super) fn suspended(&self, snapshot: u64, instructions: u64, output: Option<&Path>) -> ExitCode {
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
pub(super) fn over(ending: Ending, kept: Option<&Kept>) -> Result<Run, ExitCode> {
    match (ending, kept) {
        (Ending::Run(run), _) => Ok(*run),
        (Ending::Suspended { snapshot, instructions, output }, Some(kept)) => {
            Err(kept.suspended(snapshot, instructions, output.as_deref()))
        }
        (Ending::Suspended { .. }, None) => Err(ExitCode::from(interrupt::status())),
    }
}
