//! When detours begin.

use super::ByCore;

/// When detours of a source begin.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Arrival {
    /// At equal distances, ns.
    Periodic {
        /// The distance.
        period: f64,
        /// The part of the periods without a detour.
        missing: f64,
    },
    /// At any time alike.
    Poisson {
        /// How many a second.
        rate: f64,
    },
    /// At random, and never sooner than a while after the one before, ns.
    Gaps {
        /// The smallest gap.
        at_least: f64,
        /// Mean of the gaps.
        mean: f64,
    },
}

impl Arrival {
    /// Detours a second.
    #[must_use]
    pub fn rate(&self) -> f64 {
        match self {
            Arrival::Periodic { period, missing } => 1e9 / period * (1.0 - missing),
            Arrival::Poisson { rate } => *rate,
            Arrival::Gaps { mean, .. } => 1e9 / mean,
        }
    }
}

/// How far from its time a periodic detour may begin: a part of the period, and ns.
const JITTER: f64 = 0.015;
const LATE: f64 = 5_000.0;
/// How much longer or shorter than usual a detour of a source may be.
const UNLIKE: u64 = 16;

/// Splits detours into those that have two others in one or two periods before or behind, and the rest.
pub fn periodic(stream: &ByCore, period: f64) -> (ByCore, ByCore) {
    let tolerance = (period * JITTER).max(LATE).min(period / 8.0);
    let (mut taken, mut rest) = (ByCore::new(), ByCore::new());
    for (&core, detours) in stream {
        let near = |time: f64| {
            let from = detours.partition_point(|detour| (detour.0 as f64) < time - tolerance);
            detours.get(from).is_some_and(|detour| detour.0 as f64 <= time + tolerance)
        };
        let returns = |start: u64| {
            [-2.0, -1.0, 1.0, 2.0].iter().filter(|&&times| near(start as f64 + times * period)).count() >= 2
        };
        let (some, others) = detours.iter().partition(|detour| returns(detour.0));
        taken.insert(core, some);
        rest.insert(core, others);
    }
    // What begins in time by chance is mostly of another length.
    let mut lengths: Vec<u64> = taken.values().flatten().map(|detour| detour.1).collect();
    lengths.sort_unstable();
    let Some(&usual) = lengths.get(lengths.len() / 2) else { return (taken, rest) };
    for (core, detours) in &mut taken {
        let alike = |length: u64| length <= usual.saturating_mul(UNLIKE) && usual <= length.saturating_mul(UNLIKE);
        let others = rest.entry(*core).or_default();
        others.extend(detours.iter().filter(|detour| !alike(detour.1)));
        others.sort_unstable();
        detours.retain(|detour| alike(detour.1));
        // Two within a tolerance are one that comes back, and one by chance.
        let mut last = None;
        detours.retain(|&(start, length)| {
            let again = last.is_some_and(|last| (start - last) as f64 <= 2.0 * tolerance);
            if again {
                others.push((start, length))
            } else {
                last = Some(start)
            }
            !again
        });
        others.sort_unstable();
    }
    (taken, rest)
}

/// The period of detours that come back after about `near`, and the part of the periods without a detour: negative when there
/// are more detours than periods.
pub fn period(taken: &ByCore, near: f64, duration: u64) -> Option<(f64, f64)> {
    let gaps = taken.values().flat_map(|d| d.windows(2).map(|pair| (pair[1].0 - pair[0].0) as f64));
    // A gap of several periods is that many; of long ones it is not certain how many.
    let close = gaps.map(|gap| (gap, (gap / near).round())).filter(|(_, periods)| (1.0..=4.0).contains(periods));
    let (whole, number) = close.fold((0.0, 0.0), |sum, (gap, periods)| (sum.0 + gap, sum.1 + periods));
    if number < 4.0 {
        return None;
    }
    let period = whole / number;
    let possible = duration as f64 / period * taken.len() as f64;
    let found: usize = taken.values().map(Vec::len).sum();
    Some((period, 1.0 - found as f64 / possible))
}

/// Random arrivals: without a smallest gap where that fits as well. The second number is how far off gaps are.
pub fn random(taken: &ByCore, duration: u64) -> Option<(Arrival, f64)> {
    let number: usize = taken.values().map(Vec::len).sum();
    if number == 0 {
        return None;
    }
    let rate = number as f64 / (duration as f64 / 1e9 * taken.len() as f64);
    let mut gaps: Vec<f64> =
        taken.values().flat_map(|d| d.windows(2).map(|pair| (pair[1].0 - pair[0].0) as f64)).collect();
    gaps.sort_by(f64::total_cmp);
    let mean = 1e9 / rate;
    let plain = off(&gaps, |gap| 1.0 - (-gap / mean).exp());
    // The smallest of many gaps lies a little above the least there can be: by the mean excess over their number.
    if let Some(&least) = gaps.first() {
        let excess = mean - least;
        let shifted = off(&gaps, |gap| 1.0 - (-(gap - least).max(0.0) / excess).exp());
        if gaps.len() >= 30 && least > 0.05 * mean && shifted < 0.7 * plain {
            return Some((Arrival::Gaps { at_least: least, mean }, shifted));
        }
    }
    Some((Arrival::Poisson { rate }, plain))
}

/// The largest difference between a sorted sample's distribution and another one.
pub fn off(sorted: &[f64], below: impl Fn(f64) -> f64) -> f64 {
    let number = sorted.len() as f64;
    let step = |(i, &value): (usize, &f64)| {
        let expected = below(value);
        (expected - i as f64 / number).abs().max(((i + 1) as f64 / number - expected).abs())
    };
    sorted.iter().enumerate().map(step).fold(0.0, f64::max)
}

/// Cores compared with the first one.
const COMPARED: usize = 16;

/// Whether detours of cores begin together, beyond chance, and whether those are equally long.
pub fn together(taken: &ByCore, tolerance: u64, rate: f64) -> (bool, bool) {
    let mut cores = taken.values();
    let Some(first) = cores.next().filter(|first| !first.is_empty() && taken.len() > 1) else { return (false, false) };
    let (mut found, mut compared, mut differences) = (0usize, 0usize, Vec::new());
    for other in cores.take(COMPARED) {
        for &(start, length) in first {
            compared += 1;
            let from = other.partition_point(|detour| detour.0.saturating_add(tolerance) < start);
            if let Some(&(_, of)) = other.get(from).filter(|detour| detour.0 <= start.saturating_add(tolerance)) {
                found += 1;
                differences.push(length.abs_diff(of) as f64 / length.max(of).max(1) as f64);
            }
        }
    }
    let chance = 1.0 - (-2.0 * tolerance as f64 / 1e9 * rate).exp();
    let share = found as f64 / compared.max(1) as f64;
    let together = chance < 0.9 && (share - chance) / (1.0 - chance) > 0.5;
    differences.sort_by(f64::total_cmp);
    let middle = differences.get(differences.len() / 2).copied().unwrap_or(1.0);
    (together, together && middle < 0.1)
}
