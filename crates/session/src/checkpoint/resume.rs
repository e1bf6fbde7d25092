//! Which snapshots a run continues from, and what a folder has of it.

use std::fmt::Write as _;
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use fxscope_checkpoint::{Folder, Listed};
use fxscope_host::text::printable_lines;
use fxscope_linux::{StartError, Stdio};
use fxscope_report::render::quantity::quantity;
use fxscope_sim::Mode;

use super::mebibytes;
use crate::{Error, Session, Start};

impl Start {
    /// Returns the numbers of the snapshots from which the run of a folder can continue, the newest first: `at`, if that is asked for,
    /// otherwise all whole ones. `left_out` receives a message about each that is not whole. `shown` is the folder's path, as the user writes it.
    ///
    /// # Errors
    /// If the run has ended, or there is no whole snapshot.
    pub fn candidates(
        folder: &Folder,
        at: Option<u64>,
        shown: &Path,
        left_out: &mut dyn FnMut(String),
    ) -> Result<Vec<u64>, Error> {
        if let Some(number) = at {
            return Ok(vec![number]);
        }
        let refused = |why: &str| Err(Error::Snapshots(format!("{}: {why}", shown.display())));
        if folder.has_ended() {
            return refused("the run has ended; to go back to a snapshot, name it with --at N (--list shows them)");
        }
        let mut numbers = Vec::new();
        for Listed { number, about, .. } in folder.snapshots()?.into_iter().rev() {
            match about {
                Ok(_) => numbers.push(number),
                Err(why) => left_out(format!("snapshot {number} is left out: {why}")),
            }
        }
        if numbers.is_empty() {
            return refused("has no whole snapshot; start the run again, with another folder");
        }
        Ok(numbers)
    }

    /// Continues the run in its folder at `path` from the newest of some snapshots that turns out to be whole; to be called in its
    /// directory. `numbers` are those of the snapshots, the newest first; `left_out` receives a message about each that is damaged. `stdio` makes the
    /// program's standard streams, if they differ from those of this process.
    ///
    /// # Errors
    /// If no snapshot is whole, or something that the run needs is not what it was.
    pub fn resume<R: Send>(
        &self,
        (folder, path): (&Folder, &Path),
        numbers: &[u64],
        stdio: &dyn Fn() -> std::io::Result<Option<Stdio>>,
        left_out: &mut dyn FnMut(String),
        mut with: impl FnMut(Session) -> R + Send,
    ) -> Result<R, Error> {
        let mut attempt = |number: u64| {
            let prepared = self.prepare()?.protecting(path);
            let stdio = stdio().map_err(StartError::Host)?;
            prepared.resumed(stdio, &folder.snapshot(number)?, &mut with)
        };
        let (&oldest, newer) =
            numbers.split_last().ok_or_else(|| Error::Snapshots("there is no snapshot to continue from".to_owned()))?;
        for &number in newer {
            match attempt(number) {
                Err(error) if error.is_damage() => left_out(format!("snapshot {number} is left out: {error}")),
                result => return result,
            }
        }
        attempt(oldest)
    }

    /// Returns a table of the snapshots of the run in a folder, as text.
    ///
    /// # Errors
    /// If the folder cannot be read.
    pub fn table(&self, folder: &Folder) -> Result<String, Error> {
        let words = self.scenario.command();
        let command: Vec<_> = words.iter().map(|word| word.to_string_lossy()).collect();
        let mode = match (self.scenario.options.mode, &self.scenario.options.sample) {
            (Mode::Functional, _) => "functional",
            (Mode::Timing, Some(_)) => "sampled",
            (Mode::Timing, None) => "timing",
        };
        let ended = if folder.has_ended() { "; the run has ended" } else { "" };
        let mut text = format!("{} on {}, {mode}{ended}\n", command.join(" "), self.scenario.machine);
        let _ = writeln!(
            text,
            "{:>8}  {:>13}  {:>10}  {:20}  {:>10}",
            "snapshot", "instructions", "simulated", "taken", "added"
        );
        for snapshot in folder.snapshots()? {
            let _ = writeln!(text, "{}", row(&snapshot));
        }
        Ok(printable_lines(&text).into_owned())
    }
}

/// Returns the row of a snapshot.
fn row(Listed { number, about, bytes }: &Listed) -> String {
    match about {
        Ok(about) => format!(
            "{number:>8}  {:>13}  {:>10}  {}  {:>6.1} MiB",
            about.instructions,
            quantity(about.now_ns as f64 / 1e9, "s"),
            humantime::format_rfc3339_seconds(UNIX_EPOCH + Duration::from_secs(about.unix_seconds)),
            mebibytes(*bytes),
        ),
        Err(why) => format!("{number:>8}  cannot be used: {why}"),
    }
}
