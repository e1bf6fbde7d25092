//! Comparisons in machine-readable formats, complete.

use serde_json::{Value, json};

use super::csv;
use crate::compare::{Comparison, Difference, Kind, Quantity, Spread};

/// The columns of the CSV, in order.
pub const COLUMNS: [&str; 14] = [
    "region",
    "kind",
    "name",
    "title",
    "unit",
    "subject",
    "runs",
    "mean",
    "deviation",
    "least",
    "most",
    "ratio",
    "noise",
    "half_width",
];

/// Returns a header line ([`COLUMNS`]), then one line per quantity and subject, largest differences first. `ratio` is
/// relative to the first subject; unknown fields are empty.
#[must_use]
pub fn csv(comparison: &Comparison) -> Vec<u8> {
    let mut out = String::new();
    csv::line(&mut out, &COLUMNS);
    for quantity in comparison.metrics.iter().chain(&comparison.events) {
        for (subject, label) in comparison.labels.iter().enumerate() {
            if let Some(spread) = &quantity.values[subject] {
                let fields = fields(&comparison.region, quantity, subject, label, spread);
                csv::line(&mut out, &fields.each_ref().map(String::as_str));
            }
        }
    }
    out.into_bytes()
}

fn fields(region: &str, quantity: &Quantity, subject: usize, label: &str, spread: &Spread) -> [String; 14] {
    let or_empty = |value: Option<f64>| value.map_or_else(String::new, |v| v.to_string());
    [
        region.to_owned(),
        kind(quantity.kind).to_owned(),
        quantity.name.clone(),
        quantity.title.clone(),
        quantity.unit.clone(),
        label.to_owned(),
        spread.runs.to_string(),
        spread.mean.to_string(),
        or_empty(spread.deviation),
        spread.least.to_string(),
        spread.most.to_string(),
        or_empty(quantity.ratio(subject)),
        quantity.is_noise(subject).map_or_else(String::new, |n| n.to_string()),
        or_empty(spread.half_width),
    ]
}

fn kind(kind: Kind) -> &'static str {
    match kind {
        Kind::Event => "event",
        Kind::Metric => "metric",
    }
}

/// Returns the comparison as JSON; unknown values are `null`.
#[must_use]
pub fn json(comparison: &Comparison) -> Value {
    let list = |quantities: &[Quantity]| quantities.iter().map(quantity).collect::<Vec<_>>();
    json!({
        "region": comparison.region,
        "subjects": comparison.labels,
        "runs": comparison.runs,
        "per": comparison.per,
        "notes": comparison.notes,
        "results": (1..comparison.labels.len()).map(|subject| result(comparison, subject)).collect::<Vec<_>>(),
        "regions": list(&comparison.regions),
        "accounting": list(&comparison.accounting),
        "metrics": list(&comparison.metrics),
        "events": list(&comparison.events),
    })
}

/// How a subject differs from the first: speed-up, and the parts of the time, largest difference first.
fn result(comparison: &Comparison, subject: usize) -> Value {
    let part = |found: &Difference| {
        json!({
            "name": found.part.name,
            "title": found.part.title,
            "unit": found.part.unit,
            "difference": found.difference,
            "share": found.share,
        })
    };
    json!({
        "subject": comparison.labels[subject],
        "speedup": comparison.speedup(subject),
        "noise": comparison.time().and_then(|time| time.is_noise(subject)),
        "differences": comparison.differences(subject).iter().map(part).collect::<Vec<_>>(),
    })
}

fn quantity(quantity: &Quantity) -> Value {
    let values = quantity.values.iter().enumerate().map(|(subject, spread)| {
        spread.map(|s| {
            json!({
                "mean": s.mean,
                "deviation": s.deviation,
                "least": s.least,
                "most": s.most,
                "ratio": quantity.ratio(subject),
                "noise": quantity.is_noise(subject),
                "half_width": s.half_width,
            })
        })
    });
    json!({
        "name": quantity.name,
        "title": quantity.title,
        "unit": quantity.unit,
        "values": values.collect::<Vec<_>>(),
    })
}
