//! The tables of the CPU performance analysis report: columns with their identifiers, and marks of remarkable values.

use crate::TableError;
use crate::formula::{Formula, Operator};
use crate::metrics::{Metrics, Total};

/// A table of the report.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// Letter.
    pub id: String,
    /// Title.
    pub title: String,
    /// Columns, in order.
    pub columns: Vec<Column>,
}

/// A column of a table.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// Identifier, such as "A01".
    pub id: String,
    /// Unit.
    pub unit: String,
    /// Whether it has a value for each thread.
    pub threads: bool,
    /// Whether it has a value for CMGs and regions.
    pub totals: bool,
    /// Alternative contents: the first that has a value is shown.
    pub(crate) forms: Vec<Form>,
    /// Marks of its cells.
    pub marks: Vec<Mark>,
}

impl Column {
    /// Its title if everything was measured.
    #[must_use]
    pub fn title(&self) -> &str {
        &self.forms[0].title
    }
}

/// Contents that a column may have.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Form {
    pub title: String,
    /// The metric whose missing events are reported.
    pub metric: Option<String>,
    /// The index of its formula among all definitions.
    pub place: usize,
}

/// What a mark means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Tone {
    /// Desirable.
    Good,
    /// Worth a look.
    Caution,
}

/// A condition that marks cells of columns, and its meaning.
#[derive(Clone, Debug, PartialEq, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mark {
    /// The identifiers of the columns.
    columns: Vec<String>,
    /// Marks values above this.
    pub above: Option<f64>,
    /// Marks values below this.
    pub below: Option<f64>,
    /// Another metric that must be large enough.
    pub with: Option<Condition>,
    /// What the mark means.
    pub tone: Tone,
    /// How to interpret it.
    pub rule: String,
}

/// A metric that must be large enough.
#[derive(Clone, Debug, PartialEq, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Condition {
    /// Its name.
    pub metric: String,
    /// Its minimum.
    pub at_least: f64,
}

impl Mark {
    /// Returns whether a cell with this value is marked; `other` is the value of the metric in [`Mark::with`].
    #[must_use]
    pub fn holds(&self, value: f64, other: Option<f64>) -> bool {
        let out = self.above.is_some_and(|limit| value > limit) || self.below.is_some_and(|limit| value < limit);
        out && self.with.as_ref().is_none_or(|with| other.is_some_and(|other| other >= with.at_least))
    }
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    table: Vec<TableEntry>,
    mark: Vec<Mark>,
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct TableEntry {
    id: String,
    title: String,
    unit: Option<String>,
    times: Option<String>,
    columns: Vec<ColumnEntry>,
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct ColumnEntry {
    id: String,
    title: Option<String>,
    unit: Option<String>,
    of: String,
    #[serde(default)]
    or: Vec<String>,
    times: Option<String>,
    total: Option<Total>,
    #[serde(default = "yes")]
    threads: bool,
    #[serde(default = "yes")]
    totals: bool,
}

fn yes() -> bool {
    true
}

/// Parses tables, adding the formulas of their columns to `metrics`.
///
/// # Errors
/// The error and its location.
pub(crate) fn parse(file: &str, text: &str, metrics: &mut Metrics) -> Result<Vec<Table>, TableError> {
    let error = |what: String| TableError { file: file.to_owned(), what };
    let parsed: File = toml::from_str(text).map_err(|e| error(e.to_string()))?;
    let mut tables: Vec<Table> = Vec::new();
    for entry in &parsed.table {
        let mut columns: Vec<Column> = Vec::new();
        for c in &entry.columns {
            let known = tables.iter().flat_map(|t| &t.columns).chain(&columns);
            if known.into_iter().any(|known| known.id == c.id) {
                return Err(error(format!("{}: a second column has this identifier", c.id)));
            }
            columns.push(column(entry, c, metrics).map_err(|what| error(format!("{}: {what}", c.id)))?);
        }
        tables.push(Table { id: entry.id.clone(), title: entry.title.clone(), columns });
    }
    for mark in parsed.mark {
        if let Some(with) = mark.with.as_ref().filter(|with| metrics.named(&with.metric).is_none()) {
            return Err(error(format!("unknown metric '{}'", with.metric)));
        }
        for id in &mark.columns {
            let column = tables.iter_mut().flat_map(|t| &mut t.columns).find(|c| c.id == *id);
            let column = column.ok_or_else(|| error(format!("no column has the identifier '{id}'")))?;
            column.marks.push(mark.clone());
        }
    }
    Ok(tables)
}

fn column(table: &TableEntry, entry: &ColumnEntry, metrics: &mut Metrics) -> Result<Column, String> {
    let factors = [&table.times, &entry.times].into_iter().flatten();
    let factors = factors.map(|text| Formula::parse(text)).collect::<Result<Vec<_>, _>>()?;
    let mut unit = entry.unit.clone().or_else(|| table.unit.clone());
    let mut forms = Vec::new();
    for text in std::iter::once(&entry.of).chain(&entry.or) {
        let metric = metrics.named(text);
        let title = metric.map(|m| m.title.clone()).or_else(|| entry.title.clone());
        let title = entry.title.clone().or(title).ok_or("a column that is not a metric needs a title")?;
        let rules = metric.map_or((Total::Sum, Total::Sum), |m| (m.total, m.whole));
        let (total, whole) = entry.total.map_or(rules, |total| (total, total));
        unit = unit.or_else(|| metric.map(|m| m.unit.clone()));
        let metric = metric.map(|m| m.name.clone());
        let times = |a, b: &Formula| Formula::Join(Operator::Multiply, Box::new(a), Box::new(b.clone()));
        let formula = factors.iter().fold(Formula::parse(text)?, times);
        forms.push(Form { title, metric, place: metrics.define(&formula, total, whole)? });
    }
    let unit = unit.ok_or("a column that is not a metric needs a unit")?;
    let ColumnEntry { id, threads, totals, .. } = entry;
    Ok(Column { id: id.clone(), unit, threads: *threads, totals: *totals, forms, marks: Vec::new() })
}
