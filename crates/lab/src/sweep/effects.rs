//! Which factor makes the difference, and which runs are best.

use super::design::{Design, Point};
use super::execute::Made;
use super::plan::{Factor, Goal, Objective, Plan};

/// Values of a factor from which they are put together in groups of equal size.
const MOST_LEVELS: usize = 8;
/// Runs that a group should have at least where the design does not repeat values.
const RUNS_PER_LEVEL: usize = 4;

/// What a factor does to a value: the means of the runs with each of its values (main effect).
#[derive(Clone, Debug, PartialEq)]
pub struct Effect {
    /// The factor.
    pub factor: String,
    /// Its share of the differences, from 0 to 1. If all combinations ran, the part of the value's variance that lies between the
    /// levels (correlation ratio). Of a sample, an estimate of that without bias (epsilon squared, Kelley 1935). If one
    /// factor varied at a time, the range of its values as a part of the ranges of all factors.
    pub share: f64,
    /// Its values.
    pub levels: Vec<Level>,
}

/// Runs with the same value of a factor, or with values next to each other.
#[derive(Clone, Debug, PartialEq)]
pub struct Level {
    /// The value, or the least and the largest.
    pub label: String,
    /// The value as a number, or the middle of the range.
    pub number: Option<f64>,
    /// Mean of the runs' values.
    pub mean: f64,
    /// Number of runs.
    pub runs: usize,
}

/// A run with a value of the factor and of the result.
struct Sample {
    label: String,
    number: Option<f64>,
    value: f64,
}

/// Returns the effect of each factor on a value, the largest first. Runs without the value are left out, and so are factors
/// that did not vary, or whose values ran once each.
#[must_use]
pub fn effects(plan: &Plan, made: &[Made], metric: &str) -> Vec<Effect> {
    let effect = |factor: &Factor| {
        let sample = |made: &Made| {
            let value = made.outcome.as_ref().ok()?.get(&plan.region, metric)?;
            let of_factor = made.point.get(&factor.name)?;
            Some(Sample { label: of_factor.to_string(), number: of_factor.number(), value })
        };
        let runs = made
            .iter()
            .filter(|one| plan.design != Design::OneAtATime || differs_in(&one.point, &made[0].point, factor));
        let levels = levels(runs.filter_map(sample).collect(), plan.design);
        (levels.len() > 1).then(|| effect_of(factor, &levels, plan.design)).flatten()
    };
    let mut effects: Vec<Effect> = plan.factors.iter().filter_map(effect).collect();
    if plan.design == Design::OneAtATime {
        let all: f64 = effects.iter().map(|effect| effect.share).sum();
        effects.iter_mut().for_each(|effect| effect.share = if all > 0.0 { effect.share / all } else { 0.0 });
    }
    effects.sort_by(|a, b| b.share.total_cmp(&a.share));
    effects
}

/// Returns whether a point differs from the base in no other factor.
fn differs_in(point: &Point, base: &Point, factor: &Factor) -> bool {
    point.iter().all(|(name, value)| *name == factor.name || base.get(name) == Some(value))
}

/// Returns the samples by level.
fn levels(samples: Vec<Sample>, design: Design) -> Vec<Vec<Sample>> {
    let runs = samples.len();
    let mut levels: Vec<Vec<Sample>> = Vec::new();
    for sample in samples {
        match levels.iter_mut().find(|level| level[0].label == sample.label) {
            Some(level) => level.push(sample),
            None => levels.push(vec![sample]),
        }
    }
    let are_numbers = levels.iter().all(|level| level[0].number.is_some());
    if are_numbers {
        levels.sort_by(|a, b| a[0].number.unwrap_or_default().total_cmp(&b[0].number.unwrap_or_default()));
    }
    let most = match design {
        Design::Full | Design::OneAtATime => MOST_LEVELS,
        Design::LatinHypercube | Design::List => (runs / RUNS_PER_LEVEL).clamp(2, MOST_LEVELS),
    };
    if !are_numbers || levels.len() <= most {
        return levels;
    }
    let (distinct, mut levels) = (levels.len(), levels.into_iter());
    let group = |group: usize| (group + 1) * distinct / most - group * distinct / most;
    (0..most).map(|index| levels.by_ref().take(group(index)).flatten().collect()).collect()
}

/// Returns the effect of a factor with these levels; `None` if they say nothing: each ran once in a sample.
fn effect_of(factor: &Factor, levels: &[Vec<Sample>], design: Design) -> Option<Effect> {
    let all = || levels.iter().flatten().map(|sample| sample.value);
    let (mean, runs) = (mean(all()), all().count());
    let total: f64 = all().map(|value| (value - mean).powi(2)).sum();
    let levels: Vec<Level> = levels.iter().map(|level| Level::of(level)).collect();
    let between: f64 = levels.iter().map(|level| level.runs as f64 * (level.mean - mean).powi(2)).sum();
    let share = match design {
        Design::OneAtATime => range(all()),
        Design::Full => ratio(between, total),
        Design::LatinHypercube | Design::List if runs > levels.len() => {
            // What differs within the levels differs between their means, too, by chance.
            let by_chance = (levels.len() - 1) as f64 * (total - between) / (runs - levels.len()) as f64;
            ratio(between - by_chance, total)
        }
        Design::LatinHypercube | Design::List => return None,
    };
    Some(Effect { factor: factor.name.clone(), share, levels })
}

/// Returns a part of a whole, from 0 to 1.
fn ratio(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { (part / whole).clamp(0.0, 1.0) } else { 0.0 }
}

/// Returns the largest value minus the smallest.
fn range(values: impl Iterator<Item = f64>) -> f64 {
    let (least, most) = values.fold((f64::MAX, f64::MIN), |(least, most), value| (least.min(value), most.max(value)));
    most - least
}

impl Level {
    fn of(samples: &[Sample]) -> Level {
        let (first, last) = (&samples[0], &samples[samples.len() - 1]);
        let is_one = first.label == last.label;
        let label = if is_one { first.label.clone() } else { format!("{} to {}", first.label, last.label) };
        let number = first.number.zip(last.number).map(|(first, last)| f64::midpoint(first, last));
        Level { label, number, mean: mean(samples.iter().map(|sample| sample.value)), runs: samples.len() }
    }
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = values.fold((0.0, 0_usize), |(sum, count), value| (sum + value, count + 1));
    sum / count as f64
}

impl Objective {
    /// Returns its value for a run, such that smaller is better.
    fn cost(&self, made: &Made, region: &str) -> Option<f64> {
        let value = made.outcome.as_ref().ok()?.get(region, &self.metric)?;
        Some(if self.direction() == Some(Goal::Most) { -value } else { value })
    }
}

/// Returns the numbers of the runs that have a value of the first objective, the best first.
#[must_use]
pub fn ranking(made: &[Made], objectives: &[Objective], region: &str) -> Vec<usize> {
    let cost = |index: usize| objectives.first()?.cost(&made[index], region);
    let mut ranking: Vec<(usize, f64)> = (0..made.len()).filter_map(|index| Some((index, cost(index)?))).collect();
    ranking.sort_by(|a, b| a.1.total_cmp(&b.1));
    ranking.into_iter().map(|(index, _)| index).collect()
}

/// Returns the numbers of the runs that no other run beats in one objective without being worse in another (Pareto front),
/// by the first objective.
#[must_use]
pub fn front(made: &[Made], objectives: &[Objective], region: &str) -> Vec<usize> {
    let costs = |index: usize| objectives.iter().map(|o| o.cost(&made[index], region)).collect::<Option<Vec<f64>>>();
    let known: Vec<(usize, Vec<f64>)> =
        ranking(made, objectives, region).into_iter().filter_map(|index| Some((index, costs(index)?))).collect();
    let is_beaten = |of: &[f64]| known.iter().any(|(_, other)| beats(other, of));
    known.iter().filter(|(_, costs)| !is_beaten(costs)).map(|&(index, _)| index).collect()
}

/// Returns whether costs are nowhere larger than others, and smaller somewhere.
fn beats(costs: &[f64], others: &[f64]) -> bool {
    let pairs = || costs.iter().zip(others);
    pairs().all(|(a, b)| a <= b) && pairs().any(|(a, b)| a < b)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::sweep::counted::{Counted, Values};
    use crate::sweep::design::Point;
    use crate::sweep::plan::Scalar;
    use crate::sweep::{Plan, Words};

    /// A run with values of factors a and b, and values of seconds and watts.
    fn made(a: f64, b: f64, seconds: f64, watts: f64) -> Made {
        let values = Values {
            all: vec![("seconds".to_owned(), seconds), ("watts".to_owned(), watts)],
            half_widths: std::collections::BTreeMap::new(),
        };
        Made {
            point: Point::from([("a".to_owned(), Scalar::Number(a)), ("b".to_owned(), Scalar::Number(b))]),
            words: Words { options: Vec::new(), command: vec!["x".to_owned()], inputs: Vec::new() },
            record: "x.fxr".into(),
            outcome: Ok(Counted { regions: vec![("all".to_owned(), values)], machine: "a64fx".to_owned() }),
        }
    }

    fn plan(design: &str) -> Plan {
        let factors = ["a", "b"]
            .map(|name| {
                format!(
                    "[[factor]]
name = '{name}'
values = [1]
"
                )
            })
            .concat();
        Plan::parse(&format!(
            "design = '{design}'
[run]
program = '{{a}}{{b}}'
{factors}"
        ))
        .expect("a plan")
    }

    fn objective(metric: &str, goal: Goal) -> Objective {
        Objective { metric: metric.to_owned(), goal: Some(goal) }
    }

    #[test]
    fn variance_is_divided_between_factors_that_add_up() {
        // seconds = 3a + b in a full design: variances 9 to 1.
        let grid = [-1.0, 1.0].into_iter().flat_map(|a| [-1.0, 1.0].map(|b| made(a, b, 3.0 * a + b, 0.0)));
        let effects = effects(&plan("full"), &grid.collect::<Vec<_>>(), "seconds");
        let shares: Vec<(&str, f64)> = effects.iter().map(|e| (e.factor.as_str(), e.share)).collect();
        assert!(
            matches!(shares[..], [("a", a), ("b", b)] if (a - 0.9).abs() < 1e-12 && (b - 0.1).abs() < 1e-12),
            "{shares:?}"
        );
        assert_eq!(effects[0].levels.iter().map(|level| level.mean).collect::<Vec<_>>(), [-3.0, 3.0]);
    }

    #[test]
    fn many_values_are_put_together_in_groups_of_equal_size() {
        let runs: Vec<Made> = (0..20).map(|i| made(f64::from(i), 1.0, f64::from(i), 0.0)).collect();
        let effects = effects(&plan("full"), &runs, "seconds");
        assert_eq!(effects.len(), 1, "b did not vary");
        let levels = &effects[0].levels;
        assert_eq!((levels.len(), levels.iter().map(|level| level.runs).sum::<usize>()), (MOST_LEVELS, 20));
        assert!(levels.iter().all(|level| (2..=3).contains(&level.runs)));
        assert_eq!((levels[0].label.as_str(), levels[0].number), ("0 to 1", Some(0.5)));
        assert!(levels.windows(2).all(|pair| pair[0].mean < pair[1].mean));
    }

    #[test]
    fn a_sample_of_values_without_effect_finds_none() {
        // The value alternates, whatever a is, and b is the value.
        let runs: Vec<Made> = (0..40).map(|i| made(f64::from(i), f64::from(i % 2), f64::from(i % 2), 0.0)).collect();
        let effects = effects(&plan("latin-hypercube"), &runs, "seconds");
        assert_eq!(effects.iter().map(|e| e.factor.as_str()).collect::<Vec<_>>(), ["b", "a"]);
        assert!((effects[0].share - 1.0).abs() < 1e-12 && effects[1].share < 0.01, "{effects:?}");
    }

    #[test]
    fn values_that_ran_once_each_say_nothing_in_a_sample() {
        let runs: Vec<Made> = (0..2).map(|i| made(f64::from(i), 1.0, f64::from(i), 0.0)).collect();
        assert_eq!(effects(&plan("latin-hypercube"), &runs, "seconds"), []);
    }

    #[test]
    fn one_at_a_time_each_factor_is_compared_with_the_first_run() {
        // a adds 3, b adds 1: the runs with other values of b have the first value of a.
        let runs = [made(0.0, 0.0, 5.0, 0.0), made(1.0, 0.0, 8.0, 0.0), made(0.0, 1.0, 6.0, 0.0)];
        let effects = effects(&plan("one-at-a-time"), &runs, "seconds");
        let found: Vec<_> = effects.iter().map(|e| (e.factor.as_str(), e.share, e.levels[0].mean)).collect();
        assert_eq!(found, [("a", 0.75, 5.0), ("b", 0.25, 5.0)]);
    }

    #[test]
    fn failed_runs_have_no_effect() {
        let mut runs = vec![made(1.0, 1.0, 1.0, 0.0), made(2.0, 1.0, 2.0, 0.0), made(3.0, 1.0, 9.0, 0.0)];
        runs[2].outcome = Err("no".to_owned());
        assert_eq!(effects(&plan("full"), &runs, "seconds")[0].levels.len(), 2);
        assert_eq!(ranking(&runs, &[objective("seconds", Goal::Most)], "all"), [1, 0]);
    }

    #[test]
    fn the_front_has_what_nothing_beats() {
        let runs =
            [made(1.0, 1.0, 1.0, 9.0), made(1.0, 1.0, 2.0, 5.0), made(1.0, 1.0, 3.0, 6.0), made(1.0, 1.0, 4.0, 1.0)];
        let both = [objective("seconds", Goal::Least), objective("watts", Goal::Least)];
        assert_eq!(front(&runs, &both, "all"), [0, 1, 3]);
        let most = [objective("seconds", Goal::Most), objective("watts", Goal::Most)];
        assert_eq!(front(&runs, &most, "all"), [3, 2, 0]);
    }

    proptest! {
        #[test]
        fn every_run_is_on_the_front_or_beaten_by_one_that_is(costs in prop::collection::vec((0_u8..9, 0_u8..9), 1..30)) {
            let runs: Vec<Made> = costs.iter().map(|&(a, b)| made(1.0, 1.0, f64::from(a), f64::from(b))).collect();
            let both = [objective("seconds", Goal::Least), objective("watts", Goal::Least)];
            let front = front(&runs, &both, "all");
            for (index, (a, b)) in costs.iter().enumerate() {
                let is_beaten = front.iter().any(|&other| {
                    let (c, d) = costs[other];
                    c <= *a && d <= *b && (c, d) != (*a, *b)
                });
                prop_assert_ne!(front.contains(&index), is_beaten);
            }
        }

        #[test]
        fn shares_are_between_0_and_1(values in prop::collection::vec((0_u8..12, -1e6..1e6_f64), 2..40)) {
            let runs: Vec<Made> = values.iter().map(|&(a, v)| made(f64::from(a), 1.0, v, 0.0)).collect();
            for design in ["full", "latin-hypercube", "one-at-a-time"] {
                for effect in effects(&plan(design), &runs, "seconds") {
                    prop_assert!((0.0..=1.0).contains(&effect.share));
                    prop_assert_eq!(effect.levels.iter().map(|level| level.runs).sum::<usize>(), runs.len());
                }
            }
        }
    }
}
