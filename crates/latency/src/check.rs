//! Predictions against simulations of slower memory.

use crate::methods::second;
use crate::methods::stalls::{self, Coefficients};
use crate::methods::{METHODS, Method, Program, Second};
use crate::{Counts, System, predict};

/// Points, percent of the simulated time, within which a prediction is good.
pub const NEAR: f64 = 10.0;

/// Where the classes of errors end, percent; the first has all below, the last all above.
pub const CLASSES: [f64; 9] = [-50.0, -20.0, -10.0, 0.0, 10.0, 20.0, 50.0, 100.0, 1000.0];

/// A program whose slower runs were simulated.
#[derive(Clone, Debug)]
pub struct Sample {
    /// Its name.
    pub name: String,
    /// Whether coefficients may be fitted to it; others test them.
    pub fit: bool,
    /// What its normal run counted.
    pub counts: Counts,
    /// … interval by interval.
    pub intervals: Vec<Counts>,
    /// Why there are no intervals.
    pub no_intervals: String,
    /// The machine.
    pub system: System,
    /// A run with memory of another node; or why there is none.
    pub second: Result<Second, String>,
    /// Latencies, nanoseconds, and simulated slowdowns.
    pub simulated: Vec<(f64, f64)>,
}

impl Sample {
    /// What predictions are made from.
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

    /// The errors of all predictors, latency by latency, percent of the simulated time; none of one that cannot be used.
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

/// What predicts slowdowns.
#[derive(Clone, Copy)]
pub enum Predictor {
    /// One method for all programs.
    Method(&'static Method),
    /// Of each program, the method that is said to be trusted.
    Trusted,
}

impl Predictor {
    /// All of them, in the order in which they are shown.
    pub fn all() -> impl Iterator<Item = Predictor> {
        let methods = METHODS.iter().filter(|method| method.is_prediction()).map(Predictor::Method);
        methods.chain([Predictor::Trusted])
    }

    /// A method's number, or a word.
    #[must_use]
    pub fn id(self) -> &'static str {
        match self {
            Predictor::Method(method) => method.id,
            Predictor::Trusted => "trusted",
        }
    }
}

/// The error of a predicted slowdown, percent of the simulated time.
#[must_use]
pub fn error(predicted: f64, simulated: f64) -> f64 {
    100.0 * (predicted / simulated - 1.0)
}

/// How far off predictions are, over programs.
#[derive(Clone)]
pub struct Statistics {
    /// What predicts.
    pub predictor: Predictor,
    /// Programs that it predicts.
    pub programs: usize,
    /// Programs that it predicts within [`NEAR`] points at every latency.
    pub near_programs: usize,
    /// Programs whose mean error over latencies, without signs, is within [`NEAR`] points.
    pub near_on_average: usize,
    /// Programs and latencies that it predicts.
    pub predictions: usize,
    /// Those within [`NEAR`] points.
    pub near: usize,
    /// The mean of the errors without their signs, percent.
    pub mean: f64,
    /// The largest of these.
    pub worst: f64,
    /// How many errors each class has: one more than [`CLASSES`] has ends.
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

    /// Counts the errors of one more program, percent.
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

/// The statistics of all predictors that predict one of the samples.
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

/// Where coefficients are sought, in the order of [`with`].
const RANGES: [(f64, f64); 6] = [(0.0, 1.0), (0.0, 4.0), (0.0, 4.0), (0.0, 1.0), (0.3, 1.5), (1.0, 8.0)];
/// Rounds over all coefficients, at most.
const ROUNDS: usize = 200;
/// Logarithm of predicted by simulated slowdown from which on a larger one counts no more: what counters do not show must not bend
/// what they do.
const FAR: f64 = 0.2;
/// Share of the squares that a round must save for another one.
const WORTH: f64 = 1e-6;
/// Halvings of a range by golden section in each round.
const SECTIONS: usize = 40;

/// The coefficients of method 5 with the least squares of the logarithms of slowdowns that it and method 6 predict by simulated ones,
/// none of them counted as more than 0.2, over the samples that are there for it; `None` when there are none. One coefficient after
/// the other is sought by golden section, again and again, beginning with those in use.
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
            // A coefficient on which nothing hangs stays as it is.
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

/// The sum of squares of the logarithms of slowdowns that methods 5 and 6 predict by simulated ones, each at most that of [`FAR`].
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

/// Where a function of one minimum in a range has it.
fn golden((mut low, mut high): (f64, f64), function: impl Fn(f64) -> f64) -> f64 {
    let ratio = (5.0_f64.sqrt() - 1.0) / 2.0;
    for _ in 0..SECTIONS {
        let (a, b) = (high - ratio * (high - low), low + ratio * (high - low));
        if function(a) <= function(b) { high = b } else { low = a }
    }
    (low + high) / 2.0
}
