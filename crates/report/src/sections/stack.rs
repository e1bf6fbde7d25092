//! What the time of threads is made of.

use fxscope_pmu::{Metric, Metrics, Values};

use super::{accounting, tables};
use crate::Options;
use crate::document::{Bar, Body, Family, Place, Section, Stack, StackPart};
use crate::evaluate::Evaluated;

/// What each part is akin to, by what its name starts with, ends with or contains.
const FAMILIES: &[(&str, Family)] = &[
    ("prefetch", Family::Prefetch),
    ("memory", Family::Memory),
    ("l2", Family::L2),
    ("l1d", Family::L1),
    ("operation", Family::Operation),
    ("barrier", Family::Barrier),
    ("commit", Family::Commit),
];

/// The family of a part of cycle accounting.
pub(crate) fn family(name: &str) -> Family {
    FAMILIES.iter().find(|(word, _)| name.contains(word)).map_or(Family::Other, |f| f.1)
}

/// A bar for each part of a region's work, with all parts of cycle accounting; `None` when they were not counted.
pub(crate) fn section(evaluated: &Evaluated, options: &Options) -> Option<Section> {
    let group = Metrics::built_in().group(accounting::GROUP)?;
    let places = tables::parts(evaluated, options.by);
    let known = |m: &&Metric| places.iter().any(|(_, v)| v.get(&m.name).is_some());
    let metrics: Vec<_> = group.metrics.iter().filter(known).collect();
    let unit = metrics.first()?.unit.clone();
    let value = |values: &Values, m: &Metric| values.get(&m.name).unwrap_or(0.0).max(0.0);
    let thread = |place| match place {
        Place::Thread { thread, .. } => Some(thread),
        _ => None,
    };
    let bars = places.iter().map(|&(place, values)| Bar {
        label: place.label(),
        thread: thread(place),
        values: metrics.iter().map(|m| value(values, m)).collect(),
    });
    let parts =
        metrics.iter().map(|m| StackPart { id: String::new(), label: m.title.clone(), family: family(&m.name) });
    let stack = Stack { unit, parts: parts.collect(), bars: bars.collect() };
    Some(Section { title: group.title.clone(), body: Body::Stack(stack) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_has_the_family_that_its_name_says() {
        let group = Metrics::built_in().group(accounting::GROUP).expect("there");
        let count = |f| group.metrics.iter().filter(|m| family(&m.name) == f).count();
        let all = [
            (Family::Prefetch, 2),
            (Family::Memory, 2),
            (Family::L2, 2),
            (Family::L1, 2),
            (Family::Operation, 2),
            (Family::Other, 4),
            (Family::Barrier, 1),
            (Family::Commit, 5),
        ];
        for (family, n) in all {
            assert_eq!(count(family), n, "{family:?}");
        }
    }
}
