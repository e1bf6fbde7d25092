//! Numbers for display: four digits and a unit prefix.

use std::fmt::Write as _;

/// Units of counted things, which labels name.
const COUNTS: [&str; 7] = ["cycles", "instructions", "lines", "count", "calls", "requests", "micro-operations"];
/// What is between an amount and the unit of work that it is given for.
const PER: &str = " per ";
/// Typical length of a number with its unit, bytes.
const ROOM: usize = 24;

/// Formats `number` with its unit, unless the label already names the unit.
pub fn quantity(number: f64, unit: &str) -> String {
    // Tables consist of these: each is built in place.
    let mut text = String::with_capacity(ROOM);
    if let Some((amount, _)) = unit.split_once(PER) {
        return if COUNTS.contains(&amount) && number < 100_000.0 { digits(number) } else { quantity(number, amount) };
    }
    match unit {
        "ratio" => push_percent(&mut text, 100.0 * number),
        "%" => push_percent(&mut text, number),
        "s" => push_scaled(&mut text, number, &[(1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns")]),
        "J" => push_scaled(&mut text, number, &[(1.0, "J"), (1e-3, "mJ"), (1e-6, "µJ"), (1e-9, "nJ")]),
        "B" => {
            let units = [(f64::from(1 << 30), "GiB"), (f64::from(1 << 20), "MiB"), (1024.0, "KiB"), (1.0, "B")];
            push_scaled(&mut text, number, &units);
        }
        _ if COUNTS.contains(&unit) && number < 100_000.0 => push(&mut text, number, 0),
        _ if COUNTS.contains(&unit) => {
            push_scaled(&mut text, number, &[(1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")]);
        }
        "FLOP" => {
            let units = [(1e12, "TFLOP"), (1e9, "GFLOP"), (1e6, "MFLOP"), (1e3, "kFLOP"), (1.0, "FLOP")];
            push_scaled(&mut text, number, &units);
        }
        "instructions/cycle" | "events/cycle" | "cycles/execution" | "cycles/instruction" | "cycles/miss"
        | "lines in flight" => push_digits(&mut text, number),
        "×" => {
            push_digits(&mut text, number);
            text.push('×');
        }
        unit => {
            push_digits(&mut text, number);
            text.push(' ');
            text.push_str(unit);
        }
    }
    text
}

/// Half widths below this share of a number are what rounded counts make of an exact ratio.
const ROUNDING: f64 = 1e-6;

/// Formats an estimate with its unit and half of the width of its interval: in percent of the number or, if that is in percent itself,
/// in percentage points.
pub fn estimate(number: f64, unit: &str, half_width: f64) -> String {
    let text = quantity(number, unit);
    if half_width < ROUNDING * number.abs() {
        return text;
    }
    let points = match unit {
        "ratio" => Some(100.0 * half_width),
        "%" => Some(half_width),
        _ => None,
    };
    match points {
        // Too small to be shown, and its interval, too.
        Some(_) if text.starts_with('<') => text,
        Some(points) => format!("{} ±{} %", text.trim_end_matches(" %"), two_digits(points)),
        None if number == 0.0 => text,
        None => format!("{text} ±{} %", two_digits(100.0 * half_width / number.abs())),
    }
}

/// A number in percent with two digits, and two decimals at most.
pub(super) fn two_digits(percent: f64) -> String {
    match percent {
        p if p < 0.005 => "0.01".to_owned(),
        p if p < 0.995 => format!("{p:.2}"),
        p if p < 9.95 => format!("{p:.1}"),
        p => format!("{p:.0}"),
    }
}

/// Formats a fraction in percent with one decimal, so that shares line up.
pub(crate) fn share(fraction: f64) -> String {
    let percent = 100.0 * fraction;
    if percent > 0.0 && percent < 0.05 { "<0.1 %".to_owned() } else { format!("{percent:.1} %") }
}

/// Formats a number with four significant digits, at most three decimals.
#[must_use]
pub fn digits(number: f64) -> String {
    let mut text = String::new();
    push_digits(&mut text, number);
    text
}

/// `number` in percent.
fn push_percent(text: &mut String, number: f64) {
    match number {
        0.0 => text.push('0'),
        n if n > 0.0 && n < 0.01 => text.push_str("<0.01"),
        n if n.abs() < 9.995 => push(text, n, 2),
        n => push(text, n, 1),
    }
    text.push_str(" %");
}

/// `number` in the largest unit that does not exceed it, otherwise in the smallest.
fn push_scaled(text: &mut String, number: f64, units: &[(f64, &str)]) {
    // A number that rounds up to a whole unit is shown in that unit.
    let fits = |&&(size, _): &&(f64, &str)| number >= size * 0.99995;
    let &(size, unit) = units.iter().find(fits).or(units.last()).unwrap_or(&(1.0, ""));
    push_digits(text, number / size);
    text.push(' ');
    text.push_str(unit);
}

/// Four significant digits, at most three decimals.
fn push_digits(text: &mut String, number: f64) {
    match number.abs() {
        0.0 => text.push('0'),
        n if n < 9.9995 => push(text, number, 3),
        n if n < 99.995 => push(text, number, 2),
        n if n < 999.95 => push(text, number, 1),
        _ => push(text, number, 0),
    }
}

/// `number` with `digits` decimals.
fn push(text: &mut String, number: f64, digits: usize) {
    write!(text, "{number:.digits$}").expect("text takes all");
}

#[cfg(test)]
mod tests {
    use super::{estimate, quantity};

    #[test]
    fn estimates_have_half_widths_in_percent_of_the_number_or_in_points() {
        assert_eq!(estimate(0.0123, "s", 0.000_1), "12.30 ms ±0.81 %");
        assert_eq!(estimate(2e6, "cycles", 5e4), "2.000 M ±2.5 %");
        assert_eq!(estimate(0.123, "ratio", 0.002), "12.3 ±0.20 %");
        assert_eq!(estimate(45.0, "%", 12.3), "45.0 ±12 %");
        assert_eq!(estimate(1.0, "s", 1e-5), "1.000 s ±0.01 %");
        assert_eq!(estimate(64.0, "GFLOPS", 1e-9), "64.00 GFLOPS", "rounded");
    }

    #[test]
    fn numbers_have_four_digits_and_a_fitting_prefix() {
        let cases = [
            (1.5, "s", "1.500 s"),
            (0.012345, "s", "12.35 ms"),
            (0.999_96, "s", "1.000 s"),
            (0.999_9, "s", "999.9 ms"),
            (4e-7, "s", "400.0 ns"),
            (0.0, "s", "0 ns"),
            (99_999.0, "cycles", "99999"),
            (24_690_000.0, "cycles", "24.69 M"),
            (999_960.0, "cycles", "1.000 M"),
            (0.1234, "ratio", "12.3 %"),
            (0.01234, "ratio", "1.23 %"),
            (0.00001, "ratio", "<0.01 %"),
            (0.0, "ratio", "0 %"),
            (100.0, "%", "100.0 %"),
            (125_829_120.0, "B", "120.0 MiB"),
            (3.21, "GFLOPS", "3.210 GFLOPS"),
            (393_216_000_000.0, "FLOP", "393.2 GFLOP"),
            (0.5, "instructions/cycle", "0.500"),
            (0.118, "events/cycle", "0.118"),
            (1.0, "calls", "1"),
            (398_031.0, "micro-operations", "398.0 k"),
            (0.0123, "lines per 1000 instructions", "0.012"),
            (250_000.0, "cycles per call", "250.0 k"),
            (2.5e-9, "s per 1000 FLOP", "2.500 ns"),
        ];
        for (number, unit, text) in cases {
            assert_eq!(quantity(number, unit), text);
        }
    }
}
