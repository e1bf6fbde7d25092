//! The sheet of one table.

use std::collections::{BTreeMap, HashMap};

use rust_xlsxwriter::{Color, Format, Note, Workbook, Worksheet, XlsxError};

use crate::document::{Grid, Heading, Mark, Place};

/// The columns before those of the table.
const PLACE: [&str; 5] = ["Run", "Region", "Part", "Thread", "CPU"];
/// Heading rows: title and unit.
const HEADINGS: u32 = 2;

/// Number formats: shares, times, counts, others.
const NUMBERS: [&str; 4] = ["0.00%", "0.000E+00", "#,##0", "0.000"];

/// The formats of all tables.
pub struct Formats {
    heading: Format,
    /// For each of [`NUMBERS`]: plain, unfavourable and favourable.
    numbers: [[Format; 3]; NUMBERS.len()],
}

impl Formats {
    /// Registers the formats in a workbook in a fixed order, so that their numbers do not depend on which sheet uses
    /// one first.
    pub fn register(book: &mut Workbook) -> Formats {
        let heading = Format::new().set_bold().set_text_wrap().set_background_color(Color::RGB(0xf0_f3f6));
        let (bad, good) = (Color::RGB(0xfd_d9c4), Color::RGB(0xcb_eedd));
        let number = |text| {
            let plain = Format::new().set_num_format(text);
            [plain.clone(), plain.clone().set_background_color(bad), plain.set_background_color(good)]
        };
        let formats = Formats { heading, numbers: NUMBERS.map(number) };
        [&formats.heading].into_iter().chain(formats.numbers.iter().flatten()).for_each(|f| book.register_format(f));
        formats
    }

    /// The formats for numbers of a unit.
    fn of(&self, unit: &str) -> &[Format; 3] {
        let place = match unit {
            "ratio" => 0,
            "s" => 1,
            "cycles" | "instructions" | "count" | "lines" | "FLOP" => 2,
            _ => 3,
        };
        &self.numbers[place]
    }
}

/// A sheet to which regions are added.
pub struct TableSheet<'a> {
    sheet: Worksheet,
    /// Columns of the table by identifier, with their formats.
    columns: HashMap<&'a str, (u16, &'a [Format; 3])>,
    /// Interpretations of a column's marked cells.
    readings: BTreeMap<u16, Vec<String>>,
    row: u32,
}

impl<'a> TableSheet<'a> {
    /// Creates an empty sheet with these columns.
    pub fn new(
        mut sheet: Worksheet,
        name: &str,
        headings: &[&'a Heading],
        formats: &'a Formats,
    ) -> Result<TableSheet<'a>, XlsxError> {
        super::fit(sheet.set_name(name)?);
        sheet.set_column_width(1, 20)?.set_column_width(2, 12)?.set_row_height(0, 48)?;
        let titles = headings.iter().map(|heading| format!("{} {}", heading.id, heading.title));
        for (column, text) in (0..).zip(PLACE.map(str::to_owned).into_iter().chain(titles)) {
            sheet.write_with_format(0, column, text.trim(), &formats.heading)?;
        }
        let mut columns = HashMap::new();
        for (column, heading) in (PLACE.len() as u16..).zip(headings) {
            let unit = if heading.unit == "ratio" { "%" } else { &heading.unit };
            sheet.write_with_format(1, column, unit, &formats.heading)?.set_column_width(column, 14)?;
            let formats = formats.of(&heading.unit);
            // Cells without their own format use their column's; looking one up for each cell would take most of the
            // time.
            sheet.set_column_format(column, &formats[0])?;
            columns.insert(heading.id.as_str(), (column, formats));
        }
        Ok(TableSheet { sheet, columns, readings: BTreeMap::new(), row: HEADINGS })
    }

    /// Adds the rows of a region.
    pub fn add(&mut self, run: usize, region: &str, grid: &Grid) -> Result<(), XlsxError> {
        let columns: Vec<_> = grid.headings.iter().map(|heading| self.columns[heading.id.as_str()]).collect();
        for (index, record) in grid.records.iter().enumerate() {
            self.sheet.write(self.row, 0, run as u32)?.write(self.row, 1, region)?;
            self.place(record.place)?;
            for (i, value) in record.values.iter().enumerate() {
                let (Some(value), (column, formats)) = (value, columns[i]) else { continue };
                match grid.mark(index, i) {
                    Some(mark) => self.marked(column, *value, formats, mark)?,
                    None => {
                        self.sheet.write_number(self.row, column, *value)?;
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

    /// A marked cell; a note at the column's heading explains it.
    fn marked(&mut self, column: u16, value: f64, formats: &[Format; 3], mark: &Mark) -> Result<(), XlsxError> {
        self.sheet.write_with_format(self.row, column, value, &formats[1 + usize::from(mark.good)])?;
        let readings = self.readings.entry(column).or_default();
        if !readings.contains(&mark.reading) {
            readings.push(mark.reading.clone());
        }
        Ok(())
    }

    /// Returns the sheet with frozen headings and filters.
    pub fn finish(mut self) -> Result<Worksheet, XlsxError> {
        for (column, readings) in &self.readings {
            let note = Note::new(readings.join("\n")).set_author("fxscope");
            self.sheet.insert_note(0, *column, &note)?;
        }
        let last = (PLACE.len() + self.columns.len()) as u16 - 1;
        self.sheet.set_freeze_panes(HEADINGS, 3)?;
        if self.row > HEADINGS {
            self.sheet.autofilter(HEADINGS - 1, 0, self.row - 1, last)?;
        }
        Ok(self.sheet)
    }
}
