//! A report independent of its output format.

mod build;
mod chart;
mod grid;
mod plot;
mod printable;

pub use chart::{Bar, Family, Gauge, LoopPoint, Matrix, Point, Roof, Roofline, Slope, Stack, StackPart};
pub use grid::{Grid, Heading, Mark, Place, ProcessName, Record};
pub use plot::{Bars, Curve, Plot};

use crate::verdict::Verdict;

/// A report: sections under a title, with one column for each subject compared.
#[derive(Clone, Debug, PartialEq)]
pub struct Document {
    /// Title.
    pub title: String,
    /// The subject of each value in a row.
    pub columns: Vec<String>,
    /// Sections.
    pub sections: Vec<Section>,
}

/// A section of a report.
#[derive(Clone, Debug, PartialEq)]
pub struct Section {
    /// Title.
    pub title: String,
    /// Contents.
    pub body: Body,
}

/// The contents of a section.
#[derive(Clone, Debug, PartialEq)]
pub enum Body {
    /// Independent values.
    Facts(Vec<Row>),
    /// Parts of a whole, as fractions.
    Parts(Vec<Part>),
    /// Rows under separate headings.
    Table {
        /// The headings; the first is that of the labels.
        headings: Vec<String>,
        /// The rows.
        rows: Vec<Row>,
    },
    /// A long table with captions between its lines.
    Listing {
        /// The headings; the first is that of the labels.
        headings: Vec<String>,
        /// The lines.
        lines: Vec<Line>,
    },
    /// Sentences.
    Notes(Vec<String>),
    /// The verdict on a region.
    Verdict(Box<Verdict>),
    /// The same quantities for threads, CMGs and processes.
    Grid(Grid),
    /// Components of each thread's time.
    Stack(Stack),
    /// Utilisation of units.
    Gauges(Vec<Gauge>),
    /// Rates compared with the machine's peaks.
    Roofline(Roofline),
    /// Traffic from sources to destinations.
    Matrix(Matrix),
    /// Curves, which pages draw.
    Curves(Plot),
}

/// A line of a listing.
#[derive(Clone, Debug, PartialEq)]
pub enum Line {
    /// Caption of the rows below it.
    Caption(String),
    /// A value for each heading.
    Row(Row),
}

/// A label, and a value for each column (`None` if unknown).
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Label.
    pub label: String,
    /// Values.
    pub values: Vec<Option<Value>>,
}

/// A part of a whole, with its fraction for each column.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    /// Label.
    pub label: String,
    /// Whether it is useful work or loss.
    pub tone: Tone,
    /// Its fraction of each column's whole, from 0 to 1.
    pub fractions: Vec<Option<f64>>,
    /// Half of the width of the interval of each column's fraction; `None` if it is no estimate.
    pub half_widths: Vec<Option<f64>>,
}

/// Meaning of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// Useful work.
    Work,
    /// Waiting.
    Wait,
}

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A number and its unit, as in metrics.
    Number(f64, String),
    /// As `Number`, with half of the width of its confidence interval.
    Estimate(f64, String, f64),
    /// A word.
    Text(String),
    /// A fraction of a whole from 0 to 1, shown as a bar.
    Share(f64),
}

impl Value {
    /// Returns a number and its unit.
    #[must_use]
    pub fn number(number: f64, unit: &str) -> Value {
        Value::Number(number, unit.to_owned())
    }

    /// Returns a number with half of the width of its interval, if it has one.
    #[must_use]
    pub fn estimate(number: f64, unit: &str, half_width: Option<f64>) -> Value {
        match half_width {
            Some(half_width) => Value::Estimate(number, unit.to_owned(), half_width),
            None => Value::number(number, unit),
        }
    }
}

/// The report of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// What was run, where, and how it ended.
    pub title: String,
    /// The name that the user has given to it; empty: none.
    pub label: String,
    /// Settings of its machine, as `KEY=VALUE` with spaces between them.
    pub settings: String,
    /// Sections about the whole run.
    pub sections: Vec<Section>,
    /// Its regions, in the record's order.
    pub regions: Vec<RegionReport>,
}

/// The report of a region.
#[derive(Clone, Debug, PartialEq)]
pub struct RegionReport {
    /// Name.
    pub name: String,
    /// Number of times it was entered.
    pub calls: u64,
    /// Sections.
    pub sections: Vec<Section>,
}

impl Document {
    /// Returns the sections of several documents under the title of the first.
    #[must_use]
    pub fn joined(documents: &[Document]) -> Document {
        let title = documents.first().map_or_else(String::new, |first| first.title.clone());
        let sections = documents.iter().flat_map(|document| document.sections.iter().cloned()).collect();
        Document { title, columns: Vec::new(), sections }
    }

    /// Returns the document's matrices; `None` if it has none.
    #[must_use]
    pub fn matrices(mut self) -> Option<Document> {
        self.sections.retain(|section| matches!(section.body, Body::Matrix(_)));
        (!self.sections.is_empty()).then_some(self)
    }
}

impl Report {
    /// Returns the report as documents: that of the run, then one for each region.
    #[must_use]
    pub fn documents(self) -> Vec<Document> {
        let run = Document { title: self.title, columns: Vec::new(), sections: self.sections };
        let regions = self.regions.into_iter().map(|region| {
            let title = format!("Region {} ({})", region.name, calls(region.calls));
            Document { title, columns: Vec::new(), sections: region.sections }
        });
        std::iter::once(run).chain(regions).collect()
    }
}

/// Returns the number of times a region was entered, in words.
pub(crate) fn calls(calls: u64) -> String {
    if calls == 1 { "1 call".to_owned() } else { format!("{calls} calls") }
}
