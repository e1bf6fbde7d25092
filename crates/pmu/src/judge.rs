//! Which rules apply to a region, and how much of its time each explains.

use crate::evaluate::Evaluation;
use crate::rules::{Piece, Rule, Try};

/// What explains less of the time than this is not worth mentioning.
const LEAST: f64 = 0.05;

/// What limits a region.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Judgement {
    /// The rules that apply, the largest share of the time first.
    pub findings: Vec<Finding>,
    /// The rules that could not be judged.
    pub unjudged: Vec<Unjudged>,
}

/// A rule that applies.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// The rule.
    pub rule: &'static Rule,
    /// The share of the time that it explains, from 0 to 1, without what more special rules explain.
    pub share: f64,
    /// The share of the time that a cure is expected to gain.
    pub gain: f64,
    /// What it says.
    pub says: Vec<Said>,
    /// What shows it.
    pub evidence: Vec<Fact>,
    /// What to try.
    pub tries: Vec<Attempt>,
}

/// Something to try against what limits a region.
#[derive(Clone, Debug, PartialEq)]
pub struct Attempt {
    /// What to do, as a sentence.
    pub says: Vec<Said>,
    /// The command that shows whether it helps. `PROGRAM` stands for the program with its arguments.
    pub command: Option<String>,
}

/// A piece of a sentence.
#[derive(Clone, Debug, PartialEq)]
pub enum Said {
    /// Words.
    Text(&'static str),
    /// A number with its unit, as in metrics.
    Number(f64, &'static str),
}

/// A number that shows what a rule says.
#[derive(Clone, Debug, PartialEq)]
pub struct Fact {
    /// What it is.
    pub title: &'static str,
    /// Its value.
    pub value: f64,
    /// Its unit, as in metrics.
    pub unit: &'static str,
}

/// A rule whose inputs were not counted.
#[derive(Clone, Debug, PartialEq)]
pub struct Unjudged {
    /// The rule.
    pub rule: &'static Rule,
    /// The events that must be counted as well; empty if other data are missing.
    pub missing: Vec<String>,
}

/// Whether a rule applies.
enum Outcome {
    Applies(Finding),
    No,
    Unknown(Vec<String>),
}

impl Evaluation<'_> {
    /// Returns which rules apply to the region.
    #[must_use]
    pub fn judge(&self) -> Judgement {
        let rules = self.metrics().rules();
        let outcomes: Vec<Outcome> = rules.iter().map(|rule| self.outcome(rule)).collect();
        let share = |place: usize| match &outcomes[place] {
            Outcome::Applies(finding) => finding.share,
            Outcome::No | Outcome::Unknown(_) => 0.0,
        };
        // What special rules explain, general ones need not.
        let mut explained = vec![0.0; rules.len()];
        for (place, rule) in rules.iter().enumerate() {
            rule.part_of.iter().for_each(|&general| explained[general] += share(place));
        }
        let mut judgement = Judgement::default();
        for ((outcome, rule), explained) in outcomes.into_iter().zip(rules).zip(explained) {
            match outcome {
                Outcome::Applies(mut finding) => {
                    let rest = (finding.share - explained) / finding.share;
                    finding.share -= explained;
                    finding.gain *= rest;
                    judgement.findings.extend((finding.share >= LEAST).then_some(finding));
                }
                Outcome::Unknown(missing) => judgement.unjudged.push(Unjudged { rule, missing }),
                Outcome::No => {}
            }
        }
        judgement.findings.sort_by(|a, b| b.share.total_cmp(&a.share));
        judgement
    }

    fn outcome(&self, rule: &'static Rule) -> Outcome {
        // One condition that certainly does not hold decides.
        let conditions = rule.conditions.iter().map(|&place| self.whole(place));
        if conditions.clone().any(|value| value == Some(0.0)) {
            return Outcome::No;
        }
        let needed = rule.conditions.iter().chain([&rule.share]);
        let Some(share) = self.whole(rule.share).filter(|_| conditions.flatten().count() == rule.conditions.len())
        else {
            let mut missing: Vec<String> = needed.flat_map(|&place| self.missing_at(place)).collect();
            missing.sort();
            missing.dedup();
            return Outcome::Unknown(missing);
        };
        if share < LEAST {
            return Outcome::No;
        }
        let sentence = |pieces: &'static [Piece]| pieces.iter().map(|piece| self.said(piece)).collect();
        let fact = |e: &'static crate::rules::Evidence| {
            Some(Fact { title: &e.title, value: self.whole(e.place)?, unit: &e.unit })
        };
        let evidence = rule.evidence.iter().filter_map(fact).collect();
        let attempt = |t: &'static Try| Attempt { says: sentence(&t.text), command: self.command(t) };
        let tries = rule.tries.iter().map(attempt);
        let tries = tries.collect();
        let share = share.min(1.0);
        let gain = rule.gain.and_then(|place| self.whole(place)).map_or(share, |gain| gain.clamp(0.0, 1.0));
        Outcome::Applies(Finding { rule, share, gain, says: sentence(&rule.says), evidence, tries })
    }

    /// The command that shows whether something helps: a run with its remedy, or the one that is given.
    fn command(&self, t: &Try) -> Option<String> {
        let remedy = t.remedy.as_ref().and_then(|name| self.metrics().remedies().iter().find(|r| r.name == *name));
        let run = remedy.map(|remedy| format!("fxscope run {} -- PROGRAM", remedy.options.join(" ")));
        run.or_else(|| t.command.clone())
    }

    /// A piece of a sentence. Records of older versions lack constants of the machine.
    fn said(&self, piece: &'static Piece) -> Said {
        match piece {
            Piece::Text(text) => Said::Text(text),
            Piece::Value(place, unit) => self.whole(*place).map_or(Said::Text("?"), |value| Said::Number(value, unit)),
        }
    }
}
