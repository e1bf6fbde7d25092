//! The results of a sweep for other programs: a line for each run and region, a column for each setting and value, as CSV and
//! in an SQLite database.

use std::collections::HashSet;
use std::path::Path;

use rusqlite::types::Value as Sql;
use rusqlite::{Connection, params_from_iter};

use super::execute::Made;
use super::plan::{Plan, Scalar};
use crate::Error;

/// Columns before those of factors.
const BEFORE: [&str; 2] = ["run", "region"];
/// Columns between factors and values.
const BETWEEN: [&str; 4] = ["machine", "state", "message", "record"];
/// Ending of columns with half of the width of an estimate's interval.
const HALF_WIDTH: &str = "_half_width";
/// Most columns of an SQLite table (its default limit).
const MOST_COLUMNS: usize = 2000;

/// All results, as lines of cells.
#[derive(Clone, Debug, PartialEq)]
pub struct Tidy {
    /// Names of the columns.
    pub columns: Vec<String>,
    /// The lines, with a cell for each column; `None`: no value.
    pub lines: Vec<Vec<Option<Scalar>>>,
}

impl Tidy {
    /// Returns the results of a plan's runs. A run that failed has one line.
    #[must_use]
    pub fn of(plan: &Plan, made: &[Made]) -> Tidy {
        let values = value_columns(made);
        let factors = plan.factors.iter().map(|factor| factor.name.clone());
        let names = BEFORE.map(str::to_owned).into_iter().chain(factors).chain(BETWEEN.map(str::to_owned));
        let columns = names.chain(values.iter().cloned()).collect();
        let lines = (1..).zip(made).flat_map(|(number, made)| lines(plan, number, made, &values)).collect();
        Tidy { columns, lines }
    }

    /// Writes the lines as CSV.
    ///
    /// # Errors
    /// Write errors.
    pub fn write_csv(&self, out: impl std::io::Write) -> std::io::Result<()> {
        let mut csv = csv::Writer::from_writer(out);
        csv.write_record(&self.columns)?;
        for line in &self.lines {
            csv.write_record(line.iter().map(|cell| cell.as_ref().map_or_else(String::new, Scalar::to_string)))?;
        }
        csv.flush()
    }

    /// Writes the lines to the table `result` of a new SQLite database, which replaces `file` when it is whole.
    ///
    /// # Errors
    /// If there are too many columns, and write errors.
    pub fn write_sqlite(&self, file: &Path) -> Result<(), Error> {
        let failed = |what: String| Error::Request(format!("{}: cannot be written ({what})", file.display()));
        if self.columns.len() > MOST_COLUMNS {
            return Err(failed(format!("{} columns are more than a table has", self.columns.len())));
        }
        let folder = file.parent().unwrap_or(Path::new("."));
        let draft = tempfile::NamedTempFile::new_in(folder).map_err(|e| failed(e.to_string()))?;
        self.fill(draft.path()).map_err(|e| failed(e.to_string()))?;
        draft.persist(file).map_err(|e| failed(e.error.to_string()))?;
        Ok(())
    }

    fn fill(&self, file: &Path) -> rusqlite::Result<()> {
        let mut db = Connection::open(file)?;
        let whole = db.transaction()?;
        let names: Vec<String> = self.columns.iter().map(|name| format!("\"{}\"", name.replace('"', "\"\""))).collect();
        whole.execute(&format!("CREATE TABLE result ({})", names.join(", ")), [])?;
        let places = vec!["?"; names.len()].join(", ");
        let mut insert = whole.prepare(&format!("INSERT INTO result VALUES ({places})"))?;
        for line in &self.lines {
            insert.execute(params_from_iter(line.iter().map(sql)))?;
        }
        drop(insert);
        whole.commit()
    }
}

/// Returns whether a column of the results has this name whatever varies. Case does not matter in databases.
pub(super) fn is_own(name: &str) -> bool {
    BEFORE.iter().chain(&BETWEEN).any(|own| own.eq_ignore_ascii_case(name))
}

/// Returns the names of all values, in the order in which they first appear, and those of half widths behind theirs.
fn value_columns(made: &[Made]) -> Vec<String> {
    let mut seen = HashSet::new();
    let mut columns = Vec::new();
    for values in made.iter().filter_map(|made| made.outcome.as_ref().ok()).flat_map(|counted| &counted.regions) {
        for (name, _) in &values.1.all {
            if seen.insert(name.clone()) {
                columns.push(name.clone());
            }
            let half_width = format!("{name}{HALF_WIDTH}");
            if values.1.half_widths.contains_key(name) && seen.insert(half_width.clone()) {
                columns.push(half_width);
            }
        }
    }
    columns
}

fn lines(plan: &Plan, number: usize, made: &Made, values: &[String]) -> Vec<Vec<Option<Scalar>>> {
    let text = |text: &str| Some(Scalar::Text(text.to_owned()));
    let line = |region: Option<&str>, of_run: [Option<Scalar>; 4], of_region: Vec<Option<Scalar>>| {
        let factors = plan.factors.iter().map(|factor| made.point.get(&factor.name).cloned());
        let before = [Some(Scalar::Integer(number as i64)), region.and_then(text)];
        before.into_iter().chain(factors).chain(of_run).chain(of_region).collect()
    };
    match &made.outcome {
        Err(message) => vec![line(None, [None, text("failed"), text(message), None], vec![None; values.len()])],
        Ok(counted) => {
            let of_run = [text(&counted.machine), text("done"), None, text(&made.record.to_string_lossy())];
            let of_region = |(region, found): &(String, super::counted::Values)| {
                let all: std::collections::HashMap<&str, f64> =
                    found.all.iter().map(|(name, value)| (name.as_str(), *value)).collect();
                let cell = |name: &String| {
                    let half_width = || found.half_widths.get(name.strip_suffix(HALF_WIDTH)?).copied();
                    all.get(name.as_str()).copied().or_else(half_width).map(Scalar::Number)
                };
                line(Some(region), of_run.clone(), values.iter().map(cell).collect())
            };
            counted.regions.iter().map(of_region).collect()
        }
    }
}

fn sql(cell: &Option<Scalar>) -> Sql {
    match cell {
        None => Sql::Null,
        Some(Scalar::Flag(value)) => Sql::Integer((*value).into()),
        Some(Scalar::Integer(value)) => Sql::Integer(*value),
        Some(Scalar::Number(value)) => Sql::Real(*value),
        Some(Scalar::Text(value)) => Sql::Text(value.clone()),
    }
}
