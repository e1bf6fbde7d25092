//! Accuracy of the model: errors of many figures in a few numbers.

use std::collections::BTreeMap;

use crate::judge::{NEAR, Outcome};

/// Absolute errors of several figures.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Spread {
    /// Number of figures.
    pub number: usize,
    /// Their mean; 0 without any.
    pub mean: f64,
    /// Their median; 0 without any.
    pub median: f64,
    /// Number of errors up to each of [`NEAR`].
    pub near: [usize; 2],
}

impl Spread {
    /// Summarises `errors`, whose signs are ignored.
    #[must_use]
    pub fn of(errors: impl IntoIterator<Item = f64>) -> Spread {
        let mut errors: Vec<f64> = errors.into_iter().map(f64::abs).collect();
        errors.sort_by(f64::total_cmp);
        let number = errors.len();
        if number == 0 {
            return Spread::default();
        }
        Spread {
            number,
            mean: errors.iter().sum::<f64>() / number as f64,
            median: f64::midpoint(errors[(number - 1) / 2], errors[number / 2]),
            near: NEAR.map(|limit| errors.iter().filter(|error| **error <= limit).count()),
        }
    }
}

/// Errors of figures.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Accuracy {
    /// Number of figures with an error.
    pub figures: usize,
    /// Number of figures that could not be simulated.
    pub failed: usize,
    /// Errors in percent of the measured value, of figures whose measured value is not 0.
    pub relative: Spread,
    /// Errors of percentages, in percentage points.
    pub points: Spread,
    /// Mean relative error of each run, since figures of one run are not independent.
    pub runs: Spread,
    /// Mean relative error of each program, since rows of one program are not independent either.
    pub programs: Spread,
    /// Number of ratios of two runs on the correct side of 1, and of all such ratios.
    pub directions: (usize, usize),
}

impl Accuracy {
    /// Summarises `outcomes`, including fitted ones.
    #[must_use]
    pub fn of<'a>(outcomes: impl IntoIterator<Item = &'a Outcome<'a>>) -> Accuracy {
        let mut accuracy = Accuracy::default();
        let (mut relative, mut points) = (Vec::new(), Vec::new());
        let (mut runs, mut programs) = (BTreeMap::new(), BTreeMap::new());
        for outcome in outcomes {
            let Ok(judgement) = &outcome.judgement else {
                accuracy.failed += 1;
                continue;
            };
            accuracy.figures += 1;
            if let Some(error) = judgement.relative {
                relative.push(error);
                add(&mut runs, &outcome.row.run, error);
                add(&mut programs, outcome.program, error);
            }
            if outcome.row.is_points() {
                points.push(judgement.error);
            }
            if let Some(right) = outcome.row.direction(judgement.simulated) {
                accuracy.directions.0 += 1;
                accuracy.directions.1 += usize::from(right);
            }
        }
        accuracy.relative = Spread::of(relative);
        accuracy.points = Spread::of(points);
        [accuracy.runs, accuracy.programs] = [&runs, &programs].map(means);
        accuracy
    }

    /// Returns the number of figures with a measured value of 0, which have no relative error.
    #[must_use]
    pub fn zero(&self) -> usize {
        self.figures - self.relative.number
    }
}

/// Adds an absolute error to those of a group.
fn add<'a>(groups: &mut BTreeMap<&'a str, Vec<f64>>, group: &'a str, error: f64) {
    groups.entry(group).or_default().push(error.abs());
}

/// Summarises the mean error of each group.
fn means(groups: &BTreeMap<&str, Vec<f64>>) -> Spread {
    Spread::of(groups.values().map(|errors| errors.iter().sum::<f64>() / errors.len() as f64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_spread_has_mean_median_and_what_is_near() {
        let spread = Spread::of([-1.0, 5.0, 6.0, -20.0]);
        assert_eq!(spread, Spread { number: 4, mean: 8.0, median: 5.5, near: [2, 3] });
        assert_eq!(Spread::of([]), Spread::default());
    }

    proptest! {
        #[test]
        fn a_spread_counts_every_error_once(errors in prop::collection::vec(-30.0..30.0f64, 0..50)) {
            let spread = Spread::of(errors.iter().copied());
            prop_assert_eq!(spread.number, errors.len());
            prop_assert!(spread.near[0] <= spread.near[1] && spread.near[1] <= spread.number);
            let most = errors.iter().fold(0.0f64, |m, e| m.max(e.abs()));
            prop_assert!(spread.mean <= most + 1e-9 && spread.median <= most);
        }
    }
}
