//! Distributions of detour lengths.

use serde::Deserialize;

use crate::time::Time;

/// Longest detour, nanoseconds; distributions are truncated here.
pub const LONGEST: f64 = 4e9;

/// A distribution of lengths, as written in model files.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Length {
    /// Constant.
    Fixed {
        /// The length.
        value: Time,
    },
    /// Exponential.
    Exponential {
        /// Mean before truncation.
        mean: Time,
        /// Maximum; longer ones are clamped to it.
        at_most: Option<Time>,
    },
    /// Bounded Pareto: the probability of more than `x` falls as `x` to the power of `-shape`.
    Pareto {
        /// The exponent.
        shape: f64,
        /// Minimum.
        at_least: Time,
        /// Maximum, at which the rescaled distribution ends.
        at_most: Option<Time>,
    },
    /// One of two lengths.
    TwoPoint {
        /// The usual one.
        short: Time,
        /// The rare one.
        long: Time,
        /// Share of long ones, from 0 to 1.
        long_share: f64,
    },
    /// Uniform between two bounds.
    Uniform {
        /// Minimum.
        at_least: Time,
        /// Maximum.
        at_most: Time,
    },
    /// Empirical: uniform within each bin.
    Histogram {
        /// Bin edges, ascending, including the end of the last bin.
        edges: Vec<Time>,
        /// Counts of the bins.
        counts: Vec<f64>,
    },
}

impl Length {
    /// Checks its parameters.
    pub(super) fn check(&self) -> Result<(), String> {
        let ordered = |low: &Time, high: &Time| match low.0 <= high.0 {
            true => Ok(()),
            false => Err(format!("at_least = \"{low}\" is above at_most = \"{high}\"; swap them")),
        };
        match self {
            Length::Pareto { shape, at_least, at_most } => {
                if !(shape.is_finite() && *shape > 0.0) {
                    return Err(format!("shape = {shape} of Pareto must be above 0"));
                }
                if at_least.0 <= 0.0 {
                    return Err("at_least of Pareto must be above 0".to_owned());
                }
                match at_most {
                    None if *shape <= 1.0 => {
                        return Err(format!(
                            "Pareto with shape = {shape} (1 or less) and no at_most has an infinite mean: \
                             all time would be stolen; give at_most, or a shape above 1"
                        ));
                    }
                    None => {}
                    Some(most) => ordered(at_least, most)?,
                }
            }
            Length::TwoPoint { long_share, .. } => {
                if !(0.0..=1.0).contains(long_share) {
                    return Err(format!("long_share = {long_share} must be from 0 to 1"));
                }
            }
            Length::Uniform { at_least, at_most } => ordered(at_least, at_most)?,
            Length::Histogram { edges, counts } => check_histogram(edges, counts)?,
            Length::Fixed { .. } | Length::Exponential { .. } => {}
        }
        let longest = Time(self.stated_longest());
        if longest.0 > LONGEST {
            return Err(format!("a detour of {longest} is too long; the maximum is {}", Time(LONGEST)));
        }
        if self.mean() <= 0.0 {
            return Err("all lengths are 0; remove the source instead".to_owned());
        }
        Ok(())
    }

    /// Longest length that the file states, nanoseconds.
    fn stated_longest(&self) -> f64 {
        match self {
            Length::Fixed { value } => value.0,
            Length::Exponential { mean, at_most } => at_most.unwrap_or(*mean).0,
            Length::Pareto { at_least, at_most, .. } => at_most.unwrap_or(*at_least).0,
            Length::TwoPoint { short, long, .. } => short.0.max(long.0),
            Length::Uniform { at_most, .. } => at_most.0,
            Length::Histogram { edges, .. } => edges.last().map_or(0.0, |t| t.0),
        }
    }

    /// Returns the longest possible length, nanoseconds.
    #[must_use]
    pub fn longest(&self) -> f64 {
        match self {
            Length::Exponential { at_most, .. } | Length::Pareto { at_most, .. } => at_most.map_or(LONGEST, |t| t.0),
            _ => self.stated_longest(),
        }
    }

    /// Returns quantile `u`, nanoseconds: with a uniform draw for `u`, a random length.
    #[must_use]
    pub fn quantile(&self, u: f64) -> f64 {
        match self {
            Length::Fixed { value } => value.0,
            Length::Exponential { mean, .. } => (-mean.0 * (1.0 - u).ln()).min(self.longest()),
            Length::Pareto { shape, at_least, at_most } => {
                let kept = at_most.map_or(1.0, |most| 1.0 - (at_least.0 / most.0).powf(*shape));
                (at_least.0 * (1.0 - u * kept).powf(-1.0 / shape)).min(self.longest())
            }
            Length::TwoPoint { short, long, long_share } => {
                if u < 1.0 - long_share {
                    short.0
                } else {
                    long.0
                }
            }
            Length::Uniform { at_least, at_most } => at_least.0 + u * (at_most.0 - at_least.0),
            Length::Histogram { edges, counts } => {
                let mut left = u * counts.iter().sum::<f64>();
                for (i, &count) in counts.iter().enumerate() {
                    if left < count {
                        return edges[i].0 + left / count * (edges[i + 1].0 - edges[i].0);
                    }
                    left -= count;
                }
                edges[counts.len()].0
            }
        }
    }

    /// Returns the probability of a length above `x` nanoseconds.
    #[must_use]
    pub fn exceeds(&self, x: f64) -> f64 {
        if x < 0.0 {
            return 1.0;
        }
        if x >= self.longest() {
            return 0.0;
        }
        match self {
            Length::Fixed { value } => f64::from(x < value.0),
            Length::Exponential { mean, .. } => (-x / mean.0).exp(),
            Length::Pareto { shape, at_least, at_most } => {
                let tail = |y: f64| (at_least.0 / y).powf(*shape);
                let cut = at_most.map_or(0.0, |most| tail(most.0));
                if x <= at_least.0 { 1.0 } else { (tail(x) - cut) / (1.0 - cut) }
            }
            Length::TwoPoint { short, long, long_share } => {
                (1.0 - long_share) * f64::from(x < short.0) + long_share * f64::from(x < long.0)
            }
            Length::Uniform { at_least, at_most } => ((at_most.0 - x) / (at_most.0 - at_least.0)).clamp(0.0, 1.0),
            Length::Histogram { edges, counts } => {
                let all: f64 = counts.iter().sum();
                let above = |(i, count): (usize, &f64)| {
                    count * ((edges[i + 1].0 - x) / (edges[i + 1].0 - edges[i].0)).clamp(0.0, 1.0)
                };
                counts.iter().enumerate().map(above).sum::<f64>() / all
            }
        }
    }

    /// Returns the mean, nanoseconds.
    #[must_use]
    pub fn mean(&self) -> f64 {
        match self {
            Length::Fixed { value } => value.0,
            Length::Exponential { mean, .. } => mean.0 * (1.0 - (-self.longest() / mean.0).exp()),
            Length::Pareto { shape, at_least, .. } => {
                // The integral of `exceeds`: 1 below the minimum, the tail above it.
                let (low, high) = (at_least.0, self.longest());
                let tail = match (shape - 1.0).abs() < 1e-9 {
                    true => low * (high / low).ln(),
                    false => (low - low.powf(*shape) * high.powf(1.0 - shape)) / (shape - 1.0),
                };
                match self {
                    Length::Pareto { at_most: Some(_), .. } if high > low => {
                        let cut = (low / high).powf(*shape);
                        low + (tail - cut * (high - low)) / (1.0 - cut)
                    }
                    _ => low + tail,
                }
            }
            Length::TwoPoint { short, long, long_share } => short.0 * (1.0 - long_share) + long.0 * long_share,
            Length::Uniform { at_least, at_most } => (at_least.0 + at_most.0) / 2.0,
            Length::Histogram { edges, counts } => {
                let weighted = counts.iter().enumerate().map(|(i, n)| n * (edges[i].0 + edges[i + 1].0) / 2.0);
                weighted.sum::<f64>() / counts.iter().sum::<f64>()
            }
        }
    }

    /// Returns the distribution with all lengths multiplied by `factor`.
    #[must_use]
    pub fn scaled(&self, factor: f64) -> Length {
        let by = |t: &Time| Time(t.0 * factor);
        match self {
            Length::Fixed { value } => Length::Fixed { value: by(value) },
            Length::Exponential { mean, at_most } => {
                Length::Exponential { mean: by(mean), at_most: at_most.as_ref().map(by) }
            }
            Length::Pareto { shape, at_least, at_most } => {
                Length::Pareto { shape: *shape, at_least: by(at_least), at_most: at_most.as_ref().map(by) }
            }
            Length::TwoPoint { short, long, long_share } => {
                Length::TwoPoint { short: by(short), long: by(long), long_share: *long_share }
            }
            Length::Uniform { at_least, at_most } => Length::Uniform { at_least: by(at_least), at_most: by(at_most) },
            Length::Histogram { edges, counts } => {
                Length::Histogram { edges: edges.iter().map(by).collect(), counts: counts.clone() }
            }
        }
    }

    /// Returns the description in words.
    #[must_use]
    pub fn words(&self) -> String {
        match self {
            Length::Fixed { value } => format!("{value}"),
            Length::Exponential { mean, at_most: Some(most) } => format!("mean {mean}, at most {most}"),
            Length::Exponential { mean, at_most: None } => format!("exponential, mean {mean}"),
            Length::Pareto { shape, at_least, at_most } => match at_most {
                Some(most) => format!("Pareto {shape}, {at_least} to {most}"),
                None => format!("Pareto {shape}, at least {at_least}"),
            },
            Length::TwoPoint { short, long, long_share } => {
                format!("{short}, {} % of them {long}", long_share * 100.0)
            }
            Length::Uniform { at_least, at_most } => format!("{at_least} to {at_most}"),
            Length::Histogram { edges, .. } => {
                let ends = [edges.first(), edges.last()].map(|t| t.copied().unwrap_or_default());
                format!("{} to {}, {} bins", ends[0], ends[1], edges.len() - 1)
            }
        }
    }
}

fn check_histogram(edges: &[Time], counts: &[f64]) -> Result<(), String> {
    if counts.is_empty() || edges.len() != counts.len() + 1 {
        return Err(format!(
            "a histogram with {} counts needs {} edges, one more; it has {}",
            counts.len(),
            counts.len() + 1,
            edges.len()
        ));
    }
    if !edges.windows(2).all(|pair| pair[0].0 < pair[1].0) {
        return Err("edges of a histogram must ascend".to_owned());
    }
    if let Some(count) = counts.iter().find(|n| !(n.is_finite() && **n >= 0.0)) {
        return Err(format!("counts of a histogram are 0 or more, not {count}"));
    }
    if counts.iter().sum::<f64>() <= 0.0 {
        return Err("all counts of a histogram are 0".to_owned());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples() -> Vec<Length> {
        let t = |us: f64| Time(us * 1e3);
        vec![
            Length::Fixed { value: t(5.0) },
            Length::Exponential { mean: t(5.0), at_most: None },
            Length::Exponential { mean: t(5.0), at_most: Some(t(8.0)) },
            Length::Pareto { shape: 2.5, at_least: t(1.0), at_most: None },
            Length::Pareto { shape: 1.0, at_least: t(1.0), at_most: Some(t(1000.0)) },
            Length::Pareto { shape: 0.7, at_least: t(1.0), at_most: Some(t(1000.0)) },
            Length::TwoPoint { short: t(1.0), long: t(100.0), long_share: 0.1 },
            Length::Uniform { at_least: t(1.0), at_most: t(50.0) },
            Length::Histogram { edges: vec![t(1.0), t(2.0), t(10.0)], counts: vec![3.0, 1.0] },
        ]
    }

    /// The centres of a million equal slices of the distribution.
    fn slices(length: &Length) -> impl Iterator<Item = f64> {
        (0..1_000_000).map(|i| length.quantile((f64::from(i) + 0.5) / 1e6))
    }

    #[test]
    fn the_mean_is_that_of_the_quantiles() {
        for length in samples() {
            let mean = slices(&length).sum::<f64>() / 1e6;
            assert!((length.mean() / mean - 1.0).abs() < 2e-3, "{length:?}: {} {mean}", length.mean());
        }
    }

    #[test]
    fn exceeds_is_the_share_of_longer_lengths() {
        for length in samples() {
            for x in [500.0, 1500.0, 4000.0, 7000.0, 30e3] {
                let share = slices(&length).filter(|&l| l > x).count() as f64 / 1e6;
                assert!((length.exceeds(x) - share).abs() < 1e-5, "{length:?} {x}: {} {share}", length.exceeds(x));
            }
        }
    }

    #[test]
    fn scaled_lengths_have_a_scaled_mean() {
        for length in samples() {
            let ratio = length.scaled(0.5).mean() / length.mean();
            assert!((ratio - 0.5).abs() < 1e-6, "{length:?}: {ratio}");
        }
    }
}
