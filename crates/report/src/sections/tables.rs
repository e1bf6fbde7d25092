//! The tables of the report: every metric of a group, for threads, CMGs and processes.

use fxscope_pmu::{Group, Metric, Metrics, Values};

use crate::document::{Body, Grid, Heading, Place, Record, Section};
use crate::evaluate::Evaluated;
use crate::{By, Options};

/// The tables that have a value.
pub(crate) fn sections(evaluated: &Evaluated, options: &Options) -> Vec<Section> {
    let parts = parts(evaluated, options.by);
    Metrics::built_in().groups().iter().filter_map(|group| table(group, &parts)).collect()
}

/// The rows of a table: parts before what they are parts of.
pub(super) fn parts(evaluated: &Evaluated, by: By) -> Vec<(Place, &Values)> {
    let (threads, cmgs, processes) = match by {
        By::Thread => (true, true, true),
        By::Cmg => (false, true, true),
        By::Process => (false, false, true),
    };
    // What there is one of is the total.
    let several = |wanted: bool, list| if wanted { list } else { &[][..] };
    let lists = [
        several(threads, &evaluated.threads),
        several(cmgs && (by == By::Cmg || evaluated.cmgs.len() > 1), &evaluated.cmgs),
        several(processes && evaluated.processes.len() > 1, &evaluated.processes),
    ];
    let all = lists.into_iter().flatten().map(|part| (part.place, &part.values));
    all.chain([(Place::Total, &evaluated.total)]).collect()
}

fn table(group: &Group, parts: &[(Place, &Values)]) -> Option<Section> {
    let known = |m: &&Metric| parts.iter().any(|(_, values)| values.get(&m.name).is_some());
    let metrics: Vec<_> = group.metrics.iter().filter(known).collect();
    let records = parts
        .iter()
        .map(|&(place, values)| Record { place, values: metrics.iter().map(|m| values.get(&m.name)).collect() });
    let headings = metrics.iter().map(|m| Heading {
        id: String::new(),
        name: m.name.clone(),
        title: m.title.clone(),
        unit: m.unit.clone(),
    });
    let grid =
        Grid { id: group.name.clone(), headings: headings.collect(), records: records.collect(), marks: Vec::new() };
    (!metrics.is_empty()).then(|| Section { title: group.title.clone(), body: Body::Grid(grid) })
}
