//! Bounds on how long detours that are not drawn can delay a core, and on how far back its past matters.
//!
//! Sources are split into those whose detours are all drawn, and the rest, which are short. For a core that the rest
//! strikes randomly, Chernoff's and Ville's inequalities bound its delay over a whole run, except with probability
//! [`CHANCE`].

use super::Setup;
use crate::model::{Arrival, Correlation, Length, Model, Source, Target};

/// Probability that a bound is violated anywhere in a run.
pub const CHANCE: f64 = 1e-9;
/// Maximum run time relative to the time without noise, for which the bounds hold.
const STRETCH: f64 = 1000.0;
/// Minimum reduction in drawn detours that makes the bounds pay, and minimum number of detours.
const PAYS: f64 = 4.0;
const WORTH: f64 = 1e6;
/// Steps of an integral over lengths.
const STEPS: i32 = 300;
/// Exponents tried, in e-folds over the longest detour: first, factor, last.
const EXPONENTS: (f64, f64, f64) = (0.01, 1.1, 1e7);

/// How a run is split. Times are in nanoseconds.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Bounds {
    /// Whether all detours of a source are drawn.
    pub drawn: Vec<bool>,
    /// The rest delays a core by at most `slack` plus this share of the elapsed time.
    pub share: f64,
    /// See `share`.
    pub slack: u64,
    /// Within this time before any moment, a core was free of all noise at some point.
    pub back: u64,
    /// The same for the rest alone.
    pub back_rest: u64,
    /// Expected total number of detours drawn, for the run time without noise.
    pub detours: f64,
}

impl Bounds {
    /// Returns the split with the fewest detours, if it draws far fewer than all.
    pub(super) fn new(model: &Model, setup: &Setup) -> Option<Bounds> {
        let simple = |s: &Source| {
            let known = matches!(s.arrival, Arrival::Poisson { .. } | Arrival::Periodic { .. });
            known && s.correlation == Correlation::Independent
        };
        let alike = setup.imbalance == 0.0 && matches!(setup.end, super::PhaseEnd::All { .. });
        if !alike || setup.detours(model) < WORTH || !model.sources.iter().all(simple) {
            return None;
        }
        let mut order: Vec<usize> = (0..model.sources.len()).collect();
        order.sort_by(|&a, &b| model.sources[b].length.longest().total_cmp(&model.sources[a].length.longest()));
        let splits = (1..order.len()).filter_map(|count| Bounds::split(model, setup, &order[..count]));
        let best = splits.min_by(|a, b| a.detours.total_cmp(&b.detours))?;
        (best.detours * PAYS < setup.detours(model)).then_some(best)
    }

    /// Returns the split in which all detours of some sources are drawn.
    pub(super) fn split(model: &Model, setup: &Setup, all: &[usize]) -> Option<Bounds> {
        let drawn: Vec<bool> = (0..model.sources.len()).map(|i| all.contains(&i)).collect();
        // The rest must be drawable for any time without earlier draws.
        let at_random =
            |source: &Source| source.on == Target::Node && matches!(source.arrival, Arrival::Poisson { .. });
        if model.sources.iter().zip(&drawn).any(|(source, drawn)| !drawn && at_random(source)) {
            return None;
        }
        let every: Vec<Cause> = model.sources.iter().map(|source| Cause::new(source, setup.cores)).collect();
        let of =
            |which: bool| every.iter().zip(&drawn).filter(move |(_, drawn)| **drawn == which).map(|(cause, _)| cause);
        let (long, rest): (Vec<&Cause>, Vec<&Cause>) = (of(true).collect(), of(false).collect());
        // Bounds may be violated at each detour and at each examination of a core.
        let cores = f64::from(setup.nodes) * f64::from(setup.cores);
        let places = (setup.detours(model) * STRETCH + cores * setup.phases as f64).max(1.0);
        let nats = (3.0 * places / CHANCE).ln();
        let share = 2.0 * rest.iter().map(|cause| cause.load()).sum::<f64>();
        let slack = slack(&rest, share, nats)?;
        let back = back(&every.iter().collect::<Vec<_>>(), nats)?;
        let back_rest = self::back(&rest, nats)?;
        let grain = setup.grain as f64;
        let enough = (grain + slack) / (1.0 - share) - grain;
        let longer = |cause: &&Cause| cause.node_rate * cause.length.exceeds(enough);
        let nodes = f64::from(setup.nodes);
        let none = (-long.iter().map(longer).sum::<f64>() * nodes * grain).exp();
        let rate = |causes: &[&Cause]| causes.iter().map(|cause| cause.node_rate).sum::<f64>() * nodes;
        let detours = rate(&long) * setup.seconds() * 1e9
            + rate(&rest) * none * setup.phases as f64 * (back_rest + enough + grain)
            + rate(&rest) / nodes * setup.phases as f64 * (back + enough + grain);
        let (slack, back, back_rest) = (slack.ceil() as u64, back.ceil() as u64, back_rest.ceil() as u64);
        (share < 0.5).then_some(Bounds { drawn, share, slack, back, back_rest, detours })
    }

    /// Returns the time in which the rest may delay a core, extended by its share.
    pub(super) fn stretched(&self, time: u64) -> u64 {
        (time as f64 / (1.0 - self.share)).ceil() as u64
    }
}

/// A source as it strikes one core.
struct Cause<'a> {
    length: &'a Length,
    /// Detours per nanosecond, on a core and on a node.
    rate: f64,
    node_rate: f64,
    /// Whether arrivals are periodic instead of random.
    periodic: bool,
}

impl Cause<'_> {
    fn new(source: &Source, cores: u32) -> Cause<'_> {
        let node_rate = source.node_rate(cores) / 1e9;
        // Missing periods are ignored.
        let rate = match source.arrival {
            Arrival::Periodic { period, .. } => 1.0 / period.0,
            _ => source.arrival.rate() / 1e9,
        };
        let on_node = source.on == Target::Node;
        let random = matches!(source.arrival, Arrival::Poisson { .. });
        // Each detour of a periodic node source strikes one core, in the worst case always the same.
        let rate = if on_node && random { rate / f64::from(cores) } else { rate };
        Cause { length: &source.length, rate, node_rate, periodic: !random }
    }

    /// Share of a core's time that it takes; for periodic sources, the maximum.
    fn load(&self) -> f64 {
        self.rate * if self.periodic { self.length.longest() } else { self.length.mean() }
    }

    /// Upper bound of the mean of `exp(exponent * length)`, from the largest value in each step of the integral over
    /// lengths.
    fn moment(&self, exponent: f64) -> f64 {
        // Lengths are rounded to nanoseconds.
        let most = self.length.longest() + 1.0;
        let edge = |i: i32| if i == 0 { 0.0 } else { most * 1e-6f64.powf(1.0 - f64::from(i) / f64::from(STEPS)) };
        let step = |i: i32| {
            let grows = (exponent * edge(i + 1)).exp() - (exponent * edge(i)).exp();
            self.length.exceeds(edge(i) - 1.0) * grows
        };
        1.0 + (0..STEPS).map(step).sum::<f64>()
    }
}

/// Exponents to try for some sources.
fn exponents(causes: &[&Cause]) -> impl Iterator<Item = f64> {
    let longest = causes.iter().map(|cause| cause.length.longest()).fold(1.0, f64::max);
    let (first, factor, last) = EXPONENTS;
    let all = std::iter::successors(Some(first), move |x| Some(x * factor)).take_while(move |&x| x < last);
    all.map(move |x| x / longest)
}

/// Maximum that periodic sources take from a core: a share of the time, plus a constant.
fn periodic(causes: &[&Cause]) -> (f64, f64) {
    let some = || causes.iter().filter(|cause| cause.periodic);
    (some().map(|cause| cause.load()).sum(), some().map(|cause| cause.length.longest() + 1.0).sum())
}

/// For random sources: relative growth per nanosecond of the mean of `exp(exponent * taken)`, and the factor for one
/// more detour.
fn growth(causes: &[&Cause], exponent: f64) -> (f64, f64) {
    let moments = causes.iter().filter(|cause| !cause.periodic).map(|cause| (cause.rate, cause.moment(exponent)));
    moments.fold((0.0, 1.0), |(sum, most), (rate, moment)| (sum + rate * (moment - 1.0), f64::max(most, moment)))
}

/// A bound on the time that sources take from a core in excess of a share of the elapsed time, violated with
/// probability at most `exp(-nats)` after a detour. The best bound comes from the largest exponent for which the
/// process is a supermartingale.
fn slack(causes: &[&Cause], share: f64, nats: f64) -> Option<f64> {
    let (steady, once) = periodic(causes);
    let of = |exponent: f64| {
        let (growth, more) = growth(causes, exponent);
        (growth <= exponent * (share - steady)).then(|| once + (nats + more.ln()) / exponent)
    };
    exponents(causes).map_while(of).reduce(f64::min)
}

/// The same for the longest time that a core is taken without a break.
fn back(causes: &[&Cause], nats: f64) -> Option<f64> {
    let (steady, once) = periodic(causes);
    let of = |exponent: f64| {
        let (growth, more) = growth(causes, exponent);
        let falls = exponent * (1.0 - steady) - growth;
        (falls > 0.0).then(|| (nats + more.ln() + exponent * once) / falls)
    };
    exponents(causes).map_while(of).reduce(f64::min)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Stream;
    use crate::time::Time;

    const MEAN: f64 = 1e4;

    /// Exponential lengths with Poisson arrivals that take `load` of the time.
    fn exponential(length: &Length, load: f64) -> Cause<'_> {
        Cause { length, rate: load / MEAN, node_rate: load / MEAN, periodic: false }
    }

    #[test]
    fn moments_are_a_little_above_the_closed_form() {
        // For exponential lengths: 1 / (1 - exponent * mean).
        let length = Length::Exponential { mean: Time(MEAN), at_most: Some(Time(40.0 * MEAN)) };
        for share in [0.01, 0.1, 0.5] {
            let ratio = exponential(&length, 0.1).moment(share / MEAN) * (1.0 - share);
            // Lengths grow by 1e6^(1 / 300) per step, 4.7 %.
            assert!((1.0..1.047).contains(&ratio), "{share}: {ratio}");
        }
    }

    #[test]
    fn bounds_are_near_those_of_the_best_exponent() {
        let length = Length::Exponential { mean: Time(MEAN), at_most: Some(Time(1e3 * MEAN)) };
        let cause = exponential(&length, 0.02);
        // The excess over a share falls as exp(-exponent * x) with exponent * mean = 1 - load / share; that of a busy
        // period with the square of 1 - sqrt(load).
        let slack = slack(&[&cause], 0.1, 50.0).unwrap() / MEAN;
        assert!((50.0 / 0.8..80.0 / 0.8).contains(&slack), "{slack}");
        let back = back(&[&cause], 50.0).unwrap() / MEAN;
        let best = 50.0 / (1.0 - 0.02f64.sqrt()).powi(2);
        assert!((best..1.3 * best).contains(&back), "{back} {best}");
    }

    #[test]
    fn bounds_hold_as_often_as_they_say() {
        let length = Length::Exponential { mean: Time(MEAN), at_most: Some(Time(20.0 * MEAN)) };
        let tick = Length::Fixed { value: Time(MEAN) };
        let cause = exponential(&length, 0.2);
        let ticks = Cause { length: &tick, rate: 0.1 / MEAN, node_rate: 0.1 / MEAN, periodic: true };
        let (share, draws) = (0.5, Stream::new(5));
        for nats in [1.0, 3.0, 6.0] {
            let causes = [&cause, &ticks];
            let (slack, back) = (slack(&causes, share, nats).unwrap(), back(&causes, nats).unwrap());
            let (mut time, mut left, mut taken, mut begun, mut tick) = (0.0, 0.0f64, 0.0f64, 0.0, 0.0);
            let (mut over, mut long, mut next, count) = (0, 0, 0.0, 200_000u64);
            for i in 0..count {
                // The next detour of either kind, ticks first.
                let (at, length) = match tick <= next {
                    true => (tick, MEAN),
                    false => (next, length.quantile(draws.unit(2 * i + 1))),
                };
                match tick <= next {
                    true => tick += 10.0 * MEAN,
                    false => next -= draws.unit(2 * i).ln() * 5.0 * MEAN,
                }
                left = (left - share * (at - time)).max(0.0) + length;
                taken = (taken - (at - time)).max(0.0);
                begun = if taken == 0.0 { at } else { begun };
                taken += length;
                over += u64::from(left > slack);
                long += u64::from(at + taken - begun > back);
                time = at;
            }
            let most = (-nats).exp() * count as f64;
            assert!((over as f64) < most && (long as f64) < most, "{nats}: {over} {long} {most}");
        }
    }
}
