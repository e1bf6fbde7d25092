//! Arrival processes: when detours begin.

use super::ByCore;

/// Arrival process of a source's detours.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Arrival {
    /// At equal intervals.
    Periodic {
        /// The interval, ns.
        period: f64,
        /// Share of the periods without a detour.
        missing: f64,
    },
    /// A Poisson process.
    Poisson {
        /// Rate per second.
        rate: f64,
    },
    /// Exponential gaps above a minimum.
    Gaps {
        /// The minimum gap, ns.
        at_least: f64,
        /// The mean gap, ns.
        mean: f64,
    },
}

impl Arrival {
    /// Detours per second.
    #[must_use]
    pub fn rate(&self) -> f64 {
        match self {
            Arrival::Periodic { period, missing } => 1e9 / period * (1.0 - missing),
            Arrival::Poisson { rate } => *rate,
            Arrival::Gaps { mean, .. } => 1e9 / mean,
        }
    }
}

/// How far from its due time a periodic detour may begin: relative to the period, and in ns.
const JITTER: f64 = 0.015;
const LATE: f64 = 5_000.0;
/// Factor by which the length of a source's detour may differ from the median.
const UNLIKE: u64 = 16;

/// Splits detours into those with two others one or two periods before or after, and the rest.
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
    // Detours that match the period by chance mostly have a different length.
    let mut lengths: Vec<u64> = taken.values().flatten().map(|detour| detour.1).collect();
    lengths.sort_unstable();
    let Some(&usual) = lengths.get(lengths.len() / 2) else { return (taken, rest) };
    for (core, detours) in &mut taken {
        let alike = |length: u64| length <= usual.saturating_mul(UNLIKE) && usual <= length.saturating_mul(UNLIKE);
        let others = rest.entry(*core).or_default();
        others.extend(detours.iter().filter(|detour| !alike(detour.1)));
        others.sort_unstable();
        detours.retain(|detour| alike(detour.1));
        // Of two within the tolerance, one is periodic and one is there by chance.
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

/// Returns the period close to `near` of recurring detours, and the share of periods without a detour (negative if
/// there are more detours than periods).
pub fn period(taken: &ByCore, near: f64, duration: u64) -> Option<(f64, f64)> {
    let gaps = taken.values().flat_map(|d| d.windows(2).map(|pair| (pair[1].0 - pair[0].0) as f64));
    // A gap may span several periods; for long gaps the number is uncertain.
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

/// Returns random arrivals, without a minimum gap if that fits equally well; and the distance of the gap distributions.
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
    let plain = ks_distance(&gaps, |gap| 1.0 - (-gap / mean).exp());
    // The smallest of many gaps lies slightly above the true minimum: by the mean excess over their number.
    if let Some(&least) = gaps.first() {
        let excess = mean - least;
        let shifted = ks_distance(&gaps, |gap| 1.0 - (-(gap - least).max(0.0) / excess).exp());
        if gaps.len() >= 30 && least > 0.05 * mean && shifted < 0.7 * plain {
            return Some((Arrival::Gaps { at_least: least, mean }, shifted));
        }
    }
    Some((Arrival::Poisson { rate }, plain))
}

/// Returns the Kolmogorov–Smirnov distance between a sorted sample and a distribution function.
pub fn ks_distance(sorted: &[f64], below: impl Fn(f64) -> f64) -> f64 {
    let number = sorted.len() as f64;
    let step = |(i, &value): (usize, &f64)| {
        let expected = below(value);
        (expected - i as f64 / number).abs().max(((i + 1) as f64 / number - expected).abs())
    };
    sorted.iter().enumerate().map(step).fold(0.0, f64::max)
}

/// Maximum number of cores compared with the first one.
const COMPARED: usize = 16;

/// Returns whether detours of different cores begin simultaneously beyond chance, and whether those have equal lengths.
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
