//! The report's tables for threads, CMGs and processes.

use fxscope_pmu::{Cell, Metrics, Table, Tone};

use crate::document::{Body, Grid, Heading, Mark, Place, Record, Section};
use crate::evaluate::Evaluated;

/// Returns the tables that have a value.
pub(crate) fn sections(evaluated: &Evaluated) -> Vec<Section> {
    Metrics::built_in().tables().iter().filter_map(|table| section(table, evaluated)).collect()
}

fn section(table: &Table, evaluated: &Evaluated) -> Option<Section> {
    let mut grid = Grid { id: table.id.clone(), headings: Vec::new(), records: Vec::new(), marks: Vec::new() };
    grid.records = evaluated.places.iter().map(|&place| Record { place, values: Vec::new() }).collect();
    if evaluated.sampled.is_some() {
        grid.records.push(Record { place: Place::HalfWidth, values: Vec::new() });
    }
    for column in &table.columns {
        let (title, cells) = evaluated.column(column);
        if cells.iter().any(Option::is_some) {
            mark(&mut grid, column, &cells);
            for (record, cell) in grid.records.iter_mut().zip(&cells) {
                record.values.push(cell.map(|c| c.value));
            }
            if let (Some(record), Some(sampled)) = (grid.records.get_mut(cells.len()), &evaluated.sampled) {
                record.values.push(sampled.of_column(&column.id));
            }
            let (id, unit) = (column.id.clone(), column.unit.clone());
            grid.headings.push(Heading { id, title, unit });
        }
    }
    (!grid.headings.is_empty()).then(|| Section { title: table.title.clone(), body: Body::Grid(grid) })
}

/// Marks the remarkable cells of the next column.
fn mark(grid: &mut Grid, column: &fxscope_pmu::Column, cells: &[Option<Cell>]) {
    let place = grid.headings.len();
    for (record, cell) in cells.iter().enumerate() {
        let Some(mark) = cell.and_then(|c| c.mark) else { continue };
        let mark = &column.marks[mark];
        grid.marks.push(Mark { record, column: place, good: mark.tone == Tone::Good, reading: mark.rule.clone() });
    }
}
