//! A table of regions.

use maud::{Markup, PreEscaped, html};

use crate::document::{Body, Grid, Heading, Place, RegionReport};
use crate::render::quantity::quantity;

/// The columns of the table.
const COLUMNS: [&str; 6] = ["A01", "A02", "A04", "A11", "C05", "C07"];
/// Maximum number of rows.
const MOST: usize = 1_000;

/// Returns a table of regions, the longest first; if there are too many, it says how many have no row.
pub fn draw<'a>(regions: impl Iterator<Item = (String, &'a RegionReport)>) -> Markup {
    let mut regions: Vec<_> = regions.collect();
    regions.sort_by(|a, b| super::seconds(b.1).total_cmp(&super::seconds(a.1)));
    let more = regions.len().saturating_sub(MOST);
    regions.truncate(MOST);
    let heading = |id: &str| regions.iter().find_map(|(_, region)| find(region, id)).map(|(heading, _)| heading);
    let headings: Vec<&Heading> = COLUMNS.iter().filter_map(|id| heading(id)).collect();
    html! {
        details {
            summary { "Further regions" }
            div.scroll tabindex="0" role="region" aria-label="Further regions" {
                table {
                    thead { tr {
                        th scope="col" { "region" }
                        @for heading in &headings { th scope="col" { (heading.title) } }
                    } }
                    tbody { @for (name, region) in &regions { tr { th scope="row" { (name) } (PreEscaped(cells(region, &headings))) } } }
                }
            }
            @if more > 0 { p { (more) " more regions are not shown." } }
        }
    }
}

/// The cells of a region: numbers, which need no escaping, without end tags, which HTML does not require.
fn cells(region: &RegionReport, headings: &[&Heading]) -> String {
    let text = |h: &&Heading| value(region, &h.id).map_or_else(|| "–".to_owned(), |v| quantity(v, &h.unit));
    headings.iter().map(|heading| format!("<td>{}", text(heading))).collect()
}

/// Returns a region's total in a column of a table.
pub fn value(region: &RegionReport, id: &str) -> Option<f64> {
    let (_, (grid, column)) = find(region, id)?;
    grid.records.iter().find(|record| record.place == Place::Total)?.values[column]
}

/// A column's heading, with its table and index.
fn find<'a>(region: &'a RegionReport, id: &str) -> Option<(&'a Heading, (&'a Grid, usize))> {
    let grids = region.sections.iter().filter_map(|section| match &section.body {
        Body::Grid(grid) => Some(grid),
        _ => None,
    });
    grids
        .filter_map(|grid| Some((grid, grid.headings.iter().position(|heading| heading.id == id)?)))
        .next()
        .map(|(grid, column)| (&grid.headings[column], (grid, column)))
}
