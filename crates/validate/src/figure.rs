//! Kinds of figures, and detection of rows that state the same figure of a run.

use fxscope_pmu::formula::{Formula, Reduction, Scope};

use crate::Row;
use crate::suite::BEFORE;

/// Kind of a measured figure. Errors of one kind can be averaged; those of different kinds only as relative errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Times, rates, and ratios of them.
    Rate,
    /// Numbers of events, and ratios of them.
    Count,
    /// Parts of a whole, in percent.
    Share,
}

impl Kind {
    /// All kinds, in the order of reports.
    pub const ALL: [Kind; 3] = [Kind::Rate, Kind::Count, Kind::Share];

    /// Returns its name for people.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Kind::Rate => "times and rates",
            Kind::Count => "counts",
            Kind::Share => "shares",
        }
    }

    /// Returns its name for programs.
    #[must_use]
    pub fn key(self) -> &'static str {
        match self {
            Kind::Rate => "times_and_rates",
            Kind::Count => "counts",
            Kind::Share => "shares",
        }
    }

    pub(crate) fn of(row: &Row, formula: &Formula) -> Kind {
        let is_speed = |name: &&String| SPEEDS.contains(&name.strip_prefix(BEFORE).unwrap_or(name));
        if SPEED_UNITS.contains(&&*row.unit) || formula.names().iter().all(is_speed) {
            Kind::Rate
        } else if row.is_points() || row.is_ratio() && row.before.is_empty() {
            Kind::Share
        } else {
            Kind::Count
        }
    }
}

/// Units of times and rates.
const SPEED_UNITS: [&str; 9] = ["s", "ms", "us", "ns", "cycle", "GB/s", "GFLOPS", "GFLOPS/GOPS", "GOPS"];

/// Names in formulas of times and rates, whatever their unit.
const SPEEDS: [&str; 6] =
    ["seconds", "cycles", "gflops", "gflops_percent_of_peak", "memory_gbs", "memory_percent_of_peak"];

/// Values of a formula at a few points; `None` if they depend on single threads.
pub(crate) type Probe = Option<[f64; 3]>;

/// Two formulas are equal if their values at all points are, up to rounding.
const ROUNDING: f64 = 1e-9;

pub(crate) fn probe(formula: &Formula) -> Probe {
    let at = |point| formula.value(&Point(point)).filter(|value| value.is_finite() && *value != 0.0);
    Some([at(1)?, at(2)?, at(3)?])
}

/// Relation between two figures of the same runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Relation {
    /// One is the other times a constant.
    Proportional,
    /// One is a constant divided by the other.
    Inverse,
}

/// Returns the relation of two figures; `None` if neither determines the other.
pub(crate) fn relation(a: Probe, b: Probe) -> Option<Relation> {
    let (a, b) = (a?, b?);
    let constant = |f: fn(f64, f64) -> f64| (1..3).all(|i| (f(a[i], b[i]) / f(a[0], b[0]) - 1.0).abs() < ROUNDING);
    match (constant(|a, b| a / b), constant(|a, b| a * b)) {
        (true, _) => Some(Relation::Proportional),
        (false, true) => Some(Relation::Inverse),
        (false, false) => None,
    }
}

/// A point at which formulas are compared: every name has a different value.
struct Point(u64);

impl Point {
    /// Returns a number between 1 and 2 derived from a name (FNV-1a).
    fn of(&self, name: &str) -> f64 {
        let mix = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        let hash = name.bytes().chain(self.0.to_le_bytes()).fold(0xcbf2_9ce4_8422_2325, mix);
        1.0 + (hash >> 11) as f64 / (1u64 << 53) as f64
    }
}

impl Scope<String> for Point {
    fn name(&self, name: &String) -> Option<f64> {
        let (before, name) = match name.strip_prefix(BEFORE) {
            Some(name) => (BEFORE, name),
            None => ("", name.as_str()),
        };
        let of = |name: &str| self.of(&format!("{before}{name}"));
        // Metrics that equal others in another unit.
        Some(match name {
            "cycles" => of("seconds"),
            "gflops" | "gflops_percent_of_peak" => 1.0 / of("seconds"),
            "memory_percent_of_peak" | "memory_busy" => of("memory_gbs"),
            name => of(name),
        })
    }

    fn threads(&self, _: Reduction, _: &Formula) -> Option<f64> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn between(a: &str, b: &str) -> Option<Relation> {
        let [a, b] = [a, b].map(|text| probe(&Formula::parse(text).expect("a formula")));
        relation(a, b)
    }

    #[test]
    fn a_rate_and_its_share_of_peak_are_one_figure() {
        let rate = "2*2048*500/seconds/1e9";
        assert_eq!(between(rate, "100*2*2048*500/seconds/64e9"), Some(Relation::Proportional));
        assert_eq!(between(rate, "gflops_percent_of_peak"), Some(Relation::Proportional));
        assert_eq!(between(rate, "2000*seconds"), Some(Relation::Inverse));
        assert_eq!(between("100*memory_busy", "memory_gbs"), Some(Relation::Proportional));
        assert_eq!(between("seconds/before_seconds", "before_seconds/seconds"), Some(Relation::Inverse));
    }

    #[test]
    fn counts_of_different_events_are_different_figures() {
        assert_eq!(between("100*fla_busy", "100*flb_busy"), None);
        assert_eq!(between("seconds", "INST_RETIRED/seconds"), None);
        assert_eq!(between("seconds", "seconds+before_seconds"), None);
        assert_eq!(between("first(seconds)", "first(seconds)"), None, "formulas over single threads are not compared");
    }
}
