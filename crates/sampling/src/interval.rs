//! Confidence intervals.

use serde::{Deserialize, Serialize};
use special::Beta;

/// An estimate with its confidence interval, which is symmetric.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// The estimated value.
    pub estimate: f64,
    /// Its standard error; infinite if there are too few windows to know it.
    pub standard_error: f64,
    /// Half of the interval's width; infinite if there are too few windows to know it.
    pub half_width: f64,
}

impl Interval {
    /// Returns the lower end.
    #[must_use]
    pub fn low(&self) -> f64 {
        self.estimate - self.half_width
    }

    /// Returns the upper end.
    #[must_use]
    pub fn high(&self) -> f64 {
        self.estimate + self.half_width
    }

    /// Returns whether a value lies in the interval.
    #[must_use]
    pub fn contains(&self, value: f64) -> bool {
        (value - self.estimate).abs() <= self.half_width
    }

    /// Returns half of the width as a fraction of the estimate: 0 for an interval without width, infinite for one around 0.
    #[must_use]
    pub fn relative(&self) -> f64 {
        if self.half_width == 0.0 { 0.0 } else { self.half_width / self.estimate.abs() }
    }
}

/// Returns the interval of a quantity from its value with all windows and its values in jackknife replicates, in the order of
/// [`crate::Estimates::replicates`].
///
/// The standard error is that of the paired jackknife: the square root of half of the sum over replicates of the squared
/// difference from the estimate. The interval is that of Student's t with as many degrees of freedom as there are pairs. It is infinite
/// if there is no pair.
///
/// # Panics
/// If `confidence` does not lie between 0 and 1.
#[must_use]
pub fn jackknife(estimate: f64, replicates: impl ExactSizeIterator<Item = f64>, confidence: f64) -> Interval {
    let pairs = replicates.len() / 2;
    if pairs == 0 {
        return Interval { estimate, standard_error: f64::INFINITY, half_width: f64::INFINITY };
    }
    let squares: f64 = replicates.map(|value| (value - estimate).powi(2)).sum();
    let variance = squares / 2.0;
    let standard_error = if variance.is_finite() { variance.sqrt() } else { f64::INFINITY };
    Interval { estimate, standard_error, half_width: t_factor(confidence, pairs) * standard_error }
}

/// Returns about how many windows a sample needs in all so that a quantity is known to `precision`, if more of them are like the
/// `windows` taken, with which it is known to `relative`: the error falls with the square root of their number. `None` if there are too
/// few to say.
#[must_use]
pub fn windows_needed(relative: f64, windows: u64, precision: &Precision) -> Option<u64> {
    let needed = (relative / precision.error).powi(2) * windows as f64;
    needed.is_finite().then(|| needed.ceil() as u64)
}

/// How accurately something must be known.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Precision {
    /// Half of the interval's width as a fraction of the estimate.
    pub error: f64,
    /// Probability that the interval has the true value; greater than 0 and less than 1.
    pub confidence: f64,
}

impl Precision {
    /// Parses a relative error in percent, such as `2%`. Returns the fraction.
    ///
    /// # Errors
    /// If the text is none; the message says how to write it.
    pub fn parse_error(text: &str) -> Result<f64, String> {
        percent(text, 0.01, 99.0)
    }

    /// Parses a confidence in percent, such as `95%`. Returns the probability.
    ///
    /// # Errors
    /// If the text is none; the message says how to write it.
    pub fn parse_confidence(text: &str) -> Result<f64, String> {
        percent(text, 50.0, 99.99)
    }
}

/// Parses a number in percent between two bounds; returns the fraction.
fn percent(text: &str, least: f64, most: f64) -> Result<f64, String> {
    let wrong = || format!("write it in percent, from {least}% to {most}%");
    let number: f64 = text.strip_suffix('%').and_then(|number| number.trim().parse().ok()).ok_or_else(wrong)?;
    if (least..=most).contains(&number) { Ok(number / 100.0) } else { Err(wrong()) }
}

impl Default for Precision {
    /// Returns ±2 % at 95 %.
    fn default() -> Self {
        Self { error: 0.02, confidence: 0.95 }
    }
}

/// Returns how many standard errors each side of an interval has: the quantile of Student's t distribution, which follows from that of
/// the beta distribution. Of a variable T with ν degrees of freedom, ν / (ν + T²) has a beta distribution with ν/2 and 1/2.
///
/// # Panics
/// If `confidence` does not lie between 0 and 1, or `degrees` is 0.
fn t_factor(confidence: f64, degrees: usize) -> f64 {
    assert!(confidence > 0.0 && confidence < 1.0, "a confidence lies between 0 and 1, not {confidence}");
    assert!(degrees > 0, "Student's t has at least one degree of freedom");
    let (p, q) = (degrees as f64 / 2.0, 0.5);
    let x = (1.0 - confidence).inv_inc_beta(p, q, p.ln_beta(q));
    (degrees as f64 * (1.0 - x) / x).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_follows_from_the_squares_of_differences() {
        // Squares 9, 9, 16, 16: half of their sum is 25. Two pairs: 4.303 standard errors.
        let interval = jackknife(100.0, [97.0, 103.0, 96.0, 104.0].into_iter(), 0.95);
        assert_eq!(interval.standard_error, 5.0);
        assert!((interval.half_width - 5.0 * 4.303).abs() < 3e-3, "{interval:?}");
        assert_eq!(jackknife(100.0, [100.0; 4].into_iter(), 0.95).half_width, 0.0);
        assert_eq!(jackknife(100.0, [99.0; 1].into_iter(), 0.95).half_width, f64::INFINITY);
    }

    #[test]
    fn half_the_error_needs_four_times_the_windows() {
        let precision = Precision { error: 0.02, confidence: 0.95 };
        assert_eq!(windows_needed(0.04, 100, &precision), Some(400));
        assert_eq!(windows_needed(f64::INFINITY, 100, &precision), None);
    }

    #[test]
    fn factors_are_those_of_printed_tables() {
        for (confidence, degrees, printed) in [
            (0.95, 1, 12.706),
            (0.95, 9, 2.262),
            (0.95, 19, 2.093),
            (0.99, 19, 2.861),
            (0.90, 31, 1.696),
            (0.95, 63, 1.998),
        ] {
            assert!((t_factor(confidence, degrees) - printed).abs() < 6e-4, "{confidence} {degrees}");
        }
    }
}
