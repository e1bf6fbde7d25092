//! Results of a run.

use super::{PhaseEnd, Setup};

/// Batches whose means give the confidence interval.
const BATCHES: u64 = 30;
/// Two-sided 95 % quantile of Student's t distribution with 29 degrees of freedom.
const T_95: f64 = 2.045;
/// Maximum number of phase times kept.
const KEPT: u64 = 1 << 22;

/// 95 % confidence interval, if distant phases are independent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// Lower bound.
    pub low: f64,
    /// Upper bound.
    pub high: f64,
}

/// Results of a run. Times are in nanoseconds.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// From the start of the first phase to the end of the last one.
    pub time: u64,
    /// The same without noise.
    pub quiet: u64,
    /// Computation of a node, averaged over all.
    pub work: f64,
    /// Confidence interval of `slowdown`; `None` with fewer than 30 phases or with shrinking phases.
    pub confidence: Option<Interval>,
    /// Phase times, ascending; only the first ones of very long runs.
    pub phases: Vec<u64>,
    /// Part of `time` lost to each source of the model.
    pub lost: Vec<f64>,
}

impl Outcome {
    /// Returns the share of the time that is computation.
    #[must_use]
    pub fn efficiency(&self) -> f64 {
        self.work / self.time as f64
    }

    /// Returns the run time relative to that without noise.
    #[must_use]
    pub fn slowdown(&self) -> f64 {
        self.time as f64 / self.quiet as f64
    }

    /// Returns the share of the time lost to noise.
    #[must_use]
    pub fn noise(&self) -> f64 {
        1.0 - self.quiet as f64 / self.time as f64
    }

    /// Returns quantile `q` of the phase times.
    #[must_use]
    pub fn quantile(&self, q: f64) -> u64 {
        let last = self.phases.len().saturating_sub(1);
        self.phases.get((q * last as f64).round() as usize).copied().unwrap_or(0)
    }
}

/// Records a run.
pub(super) struct Recorder {
    quiet: u64,
    work: f64,
    /// Whether all phases have the same work.
    alike: bool,
    phases: u64,
    seen: u64,
    times: Vec<u64>,
    batches: Vec<f64>,
    lost: Vec<f64>,
    stolen: Vec<u64>,
}

impl Recorder {
    /// `works` is each node's computation per phase, `phase` the time of a phase without noise.
    pub(super) fn new(setup: &Setup, sources: usize, works: &[u64], phase: u64) -> Recorder {
        Recorder {
            quiet: phase * setup.phases,
            work: works.iter().map(|&work| work as f64).sum::<f64>() / f64::from(setup.nodes) * setup.phases as f64,
            alike: !matches!(setup.end, PhaseEnd::Panel { .. }),
            phases: setup.phases,
            seen: 0,
            times: Vec::with_capacity(setup.phases.min(KEPT) as usize),
            batches: vec![0.0; BATCHES as usize],
            lost: vec![0.0; sources],
            stolen: vec![0; sources],
        }
    }

    /// Sets the time of the whole run without noise and a node's work in it, when phases differ.
    pub(super) fn whole(&mut self, time: u64, work: f64) {
        (self.quiet, self.work) = (time, work);
    }

    /// Attributes `lost` to sources in proportion to what they took, as reported by `steal`.
    pub(super) fn blame(&mut self, lost: f64, steal: impl FnOnce(&mut [u64])) {
        self.stolen.fill(0);
        steal(&mut self.stolen);
        let all: u64 = self.stolen.iter().sum();
        if all > 0 {
            self.lost.iter_mut().zip(&self.stolen).for_each(|(sum, &s)| *sum += lost * s as f64 / all as f64);
        }
    }

    /// Scales what is attributed to sources so that it adds up to `lost`.
    pub(super) fn settle(&mut self, lost: f64) {
        let all: f64 = self.lost.iter().sum();
        if all > 0.0 {
            self.lost.iter_mut().for_each(|of_source| *of_source *= lost / all);
        }
    }

    pub(super) fn phase(&mut self, time: u64) {
        if self.seen < KEPT {
            self.times.push(time);
        }
        self.batches[(self.seen * BATCHES / self.phases) as usize] += time as f64;
        self.seen += 1;
    }

    pub(super) fn done(mut self, time: u64) -> Outcome {
        self.times.sort_unstable();
        let confidence = (self.alike && self.phases >= BATCHES).then(|| self.confidence(time));
        Outcome { time, quiet: self.quiet, work: self.work, confidence, phases: self.times, lost: self.lost }
    }

    /// Confidence interval from batch means.
    fn confidence(&self, time: u64) -> Interval {
        let n = BATCHES as f64;
        let length = |batch: u64| {
            let first = |batch: u64| (batch * self.phases).div_ceil(BATCHES);
            (first(batch + 1) - first(batch)) as f64
        };
        let mean = time as f64 / self.phases as f64;
        let squares = self.batches.iter().enumerate().map(|(i, sum)| (sum / length(i as u64) - mean).powi(2));
        let error = (squares.sum::<f64>() / (n - 1.0) / n).sqrt() * T_95;
        let slowdown = |mean: f64| mean * self.phases as f64 / self.quiet as f64;
        Interval { low: slowdown(mean - error), high: slowdown(mean + error) }
    }
}
