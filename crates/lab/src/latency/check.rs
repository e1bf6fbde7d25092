//! Predictions compared with simulations of slower memory.

use std::path::PathBuf;

use fxscope_latency::check::{self, Sample};
use fxscope_latency::methods::stalls;
use fxscope_latency::{Prediction, predict};
use fxscope_report::document::{Document, Plot, Section};
use serde_json::{Value as Json, json};

use super::samples::{NoSample, Simulations, Subject};
use super::{PredictOptions, show};
use crate::tasks::Task;
use crate::{Cache, Error, Progress, Runner, Silent};

/// Options of a check.
#[derive(Clone, Debug)]
pub struct CheckOptions {
    /// Runs at a time; `None`: as many as the host has cores.
    pub jobs: Option<usize>,
    /// Cache of the counts of runs.
    pub cache: Cache,
    /// Fit the coefficients of method 5 to the programs marked for it.
    pub fit: bool,
}

/// Results of a check.
#[derive(Clone, Debug)]
pub struct Checked {
    /// For people.
    pub document: Document,
    /// Plots for a page.
    pub plots: Vec<Plot>,
    /// For programs.
    pub json: Json,
    /// Programs that could not be simulated, and why.
    pub failed: Vec<String>,
}

fn of(sample: &Sample, options: &PredictOptions) -> Prediction {
    predict(&sample.program(), &options.latencies())
}

/// Returns the simulations that a check of programs needs. Those whose program cannot be read are not among them: they fail in the check.
#[must_use]
pub fn check_tasks(subjects: &[Subject], options: &CheckOptions) -> Vec<Task> {
    Simulations { runner: Runner::new(options.jobs, &Silent), cache: &options.cache }.tasks(subjects)
}

/// Makes the simulation of a check with this result ([`check_tasks`]) and caches it. Returns why it failed, if so.
///
/// # Errors
/// If there is no such simulation.
pub fn make_check_task(
    subjects: &[Subject],
    options: &CheckOptions,
    result: &str,
    progress: &dyn Progress,
) -> Result<Option<String>, Error> {
    Simulations { runner: Runner::new(options.jobs, progress), cache: &options.cache }.make_task(subjects, result)
}

/// Checks one program: runs it with normal and with slower memory, and predicts the latter from the former.
///
/// # Errors
/// If it cannot be simulated.
pub fn check_one(subject: &Subject, options: &CheckOptions, progress: &dyn Progress) -> Result<Checked, Error> {
    let simulations = Simulations { runner: Runner::new(options.jobs, progress), cache: &options.cache };
    let name = &subject.name;
    let sample = simulations.samples(std::slice::from_ref(subject))?.remove(0)?;
    let prediction = of(&sample, &subject.options);
    Ok(Checked {
        document: show::checked(&format!("Slower memory, predicted and simulated: {name}"), &sample, &prediction),
        plots: show::plots(&prediction, Some(&sample)),
        json: show::checked_json(&sample, &prediction),
        failed: Vec::new(),
    })
}

/// Checks a set of programs, read from files ([`super::plan`]).
///
/// # Errors
/// If a fit is asked for but no program is marked for it. Programs that cannot be simulated are part of the result.
pub fn check_set(
    paths: &[PathBuf],
    subjects: &[Subject],
    options: &CheckOptions,
    progress: &dyn Progress,
) -> Result<Checked, Error> {
    let simulations = Simulations { runner: Runner::new(options.jobs, progress), cache: &options.cache };
    let results = simulations.samples(subjects)?;
    let (mut failures, mut refused) = (Vec::new(), Vec::new());
    let mut samples = Vec::new();
    let mut predictions = Vec::new();
    for (subject, result) in subjects.iter().zip(results) {
        match result {
            Ok(sample) => {
                predictions.push(of(&sample, &subject.options));
                samples.push(sample);
            }
            Err(NoSample::Failed(why)) => failures.push(format!("{}: {why}", subject.name)),
            Err(NoSample::Refused(why)) => refused.push(format!("{}: {why}", subject.name)),
        }
    }
    failures.iter().for_each(|failure| progress.message(failure));
    let samples: Vec<&Sample> = samples.iter().collect();
    let (fitted, tested): (Vec<&Sample>, Vec<&Sample>) = samples.iter().partition(|sample| sample.fit);

    let mut sections = vec![show::programs(&samples, &predictions)];
    let all = check::statistics(&samples);
    sections.extend(show::statistics("within 10 %, all programs", &all));
    let mut json = json!({
        "programs": samples.iter().zip(&predictions).map(|(s, p)| show::checked_json(s, p)).collect::<Vec<_>>(),
        "refused": refused,
        "failed": failures,
        "all": show::statistics_json(&all),
    });
    if !fitted.is_empty() && !tested.is_empty() {
        for (key, title, part) in
            [("fit", "within 10 %, those of the fit", fitted), ("test", "within 10 %, those of the test", tested)]
        {
            let statistics = check::statistics(&part);
            sections.extend(show::statistics(title, &statistics).into_iter().take(1));
            json[key] = show::statistics_json(&statistics);
        }
    }
    if options.fit {
        let (notes, found) = fit(&samples)?;
        sections.push(Section::notes("Fit", notes));
        json["coefficients"] = found;
    }
    if !refused.is_empty() {
        sections.push(Section::notes("Refused", refused));
    }
    if !failures.is_empty() {
        sections.push(Section::notes("Failed", failures.clone()));
    }
    let title = paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ");
    let title = format!("Slower memory, predicted and simulated: {title}, {} programs", samples.len());
    Ok(Checked {
        document: Document::of(title, sections),
        plots: show::sorted(&samples, &predictions),
        json,
        failed: failures,
    })
}

/// Fits the coefficients, and shows them beside those in use.
fn fit(samples: &[&Sample]) -> Result<(Vec<String>, Json), Error> {
    let found = check::fit(samples)
        .ok_or("--fit: no program of the set is marked for it (fit = true) and has the counts that method 5 needs")?;
    let now = *stalls::FITTED;
    let rows = [
        ("hidden", found.hidden, now.hidden),
        ("late", found.late, now.late),
        ("together", found.together, now.together),
        ("slowest", found.slowest, now.slowest),
        ("distance", found.distance, now.distance),
        ("streams", found.streams, now.streams),
    ];
    let notes =
        rows.iter().map(|(name, found, now)| format!("Method 5, {name}: found {found:.3}, in use {now:.3}.")).collect();
    let json = rows.iter().map(|(name, found, now)| ((*name).to_owned(), json!({ "found": found, "in_use": now })));
    Ok((notes, Json::Object(json.collect())))
}
