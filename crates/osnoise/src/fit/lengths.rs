//! Distributions of detour lengths.

use super::arrivals::ks_distance;
use crate::trace::{bin, bin_begin};

/// A distribution of lengths, ns.
#[derive(Clone, Debug, PartialEq)]
pub enum Length {
    /// Constant.
    Fixed(f64),
    /// Uniform between two values.
    Uniform(f64, f64),
    /// Exponential with a mean.
    Exponential(f64),
    /// Truncated Pareto: exponent, shortest and longest.
    Pareto(f64, f64, f64),
    /// Empirical: bin edges, including the end of the last bin, and the weight of each bin.
    Histogram(Vec<f64>, Vec<f64>),
}

/// Distance up to which a distribution with few parameters is preferred to the empirical one.
const GOOD: f64 = 0.05;
/// 99 % quantile of the distance by chance, for samples of size 1.
const CHANCE: f64 = 1.63;
/// Relative difference below which lengths count as equal.
const SAME: f64 = 0.05;

impl Length {
    /// Returns the mean, ns.
    #[must_use]
    pub fn mean(&self) -> f64 {
        match self {
            Length::Fixed(value) | Length::Exponential(value) => *value,
            Length::Uniform(from, to) => (from + to) / 2.0,
            Length::Pareto(shape, low, high) => {
                let kept = 1.0 - (low / high).powf(*shape);
                if (shape - 1.0).abs() < 1e-9 {
                    low * (high / low).ln() / kept
                } else {
                    shape / (shape - 1.0) * (low - high * (low / high).powf(*shape)) / kept
                }
            }
            Length::Histogram(edges, counts) => {
                let middle = |(i, count): (usize, &f64)| count * (edges[i] + edges[i + 1]) / 2.0;
                counts.iter().enumerate().map(middle).sum::<f64>() / counts.iter().sum::<f64>()
            }
        }
    }

    /// Cumulative distribution function at `x`.
    fn below(&self, x: f64) -> f64 {
        match self {
            Length::Fixed(value) => f64::from(x >= *value),
            Length::Uniform(from, to) => ((x - from) / (to - from)).clamp(0.0, 1.0),
            Length::Exponential(mean) => 1.0 - (-x / mean).exp(),
            Length::Pareto(shape, low, high) => {
                let cut = (low / high).powf(*shape);
                ((1.0 - (low / x.max(*low)).powf(*shape)) / (1.0 - cut)).min(1.0)
            }
            Length::Histogram(edges, counts) => {
                let part =
                    |(i, count): (usize, &f64)| count * ((x - edges[i]) / (edges[i + 1] - edges[i])).clamp(0.0, 1.0);
                counts.iter().enumerate().map(part).sum::<f64>() / counts.iter().sum::<f64>()
            }
        }
    }
}

/// Returns the distribution with the fewest parameters that fits, and its distance from the sample.
pub fn fit(lengths: &[u64]) -> (Length, f64) {
    let mut sorted: Vec<f64> = lengths.iter().map(|&length| length as f64).collect();
    sorted.sort_by(f64::total_cmp);
    let number = sorted.len();
    let (low, high) = (sorted.first().copied().unwrap_or(1.0), sorted.last().copied().unwrap_or(1.0));
    let mean = sorted.iter().sum::<f64>() / number.max(1) as f64;
    let at = |part: f64| sorted[((number - 1) as f64 * part) as usize];
    if number < 2 || at(0.99) - at(0.01) <= SAME * at(0.5) && (mean / at(0.5) - 1.0).abs() < SAME {
        return (Length::Fixed(mean.max(1.0)), 0.0);
    }
    let logs = sorted.iter().map(|length| (length / low).ln()).sum::<f64>();
    let mut candidates = vec![Length::Uniform(low, high), Length::Exponential(mean)];
    if logs > 0.0 {
        candidates.push(Length::Pareto(shape(logs / number as f64, (high / low).ln()), low, high));
    }
    let judged = candidates.into_iter().map(|length| (ks_distance(&sorted, |x| length.below(x)), length));
    let best = judged.min_by(|a, b| a.0.total_cmp(&b.0));
    match best {
        Some((distance, length)) if distance <= GOOD.max(CHANCE / (number as f64).sqrt()) => (length, distance),
        _ => {
            let length = histogram(&sorted);
            let distance = ks_distance(&sorted, |x| length.below(x));
            (length, distance)
        }
    }
}

/// Maximum-likelihood exponent of a truncated Pareto distribution, from the mean and the largest logarithm (relative to
/// the shortest length): solves 1/α − L e^(−αL) / (1 − e^(−αL)) = mean by bisection.
fn shape(mean: f64, longest: f64) -> f64 {
    let expected = |a: f64| 1.0 / a - longest / (a * longest).exp_m1();
    let (mut low, mut high) = (1e-3, 1e3);
    for _ in 0..100 {
        let middle = f64::midpoint(low, high);
        if expected(middle) > mean { low = middle } else { high = middle }
    }
    low
}

/// Longest detour that a model may have, ns.
const LONGEST: f64 = 4e9;

/// Number of bins with equal counts; wide bins are subdivided so that uniform bins do not spread a long tail.
const EQUAL: usize = 40;

fn histogram(sorted: &[f64]) -> Length {
    let whole = |length: f64| length.min(LONGEST).floor();
    let (low, high) = (whole(sorted[0]), whole(sorted[sorted.len() - 1]) + 1.0);
    let mut edges: Vec<f64> = (0..EQUAL).map(|i| whole(sorted[i * (sorted.len() - 1) / EQUAL])).collect();
    // A length that occurs often gets a bin of one nanosecond.
    let common: Vec<f64> = edges.windows(2).filter(|pair| pair[0] == pair[1]).map(|pair| pair[1] + 1.0).collect();
    edges.extend(common);
    edges.extend((bin(low as u64)..=bin(high as u64)).map(|bin| bin_begin(bin).floor()));
    edges.retain(|edge| (low..high).contains(edge));
    edges.push(high);
    edges.sort_by(f64::total_cmp);
    edges.dedup();
    let mut counts = vec![0.0; edges.len() - 1];
    for &length in sorted {
        let place = edges.partition_point(|&edge| edge <= length).clamp(1, counts.len()) - 1;
        counts[place] += 1.0;
    }
    Length::Histogram(edges, counts)
}
