//! What an experiment has found: its tables with published and simulated figures.

use std::collections::BTreeMap;

use fxscope_report::sheet::Sheet;
use fxscope_validate::{Outcome as RowOutcome, Results};

use super::data::Figure;
use super::{Chapter, Experiment, Guide, Table};
use crate::Error;

/// Unit of percentages, whose differences are points.
const POINTS: &str = "points";

/// An experiment after its runs.
#[derive(Clone, Debug)]
pub struct Outcome<'a> {
    /// Its chapter.
    pub chapter: &'a Chapter,
    /// The experiment.
    pub experiment: &'a Experiment,
    /// Its tables.
    pub tables: Vec<Shown<'a>>,
    /// What its laboratory has found, or why it has found nothing.
    pub laboratory: Option<Result<Sheet, String>>,
    /// Why it was not run, if the host does not have what it needs: it then has no tables.
    pub left_out: Option<String>,
}

/// A table after its runs.
#[derive(Clone, Debug)]
pub struct Shown<'a> {
    /// The table.
    pub table: &'a Table,
    /// Its cells: those of each row, by column.
    pub cells: Vec<Vec<Cell>>,
}

/// A cell of a table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cell {
    /// Its measured row, if it has one.
    pub row: Option<String>,
    /// The published figure.
    pub published: Option<f64>,
    /// The simulated figure.
    pub simulated: Option<f64>,
    /// Unit of both; `points` for percentages.
    pub unit: String,
    /// The difference: percent of the published figure, or points.
    pub error: Option<f64>,
    /// The difference in percent of the published figure, whatever the unit; `None` if that is 0.
    pub relative: Option<f64>,
    /// Whether the published figure, or one that states the same, was used to fit the model or a kernel.
    pub fitted: bool,
    /// What it was used to fit.
    pub fitted_to: String,
    /// Its run: the name of a measured row's, or its program with arguments and options.
    pub run: Option<String>,
    /// Why there is no simulated figure although there is a run.
    pub failure: Option<String>,
}

impl Cell {
    /// Returns whether it is a percentage.
    #[must_use]
    pub fn is_points(&self) -> bool {
        self.unit == POINTS
    }
}

impl Shown<'_> {
    /// Returns the unit that all cells with a figure have; `None` if they differ.
    #[must_use]
    pub fn unit(&self) -> Option<&str> {
        common(self.cells.iter().flatten())
    }

    /// Returns the unit of a row's cells; `None` if they differ.
    #[must_use]
    pub fn unit_of_row(&self, row: usize) -> Option<&str> {
        common(self.cells.get(row)?.iter())
    }

    /// Returns whether a column has a figure that `what` selects.
    #[must_use]
    pub fn has(&self, column: usize, what: impl Fn(&Cell) -> bool) -> bool {
        self.cells.iter().any(|row| row.get(column).is_some_and(&what))
    }
}

/// Returns the unit of all cells that have one.
fn common<'c>(cells: impl Iterator<Item = &'c Cell>) -> Option<&'c str> {
    let mut units = cells.map(|cell| cell.unit.as_str()).filter(|unit| !unit.is_empty());
    let first = units.next()?;
    units.all(|unit| unit == first).then_some(first)
}

/// Judges the cells of an experiment by the counts of its runs.
pub(super) fn tables<'a>(
    guide: &Guide,
    experiment: &'a Experiment,
    results: &Results,
    rows: &BTreeMap<&str, &RowOutcome<'_>>,
) -> Result<Vec<Shown<'a>>, Error> {
    let cells = |table: &'a Table| {
        let row = |key: usize| {
            let cell = |column| Ok(cell(guide.figure(table, column, key)?, table.unit_of(key), results, rows));
            table.columns.iter().map(cell).collect::<Result<Vec<Cell>, String>>()
        };
        let cells = (0..table.keys.len()).map(row).collect::<Result<_, String>>()?;
        Ok(Shown { table, cells })
    };
    experiment.tables.iter().map(cells).collect()
}

fn cell(figure: Figure<'_>, unit: &str, results: &Results, rows: &BTreeMap<&str, &RowOutcome<'_>>) -> Cell {
    match figure {
        Figure::None => Cell::default(),
        Figure::Stated(published) => Cell { published: Some(published), unit: unit.to_owned(), ..Cell::default() },
        Figure::Own(run, formula) => {
            let counts = results.get(&run.run).cloned().unwrap_or_else(|| Err("it was not run".to_owned()));
            let value = counts.and_then(|counts| counts.value(&formula, None));
            let (simulated, failure) = (value.clone().ok(), value.err());
            Cell { simulated, failure, unit: unit.to_owned(), run: Some(run.run), ..Cell::default() }
        }
        Figure::Row(row) => {
            let outcome = rows.get(row.row.as_str());
            let judgement = outcome.map(|outcome| outcome.judgement.clone());
            let judged = judgement.as_ref().and_then(|judgement| judgement.as_ref().ok());
            Cell {
                row: Some(row.row.clone()),
                published: Some(row.measured),
                simulated: judged.map(|judgement| judgement.simulated),
                unit: row.unit.clone(),
                error: judged.map(|judgement| judgement.error),
                relative: judged.and_then(|judgement| judgement.relative),
                fitted: outcome.is_some_and(|outcome| outcome.fitted),
                fitted_to: row.fitted.clone(),
                run: Some(row.run.clone()),
                failure: judgement.and_then(Result::err),
            }
        }
    }
}
