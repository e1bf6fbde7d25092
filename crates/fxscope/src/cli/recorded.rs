//! Runs of record files.

use std::path::Path;

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
