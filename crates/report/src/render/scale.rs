//! A common unit for many numbers, so that they are easy to compare.

/// How the numbers of a column are shown.
#[derive(Clone, Debug, PartialEq)]
pub struct Scale {
    /// Factor applied to the numbers.
    pub factor: f64,
    /// The resulting unit; empty for plain numbers.
    pub unit: String,
    /// Decimals.
    pub digits: usize,
}

/// Significant digits of the largest number.
const DIGITS: i32 = 4;
/// Counts up to this are shown in full.
const FULL: f64 = 100_000.0;
/// Maximum number of decimals.
const MOST: i32 = 9;

impl Scale {
    /// Returns a scale for numbers of a unit, as named in metrics.
    #[must_use]
    pub fn of(unit: &str, numbers: impl Iterator<Item = f64>) -> Scale {
        let most = numbers.map(f64::abs).filter(|n| n.is_finite()).fold(0.0, f64::max);
        let (factor, unit, whole) = match unit {
            "ratio" => (100.0, "%".to_owned(), false),
            "s" => {
                let (factor, unit) = prefix(most, &[(1.0, "s"), (1e3, "ms"), (1e6, "µs"), (1e9, "ns")]);
                (factor, unit.to_owned(), false)
            }
            "J" => {
                let (factor, unit) = prefix(most, &[(1.0, "J"), (1e3, "mJ"), (1e6, "µJ"), (1e9, "nJ")]);
                (factor, unit.to_owned(), false)
            }
            "cycles" | "instructions" | "lines" | "count" | "FLOP" => {
                let (factor, sign) = match most < FULL {
                    true => (1.0, ""),
                    false => prefix(most, &[(1e-12, "T"), (1e-9, "G"), (1e-6, "M"), (1e-3, "k")]),
                };
                let name = if unit == "count" { "" } else { unit };
                let unit = if name == "FLOP" { format!("{sign}FLOP") } else { format!("{sign} {name}") };
                (factor, unit.trim().to_owned(), factor == 1.0)
            }
            other => (1.0, other.to_owned(), false),
        };
        let before = if most > 0.0 { (most * factor).log10().floor() as i32 + 1 } else { DIGITS };
        let digits = if whole { 0 } else { (DIGITS - before).clamp(0, MOST) as usize };
        Scale { factor, unit, digits }
    }

    /// Formats a number without its unit; a dash if unknown.
    #[must_use]
    pub fn cell(&self, number: Option<f64>) -> String {
        match number {
            Some(0.0) => "0".to_owned(),
            Some(n) => format!("{:.*}", self.digits, n * self.factor),
            None => "–".to_owned(),
        }
    }
}

/// The largest of `units` that does not exceed the numbers, otherwise the smallest.
fn prefix<'a>(most: f64, units: &[(f64, &'a str)]) -> (f64, &'a str) {
    let fits = units.iter().find(|(factor, _)| most * factor >= 1.0);
    let zero = if most == 0.0 { units.first() } else { units.last() };
    fits.or(zero).copied().unwrap_or((1.0, ""))
}

#[cfg(test)]
mod tests {
    use super::Scale;

    fn cells(unit: &str, numbers: &[f64]) -> (String, Vec<String>) {
        let scale = Scale::of(unit, numbers.iter().copied());
        (scale.unit.clone(), numbers.iter().map(|n| scale.cell(Some(*n))).collect())
    }

    #[test]
    fn the_largest_number_has_four_digits_and_the_others_as_many_decimals() {
        let cases: &[(&str, &[f64], &str, &[&str])] = &[
            ("s", &[17.71e-6, 1.2e-6], "µs", &["17.71", "1.20"]),
            ("ratio", &[0.5, 0.01234], "%", &["50.00", "1.23"]),
            ("ratio", &[0.000_012], "%", &["0.001200"]),
            ("cycles", &[35_413.0, 7.0], "cycles", &["35413", "7"]),
            ("cycles", &[2_000_000.0, 7.0], "M cycles", &["2.000", "0.000"]),
            ("count", &[250_000.0], "k", &["250.0"]),
            ("FLOP", &[1_048_320.0], "MFLOP", &["1.048"]),
            ("J", &[17.71e-3, 1.2e-3], "mJ", &["17.71", "1.20"]),
            ("GB/s", &[159.94], "GB/s", &["159.9"]),
            ("GFLOPS", &[12_345.6], "GFLOPS", &["12346"]),
            ("s", &[0.0], "s", &["0"]),
        ];
        for (unit, numbers, shown, expected) in cases {
            assert_eq!(cells(unit, numbers), ((*shown).to_owned(), expected.iter().map(|s| (*s).to_owned()).collect()));
        }
    }

    #[test]
    fn unknown_values_are_a_dash() {
        assert_eq!(Scale::of("s", [1.0].into_iter()).cell(None), "–");
    }
}
