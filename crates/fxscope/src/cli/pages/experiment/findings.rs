//! What an experiment has found, before it has a form.

use fxscope::machine::Spec;
use fxscope::report::document::{Body, Document, Plot, Row, Section, Value};
use serde_json::json;

/// What an experiment has found.
#[derive(Default)]
pub(super) struct Findings {
    /// Its tables.
    pub tables: Vec<Table>,
    /// Published figures beside it.
    pub published: Vec<Published>,
    /// What is seen, in sentences.
    pub seen: Vec<String>,
    /// Its plots.
    pub plots: Vec<Plot>,
}

/// A table: numbers for programs, and text for people.
pub(super) struct Table {
    pub title: &'static str,
    /// The first stands above the labels.
    pub headings: Vec<String>,
    pub rows: Vec<(String, Vec<Cell>)>,
}

/// A number, and how many digits of it are shown behind the point.
#[derive(Clone, Copy)]
pub(super) struct Cell(pub f64, pub usize);

/// A published figure.
pub(super) struct Published {
    /// Where it is from.
    pub id: &'static str,
    pub what: String,
    pub value: f64,
    pub unit: &'static str,
    /// The same here; none when the experiment does not have it.
    pub here: Option<f64>,
}

impl Published {
    /// How far off it is here, percent.
    fn error(&self) -> Option<f64> {
        Some(100.0 * (self.here? / self.value - 1.0))
    }
}

impl Cell {
    fn text(self) -> String {
        let Cell(number, digits) = self;
        if number.is_finite() { format!("{number:.digits$}") } else { "-".to_owned() }
    }
}

fn word(text: String) -> Option<Value> {
    Some(Value::Text(text))
}

/// A published or own number with its unit: four significant digits at most, as many as it needs.
fn quantity(number: f64, unit: &str) -> String {
    let rounded: f64 = format!("{number:.3e}").parse().unwrap_or(number);
    format!("{rounded} {unit}").trim_end().to_owned()
}

/// How far off a figure is, percent; nothing is off by no less than zero.
fn off(error: f64) -> String {
    let text = format!("{error:+.1} %");
    if text == "-0.0 %" { "+0.0 %".to_owned() } else { text }
}

impl Table {
    fn section(&self) -> Section {
        let row = |(label, cells): &(String, Vec<Cell>)| Row {
            label: label.clone(),
            values: cells.iter().map(|cell| word(cell.text())).collect(),
        };
        let rows = self.rows.iter().map(row).collect();
        Section { title: self.title.to_owned(), body: Body::Table { headings: self.headings.clone(), rows } }
    }

    fn json(&self) -> serde_json::Value {
        let object = |(label, cells): &(String, Vec<Cell>)| {
            let values = self.headings[1..].iter().zip(cells).map(|(name, cell)| (name.clone(), json!(cell.0)));
            let label = (self.headings[0].clone(), json!(label));
            serde_json::Value::Object(std::iter::once(label).chain(values).collect())
        };
        json!({ "title": self.title, "rows": self.rows.iter().map(object).collect::<Vec<_>>() })
    }
}

impl Findings {
    /// As text; `note` is what is said of every run on the machine.
    pub fn document(&self, title: &str, note: &str) -> Document {
        let mut sections: Vec<Section> = self.tables.iter().map(Table::section).collect();
        if !self.published.is_empty() {
            sections.push(self.comparison());
        }
        sections.push(Section { title: "Seen".to_owned(), body: Body::Notes(self.seen.clone()) });
        if !note.is_empty() {
            sections.push(Section { title: "Machine".to_owned(), body: Body::Notes(vec![note.to_owned()]) });
        }
        Document { title: title.to_owned(), columns: vec![String::new()], sections }
    }

    /// The same for a terminal, where tables have no titles of their own: a line above each says what it is, and its unit.
    pub fn lines(&self, title: &str, note: &str) -> Document {
        let Document { title, columns, sections } = self.document(title, note);
        let with_title = |section: Section| {
            let is_table = self.tables.iter().any(|table| table.title == section.title);
            let above = Section { title: "Table".to_owned(), body: Body::Notes(vec![section.title.clone()]) };
            is_table.then_some(above).into_iter().chain([section])
        };
        Document { title, columns, sections: sections.into_iter().flat_map(with_title).collect() }
    }

    fn comparison(&self) -> Section {
        let row = |figure: &Published| {
            let here = figure.here.map_or("-".to_owned(), |here| quantity(here, figure.unit));
            let error = figure.error().map_or("-".to_owned(), off);
            let values =
                vec![word(figure.id.to_owned()), word(quantity(figure.value, figure.unit)), word(here), word(error)];
            Row { label: figure.what.clone(), values }
        };
        let headings = ["figure", "row", "published", "here", "off"].map(str::to_owned).to_vec();
        let rows = self.published.iter().map(row).collect();
        Section { title: "Published".to_owned(), body: Body::Table { headings, rows } }
    }

    /// For programs.
    pub fn json(&self, name: &str, spec: &Spec, set: &[(String, String)], sizes: &[String]) -> serde_json::Value {
        let figure = |f: &Published| {
            json!({ "id": f.id, "what": f.what, "unit": f.unit, "published": f.value, "here": f.here,
                "error_percent": f.error() })
        };
        let settings: serde_json::Map<_, _> = set.iter().map(|(key, value)| (key.clone(), json!(value))).collect();
        json!({
            "experiment": name,
            "machine": spec.name,
            "machine_hash": fxscope::machine::hash(spec),
            "machine_note": spec.identity.note,
            "settings": settings,
            "page_sizes": sizes,
            "tables": self.tables.iter().map(Table::json).collect::<Vec<_>>(),
            "published": self.published.iter().map(figure).collect::<Vec<_>>(),
            "seen": self.seen,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_four_significant_digits_and_their_unit() {
        let cases = [(227.27 / 4.18, "54.37 x"), (2816.0, "2816 x"), (0.004_771_2, "0.004771 x"), (1.0, "1 x")];
        for (number, text) in cases {
            assert_eq!(quantity(number, "x"), text);
        }
        assert_eq!(quantity(13.0, ""), "13", "a ratio has no unit");
        assert_eq!([-0.04, 0.04, -0.06].map(off), ["+0.0 %", "+0.0 %", "-0.1 %"]);
    }
}
