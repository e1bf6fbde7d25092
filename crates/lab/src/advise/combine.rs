//! The best remedies of different kinds together.

use super::trials::{Found, Trial};
use super::{Cause, Tried, apply};
use crate::Error;

/// Returns the trial of the best remedies of all kinds together; `None` if fewer than two kinds gain. `tried` is ranked.
pub(super) fn best_of_kinds(found: &Found<'_>, tried: &[Tried]) -> Result<Option<Trial>, Error> {
    let mut best: Vec<&Tried> = Vec::new();
    for tried in tried.iter().filter(|tried| tried.gain(0).is_some()) {
        if best.iter().all(|other| other.kind != tried.kind) {
            best.push(tried);
        }
    }
    if best.len() < 2 {
        return Ok(None);
    }
    let join = |text: fn(&Tried) -> &String, between: &str| {
        best.iter().map(|tried| text(tried).as_str()).collect::<Vec<_>>().join(between)
    };
    let options: Vec<String> = best.iter().flat_map(|tried| tried.options.iter().cloned()).collect();
    let Some(scenario) = apply::applied(found.scenario, &options)? else { return Ok(None) };
    let together = Tried {
        name: join(|tried| &tried.name, " + "),
        kind: String::new(),
        machine: join(|tried| &tried.machine, "; "),
        options,
        causes: (0..found.regions.len()).map(|place| all_causes(&best, place)).collect(),
        outcome: Err(String::new()),
    };
    Ok(Some(Trial { tried: together, scenario }))
}

/// What all of them may gain for a region. Several remedies for one cause gain its share once.
fn all_causes(tried: &[&Tried], place: usize) -> Cause {
    let mut all = Cause::default();
    for cause in tried.iter().filter_map(|tried| tried.causes.get(place)) {
        if cause.rules.is_empty() || cause.rules.iter().any(|rule| !all.rules.contains(rule)) {
            all.predicted = if all.rules.is_empty() { cause.predicted } else { all.predicted + cause.predicted };
        }
        let new = cause.rules.iter().filter(|rule| !all.rules.contains(rule)).cloned().collect::<Vec<_>>();
        all.rules.extend(new);
    }
    all.predicted = all.predicted.min(1.0);
    all
}
