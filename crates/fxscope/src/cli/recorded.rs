//! Runs of record files.

use std::path::{Path, PathBuf};

use fxscope::record::{self, Run};

use super::Failure;

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
