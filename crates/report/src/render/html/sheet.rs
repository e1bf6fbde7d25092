//! A region on one sheet of paper, A3: the tables of Fujitsu's CPU performance analysis report in its order.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::table::{line, scale};
use super::{answers, head};
use crate::document::{Body, Grid, Mark, Place, Record, RegionReport, Report, Stack};
use crate::render::palette::{self, colour};
use crate::render::quantity::share;

const RULES: &str = include_str!("sheet.css");
/// Threads up to which each has a row: a CMG's.
const THREADS: usize = 12;
/// Rows for which a sheet has room, and those that headings take.
const ROOM: f64 = 98.0;
const HEADINGS: f64 = 28.0;
/// Tables of each line of the sheet, from top to bottom. The first line also has the execution time by cause.
const LINES: [&[&str]; 5] = [&["A"], &["B"], &["C", "D"], &["E"], &["F", "G", "I", "J", "K"]];

/// Returns a page with a sheet for each region of each report.
#[must_use]
pub fn draw(reports: &[Report]) -> String {
    let title = reports.first().map_or("fxscope report", |report| report.title.as_str());
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            (head(title, &(palette::rules() + RULES)))
            body {
                main id="main" {
                    @for report in reports { @for region in &report.regions { (sheet(report, region)) } }
                }
            }
        }
    };
    page.into_string()
}

fn sheet(report: &Report, region: &RegionReport) -> Markup {
    let stack = region.sections.iter().find_map(|section| match &section.body {
        Body::Stack(stack) => Some(stack),
        _ => None,
    });
    html! {
        article style=(format!("zoom:{:.3}", zoom(region))) {
            header {
                h1 { (report.title) ", region " (region.name) small { "Made by fxscope. Columns as in CPU performance analysis report 4.2.1." } }
                @if let Some(limits) = answers::limits(region) { p { (limits) } }
            }
            @for (i, ids) in LINES.iter().enumerate() {
                div.line {
                    @for id in *ids { @if let Some((title, grid)) = grid(region, id) { (table(title, &of_few(grid), &region.name)) } }
                    @if i == 0 { @if let Some(stack) = stack { (causes(stack, &region.name)) } }
                }
            }
        }
    }
}

/// How much smaller than usual a sheet is, so that its rows have room.
fn zoom(region: &RegionReport) -> f64 {
    let rows = LINES
        .iter()
        .filter_map(|ids| ids.iter().filter_map(|id| Some(of_few(grid(region, id)?.1).records.len())).max());
    let rows: usize = rows.sum();
    (ROOM / (rows as f64 + HEADINGS)).min(1.0)
}

/// A table of a region with its title.
fn grid<'a>(region: &'a RegionReport, id: &str) -> Option<(&'a str, &'a Grid)> {
    region.sections.iter().find_map(|section| match &section.body {
        Body::Grid(grid) if grid.id == id => Some((section.title.as_str(), grid)),
        _ => None,
    })
}

/// The table without rows of threads if there are too many of them for the sheet, and without empty rows.
pub fn of_few(grid: &Grid) -> Grid {
    let is_thread = |record: &Record| matches!(record.place, Place::Thread { .. });
    let are_many = grid.records.iter().filter(|record| is_thread(record)).count() > THREADS;
    let is_kept = |record: &Record| !(are_many && is_thread(record)) && record.values.iter().any(Option::is_some);
    let kept: Vec<usize> = (0..grid.records.len()).filter(|&i| is_kept(&grid.records[i])).collect();
    // Marks refer to rows.
    let marks = grid.marks.iter().filter_map(|mark| {
        let record = kept.iter().position(|&i| i == mark.record)?;
        Some(Mark { record, ..mark.clone() })
    });
    Grid {
        id: grid.id.clone(),
        headings: grid.headings.clone(),
        records: kept.iter().map(|&i| grid.records[i].clone()).collect(),
        marks: marks.collect(),
    }
}

fn table(title: &str, grid: &Grid, region: &str) -> Markup {
    let scales: Vec<_> = (0..grid.headings.len()).map(|column| scale(grid, column)).collect();
    html! {
        section tabindex="0" aria-label=(format!("{title}, {region}")) style=(format!("flex:{}", grid.headings.len())) {
            h2 { (grid.id) " " (title) }
            table {
                thead {
                    tr { td {} @for heading in &grid.headings { th scope="col" { small { (heading.id) } " " (heading.title) } } }
                    tr { td {} @for scale in &scales { td { small { (scale.unit) } } } }
                }
                tbody { @for (i, record) in grid.records.iter().enumerate() { (PreEscaped(line(grid, i, record, &scales).into_string())) } }
            }
        }
    }
}

/// The time of each thread, CMG and the total by cause: a bar each, and the shares of the total.
fn causes(stack: &Stack, region: &str) -> Markup {
    let threads = stack.bars.iter().filter(|bar| bar.thread.is_some()).count();
    let shown = if threads > THREADS { stack.without_threads() } else { stack.clone() };
    let longest = shown.bars.iter().map(|bar| bar.values.iter().sum::<f64>()).fold(0.0, f64::max);
    let percent = |value: f64| if longest > 0.0 { 100.0 * value / longest } else { 0.0 };
    let total = shown.bars.last().map_or(&[][..], |bar| &bar.values);
    let whole: f64 = total.iter().sum();
    let fill = |part: usize| format!("background:#{:06x}", colour(&shown, part));
    html! {
        section.time aria-label=(format!("Execution time by cause, {region}")) style="flex:13" {
            h2 { "Execution time by cause" }
            div.stack {
                div.bars {
                    @for bar in &shown.bars {
                        div.bar {
                            div.parts {
                                @for (part, value) in bar.values.iter().enumerate().filter(|(_, value)| **value > 0.0) {
                                    i style=(format!("height:{:.2}%;{}", percent(*value), fill(part))) {}
                                }
                            }
                            small { (bar.label.trim_start_matches("thread ")) }
                        }
                    }
                }
                ul {
                    @for (part, value) in total.iter().enumerate().filter(|(_, value)| **value > 0.0) {
                        li { i style=(fill(part)) {} (shown.parts[part].id) " " (shown.parts[part].label) " " b { (share(value / whole)) } }
                    }
                }
            }
        }
    }
}
