//! One table's sheet.

use std::collections::HashMap;

use rust_xlsxwriter::{Color, Format, Worksheet, XlsxError};

use crate::document::{Grid, Heading, Mark, Place};

/// The columns before those of the table.
const PLACE: [&str; 5] = ["Run", "Region", "Part", "Thread", "CPU"];
/// Rows of headings: name and unit.
const HEADINGS: u32 = 2;

/// A sheet that regions are added to.
pub struct TableSheet<'a> {
    sheet: &'a mut Worksheet,
    /// Columns of the table by identifier.
    columns: HashMap<String, (u16, Format)>,
    row: u32,
    heading: Format,
    bad: Color,
    good: Color,
}

impl<'a> TableSheet<'a> {
    pub fn new(sheet: &'a mut Worksheet, name: &str) -> Result<TableSheet<'a>, XlsxError> {
        sheet.set_name(name)?;
        let heading = Format::new().set_bold().set_text_wrap().set_background_color(Color::RGB(0xf0_f3f6));
        for (column, text) in (0..).zip(PLACE) {
            sheet.write_with_format(0, column, text, &heading)?.write_with_format(1, column, "", &heading)?;
        }
        sheet.set_column_width(1, 20)?.set_column_width(2, 12)?.set_row_height(0, 48)?;
        let (bad, good) = (Color::RGB(0xfd_d9c4), Color::RGB(0xcb_eedd));
        Ok(TableSheet { sheet, columns: HashMap::new(), row: HEADINGS, heading, bad, good })
    }

    /// Adds the rows of a region.
    pub fn add(&mut self, run: usize, region: &str, grid: &Grid) -> Result<(), XlsxError> {
        let columns = grid.headings.iter().map(|heading| self.column(heading)).collect::<Result<Vec<_>, _>>()?;
        for (index, record) in grid.records.iter().enumerate() {
            self.sheet.write(self.row, 0, run as u32)?.write(self.row, 1, region)?;
            self.place(record.place)?;
            for (i, value) in record.values.iter().enumerate() {
                let (Some(value), (column, format)) = (value, &columns[i]) else { continue };
                match grid.mark(index, i) {
                    Some(mark) => self.marked(*column, *value, format, mark)?,
                    None => {
                        self.sheet.write_with_format(self.row, *column, *value, format)?;
                    }
                }
            }
            self.row += 1;
        }
        Ok(())
    }

    /// The place of a quantity's column and how its numbers look.
    fn column(&mut self, heading: &Heading) -> Result<(u16, Format), XlsxError> {
        if let Some(known) = self.columns.get(&heading.id) {
            return Ok(known.clone());
        }
        let column = (PLACE.len() + self.columns.len()) as u16;
        let name = format!("{} {}", heading.id, heading.title);
        let unit = if heading.unit == "ratio" { "%" } else { &heading.unit };
        self.sheet.write_with_format(0, column, name.trim(), &self.heading)?;
        self.sheet.write_with_format(1, column, unit, &self.heading)?.set_column_width(column, 14)?;
        let entry = (column, Format::new().set_num_format(number_format(&heading.unit)));
        self.columns.insert(heading.id.clone(), entry.clone());
        Ok(entry)
    }

    fn place(&mut self, place: Place) -> Result<(), XlsxError> {
        self.sheet.write(self.row, 2, place.label())?;
        if let Place::Thread { thread, cpu, .. } = place {
            self.sheet.write(self.row, 3, thread)?.write(self.row, 4, cpu)?;
        }
        Ok(())
    }

    /// A cell that stands out; the note beside it says why.
    fn marked(&mut self, column: u16, value: f64, format: &Format, mark: &Mark) -> Result<(), XlsxError> {
        let format = format.clone().set_background_color(if mark.good { self.good } else { self.bad });
        self.sheet.write_with_format(self.row, column, value, &format)?;
        self.sheet.insert_note(self.row, column, &rust_xlsxwriter::Note::new(&mark.reading).set_author("fxscope"))?;
        Ok(())
    }

    /// Headings that stay in sight, and filters.
    pub fn finish(self) -> Result<(), XlsxError> {
        let last = (PLACE.len() + self.columns.len()) as u16 - 1;
        self.sheet.set_freeze_panes(HEADINGS, 3)?;
        if self.row > HEADINGS {
            self.sheet.autofilter(HEADINGS - 1, 0, self.row - 1, last)?;
        }
        Ok(())
    }
}

/// How numbers of a unit look.
fn number_format(unit: &str) -> &'static str {
    match unit {
        "ratio" => "0.00%",
        "s" => "0.000E+00",
        "cycles" | "instructions" | "count" | "lines" | "FLOP" => "#,##0",
        _ => "0.000",
    }
}
