//! Runs of record files.

use std::path::{Path, PathBuf};

use fxscope::record::{self, Origin, Run};
use fxscope::{MAX_PROGRAM_BYTES, Scenario};

use super::scenario::ScenarioArgs;
use super::{Failure, say};

/// Returns a run of a record file, and its number: the one asked for, counted from 1, or the last.
pub(super) fn run_of(path: &Path, number: Option<u32>) -> Result<(usize, Run), Failure> {
    let mut runs = record::load(path)?;
    let (count, shown) = (runs.len(), path.display());
    let number = number.map_or(count, |n| n as usize);
    if number == 0 || number > count {
        return Err(format!(
            "{shown}: there is no run {number}, the file holds {count}; add one with fxscope run -o {shown}"
        )
        .into());
    }
    Ok((number, runs.swap_remove(number - 1)))
}

/// Returns the runs of a record file: the one asked for, counted from 1, or all.
pub(super) fn runs_of(path: &Path, number: Option<u32>) -> Result<Vec<Run>, Failure> {
    match number {
        Some(_) => Ok(vec![run_of(path, number)?.1]),
        None => Ok(record::load(path)?),
    }
}

/// Returns the value of an option that is given once for all files, or once for each.
pub(super) fn of_file<'a, T>(
    option: &str,
    values: &'a [T],
    file: usize,
    files: usize,
) -> Result<Option<&'a T>, Failure> {
    if values.len() > 1 && values.len() != files {
        let given = values.len();
        return Err(format!("{option} is given {given} times for {files} files: once for all, or once for each").into());
    }
    Ok(values.get(file).or(values.first()))
}

/// Returns the label of each file: the one given, or what `usual` says about it.
pub(super) fn labels(
    given: &[String],
    files: &[PathBuf],
    usual: impl Fn(&Path) -> String,
) -> Result<Vec<String>, Failure> {
    if given.len() > files.len() {
        return Err(format!("--label is given {} times for {} files", given.len(), files.len()).into());
    }
    let of = |(i, path): (usize, &PathBuf)| given.get(i).cloned().unwrap_or_else(|| usual(path));
    Ok(files.iter().enumerate().map(of).collect())
}

/// Returns a run with its loops, which records of older versions lack. Without its machine or its files, there are none.
pub(super) fn with_loops(run: Run) -> Run {
    if !run.profile.loops.is_empty() || run.hot_spots.is_empty() {
        return run;
    }
    match fxscope::spec_of(&run, None) {
        Ok(spec) => fxscope::with_loops(run, &spec),
        Err(_) => run,
    }
}

/// Returns a scenario that repeats a run of a record file for `command`; options that are given override the record, and of `region` only
/// the executions are timed.
pub(super) fn repeated(
    options: &ScenarioArgs,
    path: &Path,
    number: Option<u32>,
    region: Option<&str>,
    command: &str,
) -> Result<Scenario, Failure> {
    let (number, run) = run_of(path, number).map_err(|failure| Failure {
        message: format!("{}; a program comes after --: fxscope {command} -- PROGRAM [ARGS]", failure.message),
        ..failure
    })?;
    let shown = path.display();
    let instead = format!("name it instead: fxscope {command} -- PROGRAM [ARGS]");
    if let Origin::Imported { format, .. } = &run.origin {
        return Err(
            format!("{shown}: run {number} was measured ({format}) and cannot be repeated here; {instead}").into()
        );
    }
    if run.program().is_empty() {
        return Err(format!("{shown}: run {number} does not name its program; {instead}").into());
    }
    if !Path::new(run.program()).exists() {
        let program = run.program();
        return Err(format!(
            "{shown}: the program of run {number}, {program}, does not exist; change to the folder it was run from, or {instead}"
        )
        .into());
    }
    changed(&run).iter().for_each(|message| say(message));
    let mut scenario = options.repeating(&run);
    options.time_region(&mut scenario, region)?;
    Ok(scenario)
}

/// Returns a warning if the program has changed since it was recorded.
fn changed(run: &Run) -> Option<String> {
    let recorded = run.files.first().filter(|file| !file.digest.is_empty())?;
    let now = fxscope::host::read(Path::new(run.program()), MAX_PROGRAM_BYTES).ok()?;
    (record::digest(&now) != recorded.digest)
        .then(|| format!("{} has changed since it was recorded; the advice is for the current file", run.program()))
}
