//! The advice as a document and as JSON.

use fxscope_report::document::{Body, Document, Row, Section, Value};
use fxscope_report::render::json;
use fxscope_report::render::quantity::quantity;
use serde_json::{Value as Json, json};

use super::{Advice, Tried};

/// Smallest gain, as a share of the time, for which a change is advised.
const LEAST: f64 = 0.01;

impl Advice {
    /// Returns the advice for people: the verdict, and what each remedy gains.
    #[must_use]
    pub fn document(&self) -> Document {
        let mut sections =
            vec![Section { title: "Verdict".to_owned(), body: Body::Verdict(Box::new(self.verdict.clone())) }];
        if !self.tried.is_empty() {
            sections.push(table(&self.tried));
        }
        sections.push(Section::notes("Advice", vec![self.sentence()]));
        if !self.tried.is_empty() {
            let how = self.tried.iter().map(|tried| format!("{}: {}.", tried.name, tried.how));
            sections.push(Section::notes("Machine", how.collect()));
        }
        let failed =
            self.tried.iter().filter_map(|tried| Some(format!("{}: {}", tried.name, tried.outcome.as_ref().err()?)));
        sections.push(Section::notes("Not run", failed.collect()));
        let program = self.run.subject();
        let name = program.rsplit('/').next().unwrap_or(program);
        Document::of(format!("Advice for {name} on {}, region {}", self.run.machine, self.region), sections)
    }

    /// What is worth doing.
    fn sentence(&self) -> String {
        let best = self.tried.iter().find_map(|tried| Some((tried, tried.outcome.as_ref().ok()?)));
        match best {
            None => "The simulator can apply none of the remedies without changing the program; the verdict says what to change.".to_owned(),
            Some((tried, outcome)) if outcome.gain >= LEAST && !outcome.is_noise => format!(
                "Most gains: {}. {} instead of {}, {} less time. On the machine: {}.",
                tried.name,
                quantity(outcome.seconds, "s"),
                quantity(self.seconds, "s"),
                quantity(outcome.gain, "ratio"),
                tried.how
            ),
            Some(_) => "None of the remedies that need no change of the program makes it faster; the verdict says what to change.".to_owned(),
        }
    }

    /// Returns the advice for programs.
    #[must_use]
    pub fn json(&self) -> Json {
        let tried = self.tried.iter().map(|tried| {
            let outcome = tried.outcome.as_ref();
            json!({
                "name": tried.name,
                "how": tried.how,
                "rules": tried.rules,
                "predicted_gain": tried.predicted,
                "seconds": outcome.map(|outcome| outcome.seconds).ok(),
                "gain": outcome.map(|outcome| outcome.gain).ok(),
                "noise": outcome.map(|outcome| outcome.is_noise).ok(),
                "error": outcome.err(),
            })
        });
        json!({
            "program": self.run.program(),
            "machine": self.run.machine,
            "region": self.region,
            "seconds": self.seconds,
            "verdict": json::verdict_json(&self.verdict),
            "tried": tried.collect::<Vec<_>>(),
            "advice": self.sentence(),
        })
    }
}

fn table(tried: &[Tried]) -> Section {
    let row = |tried: &Tried| {
        let outcome = tried.outcome.as_ref().ok();
        let gain = outcome.map(|outcome| match outcome.is_noise {
            true => Value::text("within the error"),
            false => Value::number(outcome.gain, "ratio"),
        });
        let values = vec![
            Some(Value::text(format!("up to {}", quantity(tried.predicted, "ratio")))),
            gain,
            outcome.map(|outcome| Value::number(outcome.seconds, "s")),
        ];
        Row { label: tried.name.to_owned(), values }
    };
    Section::table("Simulated", ["remedy", "predicted gain", "simulated gain", "time"], tried.iter().map(row).collect())
}
