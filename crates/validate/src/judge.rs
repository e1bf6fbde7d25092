//! Compares the model with measured values.

use fxscope_pmu::formula::Formula;

use crate::accept::tenths;
use crate::figure::{Kind, Probe, Relation, probe, relation};
use crate::{Counts, Part, Results, Row, Suite};

/// Points by which a row's error may exceed the accepted one.
pub const SLACK: f64 = 1.0;

/// Errors, percent or points, for which a summary shows the share of figures within them.
pub const NEAR: [f64; 2] = [5.0, 10.0];

/// Largest relative difference by rounding between two tables that state one measurement.
const SAME_MEASUREMENT: f64 = 0.01;

/// Measured ratios of two runs closer to 1 than this have no direction.
const NO_DIRECTION: f64 = 0.01;

/// Meaning of a row's error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Within its tolerance.
    Within,
    /// Outside, with a gap that explains it.
    Gap,
    /// Outside, without an explanation.
    Unexplained,
    /// Worse than when it was accepted.
    Worse,
    /// Within its tolerance although the row names a gap.
    Closed,
}

impl Verdict {
    /// Returns whether it is as stated by the row.
    #[must_use]
    pub fn is_expected(self) -> bool {
        matches!(self, Verdict::Within | Verdict::Gap)
    }

    /// Returns a word for it.
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

/// A simulated value compared with the measured one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Judgement {
    /// The simulated value, in the row's unit.
    pub simulated: f64,
    /// Its error: percent of the measured value, or points.
    pub error: f64,
    /// Its error in percent of the measured value, whatever the unit; `None` if the measured value is 0.
    pub relative: Option<f64>,
    /// Its meaning.
    pub verdict: Verdict,
}

/// A row, its family, and its result.
#[derive(Clone, Debug)]
pub struct Outcome<'a> {
    /// The family's name.
    pub family: &'a str,
    /// The row.
    pub row: &'a Row,
    /// The program of its run.
    pub program: &'a str,
    /// What its measured value is for.
    pub part: Part,
    /// Kind of its figure.
    pub kind: Kind,
    /// Whether it was used to fit the model or a kernel ([`Row::fitted`]), or states the same figure as a row that was: its
    /// error does not test the model.
    pub fitted: bool,
    /// An earlier row that states the same figure of the same runs: a rate beside its share of peak or the time.
    pub repeats: Option<&'a str>,
    /// The judgement, or why there is none.
    pub judgement: Result<Judgement, String>,
}

impl Outcome<'_> {
    /// Returns whether it tests the model, and is the first of its run to state this figure.
    #[must_use]
    pub fn is_independent(&self) -> bool {
        !self.fitted && self.repeats.is_none()
    }
}

/// Judges all rows of a suite, in their order.
#[must_use]
pub fn judge<'a>(suite: &'a Suite, results: &Results) -> Vec<Outcome<'a>> {
    let of = |name: &str| match results.get(name) {
        Some(Ok(counts)) => Ok(counts),
        Some(Err(e)) => Err(e.clone()),
        None => Err(format!("run '{name}' was not made")),
    };
    outcomes(suite, |row, formula| {
        let run: &Counts = of(&row.run)?;
        let before = if row.before.is_empty() { None } else { Some(of(&row.before)?) };
        run.value(formula, before)
    })
}

/// Returns the outcomes of a suite as last accepted, without any run; errors are rounded as in the rows.
#[must_use]
pub fn accepted(suite: &Suite) -> Vec<Outcome<'_>> {
    outcomes(suite, |row, _| {
        let added = if row.is_points() { row.error } else { row.measured * row.error / 100.0 };
        Ok(row.measured + added)
    })
}

/// Judges the rows of a suite with these values.
fn outcomes(suite: &Suite, value: impl Fn(&Row, &Formula) -> Result<f64, String>) -> Vec<Outcome<'_>> {
    let (mut outcomes, mut probes) = (Vec::new(), Vec::new());
    for family in &suite.families {
        for (row, formula) in &family.rows {
            let (kind, fitted) = (Kind::of(row, formula), !row.fitted.is_empty());
            let judgement = value(row, formula).map(|v| row.judge(v));
            let (program, part) = (suite.program(row), suite.part(row));
            outcomes.push(Outcome { family: &family.name, row, program, part, kind, fitted, repeats: None, judgement });
            probes.push(probe(formula));
        }
    }
    find_repetitions(&mut outcomes, &probes);
    outcomes
}

/// Finds rows that repeat a figure, and marks them as fitted if any of them was fitted.
fn find_repetitions(outcomes: &mut [Outcome], probes: &[Probe]) {
    for i in 1..outcomes.len() {
        let first = (0..i).find(|&first| {
            let [a, b] = [&outcomes[first], &outcomes[i]];
            let related = || relation(probes[first], probes[i]);
            a.repeats.is_none()
                && (&a.row.run, &a.row.before) == (&b.row.run, &b.row.before)
                && related().is_some_and(|relation| is_same_measurement(a, b, relation))
        });
        if let Some(first) = first {
            outcomes[i].repeats = Some(&outcomes[first].row.row);
            outcomes[first].fitted |= outcomes[i].fitted;
        }
    }
    let fitted: std::collections::BTreeSet<&str> =
        outcomes.iter().filter(|o| o.fitted).map(|o| o.row.row.as_str()).collect();
    for outcome in outcomes {
        outcome.fitted |= outcome.repeats.is_some_and(|first| fitted.contains(first));
    }
}

/// Returns whether the measured values of two related figures are from one measurement.
fn is_same_measurement(a: &Outcome, b: &Outcome, relation: Relation) -> bool {
    let (Ok(x), Ok(y)) = (&a.judgement, &b.judgement) else { return false };
    if a.row.measured == 0.0 || b.row.measured == 0.0 {
        return a.row.measured == b.row.measured;
    }
    let (x, y) = (x.simulated / a.row.measured, y.simulated / b.row.measured);
    let ratio = match relation {
        Relation::Proportional => x / y,
        Relation::Inverse => x * y,
    };
    (ratio - 1.0).abs() <= SAME_MEASUREMENT
}

impl Row {
    /// Judges a simulated value.
    #[must_use]
    pub fn judge(&self, simulated: f64) -> Judgement {
        let relative = (self.measured != 0.0).then(|| 100.0 * (simulated / self.measured - 1.0));
        let error = match relative {
            Some(relative) if !self.is_points() => relative,
            _ => simulated - self.measured,
        };
        let within = error.abs() <= self.tolerance;
        let verdict = match (within, self.gap.is_empty()) {
            // Accepted errors are rounded, so the new one is rounded before the comparison.
            _ if tenths(error.abs() - self.error.abs()) > SLACK => Verdict::Worse,
            (true, true) => Verdict::Within,
            (true, false) => Verdict::Closed,
            (false, true) => Verdict::Unexplained,
            (false, false) => Verdict::Gap,
        };
        Judgement { simulated, error, relative, verdict }
    }

    /// Returns whether `simulated` is on the same side of 1 as the measured ratio of two runs; `None` for anything else.
    #[must_use]
    pub fn direction(&self, simulated: f64) -> Option<bool> {
        let ratio = self.is_ratio() && !self.before.is_empty() && (self.measured - 1.0).abs() > NO_DIRECTION;
        ratio.then_some((simulated > 1.0) == (self.measured > 1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(measured: f64, error: f64, gap: &str) -> Row {
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
            gap: gap.to_owned(),
            fitted: String::new(),
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
        assert!(points.judge(2.5).relative.is_some_and(|relative| (relative - 25.0).abs() < 1e-9));
        assert_eq!(Row { measured: 0.0, ..points }.judge(2.5).relative, None);
    }

    fn outcome<'a>(row: &'a Row, simulated: f64, fitted: bool) -> Outcome<'a> {
        let judgement = Ok(row.judge(simulated));
        let (program, part) = ("p", Part::Fit);
        Outcome { family: "f", row, program, part, kind: Kind::Rate, fitted, repeats: None, judgement }
    }

    /// The rows with these formulas, measured values and simulated ones.
    fn repetitions(rows: &[(&str, f64, f64, bool)]) -> Vec<(bool, Option<usize>)> {
        let named = |(i, &(_, measured, _, _)): (usize, &(&str, f64, f64, bool))| Row {
            row: i.to_string(),
            ..row(measured, 0.0, "")
        };
        let made: Vec<Row> = rows.iter().enumerate().map(named).collect();
        let mut outcomes: Vec<_> = made.iter().zip(rows).map(|(row, r)| outcome(row, r.2, r.3)).collect();
        let probes: Vec<_> = rows.iter().map(|r| probe(&Formula::parse(r.0).expect("a formula"))).collect();
        find_repetitions(&mut outcomes, &probes);
        outcomes.iter().map(|o| (o.fitted, o.repeats.map(|first| first.parse().expect("a number")))).collect()
    }

    #[test]
    fn a_figure_that_stands_in_several_rows_counts_once() {
        // A rate, its share of a peak of 64, the time of two operations, and another event.
        let rows = [
            ("2/seconds", 14.84, 14.99, false),
            ("100*2/seconds/64", 23.19, 23.42, false),
            ("seconds", 0.1348, 0.1334, false),
            ("INST_RETIRED", 10.0, 10.0, false),
        ];
        assert_eq!(repetitions(&rows), [(false, None), (false, Some(0)), (false, Some(0)), (false, None)]);
    }

    #[test]
    fn another_measurement_of_the_same_figure_counts_too() {
        let rows = [("1/seconds", 819.7, 804.0, false), ("1/seconds", 804.0, 804.0, false)];
        assert_eq!(repetitions(&rows), [(false, None), (false, None)]);
    }

    #[test]
    fn what_states_a_fitted_figure_is_fitted() {
        let rows = [
            ("seconds", 0.347, 0.348, false),
            ("32/seconds", 92.2, 91.9, true),
            ("cycles", 0.347, 0.348, false),
            ("INST_RETIRED", 1.0, 1.0, false),
        ];
        assert_eq!(repetitions(&rows), [(true, None), (true, Some(0)), (true, Some(0)), (false, None)]);
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
        assert_eq!(row(100.0, 8.0, "l2").judge(108.0).verdict, Verdict::Gap);
    }

    #[test]
    fn a_gap_that_is_none_any_more_shows() {
        assert_eq!(row(100.0, 8.0, "l2").judge(104.0).verdict, Verdict::Closed);
        assert!(!Verdict::Closed.is_expected());
    }

    #[test]
    fn ratios_have_a_direction_unless_next_to_one() {
        assert_eq!(row(1.08, 0.0, "").direction(1.2), Some(true));
        assert_eq!(row(1.08, 0.0, "").direction(0.99), Some(false));
        assert_eq!(row(1.005, 0.0, "").direction(0.99), None);
    }
}
