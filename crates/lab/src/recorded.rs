//! Runs of record files: which of them is meant, what the files are called, and whether one can be repeated.

use std::path::{Path, PathBuf};

use fxscope_machine::Spec;
use fxscope_record::{Origin, Run, digest, load};
use fxscope_session::{MAX_PROGRAM_BYTES, spec_of};

use crate::Error;

/// Returns a run of a record file, and its number: the one asked for, counted from 1, or the last.
///
/// # Errors
/// If the file cannot be read, or does not have that run.
pub fn run_of(path: &Path, number: Option<u32>) -> Result<(usize, Run), Error> {
    let mut runs = loaded(path)?;
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
fn runs_of(path: &Path, number: Option<u32>) -> Result<Vec<Run>, Error> {
    match number {
        Some(_) => Ok(vec![run_of(path, number)?.1]),
        None => loaded(path),
    }
}

fn loaded(path: &Path) -> Result<Vec<Run>, Error> {
    load(path).map_err(|error| Error::Request(error.to_string()))
}

/// Returns the value of an option that is given once for all files, or once for each; `None`: it is not given.
///
/// # Errors
/// If it is given another number of times.
pub fn of_file<'a, T>(option: &str, values: &'a [T], file: usize, files: usize) -> Result<Option<&'a T>, Error> {
    if values.len() > 1 && values.len() != files {
        let given = values.len();
        return Err(format!("{option} is given {given} times for {files} files: once for all, or once for each").into());
    }
    Ok(values.get(file).or(values.first()))
}

/// Returns the label of each file: the one given, or what `usual` says about it.
///
/// # Errors
/// If there are more labels than files.
fn labels(given: &[String], files: &[PathBuf], usual: impl Fn(&Path) -> String) -> Result<Vec<String>, Error> {
    if given.len() > files.len() {
        return Err(format!("--label is given {} times for {} files", given.len(), files.len()).into());
    }
    let of = |(i, path): (usize, &PathBuf)| given.get(i).cloned().unwrap_or_else(|| usual(path));
    Ok(files.iter().enumerate().map(of).collect())
}

/// Returns the label and the runs of each record file: those of `numbers`, given once for all files or once for each and counted from 1, or
/// all. A file without a label of its own has the one that `usual` says.
///
/// # Errors
/// If there are more labels than files, numbers for some of the files only, or a file cannot be read or does not have its run.
pub fn runs_of_files(
    files: &[PathBuf],
    numbers: &[u32],
    given: &[String],
    usual: impl Fn(&Path) -> String,
) -> Result<Vec<(String, Vec<Run>)>, Error> {
    let labels = labels(given, files, usual)?;
    let runs = |(i, path): (usize, &PathBuf)| {
        let number = of_file("--run", numbers, i, files.len())?;
        runs_of(path, number.copied())
    };
    let runs = files.iter().enumerate().map(runs).collect::<Result<Vec<_>, _>>()?;
    Ok(labels.into_iter().zip(runs).collect())
}

/// Returns the runs of all files with their loops, each with a label of its own: those of a file with several are numbered. Files without a
/// label give none to their runs.
#[must_use]
pub fn one_by_one(files: Vec<(String, Vec<Run>)>) -> (Vec<Run>, Vec<String>) {
    let (mut all, mut labels) = (Vec::new(), Vec::new());
    for (label, runs) in files {
        let several = runs.len() > 1;
        for (n, run) in (1..).zip(runs) {
            all.push(with_loops(run));
            labels.push(if several && !label.is_empty() { format!("{label}#{n}") } else { label.clone() });
        }
    }
    (all, labels)
}

/// Returns a run with its loops, and the machine it ran on: the one that is named, or as the record describes it.
///
/// # Errors
/// If there is no such machine.
pub fn with_machine(run: Run, machine: Option<&str>) -> Result<(Run, Spec), Error> {
    let hint = if machine.is_some() { "" } else { "; --machine PATH names its description" };
    let spec = spec_of(&run, machine).map_err(|e| format!("the machine of the run: {e}{hint}"))?;
    Ok((fxscope_session::with_loops(run, &spec), spec))
}

/// Returns a file's name without folder and suffix.
#[must_use]
pub fn stem(path: &Path) -> String {
    path.file_stem().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

/// Returns a run with its loops, which records of older versions lack. Without its machine or its files, there are none.
#[must_use]
pub fn with_loops(run: Run) -> Run {
    if !run.profile.loops.is_empty() || run.hot_spots.is_empty() {
        return run;
    }
    match spec_of(&run, None) {
        Ok(spec) => fxscope_session::with_loops(run, &spec),
        Err(_) => run,
    }
}

/// Returns a run of a record file that can be made again, for the command of fxscope that is called `command`, and a warning if its program
/// has changed since.
///
/// # Errors
/// If there is no such run, it was measured, or its program is not known or not there.
pub fn repeatable(path: &Path, number: Option<u32>, command: &str) -> Result<(Run, Option<String>), Error> {
    let instead = format!("fxscope {command} -- PROGRAM [ARGS]");
    let (number, run) = run_of(path, number)
        .map_err(|error| Error::Request(format!("{error}; a program comes after --: {instead}")))?;
    let shown = path.display();
    let instead = format!("name it instead: {instead}");
    let program = run.program();
    let refused = match &run.origin {
        Origin::Imported { format, .. } => {
            Some(format!("run {number} was measured ({format}) and cannot be repeated here; {instead}"))
        }
        _ if program.is_empty() => Some(format!("run {number} does not name its program; {instead}")),
        _ if !Path::new(program).exists() => Some(format!(
            "the program of run {number}, {program}, does not exist; change to the folder it was run from, or {instead}"
        )),
        _ => None,
    };
    match refused {
        Some(why) => Err(format!("{shown}: {why}").into()),
        None => {
            let warning = changed(&run);
            Ok((run, warning))
        }
    }
}

/// Returns a warning if the program has changed since it was recorded.
fn changed(run: &Run) -> Option<String> {
    let recorded = run.files.first().filter(|file| !file.digest.is_empty())?;
    let now = fxscope_host::read(Path::new(run.program()), MAX_PROGRAM_BYTES).ok()?;
    (digest(&now) != recorded.digest)
        .then(|| format!("{} has changed since it was recorded; the advice is for the current file", run.program()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_is_given_once_for_all_files_or_once_for_each() {
        let value = |values: &[u32], file| of_file("--run", values, file, 3).map(Option::<&u32>::copied);
        assert_eq!(value(&[], 2).expect("not given"), None);
        assert_eq!(value(&[7], 2).expect("for all"), Some(7));
        assert_eq!(value(&[7, 8, 9], 2).expect("for each"), Some(9));
        let told = value(&[7, 8], 0).expect_err("for two of three").to_string();
        assert!(told.starts_with("--run is given 2 times for 3 files"), "{told}");
    }

    #[test]
    fn files_without_a_label_are_called_as_usual() {
        let files = ["a/one.fxr", "two.fxr"].map(PathBuf::from);
        let given = labels(&["first".to_owned()], &files, stem).expect("fewer labels than files");
        assert_eq!(given, ["first", "two"]);
        assert!(labels(&["a", "b", "c"].map(str::to_owned), &files, stem).is_err());
    }
}
