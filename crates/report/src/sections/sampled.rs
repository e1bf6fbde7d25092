//! How runs were sampled, and what to do if estimates are not to be trusted.

use std::collections::BTreeSet;

use fxscope_pmu::sampled::LEAST_WINDOWS;
use fxscope_record::{Run, Sample};
use fxscope_sampling::{Plan, Precision, windows_needed};

use super::plain;
use crate::Column;
use crate::document::{Body, Section};
use crate::render::quantity::{digits, quantity};

/// The share of instructions in blocks that no window has seen from which estimates are distrusted.
const MOST_UNSEEN: f64 = 0.02;
/// Regions named in a warning.
const NAMED: usize = 4;

/// Returns how the runs were sampled; nothing if none was.
pub(super) fn section(columns: &[Column]) -> Section {
    let mut notes: Vec<String> = Vec::new();
    for column in columns {
        let Some(sample) = &column.run.sample else { continue };
        let sentences =
            [Some(made(sample)), too_few(column.run, sample), unseen(column.run, sample), too_wide(column, sample)];
        for note in sentences.into_iter().flatten() {
            if !notes.contains(&note) {
                notes.push(note);
            }
        }
    }
    Section { title: "Sampled".to_owned(), body: Body::Notes(notes) }
}

/// What was timed.
fn made(sample: &Sample) -> String {
    let unseen = sample.regions.first().map_or(0.0, |all| all.unseen);
    let intervals = match sample.windows < LEAST_WINDOWS {
        true => String::new(),
        false => format!("; ± at {} %", digits(100.0 * sample.confidence).trim_end_matches('0').trim_end_matches('.')),
    };
    format!(
        "{} windows, {} of the instructions timed, {} in blocks that no window has seen{intervals}.",
        sample.windows,
        quantity(sample.timed_share(), "ratio"),
        quantity(unseen, "ratio"),
    )
}

/// Says that there are no intervals, and why.
fn too_few(run: &Run, sample: &Sample) -> Option<String> {
    (sample.windows < LEAST_WINDOWS).then(|| {
        format!(
            "Estimates have no intervals, since {} windows are too few; at least {LEAST_WINDOWS} are needed. Time the whole program, \
             without --sample, or give a smaller period, such as {}.",
            sample.windows,
            suggestion(run, sample, 2 * LEAST_WINDOWS)
        )
    })
}

/// Warns of code that no window has seen.
fn unseen(run: &Run, sample: &Sample) -> Option<String> {
    let regions = run.regions.iter().zip(&sample.regions).filter(|(_, known)| known.unseen > MOST_UNSEEN);
    let mut names: Vec<String> = regions.map(|(region, _)| plain(&region.name)).collect();
    if names.is_empty() {
        return None;
    }
    let more = names.len().saturating_sub(NAMED);
    names.truncate(NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    Some(format!(
        "Distrust the estimates of {}{more}: more than {:.0} % of the instructions are in blocks that no window has seen, and no interval \
         shows what they cost. A smaller period sees more of them, such as {}.",
        names.join(", "),
        100.0 * MOST_UNSEEN,
        suggestion(run, sample, 2 * sample.windows.max(LEAST_WINDOWS))
    ))
}

/// Says how many windows are needed if time is not known as well as was asked for.
fn too_wide(column: &Column, sample: &Sample) -> Option<String> {
    let sampled = column.sampled.as_ref()?;
    let relative = sampled.interval(|sums| sums.metric("seconds"))?.relative();
    let by_windows = sampled.interval_of_windows(|sums| sums.metric("seconds"))?.relative();
    let precision = Precision { error: sample.error, confidence: sample.confidence };
    if relative <= precision.error {
        return None;
    }
    let known = format!("Time is known to ±{} only", quantity(relative, "ratio"));
    if by_windows <= precision.error {
        return Some(format!("{known}, by how long threads wait for each other: more windows would not change that."));
    }
    let needed = windows_needed(by_windows, sample.windows, &precision)?;
    let advice = match has_room(sample, needed) {
        true => format!("such as with {}", suggestion(column.run, sample, needed)),
        false => "which would time most of the run. Time all of it, without --sample, or be content with less, such as with --error"
            .to_owned(),
    };
    Some(format!(
        "{known}, not to ±{}: about {} more windows are needed, {advice}.",
        quantity(precision.error, "ratio"),
        needed.saturating_sub(sample.windows),
    ))
}

/// Returns whether this number of windows, as long as those of the sample, would leave half of the run's instructions untimed.
fn has_room(sample: &Sample, windows: u64) -> bool {
    let timed = u128::from(sample.timed) * u128::from(windows) / u128::from(sample.windows.max(1));
    2 * timed < u128::from(sample.instructions())
}

/// Returns options with which the run has about this number of windows. The plan keeps samples, of which a window has one for each core.
fn suggestion(run: &Run, sample: &Sample, windows: u64) -> String {
    let threads = run.regions.first().map_or(&[][..], |all| &all.threads);
    let cores = threads.iter().map(|thread| thread.cpu).collect::<BTreeSet<u32>>().len() as u64;
    let plan: Plan = sample.plan.parse().unwrap_or_default();
    let period = u128::from(plan.period) * u128::from(sample.windows.max(1)) / u128::from(windows.max(1));
    let least = u128::from(plan.window) + u128::from(plan.warm) + 1;
    format!(
        "--sample period={},keep={}",
        period.clamp(least, u128::from(plan.period).max(least)),
        windows.saturating_mul(cores.max(1)).max(plan.keep)
    )
}
