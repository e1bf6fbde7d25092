//! Cycle accounting: table B of the report as shares of its total.

use fxscope_pmu::{Evaluation, Sampled};

use super::stack::family;
use crate::Column;
use crate::document::{Body, Part, Section, Tone};
use crate::evaluate::{column, table};

/// The column with the total.
const TOTAL: &str = "B21";

/// Returns the components that are nonzero in any column, in the order of the table. If less was measured, a coarser
/// component replaces several.
pub(super) fn section(columns: &[Column]) -> Section {
    let mut parts: Vec<Part> = Vec::new();
    for (of_part, tone) in parts_of_table() {
        let first = parts.len();
        for (i, column) in columns.iter().enumerate() {
            let Some((label, fraction)) = share(&column.evaluation, of_part) else { continue };
            let place = (first..parts.len()).find(|&p| parts[p].label == label).unwrap_or_else(|| {
                let none = vec![None; columns.len()];
                parts.push(Part { label: label.to_owned(), tone, fractions: none.clone(), half_widths: none });
                parts.len() - 1
            });
            parts[place].fractions[i] = Some(fraction);
            parts[place].half_widths[i] = column.sampled.as_ref().and_then(|sampled| half_width(sampled, of_part));
        }
    }
    parts.retain(|part| part.fractions.iter().flatten().any(|&fraction| fraction > 0.0));
    Section { title: "Where the cycles went".to_owned(), body: Body::Parts(parts) }
}

/// Half of the width of the interval of a component's share.
fn half_width(sampled: &Sampled, part: &fxscope_pmu::Column) -> Option<f64> {
    sampled.half_width(|sums| Some(sums.column(&part.id)? / sums.column(TOTAL).filter(|total| *total > 0.0)?))
}

/// Returns the title and fraction of the largest waiting component.
pub(super) fn largest_wait(column: &Column) -> Option<(&'static str, f64)> {
    let waits = parts_of_table().filter(|(_, tone)| *tone == Tone::Wait);
    let waits = waits.filter_map(|(part, _)| share(&column.evaluation, part));
    waits.filter(|(_, fraction)| *fraction > 0.0).max_by(|a, b| a.1.total_cmp(&b.1))
}

/// The components, and whether they are work.
fn parts_of_table() -> impl Iterator<Item = (&'static fxscope_pmu::Column, Tone)> {
    let columns = table("B").map_or(&[][..], |table| &table.columns);
    columns.iter().filter_map(|column| Some((column, family(&column.id)?.tone())))
}

/// The title of a component, and its share of a region's time, if known.
fn share(evaluation: &Evaluation, part: &'static fxscope_pmu::Column) -> Option<(&'static str, f64)> {
    let total = evaluation.total_of(column(TOTAL)?).1?.value;
    let (label, cell) = evaluation.total_of(part);
    let share = cell?.value / total;
    (total > 0.0).then_some((label, share))
}
