//! The results of a sweep for people: the best runs, what makes the difference, what failed.

use fxscope_pmu::Metrics;
use fxscope_report::document::{Curve, Plot};
use fxscope_report::render::quantity::quantity;
use fxscope_report::sheet::{Cell, Sheet, Table};

use super::design::Design;
use super::effects::{Effect, effects, front, ranking};
use super::execute::Made;
use super::plan::{Factor, Goal, Scale};
use super::{Study, counted};

/// Runs that the table of the best has.
const BEST: usize = 5;
/// Points of the Pareto front that are shown.
const FRONT: usize = 12;
/// Most runs that the page lists.
const LISTED: usize = 500;
/// Relative difference below which values are taken as equal.
const EQUAL: f64 = 0.01;
/// Curves of one plot.
const CURVES: usize = 8;

impl Study {
    /// Returns the results for people.
    #[must_use]
    pub fn sheet(&self) -> Sheet {
        let effects = self.effects();
        let mut tables = Vec::new();
        if self.done() > 0 {
            tables.push(self.best());
        }
        if self.plan.objectives.len() > 1 {
            tables.push(self.front());
        }
        if !effects.is_empty() {
            tables.push(self.by_factor(&effects));
        }
        let shares = effects.iter().map(|effect| (effect.factor.clone(), effect.share)).collect();
        Sheet {
            title: self.title(),
            tables,
            notes: vec![("Notes", self.notes(&effects)), ("Failed", self.failures())],
            plots: self.plots(&effects),
            bars: vec![(self.shares(), shares)],
        }
    }

    /// Returns the page: the same, with a table of all runs.
    #[must_use]
    pub fn page(&self) -> String {
        let mut sheet = self.sheet();
        let left_out = if self.made.len() > LISTED { ", the first ones" } else { "" };
        let all = self.runs(&format!("All runs{left_out}"), "run", 0..self.made.len().min(LISTED));
        sheet.tables.push(all);
        sheet.html()
    }

    /// What shares of the factors are of.
    fn shares(&self) -> &'static str {
        if self.plan.design == Design::OneAtATime { "Share of the differences" } else { "Share of the variance" }
    }

    fn title(&self) -> String {
        let failed = self.made.len() - self.done();
        let failures = if failed == 0 { String::new() } else { format!(", {failed} failed") };
        format!("{}: {} runs{failures}", self.plan.title, self.made.len())
    }

    /// Number of runs with counts.
    fn done(&self) -> usize {
        self.made.iter().filter(|made| made.outcome.is_ok()).count()
    }

    /// Returns what the factors do to the first objective.
    #[must_use]
    pub fn effects(&self) -> Vec<Effect> {
        let metric = self.plan.objectives.first().map_or("", |objective| &objective.metric);
        effects(&self.plan, &self.made, metric)
    }

    fn best(&self) -> Table {
        let ranking = ranking(&self.made, &self.plan.objectives, &self.plan.region);
        let first = self.plan.objectives.first();
        let what = first.map_or_else(String::new, |first| {
            let goal = if first.direction() == Some(Goal::Most) { "most" } else { "least" };
            format!("Best runs, by {goal} {}", named(&first.metric))
        });
        self.runs(&what, "best run", ranking.into_iter().take(BEST))
    }

    fn front(&self) -> Table {
        let front = front(&self.made, &self.plan.objectives, &self.plan.region);
        let more = front.len().saturating_sub(FRONT);
        let names: Vec<String> = self.plan.objectives.iter().map(|objective| named(&objective.metric)).collect();
        let left_out = if more > 0 { format!(" (and {more} more in results.csv)") } else { String::new() };
        let title = format!("Pareto front of {}{left_out}", names.join(" and "));
        self.runs(&title, "on the front", front.into_iter().take(FRONT))
    }

    /// A table of runs: their factors and what the plan shows. `label` heads their numbers, since titles are not shown on the terminal.
    fn runs(&self, title: &str, label: &str, runs: impl Iterator<Item = usize>) -> Table {
        let factors = self.plan.factors.iter().map(|factor| factor.name.clone());
        let columns =
            std::iter::once(label.to_owned()).chain(factors).chain(self.plan.show.iter().map(|name| named(name)));
        let mut table = Table::new(title, columns);
        for index in runs {
            let made = &self.made[index];
            let factor =
                |factor: &Factor| made.point.get(&factor.name).map_or_else(Cell::none, |v| Cell::word(v.to_string()));
            let factors = self.plan.factors.iter().map(factor);
            let values = self.plan.show.iter().map(|name| self.cell(made, name));
            table.push((index + 1).to_string(), factors.chain(values).collect());
        }
        table
    }

    fn cell(&self, made: &Made, name: &str) -> Cell {
        let values = made.outcome.as_ref().ok().and_then(|counted| counted.region(&self.plan.region));
        values.map_or_else(Cell::none, |values| value_cell(values, name))
    }

    fn by_factor(&self, effects: &[Effect]) -> Table {
        let metric = self.plan.objectives.first().map_or("", |objective| &objective.metric);
        let mut table =
            Table::new("What each value does", ["factor", "value", "runs", &format!("mean {}", named(metric))]);
        for effect in effects {
            for (index, level) in effect.levels.iter().enumerate() {
                let label = if index == 0 { effect.factor.clone() } else { String::new() };
                let mean = Cell::new(level.mean, in_unit(level.mean, metric));
                table.push(label, vec![Cell::word(&level.label), Cell::new(level.runs, level.runs.to_string()), mean]);
            }
        }
        table
    }

    fn failures(&self) -> Vec<String> {
        let failed =
            (1..).zip(&self.made).filter_map(|(number, made)| Some((number, made, made.outcome.as_ref().err()?)));
        failed.map(|(number, made, message)| format!("Run {number}: {message}. {}", made.words.shown())).collect()
    }

    fn notes(&self, effects: &[Effect]) -> Vec<String> {
        let mut notes = Vec::new();
        if let Some(first) = effects.first() {
            notes.extend(self.answer(first));
            let rest = 1.0 - effects.iter().map(|effect| effect.share).sum::<f64>();
            if rest > 0.05 && self.plan.design != Design::OneAtATime {
                notes.push(format!(
                    "{} of the variance is not explained by any single factor: factors interact, or a group covers a range.",
                    quantity(rest, "ratio")
                ));
            }
        }
        let region = &self.plan.region;
        let lacks = |made: &&Made| made.outcome.as_ref().is_ok_and(|counted| counted.region(region).is_none());
        let without = self.made.iter().filter(lacks).count();
        if without > 0 {
            notes.push(format!("{without} of the runs marked no region '{region}' and have no values here."));
        }
        let unknown = |name: &&String| without < self.done() && self.made.iter().all(|made| !self.has(made, name));
        notes.extend(
            self.plan
                .show
                .iter()
                .filter(unknown)
                .map(|name| format!("No run counted '{name}'; `fxscope events` lists the events of a machine.")),
        );
        notes
    }

    /// Says which factor matters, if the value differs at all.
    fn answer(&self, first: &Effect) -> Option<String> {
        let metric = &self.plan.objectives.first()?.metric;
        let values = || self.made.iter().filter_map(|made| made.outcome.as_ref().ok()?.get(&self.plan.region, metric));
        let (least, most) = values().fold((f64::MAX, f64::MIN), |(least, most), v| (least.min(v), most.max(v)));
        let spread = (most - least) / most.abs().max(least.abs());
        if spread < EQUAL {
            return Some(format!(
                "No factor matters: {} differs by {} at most.",
                named(metric),
                quantity(spread, "ratio")
            ));
        }
        let others = self.plan.factors.len() > 1;
        others.then(|| {
            let what = self.shares().to_lowercase();
            format!("{} matters most: its {what} is {}.", first.factor, quantity(first.share, "ratio"))
        })
    }

    fn has(&self, made: &Made, name: &str) -> bool {
        made.outcome.as_ref().is_ok_and(|counted| counted.get(&self.plan.region, name).is_some())
    }

    /// Returns a plot of the first objective for each factor with numbers, and one of two objectives against each other.
    fn plots(&self, effects: &[Effect]) -> Vec<Plot> {
        let Some(first) = self.plan.objectives.first() else { return Vec::new() };
        let mut plots: Vec<Plot> = effects.iter().filter_map(|effect| self.curves(effect, &first.metric)).collect();
        if let Some(second) = self.plan.objectives.get(1) {
            let value = |index: &usize, name: &str| {
                self.made[*index].outcome.as_ref().ok().and_then(|counted| counted.get(&self.plan.region, name))
            };
            let front = front(&self.made, &self.plan.objectives, &self.plan.region);
            let mut points: Vec<(f64, f64)> = front
                .iter()
                .filter_map(|index| Some((value(index, &first.metric)?, value(index, &second.metric)?)))
                .collect();
            points.sort_by(|a, b| a.0.total_cmp(&b.0));
            let (across, up) = (axis(&first.metric), axis(&second.metric));
            let curves = vec![Curve { label: "best runs".to_owned(), points }];
            plots.push(Plot {
                title: "Pareto front".to_owned(),
                across,
                logarithmic: false,
                up,
                logarithmic_up: false,
                curves,
            });
        }
        plots
    }

    /// The objective over a factor: a curve for each value of the other one if there are two, otherwise the means.
    fn curves(&self, effect: &Effect, metric: &str) -> Option<Plot> {
        let factor = self.plan.factors.iter().find(|factor| factor.name == effect.factor)?;
        let means: Option<Vec<(f64, f64)>> =
            effect.levels.iter().map(|level| Some((level.number?, level.mean))).collect();
        let means = means?;
        let curves = match self.other(factor) {
            Some(other) => self.families(factor, other, metric),
            None if effect.levels.len() < 2 => return None,
            None => vec![Curve { label: "mean".to_owned(), points: means.clone() }],
        };
        Some(Plot {
            title: format!("{} by {}", named(metric), factor.name),
            across: factor.name.clone(),
            logarithmic: factor.scale == Scale::Log || is_wide(&means),
            up: axis(metric),
            logarithmic_up: false,
            curves,
        })
    }

    /// Returns the only other factor, if it has few values.
    fn other(&self, factor: &Factor) -> Option<&Factor> {
        let mut others = self.plan.factors.iter().filter(|other| other.name != factor.name);
        let other = others.next().filter(|other| (2..=CURVES).contains(&other.values.len()));
        other.filter(|_| others.next().is_none())
    }

    fn families(&self, factor: &Factor, other: &Factor, metric: &str) -> Vec<Curve> {
        let curve = |value: &super::Scalar| {
            let of_value = self.made.iter().filter(|made| made.point.get(&other.name) == Some(value));
            let point = |made: &Made| {
                let across = made.point.get(&factor.name)?.number()?;
                Some((across, made.outcome.as_ref().ok()?.get(&self.plan.region, metric)?))
            };
            let mut points: Vec<(f64, f64)> = of_value.filter_map(point).collect();
            points.sort_by(|a, b| a.0.total_cmp(&b.0));
            Curve { label: format!("{}={value}", other.name), points }
        };
        other.values.iter().map(curve).filter(|curve| !curve.points.is_empty()).collect()
    }
}

/// Returns whether values span more than a factor of 16, all of them above 0.
fn is_wide(points: &[(f64, f64)]) -> bool {
    const WIDE: f64 = 16.0;
    let across = || points.iter().map(|point| point.0);
    let (least, most) = (across().fold(f64::MAX, f64::min), across().fold(0.0, f64::max));
    least > 0.0 && most / least > WIDE
}

fn value_cell(values: &counted::Values, name: &str) -> Cell {
    let Some(value) = values.get(name) else { return Cell::none() };
    let text = in_unit(value, name);
    match values.half_widths.get(name).filter(|_| value != 0.0) {
        Some(half_width) => Cell::new(value, format!("{text} ±{}", quantity(half_width / value.abs(), "ratio"))),
        None => Cell::new(value, text),
    }
}

/// Returns a value with the unit of its metric; events are counts.
fn in_unit(value: f64, name: &str) -> String {
    quantity(value, Metrics::built_in().named(name).map_or("count", |metric| &metric.unit))
}

/// Returns the title of a metric in the middle of a sentence; events have their names.
fn named(name: &str) -> String {
    Metrics::built_in().named(name).map_or_else(|| name.to_owned(), |metric| in_sentence(&metric.title))
}

/// Returns a title with a small first letter, unless it is an abbreviation.
fn in_sentence(title: &str) -> String {
    let mut letters = title.chars();
    match (letters.next(), title.chars().nth(1)) {
        (Some(first), Some(second)) if second.is_lowercase() => first.to_lowercase().chain(letters).collect(),
        _ => title.to_owned(),
    }
}

fn axis(name: &str) -> String {
    let unit = Metrics::built_in().named(name).map(|metric| metric.unit.clone());
    unit.map_or_else(|| name.to_owned(), |unit| format!("{}, {unit}", named(name)))
}
