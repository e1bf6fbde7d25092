//! A report that compares runs side by side.

mod analysis;
mod answer;
mod per;

pub use analysis::{Comparison, Kind, Quantity, Spread, Subject, compare};
pub use answer::{Difference, limit};
pub use per::Per;

use crate::document::{Bar, Body, Family, Line, RegionReport, Report, Row, Section, Stack, StackPart, Value};
use crate::sections::{plain, stack::family};

/// Maximum number of quantities listed per kind; CSV and JSON have all.
const LISTED: usize = 25;
/// Factors closer to 1 than this are not listed.
const LEAST_EFFECT: f64 = 0.001;

/// Returns the report of a comparison: which run is faster and why, cycle accounting side by side, the parts of the time and the regions
/// that make the difference, then notes, metrics and events, the largest differences first.
#[must_use]
pub fn report(comparison: &Comparison) -> Report {
    let mut sections = vec![result(comparison), chart(comparison)];
    // With two subjects, the differences have all that this table has.
    if comparison.labels.len() > 2 {
        sections.push(accounting(comparison));
    }
    for subject in 1..comparison.labels.len() {
        sections.extend(differences(comparison, subject));
        sections.extend(regions(comparison, subject));
    }
    sections.push(Section { title: "Notes".to_owned(), body: Body::Notes(notes(comparison)) });
    for subject in 1..comparison.labels.len() {
        sections.push(list("Metrics", comparison, &comparison.metrics, subject));
        sections.push(list("Events", comparison, &comparison.events, subject));
    }
    let labels: Vec<_> = comparison.labels.iter().map(|l| plain(l)).collect();
    let region = RegionReport { name: plain(&comparison.region), calls: 1, sections };
    let title = format!("Comparison of {}", labels.join(", "));
    let (label, settings) = (String::new(), String::new());
    Report { title, label, settings, sections: Vec::new(), regions: vec![region] }
}

/// What there is to say about each subject.
fn result(comparison: &Comparison) -> Section {
    let sentences = (1..comparison.labels.len()).flat_map(|subject| answer::sentences(comparison, subject)).collect();
    Section { title: "Result".to_owned(), body: Body::Notes(sentences) }
}

/// Where the difference between the first subject and another comes from, the largest part first.
fn differences(comparison: &Comparison, subject: usize) -> Option<Section> {
    let [first, other] = [0, subject].map(|i| plain(&comparison.labels[i]));
    let line = |found: &Difference| {
        let value = |i: usize| found.part.values[i].map(|s| Value::estimate(s.mean, &found.part.unit, s.half_width));
        let difference = Value::Text(answer::signed(found.difference, &found.part.unit));
        // What is less than half of the last digit has no sign.
        let share = found.share.map(|share| Value::number(if share.abs() < 0.000_05 { 0.0 } else { share }, "ratio"));
        Line::Row(Row {
            label: found.part.title.clone(),
            values: vec![value(0), value(subject), Some(difference), share],
        })
    };
    let there = |found: &Difference| found.part.values.iter().flatten().any(|s| s.mean > 0.0);
    let lines: Vec<Line> = comparison.differences(subject).iter().filter(|found| there(found)).map(line).collect();
    let headings = ["mean of the threads", &first, &other, "difference", "share"].map(str::to_owned).to_vec();
    let title = format!("Where the difference comes from: {other} against {first}");
    (!lines.is_empty()).then_some(Section { title, body: Body::Listing { headings, lines } })
}

/// The times of the regions that all subjects have.
fn regions(comparison: &Comparison, subject: usize) -> Option<Section> {
    let [first, other] = [0, subject].map(|i| plain(&comparison.labels[i]));
    let line = |region: &Quantity| {
        let value = |i: usize| region.values[i].map(|s| Value::estimate(s.mean, &region.unit, s.half_width));
        let [a, b] = [0, subject].map(|i| region.values[i].map(|s| s.mean));
        let difference = a.zip(b).map(|(a, b)| Value::Text(answer::signed(b - a, &region.unit)));
        let speedup = a.zip(b).filter(|&(_, b)| b > 0.0).map(|(a, b)| Value::number(a / b, "×"));
        Line::Row(Row { label: plain(&region.title), values: vec![value(0), value(subject), difference, speedup] })
    };
    let lines: Vec<Line> = comparison.regions.iter().map(line).collect();
    let headings = ["region", &first, &other, "difference", "speed-up"].map(str::to_owned).to_vec();
    let title = format!("Time of regions: {other} against {first}");
    (!lines.is_empty()).then_some(Section { title, body: Body::Listing { headings, lines } })
}

fn notes(comparison: &Comparison) -> Vec<String> {
    let runs: Vec<_> = comparison.labels.iter().zip(&comparison.runs).map(|(l, n)| format!("{l}: {n}")).collect();
    let noise = if comparison.runs.iter().any(|&n| n > 1) {
        "Values are means; a difference of up to two standard errors is marked as noise."
    } else {
        "There is one run of each, so the noise is unknown; files with several runs of a program show it."
    };
    let per = comparison.per.iter().map(|per| format!("Times and counts are those per {per}."));
    let all = [format!("Runs: {}.", runs.join(", ")), noise.to_owned()].into_iter().chain(per);
    let quantities = comparison.metrics.iter().chain(&comparison.events);
    let is_estimate = quantities.flat_map(|q| q.values.iter().flatten()).any(|spread| spread.half_width.is_some());
    let sampled = is_estimate.then(|| {
        "± marks estimates of sampled runs; a difference smaller than both intervals together is marked as within the error.".to_owned()
    });
    comparison.notes.iter().map(|note| plain(note)).chain(all).chain(sampled).collect()
}

/// A bar of cycle accounting for each subject.
fn chart(comparison: &Comparison) -> Section {
    let parts = comparison.accounting.iter().map(|q| StackPart {
        id: q.name.clone(),
        label: q.title.clone(),
        family: family(&q.name).unwrap_or(Family::Other),
    });
    let value = |q: &Quantity, subject: usize| q.values[subject].map_or(0.0, |s| s.mean.max(0.0));
    let bars = comparison.labels.iter().enumerate().map(|(subject, label)| Bar {
        label: plain(label),
        thread: None,
        values: comparison.accounting.iter().map(|q| value(q, subject)).collect(),
    });
    let unit = comparison.accounting.first().map_or_else(String::new, |q| q.unit.clone());
    let stack = Stack { unit, parts: parts.collect(), bars: bars.collect() };
    Section { title: "Where the time went".to_owned(), body: Body::Stack(stack) }
}

/// The components of cycle accounting as numbers, in order.
fn accounting(comparison: &Comparison) -> Section {
    let labels = comparison.labels.iter().map(|l| plain(l));
    let headings = std::iter::once("part".to_owned()).chain(labels).collect();
    let there = |q: &&Quantity| q.values.iter().flatten().any(|s| s.mean > 0.0);
    let line = |q: &Quantity| {
        let values = q.values.iter().map(|s| s.map(|s| Value::estimate(s.mean, &q.unit, s.half_width)));
        Line::Row(Row { label: q.title.clone(), values: values.collect() })
    };
    let lines = comparison.accounting.iter().filter(there).map(line).collect();
    Section { title: "Cycle accounting, mean of the threads".to_owned(), body: Body::Listing { headings, lines } }
}

/// The largest differences between the first subject and another.
fn list(title: &str, comparison: &Comparison, quantities: &[Quantity], subject: usize) -> Section {
    let [first, other] = [0, subject].map(|i| plain(&comparison.labels[i]));
    let differs = |q: &&Quantity| known(q, subject) && effect(q, subject) >= LEAST_EFFECT;
    let mut all: Vec<_> = quantities.iter().filter(differs).collect();
    let order = |q: &Quantity| (q.rare, q.effect_on(subject));
    all.sort_by(|a, b| {
        let ((a_rare, a), (b_rare, b)) = (order(a), order(b));
        a_rare.cmp(&b_rare).then(b.total_cmp(&a))
    });
    let mut lines: Vec<_> = all.iter().take(LISTED).map(|q| Line::Row(row(q, subject))).collect();
    if all.len() > LISTED {
        lines.push(Line::Caption(format!("… and {} more: --format csv", all.len() - LISTED)));
    }
    let headings = ["what", &first, &other, "ratio", "noise"].map(str::to_owned).to_vec();
    Section { title: format!("{title}: {other} against {first}"), body: Body::Listing { headings, lines } }
}

fn known(quantity: &Quantity, subject: usize) -> bool {
    quantity.values[0].is_some() && quantity.values[subject].is_some()
}

/// How much a subject differs from the first.
fn effect(quantity: &Quantity, subject: usize) -> f64 {
    quantity.ratio(subject).map_or(f64::INFINITY, |ratio| (ratio - 1.0).abs())
}

fn row(quantity: &Quantity, subject: usize) -> Row {
    let value = |spread: Option<Spread>| spread.map(|s| Value::estimate(s.mean, &quantity.unit, s.half_width));
    let ratio = quantity.ratio(subject).map(|ratio| Value::number(ratio, "×"));
    let noise = match (quantity.is_within_intervals(subject), quantity.is_noise(subject)) {
        (Some(true), _) => "within the error",
        (_, Some(true)) => "within noise",
        _ => "",
    };
    let values =
        vec![value(quantity.values[0]), value(quantity.values[subject]), ratio, Some(Value::Text(noise.to_owned()))];
    Row { label: quantity.title.clone(), values }
}
