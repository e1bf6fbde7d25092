//! The best remedies of different kinds together.

use super::trials::{Found, Trial};
use super::{Cause, Tried, apply};
use crate::Error;

/// Returns the trial of the best remedies of all kinds together; `None` if fewer than two kinds gain. `tried` is ranked.
pub(super) fn best_of_kinds(found: &Found<'_>, tried: &[Tried]) -> Result<Option<Trial>, Error> {
    let best = best_of_each(tried);
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
        trade_off: false,
        causes: (0..found.regions.len()).map(|place| all_causes(&best, place)).collect(),
        outcome: Err(String::new()),
    };
    Ok(Some(Trial { tried: together, scenario }))
}

/// The first remedy of each kind that gains.
fn best_of_each(tried: &[Tried]) -> Vec<&Tried> {
    let mut best: Vec<&Tried> = Vec::new();
    for tried in tried.iter().filter(|tried| tried.gain(0).is_some()) {
        if best.iter().all(|other| other.kind != tried.kind) {
            best.push(tried);
        }
    }
    best
}

/// What all of them may gain for a region. Several remedies for one cause gain its share once.
fn all_causes(tried: &[&Tried], place: usize) -> Cause {
    let mut all = Cause::default();
    for cause in tried.iter().filter_map(|tried| tried.causes.get(place)) {
        let new: Vec<String> = cause.rules.iter().filter(|rule| !all.rules.contains(rule)).cloned().collect();
        if !new.is_empty() {
            all.predicted += cause.predicted;
        }
        all.rules.extend(new);
        // What helps only a part of the region has no rule of its own.
        all.predicted = all.predicted.max(cause.predicted);
    }
    all.predicted = all.predicted.min(1.0);
    all
}

#[cfg(test)]
mod tests {
    use super::super::Outcome;
    use super::*;

    /// A remedy of a kind against a rule that explains `predicted`.
    fn tried(kind: &str, rule: &str, predicted: f64, gain: f64) -> Tried {
        let outcome = Outcome { seconds: 1.0 - gain, gain, is_noise: false, energy: None };
        Tried {
            name: format!("{kind} {gain}"),
            kind: kind.to_owned(),
            machine: String::new(),
            options: Vec::new(),
            trade_off: false,
            causes: vec![Cause { rules: vec![rule.to_owned()], predicted }],
            outcome: Ok(vec![Some(outcome)]),
        }
    }

    #[test]
    fn the_best_of_each_kind_that_gains_is_taken() {
        let all = [tried("pages", "tlb", 0.5, 0.4), tried("pages", "tlb", 0.5, 0.3), tried("prefetch", "l2", 0.2, 0.1)];
        let names: Vec<&str> = best_of_each(&all).iter().map(|tried| tried.name.as_str()).collect();
        assert_eq!(names, ["pages 0.4", "prefetch 0.1"]);
        assert!(best_of_each(&[tried("pages", "tlb", 0.5, 0.001)]).is_empty(), "it gains too little");
    }

    #[test]
    fn several_remedies_for_one_cause_gain_its_share_once() {
        let same = [&tried("a", "tlb", 0.5, 0.4), &tried("b", "tlb", 0.5, 0.1)];
        assert_eq!(all_causes(&same, 0), Cause { rules: vec!["tlb".to_owned()], predicted: 0.5 });
        let others = [&tried("a", "tlb", 0.5, 0.4), &tried("b", "l2", 0.25, 0.1)];
        assert_eq!(all_causes(&others, 0).predicted, 0.75);
        let most = [&tried("a", "tlb", 0.75, 0.4), &tried("b", "l2", 0.5, 0.1)];
        assert_eq!(all_causes(&most, 0).predicted, 1.0, "no more than all");
    }
}
