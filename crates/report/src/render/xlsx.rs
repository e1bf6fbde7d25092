//! Reports as a workbook: a sheet of one page for each run, a sheet for each table with all regions, and native charts.

mod charts;
mod page;
mod sheet;

use rayon::prelude::*;
use rust_xlsxwriter::{Format, Workbook, Worksheet, XlsxError};

use crate::document::{Body, Grid, Heading, RegionReport, Report};
use sheet::{Formats, TableSheet};

/// Compression level of a workbook, 1 to 9: level 1 gives a file half as large again; from 3 on, it takes longer for
/// little gain.
const COMPRESSION: u8 = 2;

/// A region with the number of its run, counted from 1.
struct Place<'a> {
    run: usize,
    region: &'a RegionReport,
}

/// Returns the workbook's bytes.
///
/// # Errors
/// If a workbook's limits are exceeded, such as a million rows.
pub fn render(reports: &[Report]) -> Result<Vec<u8>, String> {
    workbook(reports)
        .map_err(|e| format!("the workbook cannot be made: {e}; choose a region with --region, or --by cmg"))
}

fn workbook(reports: &[Report]) -> Result<Vec<u8>, XlsxError> {
    let places: Vec<_> = (1..)
        .zip(reports)
        .flat_map(|(run, report)| report.regions.iter().map(move |region| Place { run, region }))
        .collect();
    let mut book = Workbook::new();
    book.set_zip_compression_level(COMPRESSION);
    overview(&mut book, reports)?;
    page::sheets(&mut book, &places)?;
    charts::sheets(&mut book, &places)?;
    for sheet in table_sheets(&mut book, &places)? {
        book.push_worksheet(sheet);
    }
    book.save_to_buffer()
}

/// The sheets of all tables, written in parallel.
fn table_sheets(book: &mut Workbook, places: &[Place]) -> Result<Vec<Worksheet>, XlsxError> {
    let formats = Formats::register(book);
    // Rows come in order, so none are buffered; texts are stored inline, so that sheets are independent.
    let begin = |table| Ok((table, book.new_worksheet_with_constant_memory()?));
    let begun = tables(places).into_iter().map(begin).collect::<Result<Vec<_>, XlsxError>>()?;
    let sheets: Vec<_> = begun
        .into_par_iter()
        .map(|((id, title, headings), sheet)| {
            let mut sheet = TableSheet::new(sheet, &name(id, title), &headings, &formats)?;
            for place in places {
                for grid in grids(place.region).filter(|(_, grid)| grid.id == id).map(|g| g.1) {
                    sheet.add(place.run, &place.region.name, grid)?;
                }
            }
            sheet.finish()
        })
        .collect();
    sheets.into_iter().collect()
}

fn grids(region: &RegionReport) -> impl Iterator<Item = (&str, &Grid)> {
    region.sections.iter().filter_map(|section| match &section.body {
        Body::Grid(grid) => Some((section.title.as_str(), grid)),
        _ => None,
    })
}

/// Identifier, title and columns of every table, in order.
fn tables<'a>(places: &[Place<'a>]) -> Vec<(&'a str, &'a str, Vec<&'a Heading>)> {
    let mut tables: Vec<(&str, &str, Vec<&Heading>)> = Vec::new();
    for (title, grid) in places.iter().flat_map(|place| grids(place.region)) {
        let known = tables.iter().position(|(id, ..)| *id == grid.id);
        let place = known.unwrap_or_else(|| {
            tables.push((&grid.id, title, Vec::new()));
            tables.len() - 1
        });
        let headings = &mut tables[place].2;
        for heading in &grid.headings {
            if headings.iter().all(|known| known.id != heading.id) {
                headings.push(heading);
            }
        }
    }
    tables
}

/// Fits a sheet to the width of a printed page.
fn fit(sheet: &mut Worksheet) {
    sheet.set_landscape().set_print_fit_to_pages(1, 0);
}

/// The name of a table's sheet: at most 31 characters, without those that spreadsheets reject.
fn name(id: &str, title: &str) -> String {
    format!("{id} {title}").chars().map(|c| if r"[]:*?/\".contains(c) { ' ' } else { c }).take(31).collect()
}

/// What was run.
fn overview(book: &mut Workbook, reports: &[Report]) -> Result<(), XlsxError> {
    let bold = Format::new().set_bold();
    let sheet = book.add_worksheet();
    fit(sheet.set_name("Runs")?.set_column_width(0, 6)?.set_column_width(1, 12)?.set_column_width(2, 100)?);
    let mut row = 0;
    for (number, report) in (1_u32..).zip(reports) {
        sheet.write_with_format(row, 0, number, &bold)?.write_with_format(row, 1, &report.title, &bold)?;
        row += 1;
        for section in &report.sections {
            let Body::Notes(notes) = &section.body else { continue };
            sheet.write(row, 1, &section.title)?;
            for note in notes {
                sheet.write(row, 2, note)?;
                row += 1;
            }
        }
    }
    Ok(())
}
