//! Page walks of a program on an x86 or Arm host, and what large pages would save: estimated from counts, measured without them.
//!
//! Counts of walks bound the gain ([`estimate`]): walks overlap with execution, so that their cycles are an upper bound. Pairs of runs with
//! and without large pages measure it ([`ab`]).

pub mod ab;
mod counted;
pub mod estimate;
pub mod events;
mod latency;
mod show;

use std::ffi::OsString;
use std::path::PathBuf;

use fxscope_hostinfo::memory::Host;
use fxscope_report::document::Document;

use crate::{Error, Progress};
use estimate::{Basis, Estimate};

/// Where counts of walks are from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// A run of the program under this perf.
    Perf(PathBuf),
    /// Output of `perf stat`.
    File(PathBuf),
}

/// A question about a program's page walks.
#[derive(Clone, Debug)]
pub struct Question {
    /// Counts of walks, if wanted.
    pub source: Option<Source>,
    /// The processor that was counted, by id; `None`: that of the host, or of the file's events.
    pub processor: Option<String>,
    /// Cycles of a walk, least and most, for processors that do not count them.
    pub walk_cycles: Option<[f64; 2]>,
    /// Pairs of runs that measure the gain; `None`: none.
    pub pairs: Option<usize>,
    /// The program and its arguments.
    pub command: Vec<OsString>,
}

/// What is known about the gain.
#[derive(Clone, Debug)]
pub struct Answer {
    /// For people.
    pub document: Document,
    /// For programs.
    pub json: serde_json::Value,
}

/// Estimates what large pages would save a program, measures it, or does both and compares.
///
/// # Errors
/// If perf or the program fails, counts are missing, or the host has no control over large pages.
pub fn walks(question: &Question, host: &Host, progress: &dyn Progress) -> Result<Answer, Error> {
    check(question)?;
    // Both concern the same state: with a measurement, the counts are of the program without large pages.
    let estimate = match &question.source {
        Some(Source::File(file)) => Some(counted::of_file(file, question)?),
        Some(Source::Perf(perf)) => Some(counted::of_run(perf, question, progress)?),
        None => None,
    };
    let measured = question.pairs.map(|pairs| ab::measure(&question.command, pairs, host, progress)).transpose()?;
    Ok(Answer {
        document: show::document(question, host, estimate.as_ref(), measured.as_ref()),
        json: show::json(estimate.as_ref(), measured.as_ref()),
    })
}

fn check(question: &Question) -> Result<(), Error> {
    let runs = question.pairs.is_some() || matches!(question.source, Some(Source::Perf(_)));
    if runs && question.command.is_empty() {
        return Err("name the program and its arguments after --".into());
    }
    if !runs && !question.command.is_empty() {
        return Err("no program is run for --perf-file alone: omit it, or measure the gain as well with --check".into());
    }
    if question.pairs.is_some_and(|pairs| pairs < ab::LEAST_PAIRS) {
        let least = ab::LEAST_PAIRS;
        return Err(format!("--pairs must be at least {least}: fewer give no interval of 95 %").into());
    }
    let valid = |[least, most]: [f64; 2]| least >= 0.0 && least <= most && most.is_finite();
    if !question.walk_cycles.is_none_or(valid) {
        return Err("--walk-cycles takes the least and the most cycles of a walk, such as 20,150".into());
    }
    Ok(())
}

/// How far the median of a measurement is from the range of an estimate, as a share of the time: 0 if the range holds it, positive if more
/// is saved.
#[must_use]
pub fn error(estimate: &Estimate, measured: &ab::Measured) -> f64 {
    let [least, most] = estimate.saving;
    measured.saving - measured.saving.clamp(least, most)
}
