//! How accurate the model is: errors of many figures in a few numbers.

use std::collections::BTreeMap;

use crate::judge::{NEAR, Outcome};

/// Errors of several figures, without their signs.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Spread {
    /// How many figures.
    pub number: usize,
    /// Their mean; 0 without any.
    pub mean: f64,
    /// Their median; 0 without any.
    pub median: f64,
    /// How many are at most each of [`NEAR`].
    pub near: [usize; 2],
}

impl Spread {
    /// The figures of `errors`, whose signs do not matter.
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

/// How far figures are off.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Accuracy {
    /// Figures that have an error.
    pub figures: usize,
    /// Figures that could not be simulated.
    pub failed: usize,
    /// Errors in percent of the measured value, of figures that are not measured as 0.
    pub relative: Spread,
    /// Errors in percentage points, of those that are percentages.
    pub points: Spread,
    /// For each run the mean of its relative errors: figures of one run are not independent of each other.
    pub runs: Spread,
    /// Ratios of two runs, and those of them on the right side of 1.
    pub directions: (usize, usize),
}

impl Accuracy {
    /// That of `outcomes`, whatever they were used for.
    #[must_use]
    pub fn of<'a>(outcomes: impl IntoIterator<Item = &'a Outcome<'a>>) -> Accuracy {
        let mut accuracy = Accuracy::default();
        let (mut relative, mut points) = (Vec::new(), Vec::new());
        let mut runs: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
        for outcome in outcomes {
            let Ok(judgement) = &outcome.judgement else {
                accuracy.failed += 1;
                continue;
            };
            accuracy.figures += 1;
            if let Some(error) = judgement.relative {
                relative.push(error);
                runs.entry(&outcome.row.run).or_default().push(error.abs());
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
        accuracy.runs = Spread::of(runs.values().map(|errors| errors.iter().sum::<f64>() / errors.len() as f64));
        accuracy
    }

    /// Figures that were measured as 0, of which no error is a share.
    #[must_use]
    pub fn zero(&self) -> usize {
        self.figures - self.relative.number
    }
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
