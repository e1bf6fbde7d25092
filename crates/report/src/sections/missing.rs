//! Events that were not counted, and the report columns that need them.

use std::collections::BTreeSet;

use fxscope_pmu::{Evaluation, Metrics, Table};
use fxscope_record::{Origin, Run};

use crate::Column;
use crate::document::{Body, Section};

/// Maximum number of events named per table; above it only their number is given.
const NAMED: usize = 4;

/// Returns, for each report table with empty columns, the events to measure. Nothing for simulated runs, which count
/// everything that the model has.
pub(super) fn section(columns: &[Column]) -> Section {
    let notes = match columns {
        [Column { run, evaluation, .. }] if run.origin != Origin::Simulated => {
            let tables = Metrics::built_in().tables().iter();
            tables.filter_map(|table| sentence(run, table, evaluation)).collect()
        }
        _ => Vec::new(),
    };
    Section { title: "Missing".to_owned(), body: Body::Notes(notes) }
}

/// Returns the report columns that simulated runs leave empty, and why.
pub(super) fn not_modelled(column: &Column) -> Section {
    let Column { run, evaluation, .. } = column;
    let pmu = fxscope_pmu::of_run(run);
    let columns = Metrics::built_in().tables().iter().flat_map(|table| &table.columns);
    let notes = columns.filter_map(|lacking| {
        let wanted = evaluation.missing_in(lacking);
        let known = wanted.iter().filter_map(|name| pmu.events.named(name)).filter(|event| !event.reason.is_empty());
        let reasons: Vec<String> = known.map(|event| format!("{} ({})", event.reason, event.name)).collect();
        (!reasons.is_empty()).then(|| format!("{} {}: {}", lacking.id, lacking.title(), reasons.join("; ")))
    });
    Section { title: "Empty".to_owned(), body: Body::Notes(notes.collect()) }
}

/// What a table lacks, and what to measure for it.
fn sentence(run: &Run, table: &Table, evaluation: &Evaluation) -> Option<String> {
    let lacking = table.columns.iter().map(|column| evaluation.missing_in(column)).filter(|events| !events.is_empty());
    let lacking: Vec<Vec<String>> = lacking.collect();
    let events: BTreeSet<&String> = lacking.iter().flatten().collect();
    if events.is_empty() {
        return None;
    }
    let pmu = fxscope_pmu::of_run(run);
    let groups = pmu.groups.iter().filter(|group| group.events.iter().any(|e| events.contains(e)));
    let groups: Vec<String> = groups.map(|group| format!("pa{}", group.number)).collect();
    let mut names = events.iter().take(NAMED).map(|name| name.as_str()).collect::<Vec<_>>().join(", ");
    if events.len() > NAMED {
        names += &format!(" and {} more", events.len() - NAMED);
    }
    let (lacks, all) = (lacking.len(), table.columns.len());
    Some(format!("{} {}: {lacks} of {all} columns need {names} ({})", table.id, table.title, groups.join(", ")))
}
