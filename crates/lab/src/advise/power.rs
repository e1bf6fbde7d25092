//! Trade-offs of time and energy: the modes of power.

use fxscope_report::document::{Row, Section, Value};
use fxscope_report::render::quantity::quantity;

use super::{Advice, Outcome, Tried};

/// Smallest change of time or energy that is named, as a share.
const LEAST: f64 = 0.001;

/// A trade-off that has run, and what it changes for what was judged first.
struct Change<'a> {
    tried: &'a Tried,
    outcome: Outcome,
    /// Energy, J.
    energy: f64,
    /// Energy by that without it, less 1.
    more_energy: f64,
}

fn changes(advice: &Advice) -> Vec<Change<'_>> {
    let Some(before) = advice.regions.first().and_then(|region| region.time.energy) else { return Vec::new() };
    let change = |tried| {
        let outcome = Tried::of_region(tried, 0)?;
        let energy = outcome.energy?;
        Some(Change { tried, outcome, energy, more_energy: energy / before - 1.0 })
    };
    let mut all: Vec<Change<'_>> = advice.tried.iter().filter(|tried| tried.trade_off).filter_map(change).collect();
    all.sort_by(|a, b| a.energy.total_cmp(&b.energy));
    all
}

/// Returns time, power and energy as the program runs, and with each trade-off, the least energy first.
pub(super) fn section(advice: &Advice) -> Option<Section> {
    let first = advice.regions.first()?;
    let row = |label: &str, seconds: f64, gain: Option<f64>, energy: f64, more: Option<f64>| Row {
        label: label.to_owned(),
        values: vec![
            Some(Value::number(seconds, "s")),
            gain.map(|gain| Value::text(signed(-gain))),
            Some(Value::number(energy / seconds, "W")),
            Some(Value::number(energy, "J")),
            more.map(|more| Value::text(signed(more))),
        ],
    };
    let changes = changes(advice);
    let before = row("as it is", first.time.seconds, None, first.time.energy?, None);
    let of = |change: &Change<'_>| {
        let Outcome { seconds, gain, .. } = change.outcome;
        row(&change.tried.name, seconds, Some(gain), change.energy, Some(change.more_energy))
    };
    let headings = ["mode of power", "time", "change", "chip", "energy", "change"];
    let rows = std::iter::once(before).chain(changes.iter().map(of)).collect();
    (!changes.is_empty()).then(|| Section::table("Time and energy", headings, rows))
}

/// Returns a sentence about the trade-off with the least energy, if it saves some.
pub(super) fn sentence(advice: &Advice) -> Option<String> {
    let best = changes(advice).into_iter().next().filter(|change| change.more_energy < -LEAST)?;
    let name = &best.tried.name;
    Some(format!(
        "Least energy: {name}, {}, {}.",
        worded(best.more_energy, "energy"),
        worded(-best.outcome.gain, "time")
    ))
}

/// Returns how to choose each mode on the machine.
pub(super) fn hints(advice: &Advice) -> Vec<String> {
    let hint = |change: &Change<'_>| {
        let Tried { name, machine, options, .. } = change.tried;
        format!("{name}: on the machine {machine}; in the simulator fxscope run {}", options.join(" "))
    };
    changes(advice).iter().map(hint).collect()
}

/// A change in percent with its sign.
fn signed(change: f64) -> String {
    if change.abs() < LEAST { "0 %".to_owned() } else { format!("{:+.1} %", 100.0 * change) }
}

/// A change in words.
fn worded(change: f64, of: &str) -> String {
    match change {
        change if change.abs() < LEAST => format!("as much {of}"),
        change if change < 0.0 => format!("{} less {of}", quantity(-change, "ratio")),
        change => format!("{} more {of}", quantity(change, "ratio")),
    }
}
