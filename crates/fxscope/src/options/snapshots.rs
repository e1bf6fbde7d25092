//! Options that ask for snapshots of a run.

use std::path::{Path, PathBuf};

use fxscope::snapshots::Folder;
use fxscope::{Every, Prepared, Scenario, Snapshots, Start};

use crate::foreground::Keeping;
use crate::terminal::Failure;

/// When snapshots of a run are taken, and where they are.
#[derive(clap::Args)]
pub(crate) struct CheckpointArgs {
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
    pub(crate) fn folder(&self) -> Option<&Path> {
        self.checkpoint.as_deref()
    }

    /// Makes the folder for a run with these outputs.
    pub(crate) fn start(
        &self,
        scenario: &Scenario,
        prepared: &Prepared,
        (output, json): (Option<&Path>, Option<&Path>),
    ) -> Result<Option<Keeping>, Failure> {
        let Some(path) = &self.checkpoint else { return Ok(None) };
        let snapshots = Snapshots { every: self.every, keep: self.keep.into() };
        let mut start = Start::new(scenario, prepared, snapshots)?;
        (start.output, start.json) = (output.map(Path::to_owned), json.map(Path::to_owned));
        let folder = Folder::create(path, &start.to_bytes()?)?;
        Ok(Some(Keeping::new(path, folder, snapshots)?))
    }
}
