//! Results of an experiment, before they are formatted.

use fxscope_report::document::{Document, Plot, Row, Section};
use fxscope_report::sheet::Table;
use serde_json::json;

use super::{Experiment, bench::Bench};

/// Results of an experiment.
#[derive(Clone, Debug, Default)]
pub struct Findings {
    /// Its tables.
    pub tables: Vec<Table>,
    /// Published figures beside it.
    pub published: Vec<Published>,
    /// Conclusions, in sentences.
    pub seen: Vec<String>,
    /// Its plots.
    pub plots: Vec<Plot>,
}

/// A published figure.
#[derive(Clone, Debug)]
pub struct Published {
    /// Its row in the published data.
    pub id: &'static str,
    /// What it is.
    pub what: String,
    /// Its value.
    pub value: f64,
    /// The value's unit.
    pub unit: &'static str,
    /// The same figure here; `None` if the experiment does not have it.
    pub here: Option<f64>,
}

impl Published {
    /// Returns the error of the figure here, percent.
    #[must_use]
    pub fn error(&self) -> Option<f64> {
        Some(100.0 * (self.here? / self.value - 1.0))
    }
}

/// Formats a number with its unit, to at most four significant digits.
fn quantity(number: f64, unit: &str) -> String {
    let rounded: f64 = format!("{number:.3e}").parse().unwrap_or(number);
    format!("{rounded} {unit}").trim_end().to_owned()
}

/// Formats an error, percent, without a negative zero.
fn off(error: f64) -> String {
    let text = format!("{error:+.1} %");
    if text == "-0.0 %" { "+0.0 %".to_owned() } else { text }
}

impl Findings {
    /// Returns the results as a document; `note` applies to every run on the machine.
    fn document(&self, title: &str, note: &str) -> Document {
        let mut sections: Vec<Section> = self.tables.iter().map(Table::section).collect();
        if !self.published.is_empty() {
            sections.push(self.comparison());
        }
        sections.push(Section::notes("Seen", self.seen.clone()));
        if !note.is_empty() {
            sections.push(Section::notes("Machine", vec![note.to_owned()]));
        }
        Document::of(title, sections)
    }

    /// Returns the results for a terminal, where tables have no titles: a line above each has its title and unit.
    fn lines(&self, title: &str, note: &str) -> Document {
        let Document { title, sections, .. } = self.document(title, note);
        let with_title = |section: Section| {
            let is_table = self.tables.iter().any(|table| table.title == section.title);
            let above = Section::notes("Table", vec![section.title.clone()]);
            is_table.then_some(above).into_iter().chain([section])
        };
        Document::of(title, sections.into_iter().flat_map(with_title).collect())
    }

    fn comparison(&self) -> Section {
        let row = |figure: &Published| {
            let here = figure.here.map_or("-".to_owned(), |here| quantity(here, figure.unit));
            let error = figure.error().map_or("-".to_owned(), off);
            let published = quantity(figure.value, figure.unit);
            Row::of_texts(&figure.what, [figure.id.to_owned(), published, here, error])
        };
        let headings = ["figure", "row", "published", "here", "off"];
        Section::table("Published", headings, self.published.iter().map(row).collect())
    }
}

/// A finished experiment.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Its results.
    pub findings: Findings,
    name: &'static str,
    title: String,
    machine: serde_json::Value,
    note: String,
    page_sizes: Vec<String>,
}

impl Outcome {
    pub(super) fn new(experiment: &Experiment, bench: &Bench<'_>, findings: Findings) -> Outcome {
        let settings: serde_json::Map<_, _> =
            bench.set.iter().map(|(key, value)| (key.clone(), json!(value))).collect();
        Outcome {
            findings,
            name: experiment.name,
            title: format!("{} on {}", experiment.title, bench.spec.name),
            machine: json!({
                "name": bench.spec.name,
                "hash": fxscope_machine::hash(&bench.spec),
                "settings": settings,
            }),
            note: bench.spec.identity.note.clone(),
            page_sizes: bench.sizes.iter().map(|&bytes| fxscope_machine::settings::size(bytes)).collect(),
        }
    }

    /// Returns it for a page.
    #[must_use]
    pub fn document(&self) -> Document {
        self.findings.document(&self.title, &self.note)
    }

    /// Returns it for a terminal.
    #[must_use]
    pub fn lines(&self) -> Document {
        self.findings.lines(&self.title, &self.note)
    }

    /// Returns it for programs.
    #[must_use]
    pub fn json(&self) -> serde_json::Value {
        let figure = |f: &Published| {
            json!({ "id": f.id, "what": f.what, "unit": f.unit, "published": f.value, "here": f.here,
                "error_percent": f.error() })
        };
        json!({
            "experiment": self.name,
            "machine": self.machine["name"],
            "machine_hash": self.machine["hash"],
            "machine_note": self.note,
            "settings": self.machine["settings"],
            "page_sizes": self.page_sizes,
            "tables": self.findings.tables.iter().map(Table::json).collect::<Vec<_>>(),
            "published": self.findings.published.iter().map(figure).collect::<Vec<_>>(),
            "seen": self.findings.seen,
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
