//! Results of a laboratory: tables, sentences and plots, which become text, a page, CSV or JSON.

use serde::Serialize;
use serde_json::{Value as Json, json};

use crate::document::{Body, Curve, Document, Part, Plot, Row, Section, Tone};
use crate::render::{csv, html};

/// Tables, sentences and plots under a title.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sheet {
    /// Title.
    pub title: String,
    /// Its tables.
    pub tables: Vec<Table>,
    /// Sentences, each list under a title.
    pub notes: Vec<(&'static str, Vec<String>)>,
    /// Its plots, for pages and CSV.
    pub plots: Vec<Plot>,
    /// Bars that replace plots in text: a title, and the parts of a whole with their fractions.
    pub bars: Vec<(&'static str, Vec<(String, f64)>)>,
}

/// A table with labelled rows.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// Title.
    pub title: String,
    /// Its columns; the first is that of the labels.
    pub columns: Vec<Column>,
    /// Labels and cells.
    pub rows: Vec<(String, Vec<Cell>)>,
}

/// A column of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Title.
    pub title: String,
    /// Unit; `None` if values have none, or each has its own.
    pub unit: Option<&'static str>,
}

/// A value for programs, and its text for people.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    value: Json,
    text: String,
}

impl Column {
    /// Returns a column whose values have no common unit.
    #[must_use]
    pub fn new(title: impl Into<String>) -> Column {
        Column { title: title.into(), unit: None }
    }

    /// Sets the unit of the values.
    #[must_use]
    pub fn in_unit(self, unit: &'static str) -> Column {
        Column { unit: Some(unit), ..self }
    }

    /// Returns its heading: title and unit.
    #[must_use]
    pub fn heading(&self) -> String {
        match self.unit {
            Some(unit) => format!("{}, {unit}", self.title),
            None => self.title.clone(),
        }
    }
}

impl<T: Into<String>> From<T> for Column {
    fn from(title: T) -> Column {
        Column::new(title)
    }
}

impl Cell {
    /// Returns a cell with a value and its text.
    ///
    /// # Panics
    /// If the value has no JSON form: a map whose keys are not text.
    #[must_use]
    pub fn new(value: impl Serialize, text: impl Into<String>) -> Cell {
        Cell { value: json!(value), text: text.into() }
    }

    /// Returns a cell with a word.
    #[must_use]
    pub fn word(text: impl Into<String>) -> Cell {
        let text = text.into();
        Cell { value: json!(text), text }
    }

    /// Returns an empty cell.
    #[must_use]
    pub fn none() -> Cell {
        Cell { value: Json::Null, text: "-".to_owned() }
    }

    /// Returns a number with this many decimals; empty if it is not finite.
    #[must_use]
    pub fn number(value: f64, digits: usize) -> Cell {
        if value.is_finite() { Cell::new(value, format!("{value:.digits$}")) } else { Cell::none() }
    }

    /// Returns a factor with four decimals, or four digits in all if it is large.
    #[must_use]
    pub fn factor(value: f64) -> Cell {
        let digits = match value {
            v if v < 10.0 => 4,
            v if v < 100.0 => 2,
            v if v < 1000.0 => 1,
            _ => 0,
        };
        Cell::number(value, digits)
    }

    /// Returns a fraction in percent.
    #[must_use]
    pub fn share(value: f64) -> Cell {
        let percent = value * 100.0;
        let text = match percent.abs() {
            p if p < 0.0005 => "0 %".to_owned(),
            p if p < 0.1 => format!("{percent:.3} %"),
            _ => format!("{percent:.2} %"),
        };
        Cell { value: json!(value), text }
    }

    /// Returns its text.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns its value.
    #[must_use]
    pub fn value(&self) -> &Json {
        &self.value
    }

    /// Returns its value as a CSV field.
    fn field(&self) -> String {
        match &self.value {
            Json::String(text) => text.clone(),
            Json::Null => String::new(),
            other => other.to_string(),
        }
    }
}

impl Table {
    /// Returns a table without rows; the first column is that of the labels.
    #[must_use]
    pub fn new(title: impl Into<String>, columns: impl IntoIterator<Item = impl Into<Column>>) -> Table {
        Table { title: title.into(), columns: columns.into_iter().map(Into::into).collect(), rows: Vec::new() }
    }

    /// Sets the rows.
    #[must_use]
    pub fn with_rows(self, rows: impl IntoIterator<Item = (String, Vec<Cell>)>) -> Table {
        Table { rows: rows.into_iter().collect(), ..self }
    }

    /// Adds a row.
    pub fn push(&mut self, label: impl Into<String>, cells: Vec<Cell>) {
        self.rows.push((label.into(), cells));
    }

    /// Returns the table as a section of a document.
    #[must_use]
    pub fn section(&self) -> Section {
        let row = |(label, cells): &(String, Vec<Cell>)| Row::of_texts(label, cells.iter().map(Cell::text));
        Section::table(&self.title, self.columns.iter().map(Column::heading), self.rows.iter().map(row).collect())
    }

    /// Returns the table for programs: an object for each row, by heading.
    #[must_use]
    pub fn json(&self) -> Json {
        let headings: Vec<String> = self.columns.iter().map(Column::heading).collect();
        let object = |(label, cells): &(String, Vec<Cell>)| {
            let values = headings[1..].iter().zip(cells).map(|(name, cell)| (name.clone(), cell.value.clone()));
            let label = (headings[0].clone(), json!(label));
            Json::Object(std::iter::once(label).chain(values).collect())
        };
        json!({ "title": self.title, "rows": self.rows.iter().map(object).collect::<Vec<_>>() })
    }

    /// Appends a line for each value.
    fn csv(&self, out: &mut String) {
        for (label, cells) in &self.rows {
            for (column, cell) in self.columns[1..].iter().zip(cells) {
                csv::line(out, &[&self.title, label, &column.heading(), &cell.field()]);
            }
        }
    }
}

fn plot_json(plot: &Plot) -> Json {
    let curve = |curve: &Curve| json!({ "label": curve.label, "points": curve.points });
    let curves: Vec<_> = plot.curves.iter().map(curve).collect();
    json!({ "title": plot.title, "across": plot.across, "up": plot.up, "curves": curves })
}

/// Appends a line for each point: its horizontal position is the row, its curve the column.
fn plot_csv(plot: &Plot, out: &mut String) {
    for curve in &plot.curves {
        for (across, up) in &curve.points {
            csv::line(out, &[&plot.title, &across.to_string(), &curve.label, &up.to_string()]);
        }
    }
}

impl Sheet {
    /// Returns the sheet as a document.
    #[must_use]
    pub fn document(&self) -> Document {
        let mut sections: Vec<Section> = self.tables.iter().map(Table::section).collect();
        for (title, parts) in self.bars.iter().filter(|bars| !bars.1.is_empty()) {
            let part = |(label, share): &(String, f64)| Part {
                label: label.clone(),
                tone: Tone::Wait,
                fractions: vec![Some(*share)],
                half_widths: vec![None],
            };
            let body = Body::Parts(parts.iter().map(part).collect());
            sections.push(Section { title: (*title).to_owned(), body });
        }
        let notes = self.notes.iter().filter(|note| !note.1.is_empty());
        sections.extend(notes.map(|(title, sentences)| Section::notes(*title, sentences.clone())));
        Document::of(&self.title, sections)
    }

    /// Returns the sheet for programs.
    #[must_use]
    pub fn json(&self) -> Json {
        let notes: serde_json::Map<_, _> = self.notes.iter().map(|(t, n)| (t.to_lowercase(), json!(n))).collect();
        json!({
            "title": self.title,
            "tables": self.tables.iter().map(Table::json).collect::<Vec<_>>(),
            "notes": notes,
            "plots": self.plots.iter().map(plot_json).collect::<Vec<_>>(),
        })
    }

    /// Returns the sheet as CSV: one line for each value of tables and plots.
    #[must_use]
    pub fn csv(&self) -> String {
        let mut out = "table,row,column,value\n".to_owned();
        self.tables.iter().for_each(|table| table.csv(&mut out));
        self.plots.iter().for_each(|plot| plot_csv(plot, &mut out));
        out
    }

    /// Returns the sheet as a page with plots.
    #[must_use]
    pub fn html(&self) -> String {
        html::experiment(&self.document(), &self.plots)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        Table::new("Speed", [Column::new("pages"), Column::new("time").in_unit("ms")])
            .with_rows([("64KiB".to_owned(), vec![Cell::number(1.25, 1)]), ("2MiB".to_owned(), vec![Cell::none()])])
    }

    #[test]
    fn shares_have_the_digits_that_matter() {
        for (share, text) in [(0.5, "50.00 %"), (0.0024, "0.24 %"), (0.00024, "0.024 %"), (0.0, "0 %")] {
            assert_eq!(Cell::share(share).text(), text);
        }
    }

    #[test]
    fn a_number_that_is_not_finite_is_not_a_value() {
        assert_eq!(Cell::number(f64::NAN, 2), Cell::none());
    }

    #[test]
    fn headings_have_the_unit_in_every_form() {
        let section = table().section();
        assert!(matches!(&section.body, Body::Table { headings, .. } if headings == &["pages", "time, ms"]));
        let json = table().json();
        assert_eq!(json["rows"][0], json!({ "pages": "64KiB", "time, ms": 1.25 }));
        assert_eq!(json["rows"][1]["time, ms"], Json::Null);
        let sheet = Sheet { tables: vec![table()], ..Sheet::default() };
        assert_eq!(sheet.csv(), "table,row,column,value\nSpeed,64KiB,\"time, ms\",1.25\nSpeed,2MiB,\"time, ms\",\n");
    }
}
