//! The advice as a document and as JSON.

use fxscope_report::document::{Body, Document, Row, Section, Value};
use fxscope_report::render::json;
use fxscope_report::render::quantity::quantity;
use serde_json::{Value as Json, json};

use super::{Advice, Judged, Outcome, Tried, power};

impl Advice {
    /// Returns the advice for people: what gains most and how to apply it, what each remedy gains, by region, and the verdicts.
    #[must_use]
    pub fn document(&self) -> Document {
        let mut sections = vec![Section::notes("Advice", self.sentences())];
        if self.ranked().next().is_some() {
            sections.push(self.gains());
        }
        sections.extend(power::section(self));
        if self.regions.len() > 1 {
            sections.push(self.by_region());
            sections.extend(self.ranked().next().is_some().then(|| self.matrix()));
        }
        sections.push(Section::notes("Apply", self.hints()));
        let failed =
            self.tried.iter().filter_map(|tried| Some(format!("{}: {}", tried.name, tried.outcome.as_ref().err()?)));
        sections.push(Section::notes("Not run", failed.collect()));
        for region in &self.regions {
            if self.regions.len() > 1 {
                let share = quantity(region.share, "ratio");
                sections.push(Section::notes("Region", vec![format!("{}, {share} of run time", region.name)]));
            }
            let verdict = Box::new(region.verdict.clone());
            sections.push(Section { title: "Verdict".to_owned(), body: Body::Verdict(verdict) });
        }
        let program = self.run.subject();
        let name = program.rsplit('/').next().unwrap_or(program);
        Document::of(format!("Advice for {name} on {}, region {}", self.run.machine, self.first().name), sections)
    }

    /// The whole run, or the region that was asked for.
    fn first(&self) -> &Judged {
        // There is always one: advice without a verdict is an error.
        &self.regions[0]
    }

    /// What is worth doing, the answer first.
    fn sentences(&self) -> Vec<String> {
        let mut all = vec![self.without_changes()];
        let others = self.regions.iter().enumerate().skip(1).filter(|(place, _)| self.best(*place) != self.best(0));
        all.extend(others.filter_map(|(place, region)| {
            let best = self.best(place)?;
            let gain = quantity(best.gain(place)?, "ratio");
            Some(format!("In region {}: {}, {gain} less time.", region.name, best.name))
        }));
        all.extend(self.with_changes());
        all.extend(power::sentence(self));
        all
    }

    /// The remedies that are ranked by time.
    fn ranked(&self) -> impl Iterator<Item = &Tried> {
        self.tried.iter().filter(|tried| !tried.trade_off)
    }

    /// The best that needs no change of the program.
    fn without_changes(&self) -> String {
        let best = self.best(0).and_then(|tried| Some((tried, tried.of_region(0)?)));
        let has_run = self.ranked().any(|tried| tried.outcome.is_ok());
        match best {
            Some((tried, outcome)) => format!(
                "Most gains: {}. {} instead of {}, {} less time. On the machine: {}.",
                tried.name,
                quantity(outcome.seconds, "s"),
                quantity(self.first().time.seconds, "s"),
                quantity(outcome.gain, "ratio"),
                tried.machine
            ),
            None if has_run => {
                let modes = if self.tried.iter().any(|tried| tried.trade_off) { ", power modes aside" } else { "" };
                format!("None of the remedies that need no change of the program makes it faster{modes}.")
            }
            None => "The simulator can apply none of the remedies without changing the program.".to_owned(),
        }
    }

    /// What a change of the program may gain: the largest cause of all regions, and its first remedy.
    fn with_changes(&self) -> Option<String> {
        let limits = self.regions.iter().filter_map(|region| Some((region, region.verdict.limits.first()?)));
        let (region, limit) = limits.max_by(|(a, x), (b, y)| (a.share * x.gain).total_cmp(&(b.share * y.gain)))?;
        let remedy = region.verdict.remedies.iter().find(|remedy| remedy.rule == limit.rule)?;
        let place = if region.name == self.first().name { String::new() } else { format!(" of {}", region.name) };
        let gain = quantity(limit.gain, "ratio");
        Some(format!("Changing the program may gain up to {gain}{place} ({}): {}", limit.title, remedy.text))
    }

    /// What remedies gain.
    fn gains(&self) -> Section {
        let row = |tried: &Tried| {
            let predicted = tried.causes.first().map_or(0.0, |cause| cause.predicted);
            let outcome = tried.of_region(0);
            let values = vec![
                Some(Value::text(quantity(predicted, "ratio"))),
                outcome.map(gain),
                outcome.map(|outcome| Value::number(outcome.seconds, "s")),
            ];
            Row { label: tried.name.clone(), values }
        };
        let headings = ["remedy", "full cure, predicted", "simulated gain", "time"];
        Section::table("Simulated", headings, self.ranked().map(row).collect())
    }

    /// What limits each region, and what helps it most.
    fn by_region(&self) -> Section {
        let row = |(place, region): (usize, &Judged)| {
            let best = self.best(place);
            let limit = region.verdict.limits.first();
            let limit = limit.map(|limit| format!("{} ({})", limit.title, quantity(limit.share, "ratio")));
            let values = vec![
                Some(Value::number(region.share, "ratio")),
                best.and_then(|tried| tried.of_region(place)).map(gain),
                best.map(|tried| Value::text(&tried.name)),
                limit.map(Value::text),
            ];
            Row { label: region.name.clone(), values }
        };
        let headings = ["region", "of run time", "gain", "best remedy", "limit"];
        Section::table("By region", headings, self.regions.iter().enumerate().map(row).collect())
    }

    /// The gain of each remedy for each region.
    fn matrix(&self) -> Section {
        let row = |tried: &Tried| {
            let of_region = |place| tried.of_region(place).map(gain);
            Row { label: tried.name.clone(), values: (0..self.regions.len()).map(of_region).collect() }
        };
        let names = self.regions.iter().map(|region| region.name.clone());
        let headings: Vec<String> = std::iter::once("gain".to_owned()).chain(names).collect();
        Section::table("Gain by region", headings, self.ranked().map(row).collect())
    }

    /// How to apply what gains most somewhere, on the machine and in the simulator.
    fn hints(&self) -> Vec<String> {
        let is_best = |tried: &&Tried| (0..self.regions.len()).any(|place| self.best(place) == Some(*tried));
        let hint = |tried: &Tried| {
            let options = shown_options(tried);
            format!("{}: on the machine {}; in the simulator fxscope run {options}", tried.name, tried.machine)
        };
        self.ranked().filter(is_best).map(hint).chain(power::hints(self)).collect()
    }

    /// Returns the advice for programs.
    #[must_use]
    pub fn json(&self) -> Json {
        let first = self.first();
        json!({
            "program": self.run.program(),
            "machine": self.run.machine,
            "region": first.name,
            "seconds": first.time.seconds,
            "joules": first.time.energy,
            "verdict": json::verdict_json(&first.verdict),
            "regions": self.regions.iter().enumerate().map(|(place, region)| self.region_json(place, region)).collect::<Vec<_>>(),
            "tried": self.tried.iter().map(|tried| self.tried_json(tried)).collect::<Vec<_>>(),
            "advice": self.sentences().join(" "),
        })
    }

    fn region_json(&self, place: usize, region: &Judged) -> Json {
        json!({
            "name": region.name,
            "seconds": region.time.seconds,
            "share": region.share,
            "best": self.best(place).map(|tried| &tried.name),
            "verdict": json::verdict_json(&region.verdict),
        })
    }

    fn tried_json(&self, tried: &Tried) -> Json {
        let outcome = tried.of_region(0);
        let first = tried.causes.first();
        let regions = self.regions.iter().zip(&tried.causes).enumerate().map(|(place, (region, cause))| {
            let outcome = tried.of_region(place);
            json!({
                "name": region.name,
                "rules": cause.rules,
                "predicted_gain": cause.predicted,
                "seconds": outcome.map(|outcome| outcome.seconds),
                "gain": outcome.map(|outcome| outcome.gain),
                "noise": outcome.map(|outcome| outcome.is_noise),
                "joules": outcome.and_then(|outcome| outcome.energy),
            })
        });
        json!({
            "name": tried.name,
            "kind": tried.kind,
            "how": tried.machine,
            "options": tried.options,
            "rules": first.map(|cause| &cause.rules),
            "predicted_gain": first.map(|cause| cause.predicted),
            "seconds": outcome.map(|outcome| outcome.seconds),
            "gain": outcome.map(|outcome| outcome.gain),
            "noise": outcome.map(|outcome| outcome.is_noise),
            "joules": outcome.and_then(|outcome| outcome.energy),
            "trade_off": tried.trade_off,
            "regions": regions.collect::<Vec<_>>(),
            "error": tried.outcome.as_ref().err(),
        })
    }
}

/// A gain, if it is larger than the error of estimates.
fn gain(outcome: Outcome) -> Value {
    if outcome.is_noise { Value::text("within the error") } else { Value::number(outcome.gain, "ratio") }
}

/// The options as a shell reads them.
fn shown_options(tried: &Tried) -> String {
    let quoted = |word: &String| if word.contains(' ') { format!("\"{word}\"") } else { word.clone() };
    tried.options.iter().map(quoted).collect::<Vec<_>>().join(" ")
}
