//! Sweeps: many runs of a program, with settings that a plan varies.
//!
//! A [`Plan`] says what runs, what varies and how ([`Design`]). Each run is one of `fxscope run` in a process of its own, so that
//! its options are those of the command line. Records are kept in the folder of the results by a digest of what they depend
//! on, so that an interrupted sweep continues, and a plan that grows makes only what is new.

mod command;
mod counted;
mod design;
mod effects;
mod execute;
mod plan;
mod show;
mod tables;
mod template;

use std::path::PathBuf;

use fxscope_host::{Found, OutputFile, write_error};

use crate::{Error, Runner};

pub use command::Words;
pub use counted::{Counted, Values};
pub use design::{Design, Point};
pub use effects::{Effect, Level, effects, front, ranking};
pub use execute::{Made, Place, Wanted, jobs, jobs_within, wanted};
pub use plan::{Command, Factor, Goal, Objective, OptionValue, Plan, Scalar, Scale};
pub use tables::Tidy;
pub use template::Template;

/// A sweep whose runs have been made.
#[derive(Clone, Debug)]
pub struct Study {
    /// Its plan.
    pub plan: Plan,
    /// Its runs, in the order of the design.
    pub made: Vec<Made>,
}

/// Makes the runs of a plan that are not in the folder of results yet. `again`: also those that failed before.
///
/// # Errors
/// [`Error::Stopped`], if the design does not fit the plan, a file that the runs need is missing, or the folder cannot be written.
/// A run that fails is a result.
pub fn sweep(plan: Plan, place: &Place, again: bool, runner: Runner<'_>) -> Result<Study, Error> {
    let made = execute::execute(&plan, place, again, runner)?;
    Ok(Study { plan, made })
}

/// Makes one run of a plan, as a worker of a cluster does: that whose record has the name `record`. Files that the plan names by relative paths
/// are in the record as if the plan were in the folder `elsewhere`, an absolute path. Returns why the run failed, if it did; that is kept, too.
///
/// # Errors
/// As for [`sweep`], and if the plan has no such run.
pub fn sweep_one(
    plan: &Plan,
    place: &Place,
    record: &str,
    elsewhere: &std::path::Path,
    runner: Runner<'_>,
) -> Result<Result<(), String>, Error> {
    execute::execute_one(plan, place, record, elsewhere, runner)
}

/// Returns the runs that a plan wants, for programs: the value of each factor, the words of the command line, the record, and whether
/// it is kept already.
#[must_use]
pub fn wanted_json(wanted: &[Wanted]) -> serde_json::Value {
    let run = |(number, run): (usize, &Wanted)| {
        serde_json::json!({
            "run": number,
            "factors": run.point.iter().map(|(name, value)| (name, value.json())).collect::<std::collections::BTreeMap<_, _>>(),
            "options": run.words.options,
            "command": run.words.command,
            "inputs": run.words.inputs,
            "record": run.record,
            "kept": run.is_kept,
        })
    };
    (1..).zip(wanted).map(run).collect()
}

impl Study {
    /// Writes all results into the folder of the sweep, each file whole or not at all: `results.csv` and `results.sqlite` with all
    /// values, and `index.html`. Returns the files.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn write(&self, place: &Place) -> Result<Vec<PathBuf>, Error> {
        let [csv, sqlite, page] = ["results.csv", "results.sqlite", "index.html"].map(|name| place.results.join(name));
        let tidy = Tidy::of(&self.plan, &self.made);
        replace(&csv, |file| tidy.write_csv(file))?;
        tidy.write_sqlite(&sqlite)?;
        let html = self.page();
        replace(&page, |file| std::io::Write::write_all(file, html.as_bytes()))?;
        Ok(vec![csv, sqlite, page])
    }
}

/// Replaces a file atomically.
fn replace(path: &std::path::Path, write: impl FnOnce(&mut std::fs::File) -> std::io::Result<()>) -> Result<(), Error> {
    let failed = |e: std::io::Error| Error::Request(format!("{}: {}", path.display(), write_error(&e)));
    match OutputFile::find(path).map_err(failed)? {
        Found::File(file) => file.replace(write).map_err(failed),
        Found::Folder | Found::Stream => Err(format!("{}: is no file that can be replaced", path.display()).into()),
    }
}
