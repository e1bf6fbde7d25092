//! Times with units, as written in models and networks.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer};

/// Units in nanoseconds.
const UNITS: &[(&str, f64)] =
    &[("ns", 1.0), ("us", 1e3), ("µs", 1e3), ("ms", 1e6), ("s", 1e9), ("min", 60e9), ("h", 3600e9)];

/// Longest time accepted, nanoseconds: 100 days.
const MOST: f64 = 100.0 * 86_400e9;

/// A duration, nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct Time(pub f64);

impl Time {
    /// Returns the time rounded to whole nanoseconds.
    #[must_use]
    pub fn ns(self) -> u64 {
        self.0.round() as u64
    }

    /// Returns the time in seconds.
    #[must_use]
    pub fn seconds(self) -> f64 {
        self.0 / 1e9
    }
}

impl FromStr for Time {
    type Err = String;

    fn from_str(text: &str) -> Result<Time, String> {
        let text = text.trim();
        let wrong = || format!("'{text}' is not a time; write a number and ns, us, ms, s, min or h, such as 50us");
        let end = text.find(|c: char| !(c.is_ascii_digit() || "+-.eE_".contains(c))).ok_or_else(wrong)?;
        let number: f64 = text[..end].replace('_', "").parse().map_err(|_| wrong())?;
        let unit = text[end..].trim();
        let &(_, ns) = UNITS.iter().find(|(name, _)| *name == unit).ok_or_else(wrong)?;
        let value = number * ns;
        if value < 0.0 {
            return Err(format!("'{text}' is a negative time; times are 0 or more"));
        }
        if !value.is_finite() || value > MOST {
            return Err(format!("'{text}' is too long; the maximum is 100 days"));
        }
        Ok(Time(value))
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (unit, ns) = match self.0 {
            t if t < 1e3 => ("ns", 1.0),
            t if t < 1e6 => ("us", 1e3),
            t if t < 1e9 => ("ms", 1e6),
            _ => ("s", 1e9),
        };
        let digits = format!("{:.4}", self.0 / ns);
        let digits = digits.trim_end_matches('0').trim_end_matches('.');
        write!(f, "{digits} {unit}")
    }
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Time, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_a_number_and_a_unit() {
        for (text, ns) in [("50us", 50e3), ("1.5 ms", 1.5e6), ("0.49µs", 490.0), ("60h", 216e12), ("0s", 0.0)] {
            assert!((text.parse::<Time>().unwrap().0 - ns).abs() < 1e-6 * ns.max(1.0), "{text}");
        }
    }

    #[test]
    fn invalid_times_are_refused_with_a_reason() {
        for (text, why) in
            [("-5us", "negative"), ("5", "is not a time"), ("us", "is not a time"), ("1e300s", "too long")]
        {
            assert!(text.parse::<Time>().unwrap_err().contains(why), "{text}");
        }
    }

    #[test]
    fn times_are_shown_in_the_unit_that_fits() {
        for (ns, text) in [(490.0, "490 ns"), (50e3, "50 us"), (1.25e6, "1.25 ms"), (2e9, "2 s")] {
            assert_eq!(Time(ns).to_string(), text);
        }
    }
}
