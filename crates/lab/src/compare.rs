//! Runs side by side: their differences, and whether these exceed noise.

use fxscope_record::Run;
use fxscope_report::compare::{self, Comparison, Per, Subject};

use crate::Error;
use crate::recorded::of_file;

/// Compares the runs of files with those of the first. Runs of a file with the same settings are repetitions; different runs
/// of one file are compared with each other. `files` are labels and runs; `regions` names the region for all files, or one
/// for each; if it is empty, whole runs are compared, or the only region of measurements that have no more. With `per`, times and counts are
/// given per unit of work.
///
/// # Errors
/// If a file has no run, a run does not have the region, or the work of one is unknown.
pub fn compare(files: &[(String, Vec<Run>)], regions: &[String], per: Option<&Per>) -> Result<Comparison, Error> {
    if let Some((label, _)) = files.iter().find(|(_, runs)| runs.is_empty()) {
        return Err(format!("{label}: has no runs; add one with fxscope run -o FILE.fxr").into());
    }
    let (mut subjects, mut wanted) = (Vec::new(), Vec::new());
    for (i, (label, runs)) in files.iter().enumerate() {
        let its = Subject::of_file(label, runs);
        let region = of_file("--region", regions, i, files.len())?;
        wanted.extend(region.iter().flat_map(|region| its.iter().map(|_| region.as_str())));
        subjects.extend(its);
    }
    let compared = compare::compare(&subjects, &wanted)?;
    Ok(match per {
        Some(per) => compared.per(per)?,
        None => compared,
    })
}
