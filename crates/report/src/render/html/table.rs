//! Sortable tables.

use maud::{Markup, PreEscaped, html};

use super::{fold, summary};
use crate::document::{Grid, Place, Record};
use crate::render::scale::Scale;

/// Headings of tables, each stored once and shared by regions.
#[derive(Default)]
pub struct Heads {
    list: Vec<String>,
}

impl Heads {
    /// The number of a table's headings.
    fn number(&mut self, row: String) -> usize {
        self.list.iter().position(|head| *head == row).unwrap_or_else(|| {
            self.list.push(row);
            self.list.len() - 1
        })
    }

    /// Returns all headings, for the page.
    pub fn templates(&self) -> Markup {
        html! {
            @for (i, row) in self.list.iter().enumerate() {
                template id=(id(i)) { (PreEscaped(row)) }
            }
        }
    }
}

fn id(head: usize) -> String {
    format!("head-{head}")
}

/// How a table is stored in the page.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// With its headings.
    Whole,
    /// With a reference to headings in the page.
    Shared,
    /// As `Shared`, without the rows of threads.
    Short,
}

/// Returns a collapsible table.
pub fn draw(title: &str, grid: &Grid, form: Form, heads: &mut Heads) -> Markup {
    let row = heading_row(grid).into_string();
    let shared = (form != Form::Whole).then(|| id(heads.number(row.clone())));
    let scales: Vec<Scale> = (0..grid.headings.len()).map(|column| scale(grid, column)).collect();
    let (parts, wholes): (Vec<_>, Vec<_>) =
        grid.records.iter().enumerate().partition(|(_, r)| matches!(r.place, Place::Thread { .. }));
    let parts = if form == Form::Short { Vec::new() } else { parts };
    let body = html! {
            div.scroll tabindex="0" role="region" aria-label=(title) {
                table data-head=[shared] {
                    thead {
                        @if form == Form::Whole { (PreEscaped(&row)) }
                        tr { td {} @for scale in &scales { td { small { (scale.unit) } } } }
                    }
                    @if !parts.is_empty() { tbody { @for (i, record) in parts { (line(grid, i, record, &scales)) } } }
                    tfoot { @for (i, record) in wholes { (line(grid, i, record, &scales)) } }
                }
            }
            (readings(grid))
    };
    fold::draw(&format!("{} {title}", grid.id), &summary::of_grid(grid), fold::State::Closed, &body)
}

fn heading_row(grid: &Grid) -> Markup {
    html! {
        tr {
            th scope="col" aria-sort="none" { button type="button" { "part" } }
            @for heading in &grid.headings {
                th scope="col" aria-sort="none" {
                    button type="button" { small { (heading.id) } (heading.title) }
                }
            }
        }
    }
}

/// The unit and the digits of a column.
pub fn scale(grid: &Grid, column: usize) -> Scale {
    Scale::of(&grid.headings[column].unit, grid.records.iter().filter_map(|r| r.values[column]))
}

/// A row. Its cells have no end tags, which HTML does not require.
pub fn line(grid: &Grid, index: usize, record: &Record, scales: &[Scale]) -> Markup {
    let mut cells = String::new();
    for (column, (value, scale)) in record.values.iter().zip(scales).enumerate() {
        cells.push_str(match grid.mark(index, column) {
            Some(mark) if mark.good => "<td class=good>",
            Some(_) => "<td class=high>",
            None => "<td>",
        });
        // A number or a dash needs no escaping.
        cells.push_str(&scale.cell(*value));
    }
    html! { tr { th scope="row" { (record.place.label()) } (PreEscaped(cells)) } }
}

/// Interpretations of marked cells.
fn readings(grid: &Grid) -> Markup {
    let mut columns: Vec<_> = grid.marks.iter().collect();
    columns.sort_by_key(|mark| mark.column);
    columns.dedup_by_key(|mark| mark.column);
    html! {
        @if !columns.is_empty() {
            ul.readings {
                @for mark in columns {
                    li { strong { (grid.headings[mark.column].id) " " (grid.headings[mark.column].title) } ": " (mark.reading) }
                }
            }
        }
    }
}
