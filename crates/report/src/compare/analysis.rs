//! Runs side by side: the difference of each event and metric, and whether it is more than noise.

use std::collections::{BTreeMap, BTreeSet};

use fxscope_pmu::sampled::half_widths_of_events;
use fxscope_pmu::{Column, Evaluation, Metrics, Sampled, Values, scope, unknown_events};
use fxscope_record::{ALL, Region, Run};

/// The table of the report whose columns are the parts of cycle accounting, and the column with their sum.
const ACCOUNTING: (&str, &str) = ("B", "B21");
/// A share of the time up to which cores are not idle: threads start one after the other.
const NO_IDLE: f64 = 0.005;
/// A difference of up to this many standard errors is noise: 95 of 100 random differences are smaller.
const STANDARD_ERRORS: f64 = 2.0;
/// What is rarer than one in this many cycles, waits that take a smaller share of the time, and smaller ratios come last, however much
/// they differ.
const RARE: f64 = 10_000.0;
/// Units of metrics that count something.
pub(super) const COUNTS: [&str; 7] =
    ["cycles", "count", "instructions", "lines", "micro-operations", "requests", "FLOP"];

/// Runs of one program under the same conditions, one or more.
#[derive(Clone, Debug)]
pub struct Subject<'a> {
    /// Label: a file's name, or another name known to the user.
    pub label: String,
    /// The runs; at least one.
    pub runs: Vec<&'a Run>,
}

impl<'a> Subject<'a> {
    /// Returns the runs of a file as subjects: runs with the same settings are one.
    #[must_use]
    pub fn of_file(label: &str, runs: &'a [Run]) -> Vec<Subject<'a>> {
        let mut subjects: Vec<Subject<'a>> = Vec::new();
        for run in runs {
            match subjects.iter_mut().find(|s| alike(s.runs[0], run)) {
                Some(subject) => subject.runs.push(run),
                None => subjects.push(Subject { label: label.to_owned(), runs: vec![run] }),
            }
        }
        if subjects.len() > 1 {
            for (i, subject) in subjects.iter_mut().enumerate() {
                subject.label = format!("{label}#{}", i + 1);
            }
        }
        subjects
    }
}

/// Returns whether two runs are repetitions.
fn alike(a: &Run, b: &Run) -> bool {
    let is_same = a.machine_hash == b.machine_hash && a.mode == b.mode && part(a) == part(b);
    is_same && a.command == b.command && a.environment == b.environment
}

/// Returns the options that say which part of a run was timed.
fn part(run: &Run) -> String {
    run.part.as_ref().map_or_else(|| "the whole run".to_owned(), |part| part.options.clone())
}

/// Differences between runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// The region compared; all names if there are several.
    pub region: String,
    /// Labels of the subjects; the others are compared with the first.
    pub labels: Vec<String>,
    /// Number of runs of each.
    pub runs: Vec<usize>,
    /// Calls of the region in a run of each, on average.
    pub calls: Vec<f64>,
    /// The unit of work that times and counts are given for ([`Comparison::per`]); `None`: they are those of the region.
    pub per: Option<String>,
    /// Conditions that differ.
    pub notes: Vec<String>,
    /// The times of the other regions that all runs have, if whole runs are compared, in the order of the first.
    pub regions: Vec<Quantity>,
    /// The parts of cycle accounting, in their order.
    pub accounting: Vec<Quantity>,
    /// All metrics, largest differences first.
    pub metrics: Vec<Quantity>,
    /// All events, largest differences first.
    pub events: Vec<Quantity>,
}

/// Whether a quantity is a count or computed from counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Count.
    Event,
    /// Computed from counts.
    Metric,
}

/// A quantity of every subject.
#[derive(Clone, Debug, PartialEq)]
pub struct Quantity {
    /// Kind.
    pub kind: Kind,
    /// Its name for programs.
    pub name: String,
    /// Its name for people.
    pub title: String,
    /// Its unit, as metrics name them.
    pub unit: String,
    /// The values of each subject; `None` if unknown.
    pub values: Vec<Option<Spread>>,
    /// Whether its counts are too rare for differences to matter.
    pub rare: bool,
}

/// The values of several runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// Number of runs.
    pub runs: usize,
    /// Their mean.
    pub mean: f64,
    /// Their estimated standard deviation; `None` for a single value.
    pub deviation: Option<f64>,
    /// The smallest.
    pub least: f64,
    /// The largest.
    pub most: f64,
    /// Half of the width of the mean's confidence interval, if the values are estimates.
    pub half_width: Option<f64>,
}

impl Spread {
    /// Returns the spread of `values`; `None` without values.
    #[must_use]
    pub fn of(values: &[f64]) -> Option<Spread> {
        let n = values.len();
        let mean = values.iter().sum::<f64>() / n as f64;
        let squares: f64 = values.iter().map(|v| (v - mean).powi(2)).sum();
        Some(Spread {
            runs: n,
            mean,
            deviation: (n > 1).then(|| (squares / (n as f64 - 1.0)).sqrt()),
            least: values.iter().copied().reduce(f64::min)?,
            most: values.iter().copied().reduce(f64::max)?,
            half_width: None,
        })
    }

    /// Returns the spread of values with half of the widths of their intervals, if they have any. Windows of several runs of one
    /// program are much alike, so that the mean's interval is assumed to be no narrower than theirs.
    fn of_estimates(estimates: &[(f64, Option<f64>)]) -> Option<Spread> {
        let values: Vec<f64> = estimates.iter().map(|estimate| estimate.0).collect();
        let half_width = estimates.iter().filter_map(|estimate| estimate.1).reduce(f64::max);
        Some(Spread { half_width, ..Spread::of(&values)? })
    }

    /// Returns the square of the mean's standard error. A single value is assumed to have the relative spread of
    /// `other`.
    fn error_squared(&self, other: &Spread) -> Option<f64> {
        let relative = |s: &Spread| s.deviation.map(|d| if s.mean == 0.0 { 0.0 } else { d / s.mean });
        let deviation = self.deviation.or_else(|| Some(relative(other)? * self.mean))?;
        Some(deviation.powi(2) / self.runs as f64)
    }
}

impl Quantity {
    /// Returns the ratio of a subject's value to the first subject's. `None` if one is unknown, or only the first is
    /// zero.
    #[must_use]
    pub fn ratio(&self, subject: usize) -> Option<f64> {
        let (first, other) = (self.values[0]?.mean, self.values[subject]?.mean);
        if first == other { Some(1.0) } else { (first != 0.0).then(|| other / first) }
    }

    /// Returns whether the difference from the first subject is within the variation between runs of one subject, or within the
    /// intervals of estimates; `None` if no subject has several runs, or estimates.
    #[must_use]
    pub fn is_noise(&self, subject: usize) -> Option<bool> {
        match (self.is_within_spread(subject), self.is_within_intervals(subject)) {
            (Some(spread), Some(intervals)) => Some(spread || intervals),
            (spread, intervals) => spread.or(intervals),
        }
    }

    /// Returns whether the difference from the first subject is smaller than half of the widths of both intervals together; `None` if
    /// neither is an estimate.
    #[must_use]
    pub fn is_within_intervals(&self, subject: usize) -> Option<bool> {
        let (first, other) = (self.values[0]?, self.values[subject]?);
        if first.half_width.is_none() && other.half_width.is_none() {
            return None;
        }
        let both = first.half_width.unwrap_or(0.0) + other.half_width.unwrap_or(0.0);
        Some((other.mean - first.mean).abs() < both)
    }

    fn is_within_spread(&self, subject: usize) -> Option<bool> {
        let (first, other) = (self.values[0]?, self.values[subject]?);
        let error = (first.error_squared(&other)? + other.error_squared(&first)?).sqrt();
        Some((other.mean - first.mean).abs() <= STANDARD_ERRORS * error)
    }

    /// Returns the difference of a subject from the first: the logarithm of their ratio, or 0 if it is noise.
    #[must_use]
    pub fn effect_on(&self, subject: usize) -> f64 {
        match (self.values[0], self.values[subject]) {
            _ if self.is_noise(subject) == Some(true) => 0.0,
            (Some(_), Some(_)) => self.ratio(subject).map_or(f64::INFINITY, factor),
            _ => 0.0,
        }
    }

    /// Returns the largest effect on any subject.
    #[must_use]
    pub fn effect(&self) -> f64 {
        (1..self.values.len()).map(|subject| self.effect_on(subject)).fold(0.0, f64::max)
    }

    /// Returns the largest mean of a subject.
    fn most(&self) -> f64 {
        self.values.iter().flatten().map(|s| s.mean.abs()).fold(0.0, f64::max)
    }
}

/// Returns the magnitude of a ratio as a logarithm; infinite if it is zero or negative.
fn factor(ratio: f64) -> f64 {
    if ratio > 0.0 { ratio.ln().abs() } else { f64::INFINITY }
}

/// Compares one region of all subjects: the one of this name, or one for each, with as many names. Without names, whole
/// runs are compared, or the only region of a measurement without a whole.
///
/// # Errors
/// If there are fewer than two subjects, or one has no such region.
///
/// # Panics
/// If there are several names, but not one for each subject.
pub fn compare(subjects: &[Subject], names: &[&str]) -> Result<Comparison, String> {
    if subjects.len() < 2 {
        return Err("there is only one kind of run to compare; give at least two files, or a file with different runs"
            .to_owned());
    }
    assert!(names.len() < 2 || names.len() == subjects.len(), "a name for each subject");
    let name = |i: usize| names.get(i).or(names.first()).copied();
    let regions = subjects.iter().enumerate().map(|(i, s)| regions(s, name(i))).collect::<Result<Vec<_>, _>>()?;
    let mut compared: Vec<&str> = regions.iter().map(|places| places[0].1.name.as_str()).collect();
    compared.dedup();
    let calls = |places: &Vec<Place>| places.iter().map(|(_, r)| r.calls as f64).sum::<f64>() / places.len() as f64;
    let mut comparison = Comparison {
        region: compared.join(" and "),
        labels: subjects.iter().map(|s| s.label.clone()).collect(),
        runs: subjects.iter().map(|s| s.runs.len()).collect(),
        calls: regions.iter().map(calls).collect(),
        per: None,
        notes: notes(subjects, &regions),
        regions: if names.is_empty() { region_times(subjects) } else { Vec::new() },
        accounting: accounting(&regions),
        metrics: metrics(&regions),
        events: events(&regions),
    };
    comparison.sort();
    Ok(comparison)
}

impl Comparison {
    /// Sorts metrics and events, the largest differences first, and notes which are too rare to matter.
    pub(super) fn sort(&mut self) {
        let cycles = self.metrics.iter().find(|q| q.name == "cycles").map_or(0.0, Quantity::most);
        let is_count = |unit: &str| COUNTS.contains(&unit.split(" per ").next().unwrap_or(unit));
        by_effect(&mut self.metrics, |q| match q.unit.as_str() {
            unit if is_count(unit) => q.most() * RARE < cycles,
            "ratio" => q.most() * RARE < 1.0,
            _ => false,
        });
        by_effect(&mut self.events, |q| q.most() * RARE < cycles);
    }
}

/// A run and the region of it that is compared.
type Place<'a> = (&'a Run, &'a Region);

/// Returns the region in each run of a subject.
fn regions<'a>(subject: &Subject<'a>, name: Option<&str>) -> Result<Vec<Place<'a>>, String> {
    let find = |run: &&'a Run| {
        let only = || if let (None, [only]) = (name, &run.regions[..]) { Some(only) } else { None };
        let name = name.unwrap_or(ALL);
        let found = run.region(name).or_else(only).map(|region| (*run, region));
        found.ok_or_else(|| {
            let names: Vec<_> = run.regions.iter().map(|r| r.name.as_str()).collect();
            let program = run.program();
            format!(
                "{} ({program}) has no region '{name}'; it has {}; choose one with --region",
                subject.label,
                names.join(", ")
            )
        })
    };
    subject.runs.iter().map(find).collect()
}

/// Returns the times of the regions that all runs have, but for whole runs.
fn region_times(subjects: &[Subject]) -> Vec<Quantity> {
    let named = subjects[0].runs[0].regions.iter().map(|region| region.name.as_str()).filter(|&name| name != ALL);
    let of_all =
        |name: &str| subjects.iter().map(|subject| regions(subject, Some(name)).ok()).collect::<Option<Vec<_>>>();
    let time = |name: &str| {
        let time = metrics(&of_all(name)?).into_iter().find(|q| q.name == "seconds")?;
        Some(Quantity { name: name.to_owned(), title: name.to_owned(), ..time })
    };
    named.filter_map(time).collect()
}

/// The metrics of a region of a run and, in a sampled run, how well they are known.
type Known<'a> = (Evaluation<'a>, Option<Sampled>);

fn evaluations<'a>(places: &[Place<'a>]) -> Vec<Known<'a>> {
    places.iter().map(|&(run, region)| (Evaluation::new(run, region), Sampled::of(run, region))).collect()
}

/// Returns the parts of cycle accounting. A subject of which less was measured has coarser parts.
fn accounting(subjects: &[Vec<Place>]) -> Vec<Quantity> {
    let evaluations: Vec<Vec<_>> = subjects.iter().map(|places| evaluations(places)).collect();
    let tables = Metrics::built_in().tables().iter().filter(|table| table.id == ACCOUNTING.0);
    let columns = tables.flat_map(|table| &table.columns).filter(|column| column.id != ACCOUNTING.1);
    let quantity = |column: &Column, title: &str| {
        let value = |(e, sampled): &Known| {
            let (shown, cell) = e.total_of(column);
            let half_width = sampled.as_ref().and_then(|sampled| sampled.of_column(&column.id));
            cell.filter(|_| shown == title).map(|cell| (cell.value, half_width))
        };
        let of = |runs: &Vec<Known>| Spread::of_estimates(&runs.iter().map(value).collect::<Option<Vec<_>>>()?);
        Quantity {
            kind: Kind::Metric,
            name: column.id.clone(),
            title: title.to_owned(),
            unit: column.unit.clone(),
            values: evaluations.iter().map(of).collect(),
            rare: false,
        }
    };
    let titles = |column: &'static Column| {
        let mut titles: Vec<&str> = evaluations.iter().flatten().map(|(e, _)| e.total_of(column).0).collect();
        titles.sort_unstable();
        titles.dedup();
        titles.into_iter().map(move |title| (column, title))
    };
    let parts = columns.flat_map(titles).map(|(column, title)| quantity(column, title));
    let parts = parts.filter(|q| q.values.iter().any(Option::is_some));
    parts.chain(idle(&evaluations)).collect()
}

/// Returns the time in which cores have no running thread, as a mean over threads like the parts of cycle accounting, which cover only the
/// cycles of running threads. `None` if there is none, or if it is not known for all runs.
fn idle(subjects: &[Vec<Known>]) -> Option<Quantity> {
    let sum = Metrics::built_in().tables().iter().flat_map(|table| &table.columns).find(|c| c.id == ACCOUNTING.1)?;
    let value = |(e, _): &Known| {
        let seconds = e.total().get("seconds")?;
        let idle = seconds - e.total_of(sum).1?.value;
        Some((if idle > NO_IDLE * seconds { idle } else { 0.0 }, None))
    };
    let of = |runs: &Vec<Known>| Spread::of_estimates(&runs.iter().map(value).collect::<Option<Vec<_>>>()?);
    let values: Vec<Option<Spread>> = subjects.iter().map(of).collect();
    let is_idle = |spread: &Option<Spread>| spread.as_ref().is_some_and(|spread| spread.mean > 0.0);
    (values.iter().all(Option::is_some) && values.iter().any(is_idle)).then(|| Quantity {
        kind: Kind::Metric,
        name: "idle".to_owned(),
        title: "Cores without a running thread".to_owned(),
        unit: sum.unit.clone(),
        values,
        rare: false,
    })
}

/// Returns all metrics of all subjects.
fn metrics(subjects: &[Vec<Place>]) -> Vec<Quantity> {
    let total = |(run, region): &Place| (Evaluation::new(run, region).total(), Sampled::of(run, region));
    let totals: Vec<Vec<(Values, Option<Sampled>)>> =
        subjects.iter().map(|places| places.iter().map(total).collect()).collect();
    let quantity = |metric: &fxscope_pmu::Metric| {
        let of = |runs: &Vec<(Values, Option<Sampled>)>| {
            let estimate = |(values, sampled): &(Values, Option<Sampled>)| {
                let half_width = sampled.as_ref().and_then(|sampled| sampled.of_metric(&metric.name));
                values.get(&metric.name).map(|value| (value, half_width))
            };
            Spread::of_estimates(&runs.iter().map(estimate).collect::<Option<Vec<_>>>()?)
        };
        Quantity {
            kind: Kind::Metric,
            name: metric.name.clone(),
            title: metric.title.clone(),
            unit: metric.unit.clone(),
            values: totals.iter().map(of).collect(),
            rare: false,
        }
    };
    Metrics::built_in().all().map(quantity).filter(|q| q.values.iter().any(Option::is_some)).collect()
}

/// Returns all events counted for any subject.
fn events(subjects: &[Vec<Place>]) -> Vec<Quantity> {
    let totals = |(run, region): &Place| {
        let pmu = fxscope_pmu::of_run(run);
        let totals = scope::totals(&pmu.events, region, &run.constants);
        let half_widths = half_widths_of_events(run, region);
        let estimate = |(name, count): (&str, u64)| (name.to_owned(), (count as f64, half_widths.get(name).copied()));
        totals.into_iter().map(estimate).collect::<BTreeMap<_, _>>()
    };
    let totals: Vec<Vec<_>> = subjects.iter().map(|places| places.iter().map(totals).collect()).collect();
    let names: BTreeSet<&String> = totals.iter().flatten().flat_map(BTreeMap::keys).collect();
    let quantity = |name: &String| {
        let of = |runs: &Vec<BTreeMap<String, (f64, Option<f64>)>>| {
            let estimates: Option<Vec<_>> = runs.iter().map(|counts| counts.get(name).copied()).collect();
            estimates.and_then(|estimates| Spread::of_estimates(&estimates))
        };
        Quantity {
            kind: Kind::Event,
            name: name.clone(),
            title: name.clone(),
            unit: "count".to_owned(),
            values: totals.iter().map(of).collect(),
            rare: false,
        }
    };
    names.into_iter().map(quantity).collect()
}

/// Sorts the largest differences first; `rare` quantities come after all others.
fn by_effect(quantities: &mut [Quantity], rare: impl Fn(&Quantity) -> bool) {
    for quantity in &mut *quantities {
        quantity.rare = rare(quantity);
    }
    quantities
        .sort_by(|a, b| a.rare.cmp(&b.rare).then(b.effect().total_cmp(&a.effect())).then_with(|| a.name.cmp(&b.name)));
}

/// Returns a sentence for each condition that differs from those of the first subject.
fn notes(subjects: &[Subject], regions: &[Vec<Place>]) -> Vec<String> {
    let mut notes: Vec<String> = Vec::new();
    for note in subjects.iter().flat_map(|subject| &subject.runs).filter_map(|run| unknown_events(run)) {
        if !notes.contains(&note) {
            notes.push(note);
        }
    }
    let first = subjects[0].runs[0];
    let list = |pairs: &[(String, String)]| match pairs {
        [] => "none".to_owned(),
        pairs => pairs.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(" "),
    };
    let threads = |places: &[Place]| places[0].1.threads.len().to_string();
    for (subject, places) in subjects.iter().zip(regions).skip(1) {
        let run = subject.runs[0];
        let differences = [
            ("program and arguments", first.command.join(" "), run.command.join(" ")),
            ("machine", first.machine.clone(), run.machine.clone()),
            ("settings of the machine", list(&first.settings), list(&run.settings)),
            ("environment", list(&first.environment), list(&run.environment)),
            ("parts", part(first), part(run)),
            ("threads", threads(&regions[0]), threads(places)),
        ];
        for (what, a, b) in differences.into_iter().filter(|(_, a, b)| a != b) {
            notes.push(format!("different {what}: {a} ({}), {b} ({})", subjects[0].label, subject.label));
        }
    }
    notes
}
