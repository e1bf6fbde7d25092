//! Closed forms and order statistics: the expected loss of a phase when detours are rare.
//!
//! Valid while a core is rarely struck twice in a phase ([`Expected::seldom`]) and phases are independent;
//! [`crate::scale`] has no such limits. Tests compare both.

use crate::model::{Arrival, Correlation, Length, Model, Phase, Source, Target, Trace};

/// Mean detours per core and phase up to which detours are rare.
const SELDOM: f64 = 0.1;
/// Relative loss up to which a phase counts as long as its grain.
const SHORT: f64 = 0.1;
/// Steps of the integral over lengths.
const STEPS: u32 = 4000;

/// Returns the probability that at least one of `places` is struck within `grain` nanoseconds, with Poisson arrivals of
/// `rate` per second on each.
#[must_use]
pub fn struck_by_poisson(rate: f64, places: f64, grain: f64) -> f64 {
    -(-rate * places * grain / 1e9).exp_m1()
}

/// Returns the same for periodic arrivals with a random phase on each place.
#[must_use]
pub fn struck_by_periodic(period: f64, places: f64, grain: f64) -> f64 {
    1.0 - (1.0 - (grain / period).min(1.0)).powf(places)
}

/// Returns the mean of the longest of `n` exponential lengths: the mean times the harmonic number of `n`.
#[must_use]
pub fn longest_exponential(mean: f64, n: u64) -> f64 {
    // Beyond some thousand terms, Euler's expansion is exact to all digits.
    if n > 10_000 {
        let n = n as f64;
        return mean * (n.ln() + 0.577_215_664_901_532_9 + 1.0 / (2.0 * n) - 1.0 / (12.0 * n * n));
    }
    mean * (1..=n).map(|k| 1.0 / k as f64).sum::<f64>()
}

/// Returns the mean of the longest of `n` unbounded Pareto lengths with `shape` above 1: the product of `k / (k - 1 /
/// shape)`.
#[must_use]
pub fn longest_pareto(shape: f64, at_least: f64, n: u64) -> f64 {
    let log: f64 = (1..=n).map(|k| -(-1.0 / (shape * k as f64)).ln_1p()).sum();
    at_least * log.exp()
}

/// Returns the mean of the longest of `n` lengths, of which a share is long and the others are short.
#[must_use]
pub fn longest_two_point(short: f64, long: f64, long_share: f64, n: u64) -> f64 {
    let none = (n as f64 * (-long_share).ln_1p()).exp();
    long - (long - short) * none
}

/// Returns the mean loss of a phase to a tick of `period` and fixed `length` on each of many cores with independent
/// phases: all ticks that certainly fall into the grain, and one more if any core has it.
///
/// With many cores this is the resonance of grain and noise: another whole tick is lost as soon as the grain exceeds a
/// multiple of the period.
#[must_use]
pub fn resonance(period: f64, length: f64, cores: f64, grain: f64) -> f64 {
    // Ticks during the core's own delays count, too: the time between ticks is shorter by their length.
    let ticks = grain / (period - length);
    let sure = ticks.floor();
    let more = 1.0 - (1.0 - (ticks - sure)).powf(cores);
    length * (sure + more)
}

/// Expected loss of a phase that ends when all cores have finished.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Expected {
    /// Probability that any core is struck.
    pub struck: f64,
    /// Loss of the phase, nanoseconds.
    pub delay: f64,
    /// Whether cores are struck rarely and briefly enough for the formula to hold: detours of a waiting core cost
    /// nothing until the next phase begins. It does not hold for traces of several cores, either.
    pub seldom: bool,
}

/// Returns the expected loss of a phase of `grain` nanoseconds to the noise of `model` on `nodes` nodes of `cores`
/// cores.
///
/// The loss is the longest of all its detours: the integral of the probability that any is longer than `x`. Replayed
/// traces count as Poisson arrivals with their rate and lengths, which ignores simultaneous detours of cores.
#[must_use]
pub fn expected(model: &Model, nodes: u32, cores: u32, grain: f64) -> Expected {
    let none_longer = |x: f64| model.sources.iter().map(|s| none_longer(s, nodes, cores, grain, x)).product::<f64>();
    let longest = model.sources.iter().map(longest).fold(0.0, f64::max);
    let often = model.sources.iter().map(|s| s.node_rate(cores) / f64::from(s.struck(cores).max(1))).sum::<f64>();
    let delay = if longest > 0.0 { integral(|x| 1.0 - none_longer(x), longest) } else { 0.0 };
    let seldom = often * grain / 1e9 <= SELDOM && delay <= SHORT * grain && model.sources.iter().all(apart);
    Expected { struck: 1.0 - none_longer(0.0), delay, seldom }
}

/// Returns whether simultaneity across cores is known: for a trace only if it has one core.
fn apart(source: &Source) -> bool {
    let alone = |trace: &Trace| trace.cores.len() == 1 && source.correlation == Correlation::Independent;
    source.arrival.trace().is_none_or(alone)
}

fn longest(source: &Source) -> f64 {
    match &source.arrival {
        Arrival::Trace(trace) => trace.longest(),
        _ => source.length.longest(),
    }
}

/// Integral of a decreasing function from 0 to `end`, with steps that grow with `x`, since lengths span orders of
/// magnitude.
fn integral(f: impl Fn(f64) -> f64, end: f64) -> f64 {
    let low = (end * 1e-9).max(1e-3);
    let ratio = (end / low).powf(1.0 / f64::from(STEPS));
    let mut sum = f(low / 2.0) * low;
    let mut x = low;
    for _ in 0..STEPS {
        let next = x * ratio;
        sum += f((x * next).sqrt()) * (next - x);
        x = next;
    }
    sum
}

/// Probability that no detour of a source longer than `x` strikes any core in the phase.
fn none_longer(source: &Source, nodes: u32, cores: u32, grain: f64, x: f64) -> f64 {
    let longer = match &source.arrival {
        Arrival::Trace(trace) => trace.exceeds(x),
        _ => source.length.exceeds(x),
    };
    let struck = f64::from(source.struck(cores));
    // Number of independent streams, and of lengths per arrival of a stream.
    let (streams, lengths) = match (&source.on, source.correlation) {
        (Target::Node, Correlation::Aligned) => (1.0, f64::from(nodes)),
        (Target::Node, _) => (f64::from(nodes), 1.0),
        (_, Correlation::Independent) => (f64::from(nodes) * struck, 1.0),
        (_, Correlation::Node) => (f64::from(nodes), struck),
        (_, Correlation::Aligned) => (1.0, f64::from(nodes) * struck),
    };
    let lengths = if source.lengths == crate::model::Lengths::Same { 1.0 } else { lengths };
    let any_longer = 1.0 - (1.0 - longer).powf(lengths);
    match &source.arrival {
        Arrival::Poisson { rate } => (-rate * grain / 1e9 * any_longer * streams).exp(),
        Arrival::Periodic { period, phase, missing } => {
            let there = 1.0 - missing;
            let (streams, any_longer) = match (phase, source.correlation) {
                (Phase::Random, _) => (streams, any_longer * there),
                (Phase::Aligned, Correlation::Independent) => (1.0, aligned(source, nodes, cores, longer * there)),
                (Phase::Aligned, _) => (1.0, aligned(source, nodes, cores, longer) * there),
            };
            (1.0 - (grain / period.0).min(1.0) * any_longer).powf(streams)
        }
        Arrival::Gaps { .. } | Arrival::Trace(_) => {
            (1.0 - (source.arrival.rate() * grain / 1e9).min(1.0) * any_longer).powf(streams)
        }
    }
}

/// Probability that any length of an arrival on all nodes is longer.
fn aligned(source: &Source, nodes: u32, cores: u32, longer: f64) -> f64 {
    let cores = if source.on == Target::Node { 1.0 } else { f64::from(source.struck(cores)) };
    1.0 - (1.0 - longer).powf(f64::from(nodes) * cores)
}

/// Returns the mean of the longest of `n` lengths, by integration.
#[must_use]
pub fn longest_of(length: &Length, n: u64) -> f64 {
    integral(|x| 1.0 - (n as f64 * (-length.exceeds(x)).ln_1p()).exp(), length.longest())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Time;

    #[test]
    fn the_longest_of_one_is_the_mean() {
        assert!((longest_exponential(5.0, 1) - 5.0).abs() < 1e-12);
        assert!((longest_pareto(1.5, 1.0, 1) - 3.0).abs() < 1e-9);
        assert!((longest_two_point(1.0, 9.0, 0.25, 1) - 3.0).abs() < 1e-12);
    }

    #[test]
    fn eulers_expansion_continues_the_sum() {
        let (a, b) = (longest_exponential(1.0, 10_000), longest_exponential(1.0, 10_001));
        assert!((b - a - 1.0 / 10_001.0).abs() < 1e-9);
    }

    #[test]
    fn the_integral_gives_the_closed_forms() {
        let t = |us: f64| Time(us * 1e3);
        let exponential = Length::Exponential { mean: t(5.0), at_most: None };
        let two = Length::TwoPoint { short: t(1.0), long: t(100.0), long_share: 1e-3 };
        let pareto = Length::Pareto { shape: 2.5, at_least: t(1.0), at_most: None };
        for n in [1, 10, 1000, 100_000] {
            for (length, closed) in [
                (&exponential, longest_exponential(5000.0, n)),
                (&two, longest_two_point(1000.0, 100_000.0, 1e-3, n)),
                (&pareto, longest_pareto(2.5, 1000.0, n)),
            ] {
                let found = longest_of(length, n);
                assert!((found / closed - 1.0).abs() < 0.005, "{length:?} {n}: {found} {closed}");
            }
        }
    }

    #[test]
    fn resonance_steps_where_the_grain_passes_a_period() {
        let at = |grain: f64| resonance(1000.0, 10.0, 1e6, grain);
        assert!((at(900.0) - 10.0).abs() < 1e-9 && (at(1900.0) - 20.0).abs() < 1e-9);
    }
}
