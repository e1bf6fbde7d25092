//! A process that times intervals of a run that another one executes.

use std::fs::{self, File};
use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use super::files::{self, Kind, Pulse, host};
use super::{BEAT, LOOK, SpoolError};

/// How a process helps.
pub struct Helper<'a> {
    /// After how long without a sign of life the run has died, and how long is waited for one to begin.
    pub lost_after: Duration,
    /// Returns whether it is to stop. An interval that has been begun is timed before.
    pub stopped: &'a dyn Fn() -> bool,
}

/// Times intervals that appear in a folder until the run that uses it is over, or it is to stop. Returns how many.
/// The folder may be made later, by the run.
///
/// # Errors
/// When no run uses the folder, the run has died or is of another version, or a file cannot be read or written.
pub fn help(folder: &Path, helper: &Helper<'_>) -> Result<usize, SpoolError> {
    if !waited_for_run(folder, helper)? {
        return Ok(0);
    }
    let (mut timed, mut pulse) = (0, Pulse::new());
    while !(helper.stopped)() {
        match pulse.look(&folder.join(files::RUN)) {
            None => break,
            Some(quiet) if quiet > helper.lost_after => return Err(SpoolError::Dead(folder.display().to_string())),
            Some(_) => {}
        }
        match one(folder)? {
            true => timed += 1,
            false => std::thread::sleep(LOOK),
        }
    }
    Ok(timed)
}

/// Waits until a run uses the folder. Returns whether one does; otherwise it is to stop.
fn waited_for_run(folder: &Path, helper: &Helper<'_>) -> Result<bool, SpoolError> {
    let begin = Instant::now();
    while !(helper.stopped)() {
        if files::check_run(folder)? {
            return Ok(true);
        }
        if begin.elapsed() > helper.lost_after {
            return Err(SpoolError::NoRun(folder.display().to_string()));
        }
        std::thread::sleep(LOOK);
    }
    Ok(false)
}

/// Times an interval, if one waits. Returns whether that is so.
fn one(folder: &Path) -> Result<bool, SpoolError> {
    // A folder that is gone is that of a run that is over.
    let Ok(found) = files::list(folder) else { return Ok(false) };
    for &number in found.get(&Kind::Interval).into_iter().flatten() {
        let claimed = Kind::Claimed.path(folder, number);
        // Another process may have been faster.
        if fs::rename(Kind::Interval.path(folder, number), &claimed).is_err() {
            continue;
        }
        let Ok(file) = File::options().append(true).open(&claimed) else { continue };
        let timed = beating(&file, || time(folder, number, &claimed));
        let _ = match &timed {
            // The run ends with this message.
            Err(why @ SpoolError::Parcel { .. }) => {
                files::write(&Kind::Failed.path(folder, number), why.to_string().as_bytes())
            }
            // Here it cannot be timed, perhaps elsewhere.
            Err(_) => fs::rename(&claimed, Kind::Interval.path(folder, number)),
            Ok(_) => Ok(()),
        };
        return timed;
    }
    Ok(false)
}

/// Times an interval that has been claimed. Returns whether it is still wanted.
fn time(folder: &Path, number: usize, claimed: &Path) -> Result<bool, SpoolError> {
    let Some(file) = files::read(claimed)? else { return Ok(false) };
    let counts = files::interval_of(claimed, &file)?.time();
    let path = Kind::Counts.path(folder, number);
    let written = files::counts_file(&counts, &file).and_then(|bytes| files::write(&path, &bytes));
    match written {
        Ok(()) => {
            let _ = fs::remove_file(claimed);
            Ok(true)
        }
        Err(_) if !folder.exists() => Ok(false),
        Err(why) => Err(host(&path)(why)),
    }
}

/// Does work, and shows meanwhile by a file that this process lives.
fn beating<R>(file: &File, work: impl FnOnce() -> R) -> R {
    std::thread::scope(|scope| {
        let (working, ended) = channel::<()>();
        scope.spawn(move || {
            while ended.recv_timeout(BEAT) == Err(RecvTimeoutError::Timeout) {
                files::beat(file);
            }
        });
        let result = work();
        drop(working);
        result
    })
}
