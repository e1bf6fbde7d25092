//! The measured rows and the runs that reproduce them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use fxscope_pmu::formula::Formula;
use serde::Deserialize;

use crate::built_in;
use crate::programs::{self, PROGRAMS, Program};

/// The file of the runs.
const RUNS: &str = "runs.csv";
/// The file of the gaps. Every CSV file of the folder is a family of rows, except this one, that of the runs and that of the
/// programs.
const GAPS: &str = "gaps.csv";

/// Prefix of names of the run in a row's `before`.
pub(crate) const BEFORE: &str = "before_";

/// Which suite a run belongs to.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, PartialOrd, Ord)]
#[serde(rename_all = "lowercase")]
pub enum Size {
    /// Both suites.
    Quick,
    /// The full suite only.
    Full,
}

/// One line of `runs.csv`: a program with its options for `fxscope run`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Run {
    /// Its name.
    pub run: String,
    /// A prebuilt kernel.
    pub program: String,
    /// Arguments of the program, separated by blanks.
    pub arguments: String,
    /// Options of `fxscope run`, separated by blanks.
    pub options: String,
    /// The suites that have it.
    pub suite: Size,
}

/// Whether a gap's cause is known to the model.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// The model differs from the machine.
    Open,
    /// The model, or a kernel, was fitted to rows that name the gap: they check nothing.
    Fitted,
}

/// One line of `gaps.csv`: a known difference between the model and the machine, or a rule fitted to measured rows.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Gap {
    /// Its name, which rows refer to.
    pub gap: String,
    /// State of knowledge.
    pub status: Status,
    /// The difference, in one sentence.
    pub what: String,
    /// The measurement or document that would settle it.
    pub would_close: String,
    /// The page with the experiments; may be empty.
    pub note: String,
}

/// One measured result.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// Its name in the reference data.
    pub row: String,
    /// What was measured.
    pub what: String,
    /// The run that reproduces it.
    pub run: String,
    /// A second run that the formula compares with; may be empty.
    pub before: String,
    /// The formula of the measured figure: names are events and metrics of the run's last region, `cycles` and `seconds` of
    /// its slowest thread, and all of these of the second run with the prefix `before_`.
    pub simulated: String,
    /// The measured value.
    pub measured: f64,
    /// Its unit. In `points`, the error is a difference; otherwise a ratio.
    pub unit: String,
    /// Accepted error without a gap: percent, or points.
    pub tolerance: f64,
    /// The error when it was last accepted: percent, or points.
    pub error: f64,
    /// The gap in `gaps.csv` that explains an error outside the tolerance; may be empty.
    pub gap: String,
    /// What the measured value was used to fit, so that it no longer tests it, separated by blanks; usually empty, and always
    /// in programs that check the model ([`Part`](crate::Part)). A key of
    /// the machine's description, a gap in `gaps.csv` (for a rule, or an order of instructions), `kernel` for a kernel that
    /// was built to reproduce it, `rule` for a rule that a comment in the model's code names.
    #[serde(default)]
    pub fitted: String,
    /// Where the measured value was published.
    pub source: String,
}

/// The rows of one file.
#[derive(Clone, Debug)]
pub struct Family {
    /// The file's name without its suffix.
    pub name: String,
    /// The file.
    pub file: PathBuf,
    /// Its rows, each with its formula.
    pub rows: Vec<(Row, Formula)>,
}

/// All rows and runs of a folder, or a part of them.
#[derive(Clone, Debug)]
pub struct Suite {
    /// Families by name.
    pub families: Vec<Family>,
    /// Runs by name.
    pub runs: BTreeMap<String, Run>,
    /// Gaps by name; empty if the folder has no file of gaps.
    pub gaps: BTreeMap<String, Gap>,
    /// Programs of the runs; empty if the folder has no file of programs.
    pub programs: Vec<Program>,
}

/// The text of a file, and its path for messages.
pub(crate) struct Text {
    pub(crate) file: PathBuf,
    pub(crate) content: String,
}

impl Suite {
    /// Reads all files of a folder.
    ///
    /// # Errors
    /// If a file cannot be read, a line is invalid, or two lines contradict each other: the file, the line and what to do.
    pub fn read(folder: &Path) -> Result<Suite, String> {
        Suite::of(folder, texts(folder)?)
    }

    /// Returns the rows that fxscope contains: those of the folder `validation` of its sources.
    ///
    /// # Errors
    /// As [`Suite::read`]; tests read the same files.
    pub fn built_in() -> Result<Suite, String> {
        let folder = Path::new("validation");
        let text = |(name, content)| Text { file: folder.join(name), content };
        Suite::of(folder, built_in::rows()?.into_iter().map(text).collect())
    }

    fn of(folder: &Path, files: Vec<Text>) -> Result<Suite, String> {
        let (shared, families): (Vec<_>, Vec<_>) = files.into_iter().partition(|text| is_shared(&text.file));
        let named = |name: &str| shared.iter().find(|text| text.file.ends_with(name));
        let mut runs = BTreeMap::new();
        let file = named(RUNS).ok_or_else(|| format!("{}: there is no {RUNS}", folder.display()))?;
        for (line, run) in lines::<Run>(file)? {
            if let Some(twice) = runs.insert(run.run.clone(), run) {
                return Err(format!(
                    "{}:{line}: a run '{}' exists already; choose another name",
                    file.file.display(),
                    twice.run
                ));
            }
        }
        let mut gaps = BTreeMap::new();
        for (_, gap) in named(GAPS).map_or_else(|| Ok(Vec::new()), lines::<Gap>)? {
            gaps.insert(gap.gap.clone(), gap);
        }
        let programs = named(PROGRAMS).map_or_else(|| Ok(Vec::new()), programs::read)?;
        let mut suite = Suite { families: Vec::new(), runs, gaps, programs };
        let mut seen = BTreeMap::new();
        for text in families {
            let family = suite.family(&text)?;
            for (row, _) in &family.rows {
                if let Some(other) = seen.insert(row.row.clone(), family.name.clone()) {
                    let file = family.file.display();
                    return Err(format!("{file}: row '{}' is also in {other}.csv; keep one of them", row.row));
                }
            }
            suite.families.push(family);
        }
        if suite.families.is_empty() {
            return Err(format!("{}: has no rows; a family is a CSV file beside {RUNS}", folder.display()));
        }
        suite.check_programs().map_err(|e| format!("{}: {e}", folder.display()))?;
        Ok(suite)
    }

    fn family(&self, text: &Text) -> Result<Family, String> {
        let mut rows = Vec::new();
        for (line, row) in lines::<Row>(text)? {
            let formula = self.check(&row).map_err(|e| format!("{}:{line}: {e}", text.file.display()))?;
            rows.push((row, formula));
        }
        let name = text.file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        Ok(Family { name, file: text.file.clone(), rows })
    }

    /// Returns the formula of a row, after checking its values.
    fn check(&self, row: &Row) -> Result<Formula, String> {
        for name in [&row.run, &row.before] {
            if !name.is_empty() && !self.runs.contains_key(name) {
                return Err(format!("no run '{name}' in {RUNS}"));
            }
        }
        if row.run.is_empty() {
            return Err(format!("row '{}' names no run", row.row));
        }
        if !row.gap.is_empty() && !self.gaps.contains_key(&row.gap) {
            return Err(format!("no gap '{}' in {GAPS}; add a line for it", row.gap));
        }
        let points = row.is_points();
        if !row.measured.is_finite() || (!points && row.measured <= 0.0) {
            return Err(format!("measured is {}; a number above zero is needed, or the unit 'points'", row.measured));
        }
        if !(row.tolerance.is_finite() && row.tolerance > 0.0) {
            return Err(format!("tolerance is {}; a number of percent or points above zero is needed", row.tolerance));
        }
        let formula = Formula::parse(&row.simulated).map_err(|e| format!("formula '{}': {e}", row.simulated))?;
        let compares = formula.names().iter().any(|name| name.starts_with(BEFORE));
        if compares == row.before.is_empty() {
            return Err(format!("names with '{BEFORE}' in the formula and a run in the column 'before' go together"));
        }
        Ok(formula)
    }

    /// Selects the rows of a suite: `quick`, `full`, the name of a family or of a row.
    ///
    /// # Errors
    /// If there is no such name: the available ones.
    pub fn choose(mut self, name: &str) -> Result<Suite, String> {
        let quick = |runs: &BTreeMap<String, Run>, row: &Row| {
            row.runs().all(|run| runs.get(run).is_some_and(|run| run.suite == Size::Quick))
        };
        let family = self.families.iter().any(|f| f.name == name);
        for f in &mut self.families {
            f.rows.retain(|(row, _)| match name {
                "full" => true,
                "quick" => quick(&self.runs, row),
                _ if family => f.name == name,
                _ => row.row == name,
            });
        }
        let families: Vec<_> = self.families.iter().map(|f| f.name.clone()).collect();
        self.families.retain(|f| !f.rows.is_empty());
        if self.families.is_empty() {
            let families = families.join(", ");
            return Err(format!(
                "unknown suite '{name}'; choose from quick, full, the families {families}, and their rows"
            ));
        }
        Ok(self)
    }

    /// Returns the runs that its rows need, each once.
    #[must_use]
    pub fn needed(&self) -> Vec<&Run> {
        let wanted: std::collections::BTreeSet<_> =
            self.families.iter().flat_map(|f| &f.rows).flat_map(|(row, _)| row.runs()).collect();
        wanted.into_iter().filter_map(|name| self.runs.get(name)).collect()
    }
}

impl Suite {
    /// Returns the rows whose measured values were used to fit `what`, in order.
    pub fn fitted_to<'a>(&'a self, what: &'a str) -> impl Iterator<Item = &'a Row> {
        let rows = self.families.iter().flat_map(|family| &family.rows).map(|(row, _)| row);
        rows.filter(move |row| row.is_fitted_to(what))
    }
}

impl Row {
    /// Returns whether its measured value was used to fit `what` ([`Row::fitted`]).
    #[must_use]
    pub fn is_fitted_to(&self, what: &str) -> bool {
        self.fitted.split_whitespace().any(|fitted| fitted == what)
    }

    /// Returns the names of its runs.
    pub fn runs(&self) -> impl Iterator<Item = &str> {
        [self.run.as_str(), self.before.as_str()].into_iter().filter(|name| !name.is_empty())
    }

    /// Returns whether it is a factor between two values.
    #[must_use]
    pub fn is_ratio(&self) -> bool {
        matches!(self.unit.as_str(), "ratio" | "x")
    }

    /// Returns whether its error is a difference.
    #[must_use]
    pub fn is_points(&self) -> bool {
        self.unit == "points"
    }
}

/// Returns whether a file is one of those that all families share.
fn is_shared(file: &Path) -> bool {
    [RUNS, GAPS, PROGRAMS].iter().any(|name| file.ends_with(name))
}

/// Largest file of a family, bytes.
const MOST_BYTES: u64 = 64 << 20;

/// Reads the CSV files of a folder, by name.
fn texts(folder: &Path) -> Result<Vec<Text>, String> {
    let failed = |e: std::io::Error| format!("{}: {e}", folder.display());
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        files.extend(path.extension().is_some_and(|e| e == "csv").then_some(path));
    }
    files.sort();
    let read = |file: PathBuf| {
        let content = fxscope_host::read_text(&file, MOST_BYTES).map_err(|e| e.to_string())?;
        Ok(Text { file, content })
    };
    files.into_iter().map(read).collect()
}

/// Reads the lines of a CSV file with headings, with their line numbers.
pub(crate) fn lines<T: serde::de::DeserializeOwned>(text: &Text) -> Result<Vec<(u64, T)>, String> {
    let failed = |e: csv::Error| match e.position() {
        Some(at) => format!("{}:{}: {e}", text.file.display(), at.line()),
        None => format!("{}: {e}", text.file.display()),
    };
    let mut reader = csv::Reader::from_reader(text.content.as_bytes());
    let headings = reader.headers().map_err(failed)?.clone();
    let mut lines = Vec::new();
    for record in reader.records() {
        let record = record.map_err(failed)?;
        let line = record.position().map_or(0, csv::Position::line);
        lines.push((line, record.deserialize(Some(&headings)).map_err(failed)?));
    }
    Ok(lines)
}
