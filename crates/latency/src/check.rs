//! Predictions compared with simulations of slower memory.

use crate::methods::second;
use crate::methods::stalls::{self, Coefficients};
use crate::methods::{METHODS, Method, Program, SecondRun};
use crate::{Counts, System, predict};

/// Largest error of a good prediction, percent of the simulated time.
pub const NEAR: f64 = 10.0;

/// Boundaries of the classes of errors, percent; the first class has all below, the last all above.
pub const CLASSES: [f64; 9] = [-50.0, -20.0, -10.0, 0.0, 10.0, 20.0, 50.0, 100.0, 1000.0];

/// A program with simulated runs with slower memory.
#[derive(Clone, Debug)]
pub struct Sample {
    /// Its name.
    pub name: String,
    /// Whether coefficients may be fitted to it; others test them.
    pub fit: bool,
    /// Counts of its normal run.
    pub counts: Counts,
    /// … by interval.
    pub intervals: Vec<Counts>,
    /// Why there are no intervals.
    pub no_intervals: String,
    /// The machine.
    pub system: System,
    /// A run with memory of another node, or why there is none.
    pub second: Result<SecondRun, String>,
    /// Memory latencies, nanoseconds, and simulated slowdowns.
    pub simulated: Vec<(f64, f64)>,
}

impl Sample {
    /// Returns the input of the methods.
    #[must_use]
    pub fn program(&self) -> Program<'_> {
        Program {
            counts: &self.counts,
            intervals: &self.intervals,
            no_intervals: &self.no_intervals,
            system: &self.system,
            second: self.second.as_ref().map(|second| *second).map_err(String::as_str),
        }
    }

    /// Returns the errors of all predictors by latency, percent of the simulated time; `None` for one that cannot be used.
    fn errors(&self) -> Vec<Option<Vec<f64>>> {
        let latencies: Vec<f64> = self.simulated.iter().map(|point| point.0).collect();
        let prediction = predict(&self.program(), &latencies);
        let of = |predictor: Predictor| {
            let id = match predictor {
                Predictor::Method(method) => method.id,
                Predictor::Trusted => prediction.trust?.0.id,
            };
            let pairs = prediction.slowdowns(id)?.iter().zip(&self.simulated);
            Some(pairs.filter_map(|(predicted, &(_, simulated))| Some(error((*predicted)?, simulated))).collect())
        };
        Predictor::all().map(of).collect()
    }
}

/// A predictor of slowdowns.
#[derive(Clone, Copy)]
pub enum Predictor {
    /// One method for all programs.
    Method(&'static Method),
    /// For each program, the method that is trusted.
    Trusted,
}

impl Predictor {
    /// Returns all predictors, in the order in which they are shown.
    pub fn all() -> impl Iterator<Item = Predictor> {
        let methods = METHODS.iter().filter(|method| method.is_prediction()).map(Predictor::Method);
        methods.chain([Predictor::Trusted])
    }

    /// Returns a method's number, or a word.
    #[must_use]
    pub fn id(self) -> &'static str {
        match self {
            Predictor::Method(method) => method.id,
            Predictor::Trusted => "trusted",
        }
    }
}

/// Returns the error of a predicted slowdown, percent of the simulated time.
#[must_use]
pub fn error(predicted: f64, simulated: f64) -> f64 {
    100.0 * (predicted / simulated - 1.0)
}

/// Errors of a predictor over programs.
#[derive(Clone)]
pub struct Statistics {
    /// The predictor.
    pub predictor: Predictor,
    /// Programs that it predicts.
    pub programs: usize,
    /// Programs that it predicts within [`NEAR`] percent at every latency.
    pub near_programs: usize,
    /// Programs whose mean absolute error over latencies is within [`NEAR`] percent.
    pub near_on_average: usize,
    /// Programs and latencies that it predicts.
    pub predictions: usize,
    /// Those within [`NEAR`] percent.
    pub near: usize,
    /// Mean absolute error, percent.
    pub mean: f64,
    /// Largest absolute error, percent.
    pub worst: f64,
    /// Number of errors in each class: one more class than [`CLASSES`] has boundaries.
    pub histogram: [usize; CLASSES.len() + 1],
}

impl Statistics {
    fn of(predictor: Predictor) -> Statistics {
        Statistics {
            predictor,
            programs: 0,
            near_programs: 0,
            near_on_average: 0,
            predictions: 0,
            near: 0,
            mean: 0.0,
            worst: 0.0,
            histogram: [0; CLASSES.len() + 1],
        }
    }

    /// Adds the errors of a program, percent.
    fn add(&mut self, errors: &[f64]) {
        self.programs += 1;
        self.near_programs += usize::from(errors.iter().all(|error| error.abs() <= NEAR));
        let sum: f64 = errors.iter().map(|error| error.abs()).sum();
        self.near_on_average += usize::from(sum <= NEAR * errors.len() as f64);
        for error in errors {
            self.predictions += 1;
            self.near += usize::from(error.abs() <= NEAR);
            self.worst = self.worst.max(error.abs());
            self.histogram[CLASSES.iter().take_while(|&&end| error > &end).count()] += 1;
            self.mean += (error.abs() - self.mean) / self.predictions as f64;
        }
    }
}

/// Returns the statistics of all predictors that apply to one of the samples.
#[must_use]
pub fn statistics(samples: &[&Sample]) -> Vec<Statistics> {
    let mut all: Vec<Statistics> = Predictor::all().map(Statistics::of).collect();
    for sample in samples {
        for (of, errors) in all.iter_mut().zip(sample.errors()) {
            if let Some(errors) = errors {
                of.add(&errors);
            }
        }
    }
    all.retain(|of| of.programs > 0);
    all
}

/// Search ranges of the coefficients, in the order of [`with`].
const RANGES: [(f64, f64); 6] = [(0.0, 1.0), (0.0, 4.0), (0.0, 4.0), (0.0, 1.0), (0.3, 1.5), (1.0, 8.0)];
/// Most rounds over all coefficients.
const ROUNDS: usize = 200;
/// Logarithm of predicted over simulated slowdown above which errors are clipped, so that effects without counters do not
/// distort the fit.
const FAR: f64 = 0.2;
/// Relative decrease of the sum of squares that justifies another round.
const WORTH: f64 = 1e-6;
/// Golden-section steps per coefficient and round.
const SECTIONS: usize = 40;

/// Fits the coefficients of method 5: minimises the squared logarithms of predicted over simulated slowdowns of methods 5
/// and 6, clipped at 0.2, over the samples marked for it; `None` if there are none. Coordinate descent by golden section,
/// starting with the current coefficients.
#[must_use]
pub fn fit(samples: &[&Sample]) -> Option<Coefficients> {
    let usable = |sample: &&&Sample| {
        sample.fit && Method::with_id("5").is_some_and(|method| method.usable(&sample.program()).is_ok())
    };
    let samples: Vec<&Sample> = samples.iter().filter(usable).copied().collect();
    if samples.is_empty() {
        return None;
    }
    let mut best = *stalls::FITTED;
    for _ in 0..ROUNDS {
        let before = squares(&samples, best);
        for (place, range) in RANGES.into_iter().enumerate() {
            let at = |value: f64| squares(&samples, with(best, place, value));
            let found = golden(range, at);
            // A coefficient without effect keeps its value.
            if at(found) < squares(&samples, best) {
                best = with(best, place, found);
            }
        }
        if squares(&samples, best) >= before * (1.0 - WORTH) {
            break;
        }
    }
    Some(best)
}

fn with(mut coefficients: Coefficients, place: usize, value: f64) -> Coefficients {
    let Coefficients { hidden, late, together, slowest, distance, streams } = &mut coefficients;
    *[hidden, late, together, slowest, distance, streams][place] = value;
    coefficients
}

/// Returns the sum of squared logarithms of predicted over simulated slowdowns of methods 5 and 6, each clipped at [`FAR`].
fn squares(samples: &[&Sample], coefficients: Coefficients) -> f64 {
    let squared = |predicted: f64, simulated: f64| (predicted / simulated).ln().abs().min(FAR).powi(2);
    let each = samples.iter().flat_map(|sample| {
        let program = sample.program();
        let with_second = Method::with_id("6").is_some_and(|method| method.usable(&program).is_ok());
        sample.simulated.iter().map(move |&(latency, simulated)| {
            let added = (latency - sample.system.base_ns) * 1e-9;
            let by_5 = squared(stalls::slowdown(&program, added, coefficients), simulated);
            let by_6 = with_second.then(|| squared(second::slowdown(&program, added, coefficients), simulated));
            by_5 + by_6.unwrap_or(0.0)
        })
    });
    each.sum()
}

/// Returns the position of a unimodal function's minimum in a range.
fn golden((mut low, mut high): (f64, f64), function: impl Fn(f64) -> f64) -> f64 {
    let ratio = (5.0_f64.sqrt() - 1.0) / 2.0;
    for _ in 0..SECTIONS {
        let (a, b) = (high - ratio * (high - low), low + ratio * (high - low));
        if function(a) <= function(b) { high = b } else { low = a }
    }
    (low + high) / 2.0
}
