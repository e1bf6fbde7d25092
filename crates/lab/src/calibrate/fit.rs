//! Searches the numbers of a machine with which the simulator takes the measured times.

use std::collections::BTreeMap;

use fxscope_machine::Spec;
use fxscope_machine::schema::Value;
use fxscope_validate::Search;

use super::measurements::{Measurements, Run};
use super::model::{Model, Settings};
use super::tables::{Benchmark, Bound, Key, benchmarks, keys};
use crate::{Cache, Error, Progress, Runner};

/// Most values that are tried between the ends of a range.
const TRIES: u32 = 12;
/// Part by which simulated times of the same loop differ, by what ran before it. A number stays if the model with it is as near to the
/// measured time.
const REPEATABLE: f64 = 0.005;
/// A search ends at such an error, relative to the measured time.
const ENOUGH: f64 = 0.0005;
/// Steps that are a larger part of a value are coarse: neighbours may have the same time.
const COARSE: f64 = 0.02;

/// What to fit, and how to run the simulator.
#[derive(Clone, Debug)]
pub struct FitOptions {
    /// The machine, by name or path.
    pub machine: String,
    /// Keys to fit; empty: all.
    pub only: Vec<String>,
    /// Fit even if the measured processor is of another kind than the machine's.
    pub any_processor: bool,
    /// Leave out the comparison of benchmarks that nothing is fitted to.
    pub keys_only: bool,
    /// Simulations at a time; `None`: as many as the host has cores.
    pub jobs: Option<usize>,
    /// Cache of simulated benchmarks.
    pub cache: Cache,
}

/// The result of all fits.
#[derive(Clone, Debug)]
pub struct Fitting {
    /// The machine, by name or path.
    pub machine: String,
    /// The measured computer: its name, kernel and processor.
    pub measured: Measurements,
    /// The keys, in the order in which they were fitted.
    pub keys: Vec<KeyResult>,
    /// All measured benchmarks, compared with the model that has the proposed numbers.
    pub comparisons: Vec<Comparison>,
    /// Benchmarks without a result, and why.
    pub missing: Vec<(&'static str, String)>,
}

/// The result of the fit of a key.
#[derive(Clone, Debug, PartialEq)]
pub struct KeyResult {
    /// The key.
    pub key: &'static Key,
    /// The unit of its value; empty if it has none.
    pub unit: &'static str,
    /// Its value in the machine's file.
    pub today: f64,
    /// What the fit found.
    pub outcome: Outcome,
}

/// What a fit found.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// The model has the measured time with the machine's value, or is nearer to it than with the values next to that.
    Agrees(Agreement),
    /// Another value has the measured time.
    Fitted(Fitted),
    /// The value stays, for this reason.
    Left(String),
}

/// Measured and simulated time of a quantity, ns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Agreement {
    /// Measured.
    pub measured: f64,
    /// Simulated with the machine's value.
    pub simulated: f64,
}

/// A value that reproduces a measured time.
#[derive(Clone, Debug, PartialEq)]
pub struct Fitted {
    /// The value.
    pub value: f64,
    /// The value as settings and machine files have it.
    pub text: String,
    /// By how much it may be off: by the spread of measured and simulated times, a neighbouring value with the same time, and half a
    /// step.
    pub uncertainty: f64,
    /// The measured time, and the simulated one with the machine's value, ns.
    pub before: Agreement,
    /// The simulated time with the value, ns.
    pub simulated: f64,
}

/// How well a value is determined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Confidence {
    /// To 2 %.
    High,
    /// To 10 %.
    Medium,
    /// Less.
    Low,
}

impl Fitted {
    /// Returns how well the value is determined.
    #[must_use]
    pub fn confidence(&self) -> Confidence {
        match self.uncertainty / self.value.abs() {
            part if part <= 0.02 => Confidence::High,
            part if part <= 0.1 => Confidence::Medium,
            _ => Confidence::Low,
        }
    }
}

impl Confidence {
    /// Returns it as a word.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Confidence::High => "high",
            Confidence::Medium => "medium",
            Confidence::Low => "low",
        }
    }
}

/// A benchmark measured and simulated.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// The benchmark.
    pub benchmark: &'static Benchmark,
    /// Its measured result.
    pub measured: Run,
    /// Its simulated result.
    pub simulated: Run,
}

/// Fits the numbers of a machine to measurements.
///
/// Each fit varies one number until the simulated time of an operation is the measured one. All other numbers are those of the
/// machine, and those that were found before it. A number whose benchmarks have no result, or for which no value gives the measured
/// time, stays as it is.
///
/// # Errors
/// If the machine cannot be loaded, is of another kind than the measured one, or the simulator cannot run.
pub fn fit(measured: &Measurements, options: &FitOptions, progress: &dyn Progress) -> Result<Fitting, Error> {
    let spec = fxscope_machine::load(&options.machine, &[])?;
    check_processor(measured, &spec, options)?;
    let wanted = wanted(&options.only)?;
    let model = Model::new(&options.machine, &measured.host, &options.cache, options.jobs, progress)?;
    let mut fits = Fits { measured, spec: &spec, model: &model, found: Settings::new() };
    let mut results = Vec::new();
    progress.batch_started(wanted.len());
    for key in wanted {
        progress.run_started(&key.name);
        results.push(fits.key(key)?);
        progress.run_ended(&key.name);
    }
    progress.batch_ended();
    let found = fits.found;
    let (comparisons, missing) = if options.keys_only {
        (Vec::new(), Vec::new())
    } else {
        compare(measured, &model, &found, Runner::new(options.jobs, progress))?
    };
    let machine = options.machine.clone();
    Ok(Fitting { machine, measured: measured.clone(), keys: results, comparisons, missing })
}

fn check_processor(measured: &Measurements, spec: &Spec, options: &FitOptions) -> Result<(), Error> {
    if options.any_processor || !measured.is_of_another_processor(spec.tables.identity.midr) {
        return Ok(());
    }
    let midr = measured.host.midr.as_deref().unwrap_or_default();
    Err(format!(
        "the measured processor, MIDR_EL1 {midr}, is not that of the machine '{}'; measure on one, name another machine with \
         --machine, or fit all the same with --any-processor",
        options.machine
    )
    .into())
}

/// Returns the keys to fit, in the order of the table.
fn wanted(only: &[String]) -> Result<Vec<&'static Key>, Error> {
    if let Some(unknown) = only.iter().find(|name| keys().iter().all(|key| key.name != **name)) {
        let all: Vec<&str> = keys().iter().map(|key| key.name.as_str()).collect();
        return Err(format!("no fit for '{unknown}'; there are fits for {}", all.join(", ")).into());
    }
    Ok(keys().iter().filter(|key| only.is_empty() || only.contains(&key.name)).collect())
}

/// Returns the number that a key of a machine has; `None` if there is no such key, or it has no number.
pub(super) fn value_of(spec: &Spec, name: &str) -> Option<f64> {
    match spec.entries().find(|entry| entry.name() == name)?.value {
        Value::Integer(number) => Some(number as f64),
        Value::Real(number) => Some(number),
        _ => None,
    }
}

/// Fits that build on each other.
struct Fits<'a> {
    measured: &'a Measurements,
    spec: &'a Spec,
    model: &'a Model<'a>,
    found: Settings,
}

impl Fits<'_> {
    /// Fits a key, and keeps what was found for the fits after it.
    fn key(&mut self, key: &'static Key) -> Result<KeyResult, Error> {
        let entry = self.spec.entries().find(|entry| entry.name() == key.name);
        let unit = entry.and_then(|entry| entry.key.unit).unwrap_or_default();
        let Some(today) = value_of(self.spec, &key.name) else {
            return Err(format!("the machine has no number {}", key.name).into());
        };
        let outcome = match self.measured_time(key) {
            Ok((measured, spread)) => match self.search(key, today, measured, spread) {
                Err(Error::Request(why)) => Outcome::Left(why),
                outcome => outcome?,
            },
            Err(why) => Outcome::Left(why),
        };
        if let Outcome::Fitted(fitted) = &outcome {
            self.found.push((key.name.clone(), fitted.text.clone()));
        }
        Ok(KeyResult { key, unit, today, outcome })
    }

    /// Returns the measured time of a key's quantity and its spread, ns.
    fn measured_time(&self, key: &Key) -> Result<(f64, f64), String> {
        let mut spread = 0.0f64;
        let time = key.quantity.value(|name| {
            let run = self.measured.of(named(name)?).map_err(|why| format!("{name} {why}"))?;
            spread = spread.max(run.spread());
            Ok::<f64, String>(run.ns_per_operation())
        })?;
        if time > 0.0 { Ok((time, spread)) } else { Err(format!("{} took {time:.2} ns", key.quantity)) }
    }

    /// Returns the simulated time of a key's quantity with a value, ns.
    fn simulated_time(&self, key: &Key, value: f64) -> Result<f64, Error> {
        let mut settings = self.found.clone();
        settings.push((key.name.clone(), self.text(key, value)));
        let needed = key.quantity.benchmarks().into_iter().map(named).collect::<Result<Vec<_>, _>>()?;
        let runs: BTreeMap<String, Run> = self.model.run(&needed, &settings)?;
        key.quantity.value(|name| {
            let run = runs.get(name).ok_or_else(|| format!("{name} was not simulated"))?;
            Ok(run.ns_per_operation())
        })
    }

    fn search(&self, key: &Key, today: f64, measured: f64, spread: f64) -> Result<Outcome, Error> {
        let before = Agreement { measured, simulated: self.simulated_time(key, today)? };
        if (before.simulated - measured).abs() <= (REPEATABLE * measured).max(spread) {
            return Ok(Outcome::Agrees(before));
        }
        let range = (self.bound(&key.low), self.bound(&key.high));
        let search = Search { range, step: key.step, tries: TRIES, enough: ENOUGH * measured };
        let found = search.zero(|value| Ok::<f64, Error>(self.simulated_time(key, value)? - measured))?;
        let at = |value: f64| found.error_of(value).unwrap_or(f64::NAN) + measured;
        let Some(value) = found.value else {
            let (low, high) = range;
            return Ok(Outcome::Left(format!(
                "{} took {measured:.2} ns; values from {low} to {high} give {:.2} to {:.2} ns",
                key.quantity,
                at(low),
                at(high)
            )));
        };
        if value == today {
            return Ok(Outcome::Agrees(before));
        }
        let slope = found.slope_at(value).unwrap_or(0.0).abs();
        let alike = self.alike(key, range, value, at(value), (ENOUGH * measured).max(spread))?;
        let uncertainty = ((REPEATABLE * measured).max(spread) / slope).max(alike) + key.step / 2.0;
        Ok(Outcome::Fitted(Fitted { value, text: self.text(key, value), uncertainty, before, simulated: at(value) }))
    }

    /// Returns the distance of a value next to `value` with nearly the same time, ns; 0 if there is none. Only steps that are large
    /// compared with the value are tried.
    fn alike(&self, key: &Key, range: (f64, f64), value: f64, time: f64, nearly: f64) -> Result<f64, Error> {
        if key.step <= COARSE * value {
            return Ok(0.0);
        }
        for other in [value - key.step, value + key.step] {
            let inside = other >= range.0 && other <= range.1;
            if inside && (self.simulated_time(key, other)? - time).abs() <= nearly {
                return Ok(key.step);
            }
        }
        Ok(0.0)
    }

    /// Returns the value of an end of a search.
    fn bound(&self, bound: &Bound) -> f64 {
        match bound {
            Bound::Number(number) => *number,
            Bound::Key(name) => {
                let found = self.found.iter().find(|(key, _)| key == name).and_then(|(_, text)| text.parse().ok());
                found.or_else(|| value_of(self.spec, name)).unwrap_or(f64::NAN)
            }
        }
    }

    /// Returns a value as the machine's file would have it.
    fn text(&self, key: &Key, value: f64) -> String {
        let whole =
            self.spec.entries().any(|entry| entry.name() == key.name && matches!(entry.value, Value::Integer(_)));
        if whole { format!("{value:.0}") } else { format!("{value:?}") }
    }
}

fn named(name: &str) -> Result<&'static Benchmark, String> {
    benchmarks().iter().find(|benchmark| benchmark.name == name).ok_or_else(|| format!("no benchmark is called {name}"))
}

/// Comparisons, and benchmarks without a result.
type Compared = (Vec<Comparison>, Vec<(&'static str, String)>);

/// Compares all measured benchmarks with the model; those without a result are named.
fn compare(
    measured: &Measurements,
    model: &Model<'_>,
    found: &Settings,
    runner: Runner<'_>,
) -> Result<Compared, Error> {
    let (mut runs, mut missing) = (Vec::new(), Vec::new());
    for benchmark in benchmarks() {
        match measured.of(benchmark) {
            Ok(run) => runs.push((benchmark, run)),
            Err(why) => missing.push((benchmark.name.as_str(), why)),
        }
    }
    let one = |&(benchmark, run): &(&'static Benchmark, &Run)| -> Result<Comparison, Error> {
        let simulated = model.run(&[benchmark], found)?.remove(&benchmark.name);
        let simulated = simulated.ok_or_else(|| format!("{} was not simulated", benchmark.name))?;
        Ok(Comparison { benchmark, measured: run.clone(), simulated })
    };
    let compared = runner.batch(&runs, |(benchmark, _)| benchmark.name.clone(), one)?;
    let mut comparisons = Vec::new();
    for (result, (benchmark, _)) in compared.into_iter().zip(&runs) {
        match result {
            Ok(comparison) => comparisons.push(comparison),
            Err(Error::Request(why)) => missing.push((benchmark.name.as_str(), why)),
            Err(error) => return Err(error),
        }
    }
    Ok((comparisons, missing))
}
