//! Designs: which combinations of values run.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::plan::{Factor, MOST_RUNS, Plan, Scalar, Scale};

/// Significant digits of values in a range: short names of runs, and far finer than what hosts of programs notice.
const DIGITS: i32 = 6;

/// Which combinations of values run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Design {
    /// Each value of a factor with each of all others.
    #[default]
    Full,
    /// Each factor by itself; the others have their first values.
    OneAtATime,
    /// A number of runs that covers the range of each factor evenly (McKay, Beckman and Conover 1979).
    LatinHypercube,
    /// The runs that the plan lists.
    List,
}

/// A value for each factor.
pub type Point = BTreeMap<String, Scalar>;

/// Returns the runs of a plan, each once, in the order of its design.
///
/// # Errors
/// If the design does not fit the plan, or has too many runs.
pub(super) fn points(plan: &Plan) -> Result<Vec<Point>, String> {
    if plan.design != Design::List && !plan.listed.is_empty() {
        return Err("[[point]] needs design = \"list\"".to_owned());
    }
    if plan.design != Design::LatinHypercube && plan.samples.is_some() {
        return Err("samples needs design = \"latin-hypercube\"".to_owned());
    }
    let all = match plan.design {
        Design::Full => full(&plan.factors)?,
        Design::OneAtATime => one_at_a_time(&plan.factors)?,
        Design::LatinHypercube => latin_hypercube(plan)?,
        Design::List => listed(plan)?,
    };
    let mut distinct: Vec<Point> = Vec::with_capacity(all.len());
    let mut seen = std::collections::HashSet::new();
    for point in all {
        let words: Vec<String> = point.values().map(Scalar::to_string).collect();
        if seen.insert(words) {
            distinct.push(point);
        }
    }
    Ok(distinct)
}

/// Returns all combinations; the last factor changes fastest.
fn full(factors: &[Factor]) -> Result<Vec<Point>, String> {
    let levels = levels(factors)?;
    let runs = levels.iter().try_fold(1_usize, |runs, (_, values)| runs.checked_mul(values.len()));
    if runs.is_none_or(|runs| runs > MOST_RUNS) {
        let sizes: Vec<String> = levels.iter().map(|(_, values)| values.len().to_string()).collect();
        return Err(format!(
            "{} combinations are more than {MOST_RUNS} runs; take fewer values, or design = \"latin-hypercube\" with samples",
            sizes.join(" x ")
        ));
    }
    let mut points = vec![Point::new()];
    for (name, values) in levels {
        let with = |point: &Point, value: &Scalar| {
            let mut point = point.clone();
            point.insert(name.to_owned(), value.clone());
            point
        };
        points =
            points.iter().flat_map(|point| values.iter().map(|value| with(point, value)).collect::<Vec<_>>()).collect();
    }
    Ok(points)
}

/// Returns the run with all first values, and for each factor those with its others.
fn one_at_a_time(factors: &[Factor]) -> Result<Vec<Point>, String> {
    let levels = levels(factors)?;
    let first: Point = levels.iter().map(|(name, values)| ((*name).to_owned(), values[0].clone())).collect();
    let mut points = vec![first.clone()];
    for (name, values) in &levels {
        for value in &values[1..] {
            let mut point = first.clone();
            point.insert((*name).to_owned(), value.clone());
            points.push(point);
        }
    }
    Ok(points)
}

/// Returns runs of which each has another of as many equal parts of each factor's range.
fn latin_hypercube(plan: &Plan) -> Result<Vec<Point>, String> {
    let samples = plan.samples.ok_or("design = \"latin-hypercube\" needs samples = N, the number of runs")?;
    if !(2..=MOST_RUNS).contains(&samples) {
        return Err(format!("samples = {samples}: a Latin hypercube has 2 to {MOST_RUNS} runs"));
    }
    if plan.factors.is_empty() {
        return Err("a Latin hypercube needs factors".to_owned());
    }
    let mut random = fastrand::Rng::with_seed(plan.seed);
    let mut points = vec![Point::new(); samples];
    for factor in &plan.factors {
        let mut parts: Vec<usize> = (0..samples).collect();
        random.shuffle(&mut parts);
        for (point, part) in points.iter_mut().zip(parts) {
            let place = (part as f64 + random.f64()) / samples as f64;
            point.insert(factor.name.clone(), factor.at(place));
        }
    }
    Ok(points)
}

/// Returns the runs that the plan lists.
fn listed(plan: &Plan) -> Result<Vec<Point>, String> {
    if plan.listed.is_empty() {
        return Err(
            "design = \"list\" needs runs: a table [[point]] for each, with the values of all factors".to_owned()
        );
    }
    for (number, point) in (1..).zip(&plan.listed) {
        if let Some(factor) = plan.factors.iter().find(|factor| !point.contains_key(&factor.name)) {
            return Err(format!("point {number} has no value for factor '{}'", factor.name));
        }
        if let Some(name) = point.keys().find(|name| plan.factors.iter().all(|factor| factor.name != **name)) {
            return Err(format!("point {number}: '{name}' is no factor"));
        }
    }
    Ok(plan.listed.clone())
}

/// Returns the values of each factor.
fn levels(factors: &[Factor]) -> Result<Vec<(&str, Vec<Scalar>)>, String> {
    factors.iter().map(|factor| Ok((factor.name.as_str(), factor.levels()?))).collect()
}

impl Factor {
    /// Returns its values: those that are given, or the steps of its range.
    fn levels(&self) -> Result<Vec<Scalar>, String> {
        if !self.values.is_empty() {
            return Ok(self.values.clone());
        }
        let steps = self.steps.ok_or_else(|| {
            format!("factor '{}': a range needs steps = N, unless design = \"latin-hypercube\"", self.name)
        })?;
        if steps > MOST_RUNS {
            return Err(format!("factor '{}': {steps} steps are more than {MOST_RUNS} runs", self.name));
        }
        Ok((0..steps).map(|step| self.in_range(step as f64 / (steps - 1) as f64)).collect())
    }

    /// Returns the value at a place from 0 to 1 of its values or its range.
    fn at(&self, place: f64) -> Scalar {
        if self.values.is_empty() {
            return self.in_range(place);
        }
        let index = (place * self.values.len() as f64) as usize;
        self.values[index.min(self.values.len() - 1)].clone()
    }

    /// Returns the value at a place from 0 to 1 of its range.
    fn in_range(&self, place: f64) -> Scalar {
        let (from, to) = (self.from.unwrap_or_default(), self.to.unwrap_or_default());
        let value = match self.scale {
            Scale::Linear => from + place * (to - from),
            Scale::Log => from * (to / from).powf(place),
        };
        if self.integer { Scalar::Integer(value.round() as i64) } else { number(value) }
    }
}

/// Returns a number with few digits, as an integer if it is one.
fn number(value: f64) -> Scalar {
    let digits = if value == 0.0 { 0 } else { DIGITS - 1 - value.abs().log10().floor() as i32 };
    let rounded = if digits > 0 {
        let unit = 10_f64.powi(digits);
        (value * unit).round() / unit
    } else {
        value.round()
    };
    let is_integer = rounded.fract() == 0.0 && rounded.abs() < 2_f64.powi(53);
    if is_integer { Scalar::Integer(rounded as i64) } else { Scalar::Number(rounded) }
}
