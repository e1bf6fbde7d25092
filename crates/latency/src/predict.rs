//! All methods, at several latencies.

use crate::methods::{Gives, METHODS, Method, Program};
use crate::{Kind, Quantity};

/// Latencies of memory that are asked about when none are given, nanoseconds: those of the published study.
pub const LATENCIES: [f64; 4] = [300.0, 500.0, 750.0, 1000.0];

/// A latency that is asked about.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// From a load to its use, nanoseconds.
    pub latency_ns: f64,
    /// What that is longer than on the machine; negative ones cannot be predicted.
    pub added_ns: f64,
}

impl Point {
    /// Whether memory gets slower there, or stays as it is.
    #[must_use]
    pub fn is_slower(&self) -> bool {
        self.added_ns >= 0.0
    }

    /// Why nothing is predicted for it; none when something is.
    #[must_use]
    pub fn refusal(&self) -> Option<String> {
        (!self.is_slower()).then(|| {
            format!(
                "{} ns is faster than the memory of the machine, by {} ns: counts of a normal run tell nothing about it",
                rounded(self.latency_ns),
                rounded(-self.added_ns)
            )
        })
    }
}

/// What a method says.
#[derive(Clone)]
pub struct Row {
    /// The method.
    pub method: &'static Method,
    /// For each point its slowdown, none where nothing is predicted; or why the method cannot be used. Of a method that gives a
    /// number, the number.
    pub says: Result<Says, String>,
}

/// What a method says when it can be used.
#[derive(Clone, Debug, PartialEq)]
pub enum Says {
    /// Slowdowns, point by point.
    Slowdowns(Vec<Option<f64>>),
    /// A number.
    Number(f64),
}

/// What all methods say.
#[derive(Clone)]
pub struct Prediction {
    /// The latency of the machine, nanoseconds.
    pub base_ns: f64,
    /// What is asked about.
    pub points: Vec<Point>,
    /// The methods, in their order.
    pub rows: Vec<Row>,
    /// What kind of program it is.
    pub kind: Kind,
    /// The method to trust, and why; none when none can be used.
    pub trust: Option<(&'static Method, &'static str)>,
    /// Mean outstanding reads of each interval, with its end in seconds; none without intervals.
    pub outstanding: Vec<(f64, f64)>,
}

impl Prediction {
    /// The slowdowns that a method predicts; none when it cannot be used or predicts none.
    #[must_use]
    pub fn slowdowns(&self, id: &str) -> Option<&[Option<f64>]> {
        match &self.rows.iter().find(|row| row.method.id == id)?.says {
            Ok(Says::Slowdowns(slowdowns)) => Some(slowdowns),
            _ => None,
        }
    }

    /// The smallest and the largest slowdown that methods predict for a point.
    #[must_use]
    pub fn spread(&self, point: usize) -> Option<(f64, f64)> {
        let all = METHODS.iter().filter_map(|method| *self.slowdowns(method.id)?.get(point)?);
        all.fold(None, |spread, value| match spread {
            None => Some((value, value)),
            Some((least, most)) => Some((value.min(least), value.max(most))),
        })
    }
}

/// What all methods say of a program with memory of these latencies, nanoseconds.
#[must_use]
pub fn predict(program: &Program<'_>, latencies: &[f64]) -> Prediction {
    let base_ns = program.system.base_ns;
    let point = |&latency_ns: &f64| Point { latency_ns, added_ns: latency_ns - base_ns };
    let points: Vec<Point> = latencies.iter().map(point).collect();
    let rows: Vec<Row> = METHODS.iter().map(|method| row(method, program, &points)).collect();
    let most = points.iter().map(|point| point.added_ns).fold(0.0, f64::max);
    let kind = Kind::of(program, most * 1e-9);
    let usable = |id: &str| rows.iter().any(|row| row.method.id == id && row.says.is_ok());
    let trust = kind.trust(&usable).and_then(|(id, why)| Some((Method::with_id(id)?, why)));
    Prediction { base_ns, points, rows, kind, trust, outstanding: outstanding(program) }
}

fn row(method: &'static Method, program: &Program<'_>, points: &[Point]) -> Row {
    let says = method.usable(program).map(|()| match method.gives {
        Gives::Number(number) => Says::Number(number(program)),
        Gives::Slowdown(slowdown) => {
            let at = |point: &Point| point.is_slower().then(|| slowdown(program, point.added_ns * 1e-9));
            Says::Slowdowns(points.iter().map(at).collect())
        }
    });
    Row { method, says }
}

fn outstanding(program: &Program<'_>) -> Vec<(f64, f64)> {
    let mut end = 0.0;
    let each = program.intervals.iter().filter_map(|interval| {
        end += interval.seconds;
        Some((end, interval.each_cycle(Quantity::Outstanding)?))
    });
    each.collect()
}

/// A number without needless digits.
fn rounded(number: f64) -> f64 {
    (number * 10.0).round() / 10.0
}
