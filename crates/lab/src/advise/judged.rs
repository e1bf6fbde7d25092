//! The regions that advice is about, with their times and verdicts.

use fxscope_pmu::{Evaluation, Sampled};
use fxscope_record::{ALL, Run};
use fxscope_report::verdict::{Verdict, verdict};

use crate::Error;

/// Smallest share of the run's time for which a region is judged.
const LEAST: f64 = 0.05;
/// Most regions that are judged beside the whole run.
const MOST: usize = 8;

/// A region with its verdict.
#[derive(Clone, Debug)]
pub struct Judged {
    /// Its name.
    pub name: String,
    /// Its share of the time of the first one that is judged.
    pub share: f64,
    /// Its time.
    pub time: Time,
    /// The verdict on it.
    pub verdict: Verdict,
}

/// A time, and the energy that it takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Time {
    /// Seconds.
    pub seconds: f64,
    /// Half of the width of its interval, seconds; 0 if it is not an estimate.
    pub half_width: f64,
    /// Energy of the chip in that time, J; `None` if the machine's events do not tell.
    pub energy: Option<f64>,
}

/// Judges the region called `name`; if it is `None`, the whole run and the regions that take much of its time, the longest first.
pub(super) fn regions(run: &Run, name: Option<&str>) -> Result<Vec<Judged>, Error> {
    let first = judged(run, name.unwrap_or(ALL), None)?;
    if name.is_some() {
        return Ok(vec![first]);
    }
    let whole = first.time.seconds;
    let others = run.regions.iter().filter(|region| region.name != ALL);
    let mut others: Vec<Judged> = others.filter_map(|region| judged(run, &region.name, Some(whole)).ok()).collect();
    others.retain(|region| region.share >= LEAST);
    others.sort_by(|a, b| b.share.total_cmp(&a.share));
    others.truncate(MOST);
    Ok([vec![first], others].concat())
}

/// Judges a region of a run that takes `whole` seconds.
fn judged(run: &Run, name: &str, whole: Option<f64>) -> Result<Judged, Error> {
    let time = time(run, name)?;
    let found = run.region(name).ok_or_else(|| missing(name))?;
    let judged = verdict(run, found, &Evaluation::new(run, found), fxscope_session::hottest);
    let verdict = judged.ok_or("the run has no verdict: advice needs simulated time (--mode timing)")?;
    Ok(Judged { name: name.to_owned(), share: time.seconds / whole.unwrap_or(time.seconds), time, verdict })
}

/// Returns the time of a region.
///
/// # Errors
/// If the run has no such region, or it took no time.
pub(super) fn time(run: &Run, name: &str) -> Result<Time, Error> {
    let found = run.region(name).ok_or_else(|| missing(name))?;
    let total = Evaluation::new(run, found).total();
    let seconds = total.get("seconds").filter(|seconds| *seconds > 0.0);
    let half_width = Sampled::of(run, found).and_then(|sampled| sampled.of_metric("seconds")).unwrap_or(0.0);
    let seconds = seconds.ok_or_else(|| format!("region '{name}' took no time"))?;
    Ok(Time { seconds, half_width, energy: total.get("energy") })
}

fn missing(name: &str) -> String {
    format!("the program marked no region '{name}'")
}
