//! Groups of functions, such as those in which threads wait for each other: formulas of rules use the share of cycles in them.

use std::collections::BTreeMap;

use fxscope_record::{ALL, Region, Run};

use crate::metrics::CYCLES;

/// Functions by name.
#[derive(Clone, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Functions {
    /// The name of their share of the cycles, in formulas.
    pub name: String,
    /// Names of functions; `*` stands for any characters.
    pub patterns: Vec<String>,
}

impl Functions {
    /// Whether a function is one of them.
    pub fn contain(&self, function: &str) -> bool {
        self.patterns.iter().any(|pattern| matches(pattern, function))
    }
}

/// Whether a name matches a pattern.
fn matches(pattern: &str, name: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else { return pattern == name };
    let Some(mut left) = name.strip_prefix(start) else { return false };
    let mut parts: Vec<&str> = rest.split('*').collect();
    let end = parts.pop().unwrap_or_default();
    for part in parts {
        let Some(at) = left.find(part) else { return false };
        left = &left[at + part.len()..];
    }
    left.ends_with(end)
}

/// The share of a run's cycles that a region must have for the run's cycles by function to be its own as well: records have them for whole
/// runs only.
const NEARLY_ALL: f64 = 0.8;

/// Returns the share of the cycles in each group of functions; `None` for regions that are a smaller part of a run, and if cycles by
/// function are not known.
pub(crate) fn shares(all: &[Functions], run: Option<&Run>, region: &Region) -> Vec<Option<f64>> {
    let is_most = |run: &&Run| {
        let all = run.region(ALL).map_or(0, cycles_of) as f64;
        cycles_of(region) as f64 >= NEARLY_ALL * all
    };
    let Some(run) = run.filter(|run| !run.hot_spots.is_empty()).filter(is_most) else { return vec![None; all.len()] };
    let mut cycles: BTreeMap<&str, u64> = BTreeMap::new();
    for spot in &run.hot_spots {
        *cycles.entry(&spot.function).or_default() += spot.cycles;
    }
    let total = cycles.values().sum::<u64>().max(1) as f64;
    let inside =
        |functions: &Functions| cycles.iter().filter(|(name, _)| functions.contain(name)).map(|(_, n)| n).sum::<u64>();
    all.iter().map(|functions| Some(inside(functions) as f64 / total)).collect()
}

/// The cycles of all threads of a region.
fn cycles_of(region: &Region) -> u64 {
    (0..region.threads.len()).filter_map(|thread| region.count(thread, CYCLES)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_characters() {
        for (pattern, name) in
            [("a", "a"), ("a*", "a"), ("*_wait", "barrier_wait"), ("a*b*c", "a12b3c"), ("*lock*", "unlocked")]
        {
            assert!(matches(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in [("a", "ab"), ("a*", "ba"), ("a*b*c", "ac"), ("*a*a*", "a"), ("ab*b", "ab")] {
            assert!(!matches(pattern, name), "{pattern} {name}");
        }
    }
}
