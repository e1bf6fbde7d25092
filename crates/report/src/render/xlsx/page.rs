//! A sheet that prints on one A3 page: the tables of a run's first region, one below the other.

use rust_xlsxwriter::{Color, Format, Workbook, Worksheet, XlsxError};

use super::{Place, grids};
use crate::document::Grid;
use crate::render::html::of_few;
use crate::render::scale::Scale;

/// A3 among the paper sizes of workbooks.
const A3: u8 = 8;

/// Adds the sheet of each run.
pub fn sheets(book: &mut Workbook, places: &[Place]) -> Result<(), XlsxError> {
    let mut last = 0;
    for place in places {
        if place.run != last {
            last = place.run;
            let sheet = book.add_worksheet();
            sheet.set_name(format!("Page {}", place.run))?;
            write(sheet, place)?;
        }
    }
    Ok(())
}

fn write(sheet: &mut Worksheet, place: &Place) -> Result<(), XlsxError> {
    sheet.set_paper_size(A3).set_landscape().set_print_fit_to_pages(1, 1);
    let bold = Format::new().set_bold();
    sheet.write_with_format(0, 0, format!("Region {}", place.region.name), &bold)?;
    let mut row = 2;
    for (title, grid) in grids(place.region) {
        sheet.write_with_format(row, 0, format!("{} {title}", grid.id), &bold)?;
        row = table(sheet, row + 1, &of_few(grid))? + 1;
    }
    Ok(())
}

/// Writes a table; returns the row below it.
fn table(sheet: &mut Worksheet, first: u32, grid: &Grid) -> Result<u32, XlsxError> {
    let heading = Format::new().set_text_wrap().set_background_color(Color::RGB(0xf0_f3f6));
    for (column, of) in (1..).zip(&grid.headings) {
        let index = usize::from(column) - 1;
        let scale = Scale::of(&of.unit, grid.records.iter().filter_map(|record| record.values[index]));
        let title = format!("{} {}, {}", of.id, of.title, scale.unit);
        sheet.write_with_format(first, column, title.trim_end_matches(", "), &heading)?;
        let digits = "0".repeat(scale.digits);
        let number =
            Format::new().set_num_format(if digits.is_empty() { "0".to_owned() } else { format!("0.{digits}") });
        for (row, record) in (first + 1..).zip(&grid.records) {
            if let Some(value) = record.values[index] {
                sheet.write_number_with_format(row, column, value * scale.factor, &number)?;
            }
        }
    }
    for (row, record) in (first + 1..).zip(&grid.records) {
        sheet.write(row, 0, record.place.label())?;
    }
    Ok(first + 1 + grid.records.len() as u32)
}
