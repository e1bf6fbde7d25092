//! What a command has worked out, before it has a form.

use std::path::PathBuf;
use std::process::ExitCode;

use fxscope::report::document::{Body, Curve, Document, Part, Plot, Row, Section, Tone, Value};
use fxscope::report::render::{csv, html, terminal};
use serde_json::json;

use super::super::output::Target;
use super::super::{Failure, Outcome, print, style};

/// Where and how results are written.
#[derive(clap::Args)]
pub struct Form {
    /// Output format.
    #[arg(long, value_enum, default_value_t = Format::Terminal)]
    format: Format,
    /// Write to this file, which is replaced as a whole, or to standard output (-).
    #[arg(short, value_name = "FILE|-", default_value = "-", hide_default_value = true)]
    output: PathBuf,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    Terminal,
    /// All figures, for programs.
    Json,
    /// A page with plots that needs nothing but a browser.
    Html,
    /// A line for each value of tables and plots.
    Csv,
}

/// Tables, sentences and plots.
#[derive(Default)]
pub(super) struct Sheet {
    pub title: String,
    pub tables: Vec<Table>,
    /// Sentences under a title each.
    pub notes: Vec<(&'static str, Vec<String>)>,
    pub plots: Vec<Plot>,
    /// Bars for the terminal, of what plots show elsewhere: a title, and parts of a whole.
    pub bars: Vec<(&'static str, Vec<(String, f64)>)>,
}

/// A table; the first heading stands above the labels.
pub(super) struct Table {
    pub title: String,
    pub headings: Vec<String>,
    pub rows: Vec<(String, Vec<Cell>)>,
}

/// A value, and how people read it.
#[derive(Clone)]
pub(super) struct Cell {
    pub value: serde_json::Value,
    pub text: String,
}

impl Cell {
    /// A word.
    pub(super) fn word(text: impl Into<String>) -> Cell {
        let text = text.into();
        Cell { value: json!(text), text }
    }

    /// Nothing.
    pub(super) fn none() -> Cell {
        Cell { value: serde_json::Value::Null, text: "-".to_owned() }
    }

    /// A number with some digits behind the point.
    pub(super) fn number(value: f64, digits: usize) -> Cell {
        Cell { value: json!(value), text: format!("{value:.digits$}") }
    }

    /// A factor, with four digits behind the point, or four in all when it is large.
    pub(super) fn factor(value: f64) -> Cell {
        let digits = match value {
            v if v < 10.0 => 4,
            v if v < 100.0 => 2,
            v if v < 1000.0 => 1,
            _ => 0,
        };
        Cell::number(value, digits)
    }

    /// A share of 1, as per cent.
    pub(super) fn share(value: f64) -> Cell {
        let percent = value * 100.0;
        let text = match percent.abs() {
            p if p < 0.0005 => "0 %".to_owned(),
            p if p < 0.1 => format!("{percent:.3} %"),
            _ => format!("{percent:.2} %"),
        };
        Cell { value: json!(value), text }
    }

    /// A time in nanoseconds that is not known to more than four digits.
    pub(super) fn about(ns: f64) -> Cell {
        let digits = if ns > 0.0 { 10f64.powf(3.0 - ns.log10().floor()) } else { 1.0 };
        Cell { value: json!(ns), text: fxscope::jitter::Time((ns * digits).round() / digits).to_string() }
    }

    /// A time in nanoseconds.
    pub(super) fn time(ns: f64) -> Cell {
        Cell { value: json!(ns), text: fxscope::jitter::Time(ns).to_string() }
    }
}

impl Table {
    pub(super) fn new(title: impl Into<String>, headings: &[&str]) -> Table {
        let headings = headings.iter().map(|&h| h.to_owned()).collect();
        Table { title: title.into(), headings, rows: Vec::new() }
    }

    fn section(&self) -> Section {
        let row = |(label, cells): &(String, Vec<Cell>)| Row {
            label: label.clone(),
            values: cells.iter().map(|cell| Some(Value::Text(cell.text.clone()))).collect(),
        };
        let rows = self.rows.iter().map(row).collect();
        Section { title: self.title.clone(), body: Body::Table { headings: self.headings.clone(), rows } }
    }

    fn json(&self) -> serde_json::Value {
        let object = |(label, cells): &(String, Vec<Cell>)| {
            let values = self.headings[1..].iter().zip(cells).map(|(name, cell)| (name.clone(), cell.value.clone()));
            let label = (self.headings[0].clone(), json!(label));
            serde_json::Value::Object(std::iter::once(label).chain(values).collect())
        };
        json!({ "title": self.title, "rows": self.rows.iter().map(object).collect::<Vec<_>>() })
    }

    /// A line for each value.
    fn csv(&self, out: &mut String) {
        for (label, cells) in &self.rows {
            for (heading, cell) in self.headings[1..].iter().zip(cells) {
                let value = match &cell.value {
                    serde_json::Value::String(text) => text.clone(),
                    serde_json::Value::Null => String::new(),
                    other => other.to_string(),
                };
                csv::line(out, &[&self.title, label, heading, &value]);
            }
        }
    }
}

fn plot_json(plot: &Plot) -> serde_json::Value {
    let curve = |curve: &Curve| json!({ "label": curve.label, "points": curve.points });
    let curves: Vec<_> = plot.curves.iter().map(curve).collect();
    json!({ "title": plot.title, "across": plot.across, "up": plot.up, "curves": curves })
}

/// A line for each point: what is across is its row, the curve its column.
fn plot_csv(plot: &Plot, out: &mut String) {
    for curve in &plot.curves {
        for (across, up) in &curve.points {
            csv::line(out, &[&plot.title, &across.to_string(), &curve.label, &up.to_string()]);
        }
    }
}

impl Sheet {
    fn document(&self) -> Document {
        let mut sections: Vec<Section> = self.tables.iter().map(Table::section).collect();
        for (title, parts) in self.bars.iter().filter(|bars| !bars.1.is_empty()) {
            let part = |(label, share): &(String, f64)| Part {
                label: label.clone(),
                tone: Tone::Wait,
                fractions: vec![Some(*share)],
            };
            let body = Body::Parts(parts.iter().map(part).collect());
            sections.push(Section { title: (*title).to_owned(), body });
        }
        for (title, sentences) in self.notes.iter().filter(|note| !note.1.is_empty()) {
            sections.push(Section { title: (*title).to_owned(), body: Body::Notes(sentences.clone()) });
        }
        Document { title: self.title.clone(), columns: vec![String::new()], sections }
    }

    fn json(&self) -> serde_json::Value {
        let notes: serde_json::Map<_, _> = self.notes.iter().map(|(t, n)| (t.to_lowercase(), json!(n))).collect();
        json!({
            "title": self.title,
            "tables": self.tables.iter().map(Table::json).collect::<Vec<_>>(),
            "notes": notes,
            "plots": self.plots.iter().map(plot_json).collect::<Vec<_>>(),
        })
    }

    fn csv(&self) -> String {
        let mut out = "table,row,column,value\n".to_owned();
        self.tables.iter().for_each(|table| table.csv(&mut out));
        self.plots.iter().for_each(|plot| plot_csv(plot, &mut out));
        out
    }

    /// Shows it on the terminal.
    pub(super) fn show(&self) -> Outcome {
        print(terminal::render(&[self.document()], style(&std::io::stdout())))?;
        Ok(ExitCode::SUCCESS)
    }

    /// Writes it as asked for.
    pub(super) fn write(&self, form: &Form, target: Target) -> Outcome {
        match (form.format, &target) {
            (Format::Terminal, Target::StandardOutput) => return self.show(),
            (Format::Terminal, _) => {
                let plain = terminal::Style { unicode: true, colour: false };
                target.write_bytes(terminal::render(&[self.document()], plain).as_bytes())?;
            }
            (Format::Json, _) => target.write(&self.json())?,
            (Format::Html, _) => target.write_bytes(html::experiment(&self.document(), &self.plots).as_bytes())?,
            (Format::Csv, _) => target.write_bytes(self.csv().as_bytes())?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

impl Form {
    /// The place, checked before there is anything to write.
    pub(super) fn target(&self) -> Result<Target, Failure> {
        Target::check(&self.output)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_have_the_digits_that_tell() {
        for (share, text) in [(0.5, "50.00 %"), (0.0024, "0.24 %"), (0.00024, "0.024 %"), (0.0, "0 %")] {
            assert_eq!(Cell::share(share).text, text);
        }
    }
}
