//! Predictions of the time with other pages, compared with simulations of each.

use std::path::PathBuf;

use fxscope_report::document::{Document, Row, Section, Value};
use serde_json::{Value as Json, json};

use super::advise::{Compared, compare};
use super::plan::Subject;
use crate::{Cache, Error, Progress, Runner};

/// Largest ratio of a predicted and a simulated gain that agree.
pub const FACTOR: f64 = 1.3;
/// Largest difference of a predicted and a simulated gain that agree, as a share of the program's time.
pub const POINTS: f64 = 0.005;

/// Options of a check.
#[derive(Clone, Debug)]
pub struct CheckOptions {
    /// Programs at a time; `None`: as many as the host has cores.
    pub jobs: Option<usize>,
    /// Cache of the results by program.
    pub cache: Cache,
}

/// Results of a check.
#[derive(Clone, Debug)]
pub struct Checked {
    /// For people.
    pub document: Document,
    /// For programs.
    pub json: Json,
    /// Programs that could not be checked, and why.
    pub failed: Vec<String>,
}

impl Compared {
    /// Returns whether predicted and simulated gain agree: they differ by no more than [`POINTS`], or have the same sign and a ratio of no
    /// more than [`FACTOR`].
    #[must_use]
    pub fn agrees(&self) -> bool {
        let (a, b) = (self.predicted, self.simulated);
        (a - b).abs() <= POINTS || a * b > 0.0 && (a / b).max(b / a) <= FACTOR
    }
}

/// How many agree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Agreement {
    programs: [usize; 2],
    pages: [usize; 2],
    /// Of the pages that change the simulated time by more than [`POINTS`].
    effects: [usize; 2],
}

impl Agreement {
    fn of(results: &[(&Subject, Vec<Compared>)], which: impl Fn(&Subject) -> bool) -> Agreement {
        let mut all = Agreement::default();
        let mut count = |counts: fn(&mut Agreement) -> &mut [usize; 2], agrees: bool| {
            let [agreeing, of] = counts(&mut all);
            (*agreeing, *of) = (*agreeing + usize::from(agrees), *of + 1);
        };
        for (_, compared) in results.iter().filter(|(subject, _)| which(subject)) {
            count(|all| &mut all.programs, compared.iter().all(Compared::agrees));
            for one in compared {
                count(|all| &mut all.pages, one.agrees());
                if one.simulated.abs() > POINTS {
                    count(|all| &mut all.effects, one.agrees());
                }
            }
        }
        all
    }

    fn row(&self, label: &str) -> Row {
        let share = |[agreeing, of]: [usize; 2]| {
            let share = 100.0 * agreeing as f64 / of.max(1) as f64;
            Some(Value::text(if of == 0 { "-".to_owned() } else { format!("{share:.1} % of {of}") }))
        };
        Row { label: label.to_owned(), values: [self.programs, self.pages, self.effects].map(share).into() }
    }

    fn json(&self) -> Json {
        let of = |[agreeing, of]: [usize; 2]| json!({ "agree": agreeing, "of": of });
        json!({ "programs": of(self.programs), "pages": of(self.pages), "effects": of(self.effects) })
    }
}

/// Checks a set of programs ([`super::plan`]): predicts the time of each with other pages and simulates it with them.
///
/// # Errors
/// If the check is stopped. Programs that cannot be simulated are part of the result.
pub fn check(
    paths: &[PathBuf],
    subjects: &[Subject],
    options: &CheckOptions,
    progress: &dyn Progress,
) -> Result<Checked, Error> {
    let runner = Runner::new(options.jobs, progress);
    let quiet = StopOnly(progress);
    let one = |subject: &Subject| options.cache.get_or(|| key(subject), || compare(&subject.scenario, &quiet));
    let found = runner.batch(subjects, |subject| subject.name.clone(), one)?;
    let (mut results, mut failed) = (Vec::new(), Vec::new());
    for (subject, result) in subjects.iter().zip(found) {
        match result {
            Ok(compared) => results.push((subject, compared)),
            Err(why) => failed.push(format!("{}: {why}", subject.name)),
        }
    }
    failed.iter().for_each(|failure| progress.message(failure));
    let title = paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ");
    let title = format!("Pages, predicted and simulated: {title}, {} programs", results.len());
    Ok(Checked { document: document(title, &results, &failed), json: json(&results, &failed), failed })
}

/// Returns everything that the result of a program depends on.
fn key(subject: &Subject) -> Result<Vec<Vec<u8>>, Error> {
    let spec = subject.scenario.spec()?;
    Ok(vec![b"pages".to_vec(), subject.scenario.identity(&spec)?.bytes().to_vec()])
}

/// The groups of programs that are counted apart.
fn agreements(results: &[(&Subject, Vec<Compared>)]) -> Vec<(&'static str, Agreement)> {
    let all = ("all", Agreement::of(results, |_| true));
    let tested = ("not used for a fit", Agreement::of(results, |subject| !subject.fit));
    if results.iter().any(|(subject, _)| subject.fit) { vec![all, tested] } else { vec![all] }
}

fn document(title: String, results: &[(&Subject, Vec<Compared>)], failed: &[String]) -> Document {
    let percent = |share: f64| Some(Value::text(format!("{:+.2} %", 100.0 * share)));
    let row = |(subject, one): (&Subject, &Compared)| Row {
        label: subject.name.clone(),
        values: vec![
            percent(one.predicted),
            percent(one.simulated),
            Some(Value::text(if one.agrees() { "" } else { "off" })),
            Some(Value::text(one.pages.clone())),
        ],
    };
    let rows = results.iter().flat_map(|(subject, compared)| compared.iter().map(|one| row((subject, one)))).collect();
    let counts = agreements(results).iter().map(|(label, agreement)| agreement.row(label)).collect();
    let effects = format!("beyond {} points", 100.0 * POINTS);
    let mut sections = vec![
        Section::table("", ["gain", "predicted", "simulated", "", "pages"], rows),
        Section::table("", ["agree", "programs", "pages", &effects], counts),
        Section::notes(
            "Notes",
            vec![format!(
                "Gains are shares of the time with the program's own pages; negative ones are losses. They agree within a factor of {FACTOR} \
                 or {} points; programs agree with all of their pages.",
                100.0 * POINTS
            )],
        ),
    ];
    if !failed.is_empty() {
        sections.push(Section::notes("Failed", failed.to_vec()));
    }
    Document::of(title, sections)
}

fn json(results: &[(&Subject, Vec<Compared>)], failed: &[String]) -> Json {
    let one = |one: &Compared| {
        let Compared { pages, predicted, simulated } = one;
        json!({ "pages": pages, "predicted_gain": predicted, "simulated_gain": simulated, "agrees": one.agrees() })
    };
    let program = |(subject, compared): &(&Subject, Vec<Compared>)| {
        let pages: Vec<Json> = compared.iter().map(one).collect();
        json!({ "name": subject.name, "fit": subject.fit, "pages": pages })
    };
    let agree = agreements(results).into_iter().map(|(label, agreement)| (label.to_owned(), agreement.json()));
    json!({
        "programs": results.iter().map(program).collect::<Vec<_>>(),
        "agree": agree.collect::<serde_json::Map<String, Json>>(),
        "failed": failed,
    })
}

/// Passes on only whether to stop: the runs of one program are no progress of their own.
struct StopOnly<'a>(&'a dyn Progress);

impl Progress for StopOnly<'_> {
    fn stop_requested(&self) -> bool {
        self.0.stop_requested()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gains_agree_within_the_factor_or_the_points() {
        let agrees = |predicted, simulated| Compared { pages: String::new(), predicted, simulated }.agrees();
        assert!(agrees(0.13, 0.10) && agrees(0.10, 0.13) && agrees(-0.13, -0.10));
        assert!(!agrees(0.14, 0.10) && !agrees(0.10, -0.10));
        assert!(agrees(0.002, -0.002) && !agrees(0.004, -0.002));
    }
}
