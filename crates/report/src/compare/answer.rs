//! What a comparison answers first: which run is faster, by how much, and which parts of the time make the difference.

use super::analysis::{Comparison, Quantity};
use super::per::Per;
use crate::render::quantity;
use crate::sections::plain;

/// The metrics that tell how long a run took, the best first.
const TIMES: [&str; 2] = ["seconds", "cycles"];
/// Differences of time below this share are none.
const NONE: f64 = 0.000_5;
/// Up to this ratio, a difference is given in percent.
const IN_PERCENT: f64 = 1.2;
/// Ratios of instructions and of their cycles that differ less from 1 explain nothing.
const ALIKE: f64 = 0.01;
/// Parts of the time that the answer names, and the share of the difference that each has at least.
const NAMED: usize = 3;
const NAMED_SHARE: f64 = 0.05;

/// By how much a part of the time differs from the first subject.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Difference<'a> {
    /// The part.
    pub part: &'a Quantity,
    /// Value of the subject less that of the first, in the part's unit.
    pub difference: f64,
    /// Its share of the difference of all parts together; `None` if they do not differ. Parts that became less while the sum became more
    /// have negative shares.
    pub share: Option<f64>,
}

/// Parses a percentage that is not negative, such as `2%` or `0.5`, for [`Comparison::slower`]. Returns the fraction.
///
/// # Errors
/// If the text is none.
pub fn limit(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').unwrap_or(text).trim().parse::<f64>().ok();
    let number = number.filter(|number| number.is_finite() && *number >= 0.0);
    number.map(|number| number / 100.0).ok_or_else(|| "give a percentage that is not negative, such as 2%".to_owned())
}

impl Comparison {
    /// Returns how long the runs took: in seconds, or else in cycles.
    #[must_use]
    pub fn time(&self) -> Option<&Quantity> {
        let named =
            |name: &&str| self.metrics.iter().find(|q| q.name == **name && q.values.iter().all(Option::is_some));
        TIMES.iter().find_map(named)
    }

    /// Returns how many times as fast as the first subject another one is; `None` if the time of one is unknown or 0.
    #[must_use]
    pub fn speedup(&self, subject: usize) -> Option<f64> {
        let time = self.time()?;
        let (first, other) = (time.values[0]?.mean, time.values[subject]?.mean);
        (first > 0.0 && other > 0.0).then(|| first / other)
    }

    /// Returns the parts of the time with their differences from the first subject, the largest first.
    #[must_use]
    pub fn differences(&self, subject: usize) -> Vec<Difference<'_>> {
        let difference = |part: &Quantity| Some(part.values[subject]?.mean - part.values[0]?.mean);
        let of = |part| difference(part).map(|difference| Difference { part, difference, share: None });
        let mut all: Vec<Difference> = self.accounting.iter().filter_map(of).collect();
        let of_first: f64 = self.accounting.iter().filter_map(|part| Some(part.values[0]?.mean)).sum();
        let sum: f64 = all.iter().map(|part| part.difference).sum();
        if sum.abs() > NONE * of_first {
            all.iter_mut().for_each(|part| part.share = Some(part.difference / sum));
        }
        all.sort_by(|a, b| b.difference.abs().total_cmp(&a.difference.abs()));
        all
    }

    /// Returns a sentence about the first subject that takes longer than the first by more than `limit`, a fraction, and by more than noise;
    /// `None` if there is none.
    ///
    /// # Errors
    /// If the time of a subject is unknown.
    pub fn slower(&self, limit: f64) -> Result<Option<String>, String> {
        for (subject, label) in self.labels.iter().enumerate().skip(1) {
            let speedup = self
                .speedup(subject)
                .ok_or_else(|| format!("{label}: its time or that of {} is unknown", self.labels[0]))?;
            let is_noise = self.time().and_then(|time| time.is_noise(subject)) == Some(true);
            if 1.0 / speedup > 1.0 + limit && !is_noise {
                let percent = 100.0 * (1.0 / speedup - 1.0);
                let sentence = format!("{} takes {percent:.1} % longer than {}", plain(label), plain(&self.labels[0]));
                return Ok(Some(sentence));
            }
        }
        Ok(None)
    }
}

/// Returns what there is to say about a subject, in sentences.
pub(super) fn sentences(comparison: &Comparison, subject: usize) -> Vec<String> {
    let first = [faster, work, energy, size]
        .iter()
        .filter_map(|sentence| sentence(comparison, subject))
        .collect::<Vec<_>>()
        .join(" ");
    [first, parts(comparison, subject).unwrap_or_default()].into_iter().filter(|text| !text.is_empty()).collect()
}

/// Which is faster, and by how much.
fn faster(comparison: &Comparison, subject: usize) -> Option<String> {
    let time = comparison.time()?;
    let [first, other] = [0, subject].map(|i| plain(&comparison.labels[i]));
    let taken = |i: usize| {
        let spread = time.values[i]?;
        let unit = if time.unit.starts_with("cycles") { " cycles" } else { "" };
        let value = match spread.half_width {
            Some(half_width) => quantity::estimate(spread.mean, &time.unit, half_width),
            None => quantity::quantity(spread.mean, &time.unit),
        };
        Some(value + unit)
    };
    let speedup = comparison.speedup(subject)?;
    let (ratio, comparative, positive) =
        if speedup >= 1.0 { (speedup, "faster", "fast") } else { (1.0 / speedup, "slower", "slow") };
    let result = match (time.is_within_intervals(subject), time.is_noise(subject)) {
        (Some(true), _) => "The difference is within the error of the estimates.".to_owned(),
        (_, Some(true)) => "The difference is within noise.".to_owned(),
        _ if ratio - 1.0 < NONE => format!("{first} and {other} are equally fast."),
        _ if ratio < IN_PERCENT => {
            // Of the slower one's time, as one saves it; of the faster one's, as one loses it.
            let share = if speedup >= 1.0 { 1.0 - 1.0 / speedup } else { 1.0 / speedup - 1.0 };
            let verb = if speedup >= 1.0 { "less" } else { "more" };
            format!("{other} takes {:.1} % {verb} time: it is {comparative}.", 100.0 * share)
        }
        _ => format!("{other} is {} as {positive}.", times(ratio)),
    };
    let per = comparison.per.as_ref().map_or_else(String::new, |per| format!(" per {per}"));
    Some(format!("{other} takes {}{per}, {first} {}. {result}", taken(subject)?, taken(0)?))
}

/// Whether the time differs because there is more to execute, or because it takes longer.
fn work(comparison: &Comparison, subject: usize) -> Option<String> {
    let ratio = |name: &str| comparison.metrics.iter().find(|q| q.name == name)?.ratio(subject);
    let (instructions, cycles) = (ratio("instructions")?, ratio("cycles")?);
    let each = (instructions > 0.0).then(|| cycles / instructions)?;
    let differs = |ratio: f64| (ratio - 1.0).abs() > ALIKE;
    match (differs(instructions), differs(each)) {
        (false, false) => None,
        (false, true) => Some(format!("It executes as many instructions, at {} the cycles each.", times(each))),
        (true, false) => Some(format!("It executes {} the instructions, at as many cycles each.", times(instructions))),
        (true, true) => {
            Some(format!("It executes {} the instructions, at {} the cycles each.", times(instructions), times(each)))
        }
    }
}

/// By how much the energy differs, and the power.
fn energy(comparison: &Comparison, subject: usize) -> Option<String> {
    let named = |name: &str| comparison.metrics.iter().find(|q| q.name == name);
    let (joules, watts) = (named("energy")?, named("chip_power")?);
    let shown = |q: &Quantity, i: usize| Some(quantity::quantity(q.values[i]?.mean, &q.unit));
    let change = 100.0 * (joules.ratio(subject)? - 1.0);
    if change.abs() < 100.0 * NONE {
        return None;
    }
    let word = if change > 0.0 { "more" } else { "less" };
    Some(format!(
        "The chip takes {:.1} % {word} energy: {} at {}, instead of {} at {}.",
        change.abs(),
        shown(joules, subject)?,
        shown(watts, subject)?,
        shown(joules, 0)?,
        shown(watts, 0)?
    ))
}

/// That the runs did different amounts of work.
fn size(comparison: &Comparison, subject: usize) -> Option<String> {
    let (ratio, per) = comparison.other_work(subject)?;
    Some(match per {
        Per::Flop => {
            format!(
                "It does {} the floating-point operations: --per flop compares equal amounts of work.",
                times(ratio)
            )
        }
        // How many instructions it executes has been said.
        _ if work(comparison, subject).is_some() => "--per instruction compares equal amounts of work.".to_owned(),
        _ => {
            format!("It executes {} the instructions: --per instruction compares equal amounts of work.", times(ratio))
        }
    })
}

fn times(ratio: f64) -> String {
    quantity::quantity(ratio, "×").replace('×', " times")
}

/// The parts of the time that differ most.
fn parts(comparison: &Comparison, subject: usize) -> Option<String> {
    let all = comparison.differences(subject);
    let named = all.iter().take(NAMED).filter(|part| part.share.is_some_and(|share| share >= NAMED_SHARE));
    let named: Vec<String> = named
        .map(|part| {
            let share = 100.0 * part.share.unwrap_or_default();
            format!("{} ({}, {share:.0} %)", part.part.title, signed(part.difference, &part.part.unit))
        })
        .collect();
    (!named.is_empty()).then(|| format!("Most of the difference: {}.", named.join(", ")))
}

/// A difference with its sign.
pub(super) fn signed(difference: f64, unit: &str) -> String {
    let sign = if difference < 0.0 { "-" } else { "+" };
    format!("{sign}{}", quantity::quantity(difference.abs(), unit))
}
