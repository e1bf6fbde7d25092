//! A report before it has a format.

mod build;
mod chart;
mod grid;
mod plot;
mod printable;

pub use chart::{Bar, Family, Gauge, Matrix, Point, Roof, Roofline, Slope, Stack, StackPart};
pub use grid::{Grid, Heading, Mark, Place, Record};
pub use plot::{Curve, Plot};

/// A report: sections under a title, with one column for each thing compared.
#[derive(Clone, Debug, PartialEq)]
pub struct Document {
    /// What it is about.
    pub title: String,
    /// What each value of a row belongs to.
    pub columns: Vec<String>,
    /// Its parts.
    pub sections: Vec<Section>,
}

/// A part of a report.
#[derive(Clone, Debug, PartialEq)]
pub struct Section {
    /// Its title.
    pub title: String,
    /// What it says.
    pub body: Body,
}

/// What a section says.
#[derive(Clone, Debug, PartialEq)]
pub enum Body {
    /// Independent values.
    Facts(Vec<Row>),
    /// Parts of a whole, as fractions of it.
    Parts(Vec<Part>),
    /// Rows under headings of their own.
    Table {
        /// The headings; the first stands above the labels.
        headings: Vec<String>,
        /// The rows.
        rows: Vec<Row>,
    },
    /// A long table whose lines have captions among them.
    Listing {
        /// The headings; the first stands above the labels.
        headings: Vec<String>,
        /// The lines.
        lines: Vec<Line>,
    },
    /// Sentences.
    Notes(Vec<String>),
    /// The same quantities for threads, CMGs and processes.
    Grid(Grid),
    /// What each thread's time is made of.
    Stack(Stack),
    /// How busy units are.
    Gauges(Vec<Gauge>),
    /// Rates against what the machine can do.
    Roofline(Roofline),
    /// What goes from where to where.
    Matrix(Matrix),
}

/// A line of a listing.
#[derive(Clone, Debug, PartialEq)]
pub enum Line {
    /// What the rows below it belong to.
    Caption(String),
    /// A value for each heading.
    Row(Row),
}

/// A label and a value for each column; none where it is not known.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// What the values are.
    pub label: String,
    /// The values.
    pub values: Vec<Option<Value>>,
}

/// A part of a whole, with its fraction for each column.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    /// What it is.
    pub label: String,
    /// Whether it is what one wants, or loss.
    pub tone: Tone,
    /// The fraction of each column's whole, from 0 to 1.
    pub fractions: Vec<Option<f64>>,
}

/// What a part means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// Work is done.
    Work,
    /// Something is waited for.
    Wait,
}

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A number and its unit, as metrics name them.
    Number(f64, String),
    /// A word.
    Text(String),
    /// A fraction of a whole from 0 to 1, to be drawn.
    Share(f64),
}

impl Value {
    /// A number and its unit.
    #[must_use]
    pub fn number(number: f64, unit: &str) -> Value {
        Value::Number(number, unit.to_owned())
    }
}

/// All that is reported about one run.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// What was run, where, and how it ended.
    pub title: String,
    /// The run as a whole.
    pub sections: Vec<Section>,
    /// Its regions, in the record's order.
    pub regions: Vec<RegionReport>,
}

/// All that is reported about one region.
#[derive(Clone, Debug, PartialEq)]
pub struct RegionReport {
    /// Its name.
    pub name: String,
    /// Times it was entered.
    pub calls: u64,
    /// Its parts.
    pub sections: Vec<Section>,
}

impl Document {
    /// What the document says about where things go; `None` when it says nothing about it.
    #[must_use]
    pub fn matrices(mut self) -> Option<Document> {
        self.sections.retain(|section| matches!(section.body, Body::Matrix(_)));
        (!self.sections.is_empty()).then_some(self)
    }
}

impl Report {
    /// The report as documents: that of the run, then each region's.
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

/// How often a region was entered, in words.
pub(crate) fn calls(calls: u64) -> String {
    if calls == 1 { "1 call".to_owned() } else { format!("{calls} calls") }
}
