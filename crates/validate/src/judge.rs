//! How far the model is from what was measured.

use crate::accept::tenths;
use crate::counts::Names;
use crate::{Counts, Results, Row, Suite};

/// Points by which a row may be worse than when its error was accepted.
pub const SLACK: f64 = 1.0;

/// Errors, in percent or points, whose shares a summary tells.
pub const NEAR: [f64; 2] = [5.0, 10.0];

/// Measured ratios of two runs nearer to 1 than this have no direction.
const NO_DIRECTION: f64 = 0.01;

/// What a row's error means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Within its tolerance.
    Within,
    /// Beyond it, for a reason that has a number.
    Gap,
    /// Beyond it, and nobody says why.
    Unexplained,
    /// Further off than when it was accepted.
    Worse,
    /// Within its tolerance although a number says why it is not.
    Closed,
}

impl Verdict {
    /// Whether all is as the row says.
    #[must_use]
    pub fn is_expected(self) -> bool {
        matches!(self, Verdict::Within | Verdict::Gap)
    }

    /// A word for it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Verdict::Within => "",
            Verdict::Gap => "gap",
            Verdict::Unexplained => "unexplained",
            Verdict::Worse => "worse",
            Verdict::Closed => "closed",
        }
    }
}

/// A simulated value beside the measured one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Judgement {
    /// The simulated value, in the row's unit.
    pub simulated: f64,
    /// Its error: percent of the measured value, or points.
    pub error: f64,
    /// What that means.
    pub verdict: Verdict,
}

/// A row, its family, and what came of it.
#[derive(Clone, Debug)]
pub struct Outcome<'a> {
    /// The family's name.
    pub family: &'a str,
    /// The row.
    pub row: &'a Row,
    /// The judgement, or why there is none.
    pub judgement: Result<Judgement, String>,
}

/// What came of all rows of a suite, in their order.
#[must_use]
pub fn judge<'a>(suite: &'a Suite, results: &Results) -> Vec<Outcome<'a>> {
    let of = |name: &str| match results.get(name) {
        Some(Ok(counts)) => Ok(counts),
        Some(Err(e)) => Err(e.clone()),
        None => Err(format!("run '{name}' was not made")),
    };
    let mut outcomes = Vec::new();
    for family in &suite.families {
        for (row, formula) in &family.rows {
            let value = || {
                let run: &Counts = of(&row.run)?;
                let before = if row.before.is_empty() { None } else { Some(of(&row.before)?) };
                let names = Names { run, before };
                formula.value(&names).ok_or_else(|| {
                    let unknown =
                        formula.names().into_iter().find(|n| fxscope_pmu::formula::Scope::name(&names, n).is_none());
                    format!("its runs count no {}", unknown.map_or("value for each thread", |n| n))
                })
            };
            outcomes.push(Outcome { family: &family.name, row, judgement: value().map(|v| row.judge(v)) });
        }
    }
    outcomes
}

impl Row {
    /// The judgement of a simulated value.
    #[must_use]
    pub fn judge(&self, simulated: f64) -> Judgement {
        let error =
            if self.is_points() { simulated - self.measured } else { 100.0 * (simulated / self.measured - 1.0) };
        let within = error.abs() <= self.tolerance;
        let verdict = match (within, self.deviation.is_empty()) {
            // Accepted errors are rounded, and so is what is compared with them.
            _ if tenths(error.abs() - self.error.abs()) > SLACK => Verdict::Worse,
            (true, true) => Verdict::Within,
            (true, false) => Verdict::Closed,
            (false, true) => Verdict::Unexplained,
            (false, false) => Verdict::Gap,
        };
        Judgement { simulated, error, verdict }
    }

    /// For a ratio of two runs: whether `simulated` lies on the side of 1 that the measured ratio lies on. `None` for
    /// anything else.
    #[must_use]
    pub fn direction(&self, simulated: f64) -> Option<bool> {
        let ratio = self.is_ratio() && !self.before.is_empty() && (self.measured - 1.0).abs() > NO_DIRECTION;
        ratio.then_some((simulated > 1.0) == (self.measured > 1.0))
    }
}

/// Figures of several rows.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Summary {
    /// Rows that have an error.
    pub rows: usize,
    /// Rows that could not be simulated.
    pub failed: usize,
    /// The mean of the errors without their signs.
    pub mean: f64,
    /// Rows whose error is at most each of [`NEAR`].
    pub near: [usize; 2],
    /// Ratios of two runs, and those of them on the right side of 1.
    pub directions: (usize, usize),
}

impl Summary {
    /// The figures of `outcomes`.
    #[must_use]
    pub fn of<'a>(outcomes: impl Iterator<Item = &'a Outcome<'a>>) -> Summary {
        let mut summary = Summary::default();
        let mut sum = 0.0;
        for outcome in outcomes {
            let Ok(judgement) = &outcome.judgement else {
                summary.failed += 1;
                continue;
            };
            summary.rows += 1;
            sum += judgement.error.abs();
            for (near, limit) in summary.near.iter_mut().zip(NEAR) {
                *near += usize::from(judgement.error.abs() <= limit);
            }
            if let Some(right) = outcome.row.direction(judgement.simulated) {
                summary.directions.0 += 1;
                summary.directions.1 += usize::from(right);
            }
        }
        summary.mean = if summary.rows == 0 { 0.0 } else { sum / summary.rows as f64 };
        summary
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn row(measured: f64, error: f64, deviation: &str) -> Row {
        Row {
            row: "r".to_owned(),
            what: String::new(),
            run: "a".to_owned(),
            before: "b".to_owned(),
            simulated: String::new(),
            measured,
            unit: "ratio".to_owned(),
            tolerance: 5.0,
            error,
            deviation: deviation.to_owned(),
            source: String::new(),
        }
    }

    #[test]
    fn an_error_is_a_share_of_what_was_measured() {
        let judged = row(2.0, 5.0, "").judge(2.1);
        assert!((judged.error - 5.0).abs() < 1e-9);
        assert_eq!(judged.simulated, 2.1);
    }

    #[test]
    fn an_error_in_points_is_a_difference() {
        let points = Row { unit: "points".to_owned(), ..row(2.0, 0.0, "") };
        assert!((points.judge(2.5).error - 0.5).abs() < 1e-9);
    }

    #[test]
    fn a_row_may_be_worse_by_a_point_than_accepted() {
        assert_eq!(row(100.0, 3.0, "").judge(104.0).verdict, Verdict::Within);
        assert_eq!(row(100.0, 3.0, "").judge(104.1).verdict, Verdict::Worse);
        assert_eq!(row(100.0, -3.0, "").judge(96.0).verdict, Verdict::Within);
    }

    #[test]
    fn beyond_its_tolerance_a_row_needs_a_number() {
        assert_eq!(row(100.0, 8.0, "").judge(108.0).verdict, Verdict::Unexplained);
        assert_eq!(row(100.0, 8.0, "D6").judge(108.0).verdict, Verdict::Gap);
    }

    #[test]
    fn a_gap_that_is_none_any_more_shows() {
        assert_eq!(row(100.0, 8.0, "D6").judge(104.0).verdict, Verdict::Closed);
        assert!(!Verdict::Closed.is_expected());
    }

    #[test]
    fn ratios_have_a_direction_unless_next_to_one() {
        assert_eq!(row(1.08, 0.0, "").direction(1.2), Some(true));
        assert_eq!(row(1.08, 0.0, "").direction(0.99), Some(false));
        assert_eq!(row(1.005, 0.0, "").direction(0.99), None);
    }

    proptest! {
        #[test]
        fn a_summary_counts_every_row_once(errors in prop::collection::vec(-30.0..30.0f64, 0..50)) {
            let row = row(1.0, 100.0, "");
            let all: Vec<_> = errors
                .iter()
                .map(|e| Outcome { family: "f", row: &row, judgement: Ok(row.judge(1.0 + e / 100.0)) })
                .collect();
            let summary = Summary::of(all.iter());
            prop_assert_eq!(summary.rows, errors.len());
            prop_assert!(summary.near[0] <= summary.near[1] && summary.near[1] <= summary.rows);
            let most = errors.iter().fold(0.0f64, |m, e| m.max(e.abs()));
            prop_assert!(summary.mean <= most + 1e-9);
        }
    }
}
