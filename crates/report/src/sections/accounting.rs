//! Where the cycles went, part by part.

use fxscope_pmu::Metrics;

use crate::Column;
use crate::document::{Body, Part, Section, Tone};

/// The group of metrics whose members are the parts.
pub(super) const GROUP: &str = "cycle_accounting";

/// The parts that are not zero in every column, in the order of the group.
pub(super) fn section(columns: &[Column]) -> Section {
    let group = Metrics::built_in().group(GROUP);
    let parts = group.into_iter().flat_map(|g| &g.metrics).map(|metric| Part {
        label: metric.title.clone(),
        tone: if metric.name.contains("commit") { Tone::Work } else { Tone::Wait },
        fractions: columns.iter().map(|c| fraction(c, &metric.name)).collect(),
    });
    let parts = parts.filter(|p| p.fractions.iter().flatten().any(|&f| f > 0.0)).collect();
    Section { title: group.map_or_else(String::new, |g| g.title.clone()), body: Body::Parts(parts) }
}

fn fraction(column: &Column, name: &str) -> Option<f64> {
    let cycles = column.values.get("cycles").filter(|&c| c > 0.0)?;
    column.values.get(name).map(|part| part / cycles)
}

/// The title and fraction of the largest waiting part of a column.
pub(super) fn largest_wait(column: &Column) -> Option<(String, f64)> {
    let group = Metrics::built_in().group(GROUP)?;
    let waits = group.metrics.iter().filter(|m| !m.name.contains("commit"));
    let waits = waits.filter_map(|m| Some((m.title.clone(), fraction(column, &m.name)?)));
    waits.filter(|(_, f)| *f > 0.0).max_by(|a, b| a.1.total_cmp(&b.1))
}
