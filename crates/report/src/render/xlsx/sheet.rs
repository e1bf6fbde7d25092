//! One table's sheet.

use std::collections::{BTreeMap, HashMap};

use rust_xlsxwriter::{Color, Format, Note, Worksheet, XlsxError};

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
    /// How cells of a column that stand out are read.
    readings: BTreeMap<u16, Vec<String>>,
    row: u32,
    bad: Color,
    good: Color,
}

impl<'a> TableSheet<'a> {
    /// A sheet with these columns, whose rows are added afterwards.
    pub fn new(sheet: &'a mut Worksheet, name: &str, headings: &[&Heading]) -> Result<TableSheet<'a>, XlsxError> {
        super::fit(sheet.set_name(name)?);
        sheet.set_column_width(1, 20)?.set_column_width(2, 12)?.set_row_height(0, 48)?;
        let bold = Format::new().set_bold().set_text_wrap().set_background_color(Color::RGB(0xf0_f3f6));
        let titles = headings.iter().map(|heading| format!("{} {}", heading.id, heading.title));
        for (column, text) in (0..).zip(PLACE.map(str::to_owned).into_iter().chain(titles)) {
            sheet.write_with_format(0, column, text.trim(), &bold)?;
        }
        let mut columns = HashMap::new();
        for (column, heading) in (PLACE.len() as u16..).zip(headings) {
            let unit = if heading.unit == "ratio" { "%" } else { &heading.unit };
            sheet.write_with_format(1, column, unit, &bold)?.set_column_width(column, 14)?;
            let format = Format::new().set_num_format(number_format(&heading.unit));
            // Cells without a format of their own have their column's; looking one up for each would take most of the time.
            sheet.set_column_format(column, &format)?;
            columns.insert(heading.id.clone(), (column, format));
        }
        let (bad, good) = (Color::RGB(0xfd_d9c4), Color::RGB(0xcb_eedd));
        Ok(TableSheet { sheet, columns, readings: BTreeMap::new(), row: HEADINGS, bad, good })
    }

    /// Adds the rows of a region.
    pub fn add(&mut self, run: usize, region: &str, grid: &Grid) -> Result<(), XlsxError> {
        let columns: Vec<_> = grid.headings.iter().map(|heading| self.columns[&heading.id].clone()).collect();
        for (index, record) in grid.records.iter().enumerate() {
            self.sheet.write(self.row, 0, run as u32)?.write(self.row, 1, region)?;
            self.place(record.place)?;
            for (i, value) in record.values.iter().enumerate() {
                let (Some(value), (column, format)) = (value, &columns[i]) else { continue };
                match grid.mark(index, i) {
                    Some(mark) => self.marked(*column, *value, format, mark)?,
                    None => {
                        self.sheet.write_number(self.row, *column, *value)?;
                    }
                }
            }
            self.row += 1;
        }
        Ok(())
    }

    fn place(&mut self, place: Place) -> Result<(), XlsxError> {
        self.sheet.write(self.row, 2, place.label())?;
        if let Place::Thread { thread, cpu, .. } = place {
            self.sheet.write(self.row, 3, thread)?.write(self.row, 4, cpu)?;
        }
        Ok(())
    }

    /// A cell that stands out; a note at the column's heading says why.
    fn marked(&mut self, column: u16, value: f64, format: &Format, mark: &Mark) -> Result<(), XlsxError> {
        let format = format.clone().set_background_color(if mark.good { self.good } else { self.bad });
        self.sheet.write_with_format(self.row, column, value, &format)?;
        let readings = self.readings.entry(column).or_default();
        if !readings.contains(&mark.reading) {
            readings.push(mark.reading.clone());
        }
        Ok(())
    }

    /// Headings that stay in sight, and filters.
    pub fn finish(self) -> Result<(), XlsxError> {
        for (column, readings) in &self.readings {
            let note = Note::new(readings.join("\n")).set_author("fxscope");
            self.sheet.insert_note(0, *column, &note)?;
        }
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
