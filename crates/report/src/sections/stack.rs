//! Components of the time of threads: table B of the report.

use crate::document::{Bar, Body, Family, Place, Section, Stack, StackPart};
use crate::evaluate::{Evaluated, table};

/// The components in the order of the table, topmost first, with their families. The last column is their sum.
const PARTS: &[(&str, Family)] = &[
    ("B01", Family::Prefetch),
    ("B02", Family::Prefetch),
    ("B03", Family::Memory),
    ("B04", Family::Memory),
    ("B05", Family::L2),
    ("B06", Family::L1),
    ("B07", Family::L2),
    ("B08", Family::L1),
    ("B09", Family::Operation),
    ("B10", Family::Operation),
    ("B11", Family::Other),
    ("B12", Family::Other),
    ("B13", Family::Other),
    ("B14", Family::Other),
    ("B15", Family::Barrier),
    ("B kernel", Family::Kernel),
    ("B16", Family::Commit),
    ("B17", Family::Commit),
    ("B18", Family::Commit),
    ("B19", Family::Commit),
    ("B20", Family::Commit),
];

/// Returns the family of a component, by identifier; `None` for other columns.
pub(crate) fn family(id: &str) -> Option<Family> {
    PARTS.iter().find(|part| part.0 == id).map(|part| part.1)
}

/// Returns a bar for each thread, CMG and process; `None` if nothing was counted.
pub(crate) fn section(evaluated: &Evaluated) -> Option<Section> {
    let table = table("B")?;
    let mut parts = Vec::new();
    let mut values = Vec::new();
    for column in &table.columns {
        let Some(family) = family(&column.id) else { continue };
        let (label, cells) = evaluated.column(column);
        if cells.iter().any(Option::is_some) {
            parts.push(StackPart { id: column.id.clone(), label, family });
            values.push(cells);
        }
    }
    let unit = table.columns.first()?.unit.clone();
    let thread = |place| match place {
        Place::Thread { thread, .. } => Some(thread),
        _ => None,
    };
    let bars = evaluated.places.iter().enumerate().map(|(i, &place)| Bar {
        label: place.label(),
        thread: thread(place),
        // Measured components may be negative, since they come from different passes.
        values: values.iter().map(|cells| cells[i].map_or(0.0, |cell| cell.value.max(0.0))).collect(),
    });
    let bars = bars.collect();
    (!parts.is_empty()).then(|| Section { title: table.title.clone(), body: Body::Stack(Stack { unit, parts, bars }) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_column_of_the_table_but_the_last_is_a_part() {
        let columns = &table("B").expect("there").columns;
        let ids: Vec<_> = columns.iter().map(|c| c.id.as_str()).collect();
        let parts: Vec<_> = PARTS.iter().map(|p| p.0).collect();
        assert_eq!(ids[..21], parts);
        assert_eq!(ids[21..], ["B21"]);
    }
}
