//! A table of regions.

use maud::{Markup, PreEscaped, html};

use super::fold;
use crate::document::{Body, Grid, Heading, Place, RegionReport};
use crate::render::quantity::{quantity, share};

/// The columns of the table.
const COLUMNS: [&str; 6] = ["A01", "A02", "A04", "A11", "C05", "C07"];
/// Maximum number of rows.
const MOST: usize = 1_000;

/// A region that has a row.
pub struct Line<'a> {
    /// Its name on the page.
    pub name: String,
    /// The region.
    pub region: &'a RegionReport,
    /// Its value in the list of regions on the page; `None` if it is not there.
    pub choice: Option<usize>,
}

/// Returns a table of regions, the longest first; if there are too many, it says how many have no row.
pub fn draw(title: &str, mut regions: Vec<Line>, state: fold::State) -> Markup {
    regions.sort_by(|a, b| super::seconds(b.region).total_cmp(&super::seconds(a.region)));
    let longest = regions.first().map(|line| (&line.name, super::seconds(line.region)));
    let answer = longest.map_or_else(String::new, |(name, seconds)| {
        format!("{}, the longest: {name}, {}", regions.len(), quantity(seconds, "s"))
    });
    let more = regions.len().saturating_sub(MOST);
    regions.truncate(MOST);
    let heading = |id: &str| regions.iter().find_map(|line| find(line.region, id)).map(|(heading, _)| heading);
    let headings: Vec<&Heading> = COLUMNS.iter().filter_map(|id| heading(id)).collect();
    let body = html! {
        div.scroll tabindex="0" role="region" aria-label=(title) {
            table {
                thead { tr {
                    th scope="col" { "region" }
                    @for heading in &headings { th scope="col" { (heading.title) } }
                    th scope="col" { "limited by" }
                } }
                tbody {
                    @for line in &regions {
                        tr {
                            th scope="row" {
                                @match line.choice {
                                    Some(choice) => button.link type="button" data-choose=(choice) { (line.name) },
                                    None => (line.name),
                                }
                            }
                            (PreEscaped(cells(line.region, &headings)))
                            td.text { (limit(line.region)) }
                        }
                    }
                }
            }
        }
        @if more > 0 { p { (more) " more regions are not shown." } }
    };
    fold::draw(title, &answer, state, &body)
}

/// The first of what limits a region, with its share of the time.
fn limit(region: &RegionReport) -> String {
    let limit = region.sections.iter().find_map(|section| match &section.body {
        Body::Verdict(verdict) => verdict.limits.first(),
        _ => None,
    });
    limit.map_or_else(|| "–".to_owned(), |limit| format!("{} {}", limit.title, share(limit.share)))
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
