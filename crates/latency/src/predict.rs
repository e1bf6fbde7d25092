//! All methods, at several latencies.

use crate::methods::{Calculation, METHODS, Method, Program};
use crate::{Kind, Quantity};

/// Default memory latencies, nanoseconds: those of the published study.
pub const LATENCIES: [f64; 4] = [300.0, 500.0, 750.0, 1000.0];

/// A memory latency.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// From a load to its use, nanoseconds.
    pub latency_ns: f64,
    /// Difference from the machine's latency; negative ones cannot be predicted.
    pub added_ns: f64,
}

impl Point {
    /// Returns whether memory gets slower or stays the same.
    #[must_use]
    pub fn is_slower(&self) -> bool {
        self.added_ns >= 0.0
    }

    /// Returns why nothing is predicted for it; `None` if something is.
    #[must_use]
    pub fn refusal(&self) -> Option<String> {
        (!self.is_slower()).then(|| {
            format!(
                "{} ns is faster than the memory of the machine, by {} ns: counts of a normal run do not predict it",
                rounded(self.latency_ns),
                rounded(-self.added_ns)
            )
        })
    }
}

/// Result of a method.
#[derive(Clone)]
pub struct Row {
    /// The method.
    pub method: &'static Method,
    /// For each point its slowdown, `None` where nothing is predicted, or the method's number; or why the method cannot be
    /// used.
    pub result: Result<MethodResult, String>,
}

/// Prediction of a usable method.
#[derive(Clone, Debug, PartialEq)]
pub enum MethodResult {
    /// Slowdowns, point by point.
    Slowdowns(Vec<Option<f64>>),
    /// A number.
    Number(f64),
}

/// Results of all methods.
#[derive(Clone)]
pub struct Prediction {
    /// The latency of the machine, nanoseconds.
    pub base_ns: f64,
    /// The latencies.
    pub points: Vec<Point>,
    /// The methods, in their order.
    pub rows: Vec<Row>,
    /// What kind of program it is.
    pub kind: Kind,
    /// The method to trust, and why; none when none can be used.
    pub trust: Option<(&'static Method, &'static str)>,
    /// Mean outstanding reads of each interval, with its end in seconds; empty without intervals.
    pub outstanding: Vec<(f64, f64)>,
}

impl Prediction {
    /// Returns the slowdowns that a method predicts; `None` if it cannot be used or predicts none.
    #[must_use]
    pub fn slowdowns(&self, id: &str) -> Option<&[Option<f64>]> {
        match &self.rows.iter().find(|row| row.method.id == id)?.result {
            Ok(MethodResult::Slowdowns(slowdowns)) => Some(slowdowns),
            _ => None,
        }
    }

    /// Returns the smallest and the largest slowdown predicted for a point.
    #[must_use]
    pub fn spread(&self, point: usize) -> Option<(f64, f64)> {
        let all = METHODS.iter().filter_map(|method| *self.slowdowns(method.id)?.get(point)?);
        all.fold(None, |spread, value| match spread {
            None => Some((value, value)),
            Some((least, most)) => Some((value.min(least), value.max(most))),
        })
    }
}

/// Predicts by all methods for a program with memory of these latencies, nanoseconds.
#[must_use]
pub fn predict(program: &Program<'_>, latencies: &[f64]) -> Prediction {
    let base_ns = program.system.base_ns;
    let point = |&latency_ns: &f64| Point { latency_ns, added_ns: latency_ns - base_ns };
    let points: Vec<Point> = latencies.iter().map(point).collect();
    let rows: Vec<Row> = METHODS.iter().map(|method| row(method, program, &points)).collect();
    let most = points.iter().map(|point| point.added_ns).fold(0.0, f64::max);
    let kind = Kind::of(program, most * 1e-9);
    let usable = |id: &str| rows.iter().any(|row| row.method.id == id && row.result.is_ok());
    let trust = kind.trust(&usable).and_then(|(id, why)| Some((Method::with_id(id)?, why)));
    Prediction { base_ns, points, rows, kind, trust, outstanding: outstanding(program) }
}

fn row(method: &'static Method, program: &Program<'_>, points: &[Point]) -> Row {
    let result = method.usable(program).map(|()| match method.calculation {
        Calculation::Number(number) => MethodResult::Number(number(program)),
        Calculation::Slowdown(slowdown) => {
            let at = |point: &Point| point.is_slower().then(|| slowdown(program, point.added_ns * 1e-9));
            MethodResult::Slowdowns(points.iter().map(at).collect())
        }
    });
    Row { method, result }
}

fn outstanding(program: &Program<'_>) -> Vec<(f64, f64)> {
    let mut end = 0.0;
    let each = program.intervals.iter().filter_map(|interval| {
        end += interval.seconds;
        Some((end, interval.each_cycle(Quantity::Outstanding)?))
    });
    each.collect()
}

/// Formats a number without unnecessary digits.
fn rounded(number: f64) -> f64 {
    (number * 10.0).round() / 10.0
}
