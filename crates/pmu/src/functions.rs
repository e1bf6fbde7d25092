//! Groups of functions, such as those in which threads wait for each other: formulas of rules use the share of cycles in them.

use std::collections::BTreeMap;

use fxscope_record::{ALL, Region, Run};

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

/// Returns the share of the run's cycles in each group of functions; `None` for parts of a run, and if cycles by function are not
/// known.
pub(crate) fn shares(all: &[Functions], run: Option<&Run>, region: &Region) -> Vec<Option<f64>> {
    let known = run.filter(|run| region.name == ALL && !run.hot_spots.is_empty());
    let Some(run) = known else { return vec![None; all.len()] };
    let mut cycles: BTreeMap<&str, u64> = BTreeMap::new();
    for spot in &run.hot_spots {
        *cycles.entry(&spot.function).or_default() += spot.cycles;
    }
    let total = cycles.values().sum::<u64>().max(1) as f64;
    let inside = |functions: &Functions| cycles.iter().filter(|(name, _)| functions.contain(name)).map(|(_, n)| n).sum::<u64>();
    all.iter().map(|functions| Some(inside(functions) as f64 / total)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_characters() {
        for (pattern, name) in [("a", "a"), ("a*", "a"), ("*_wait", "barrier_wait"), ("a*b*c", "a12b3c"), ("*lock*", "unlocked")] {
            assert!(matches(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in [("a", "ab"), ("a*", "ba"), ("a*b*c", "ac"), ("*a*a*", "a"), ("ab*b", "ab")] {
            assert!(!matches(pattern, name), "{pattern} {name}");
        }
    }
}
