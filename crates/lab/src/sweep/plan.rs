//! Plans of sweeps: what runs, what varies, what is looked at.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use fxscope_machine::settings::integer;
use fxscope_pmu::Metrics;
use serde::Deserialize;

use super::design::{Design, Point, points};
use super::tables;
use super::template::Template;
use crate::Error;

/// Largest plan, bytes.
const MAX_PLAN_BYTES: u64 = 16 << 20;
/// Most runs of a sweep.
pub(super) const MOST_RUNS: usize = 100_000;
/// Options of `fxscope run` that the sweep itself sets, or whose files would be overwritten by each run.
const OWN_OPTIONS: &[&str] =
    &["output", "json", "html", "quiet", "append", "konata", "checkpoint", "every", "color", "help", "interval"];
/// What is looked at unless the plan says otherwise.
const USUAL_METRICS: [&str; 4] = ["seconds", "gflops", "memory_gbs", "ipc"];

/// A plan, as its file has it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Plan {
    /// Title of the results; default: the name of the file.
    #[serde(default)]
    pub title: String,
    /// Which combinations of values run.
    #[serde(default)]
    pub design: Design,
    /// Number of runs of a Latin hypercube.
    pub samples: Option<usize>,
    /// Seed of a Latin hypercube.
    #[serde(default = "one")]
    pub seed: u64,
    /// What runs.
    pub run: Command,
    /// What varies.
    #[serde(default, rename = "factor")]
    pub factors: Vec<Factor>,
    /// The runs of a list, each with a value for every factor.
    #[serde(default, rename = "point")]
    pub listed: Vec<BTreeMap<String, Scalar>>,
    /// The region that is judged.
    #[serde(default = "whole")]
    pub region: String,
    /// Metrics and events to show.
    #[serde(default)]
    pub show: Vec<String>,
    /// What is best; default: the least time.
    #[serde(default, rename = "objective")]
    pub objectives: Vec<Objective>,
}

/// A run of the sweep: words with the names of factors in braces.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Command {
    /// The program; relative paths begin in the plan's folder.
    pub program: Template,
    /// Its arguments.
    #[serde(default)]
    pub arguments: Vec<Template>,
    /// Options of `fxscope run` without their hyphens.
    #[serde(default)]
    pub options: BTreeMap<String, OptionValue>,
    /// Values of the machine's description.
    #[serde(default)]
    pub set: BTreeMap<String, Scalar>,
    /// Variables of the program's environment; it has no others.
    #[serde(default)]
    pub environment: BTreeMap<String, Scalar>,
    /// Files that the program reads: if one of them changes, the runs are made again.
    #[serde(default)]
    pub inputs: Vec<Template>,
}

/// A value: text, a number, or true or false. Stands for the same word as text.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(untagged)]
pub enum Scalar {
    /// `true` or `false`.
    Flag(bool),
    /// An integer.
    Integer(i64),
    /// A number.
    Number(f64),
    /// A word.
    Text(String),
}

/// What an option has.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum OptionValue {
    /// One argument; `true`: the option alone; `false`: not the option.
    One(Scalar),
    /// An argument for each time that the option is given.
    Many(Vec<Scalar>),
}

/// What varies.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Factor {
    /// Its name, which stands in braces for its value.
    pub name: String,
    /// Its values. The first is the one that other factors are varied at.
    #[serde(default)]
    pub values: Vec<Scalar>,
    /// The least value of a range.
    pub from: Option<f64>,
    /// The largest value of a range.
    pub to: Option<f64>,
    /// Number of values of a range; a Latin hypercube takes as many as it has runs.
    pub steps: Option<usize>,
    /// How the values of a range are spaced.
    #[serde(default)]
    pub scale: Scale,
    /// Whether values of a range are rounded to integers.
    #[serde(default)]
    pub integer: bool,
}

/// How values are spaced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scale {
    /// By equal differences.
    #[default]
    Linear,
    /// By equal factors.
    Log,
}

/// A metric or event that should be small or large.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Objective {
    /// Its name.
    pub metric: String,
    /// Which values are better; default: small ones of times, energies and counts of work, large ones of rates.
    pub goal: Option<Goal>,
}

/// Which values are better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Goal {
    /// Small ones.
    Least,
    /// Large ones.
    Most,
}

fn one() -> u64 {
    1
}

fn whole() -> String {
    "all".to_owned()
}

impl std::fmt::Display for Scalar {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Scalar::Flag(value) => value.fmt(f),
            Scalar::Integer(value) => value.fmt(f),
            Scalar::Number(value) => value.fmt(f),
            Scalar::Text(value) => value.fmt(f),
        }
    }
}

impl Scalar {
    /// Returns it for JSON.
    pub(super) fn json(&self) -> serde_json::Value {
        match self {
            Scalar::Flag(value) => (*value).into(),
            Scalar::Integer(value) => (*value).into(),
            Scalar::Number(value) => (*value).into(),
            Scalar::Text(value) => value.as_str().into(),
        }
    }

    /// Returns its number, if it is one, also as text and as a size such as 512KiB.
    #[must_use]
    pub fn number(&self) -> Option<f64> {
        match self {
            Scalar::Flag(_) => None,
            Scalar::Integer(value) => Some(*value as f64),
            Scalar::Number(value) => Some(*value),
            Scalar::Text(text) => text.parse().ok().or_else(|| integer(text).map(|size| size as f64)),
        }
        .filter(|number: &f64| number.is_finite())
    }
}

impl Plan {
    /// Reads a plan from a file and checks it.
    ///
    /// # Errors
    /// If the file cannot be read, is not a plan, or contradicts itself; the message says where and what to change.
    pub fn read(path: &Path) -> Result<Plan, Error> {
        let text = fxscope_host::read_text(path, MAX_PLAN_BYTES).map_err(|e| e.to_string())?;
        let mut plan = Plan::parse(&text).map_err(|e| format!("{}: {e}", path.display()))?;
        if plan.title.is_empty() {
            plan.title = path.file_stem().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        }
        Ok(plan)
    }

    /// Reads a plan from its text and checks it.
    ///
    /// # Errors
    /// As [`Plan::read`].
    pub fn parse(text: &str) -> Result<Plan, String> {
        let mut plan: Plan = toml::from_str(text).map_err(|e| e.to_string())?;
        plan.check_factors()?;
        plan.check_options()?;
        plan.check_uses()?;
        if plan.objectives.is_empty() {
            plan.objectives.push(Objective { metric: "seconds".to_owned(), goal: None });
        }
        plan.check_values()?;
        if plan.show.is_empty() {
            plan.show = USUAL_METRICS.map(str::to_owned).to_vec();
        }
        // What is best must be seen.
        for objective in plan.objectives.iter().rev() {
            plan.show.retain(|name| *name != objective.metric);
            plan.show.insert(0, objective.metric.clone());
        }
        Ok(plan)
    }

    /// Returns the runs of the sweep, each once, in the order of the design.
    ///
    /// # Errors
    /// If the design does not fit the factors, or has too many runs.
    pub fn points(&self) -> Result<Vec<Point>, Error> {
        Ok(points(self)?)
    }

    /// Returns the folder that relative paths of the plan begin in.
    #[must_use]
    pub fn folder(path: &Path) -> PathBuf {
        path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new(".")).to_owned()
    }

    /// Returns the memory that a run may take, as `fxscope run --memory` has it; `None` if it is not limited or varies.
    #[must_use]
    pub fn memory(&self) -> Option<String> {
        match self.run.options.get("memory")? {
            OptionValue::One(size) => Some(size.to_string()),
            OptionValue::Many(_) => None,
        }
    }

    /// Checks the names and values of all factors.
    fn check_factors(&self) -> Result<(), String> {
        let mut names = BTreeSet::new();
        for factor in &self.factors {
            let name = &factor.name;
            if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || "_.-".contains(c)) {
                return Err(format!(
                    "factor '{name}': a name has letters, digits, '_', '.' and '-', since it is a column of the results"
                ));
            }
            if tables::is_own(name) || is_metric(name) {
                return Err(format!("factor '{name}': the results have a column of this name; choose another"));
            }
            if !names.insert(name.to_ascii_lowercase()) {
                return Err(format!("factor '{name}' is defined twice"));
            }
            factor.check().map_err(|e| format!("factor '{name}': {e}"))?;
        }
        Ok(())
    }

    /// Checks that what is shown may exist, and that each objective has a goal.
    fn check_values(&self) -> Result<(), String> {
        let names = self.objectives.iter().map(|objective| &objective.metric).chain(&self.show);
        // Machines of the user's own may have any events; all of them are written in capital letters.
        let is_event = |name: &str| name.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_');
        if let Some(name) = names.into_iter().find(|name| !is_event(name) && !is_metric(name)) {
            return Err(format!(
                "there is no metric '{name}': `fxscope report --format json` has the names of all metrics, `fxscope events` those \
                 of events"
            ));
        }
        match self.objectives.iter().find(|objective| objective.direction().is_none()) {
            Some(Objective { metric, .. }) => {
                Err(format!("objective '{metric}': say which values are better with goal = \"least\" or \"most\""))
            }
            None => Ok(()),
        }
    }

    /// Checks that no option is one that the sweep sets.
    fn check_options(&self) -> Result<(), String> {
        for name in self.run.options.keys() {
            let name = &name.replace('_', "-");
            if name.starts_with('-') || name.len() < 2 {
                return Err(format!(
                    "option '{name}': write its long name without hyphens, such as cpus = \"12-23\"; variables go \
                     under environment"
                ));
            }
            if OWN_OPTIONS.contains(&name.as_str()) {
                return Err(format!("option '{name}' is not possible in a sweep, which keeps the record of each run"));
            }
            if name == "set" {
                return Err("option 'set': write the keys of the machine under [run.set]".to_owned());
            }
        }
        Ok(())
    }

    /// Checks that every factor changes the run, and that nothing else is in braces.
    fn check_uses(&self) -> Result<(), String> {
        let known: BTreeSet<&str> = self.factors.iter().map(|factor| factor.name.as_str()).collect();
        let mut used = BTreeSet::new();
        for template in self.run.templates()? {
            for name in template.names() {
                if !known.contains(name) {
                    let names = known.iter().copied().collect::<Vec<_>>().join(", ");
                    return Err(format!(
                        "'{{{name}}}' is no factor (factors: {names}); write {{{{ and }}}} for braces of the program"
                    ));
                }
                used.insert(name.to_owned());
            }
        }
        match known.iter().find(|name| !used.contains(**name)) {
            Some(name) => Err(format!(
                "factor '{name}' changes nothing: write {{{name}}} in an argument, option, variable or key of [run]"
            )),
            None => Ok(()),
        }
    }
}

impl Factor {
    /// Checks that it has values or a range.
    fn check(&self) -> Result<(), String> {
        let range = (self.from, self.to);
        match (self.values.is_empty(), range) {
            (false, (None, None)) if self.steps.is_none() => Ok(()),
            (true, (Some(from), Some(to))) if from.is_finite() && to.is_finite() && from < to => {
                if self.scale == Scale::Log && from <= 0.0 {
                    return Err("a range that is spaced by factors begins above 0".to_owned());
                }
                if self.steps.is_some_and(|steps| steps < 2) {
                    return Err("a range has at least 2 steps".to_owned());
                }
                Ok(())
            }
            (true, (None, None)) => {
                Err("has no values: give values = [...] with at least one, or from and to".to_owned())
            }
            (true, _) => Err("a range needs from and to, and from must be smaller than to".to_owned()),
            (false, _) => Err("has values and a range; leave one of them out".to_owned()),
        }
    }
}

impl Objective {
    /// Returns which values are better; `None` if neither the plan nor the unit says.
    #[must_use]
    pub fn direction(&self) -> Option<Goal> {
        const SMALL: [&str; 5] = ["s", "J", "W", "cycles", "instructions"];
        const LARGE: [&str; 6] = ["GFLOPS", "GFLOPS/W", "GB/s", "instructions/cycle", "G/s", "FLOP"];
        let of_unit = || match Metrics::built_in().named(&self.metric)?.unit.as_str() {
            unit if SMALL.contains(&unit) => Some(Goal::Least),
            unit if LARGE.contains(&unit) => Some(Goal::Most),
            _ => None,
        };
        self.goal.or_else(of_unit)
    }
}

impl Command {
    /// Returns everything in which factors may stand.
    fn templates(&self) -> Result<Vec<Template>, String> {
        let mut all = vec![self.program.clone()];
        all.extend(self.arguments.iter().chain(&self.inputs).cloned());
        let of = |value: &Scalar| Template::parse(&value.to_string());
        for value in self.set.values().chain(self.environment.values()) {
            all.push(of(value)?);
        }
        for value in self.options.values() {
            match value {
                OptionValue::One(value) => all.push(of(value)?),
                OptionValue::Many(values) => {
                    for value in values {
                        all.push(of(value)?);
                    }
                }
            }
        }
        Ok(all)
    }
}

/// Returns whether a name is that of a metric. Case does not matter in databases.
fn is_metric(name: &str) -> bool {
    Metrics::built_in().all().any(|metric| metric.name.eq_ignore_ascii_case(name))
}
