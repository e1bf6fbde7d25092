//! The experiments as data: `data/guide/*.toml`.

use std::collections::BTreeSet;
use std::path::Path;

use fxscope_pmu::formula::Formula;
use fxscope_validate::{Libraries, Row, Run, Size, Suite};
use serde::Deserialize;

use crate::Error;

macro_rules! files {
    ($($name:literal),+ $(,)?) => {
        [$(($name, include_str!(concat!("../../../../data/guide/", $name, ".toml")))),+]
    };
}

/// The chapters that fxscope contains, in the order of the guide and of the studies: names and texts.
const FILES: &[(&str, &str)] = &files![
    "prefetch",
    "sfi",
    "largepage",
    "sector",
    "zfill",
    "alignment",
    "ooo",
    "simd-width",
    "power",
    "basic",
    "stream",
    "cmg",
    "openmp",
    "fx1",
    "knl",
    "flash",
    "k-tlb",
];

/// All chapters, with the measured rows that their cells name.
#[derive(Clone, Debug)]
pub struct Guide {
    /// The chapters, in the order of the sources.
    pub chapters: Vec<Chapter>,
    /// All measured rows and their runs.
    pub suite: Suite,
}

/// A chapter: a file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Chapter {
    /// Its name, with which the names of its experiments begin.
    pub chapter: String,
    /// Title.
    pub title: String,
    /// The chapter of the guide, or the study.
    pub source: String,
    /// Its experiments.
    #[serde(rename = "experiment")]
    pub experiments: Vec<Experiment>,
}

/// An experiment.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    /// Its name: that of the chapter, a dot, and one of its own.
    pub id: String,
    /// One line on what it compares.
    pub title: String,
    /// The question that it answers.
    pub question: String,
    /// What it shows, in sentences.
    pub shows: String,
    /// What is smaller than in the source, and why the result carries over; empty if nothing is.
    #[serde(default)]
    pub scaled: String,
    /// Items of `data/guide/items.csv` that it covers.
    pub items: Vec<String>,
    /// Approximate time of its runs on a host with two free cores, seconds.
    pub seconds: u32,
    /// The program of its runs if fxscope does not contain it.
    pub needs: Option<Needs>,
    /// Its tables.
    #[serde(default, rename = "table")]
    pub tables: Vec<Table>,
    /// The laboratory that has its tables.
    pub laboratory: Option<Laboratory>,
}

/// A program that is built in the sources, with libraries that fxscope does not contain.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Needs {
    /// Its name, as columns have it.
    pub program: String,
    /// Its file in the sources.
    pub file: String,
    /// The folder of its libraries in the sources.
    pub root: String,
    /// The command that makes both there.
    pub command: String,
}

impl Needs {
    /// Returns the program with its libraries in the folder of the sources.
    ///
    /// # Errors
    /// If it is not there: which command makes it.
    pub(super) fn find(&self, sources: &Path) -> Result<Libraries, String> {
        let Needs { program, file, root, command } = self;
        let found = Libraries::of(program, &sources.join(file), &sources.join(root));
        found.ok_or_else(|| format!("{file} and {root} are not here; make them in the sources with: {command}"))
    }
}

/// A table as in the source: rows, columns, and a figure in each cell.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Table {
    /// Title.
    pub title: String,
    /// What distinguishes the rows: the heading above their keys.
    pub rows: String,
    /// The rows' keys.
    pub keys: Vec<String>,
    /// What `{key}` stands for in arguments, options and formulas of runs; the keys themselves if it is empty.
    #[serde(default)]
    pub values: Vec<String>,
    /// Unit of the cells that name no measured row.
    #[serde(default)]
    pub unit: String,
    /// The same for each key, if they differ.
    #[serde(default)]
    pub units: Vec<String>,
    /// Whether the horizontal axis of its plot is logarithmic.
    #[serde(default)]
    pub logarithmic: bool,
    /// Its columns.
    #[serde(rename = "column")]
    pub columns: Vec<Column>,
}

/// A column of a table. For each key, it has a measured row or, where `figures` has none, a run of its own or, without a
/// program, a figure that the source states and nothing simulates.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Column {
    /// Title.
    pub title: String,
    /// Measured rows of `validation`, one for each key; empty names for cells without.
    #[serde(default)]
    pub figures: Vec<String>,
    /// The program of the column's own runs; empty without such runs.
    #[serde(default)]
    pub program: String,
    /// Its arguments, with `{key}` where keys differ.
    #[serde(default)]
    pub arguments: String,
    /// Options of `fxscope run`, with `{key}` where keys differ.
    #[serde(default)]
    pub options: String,
    /// Formula of the cell's figure over the counts of its own run.
    #[serde(default)]
    pub simulated: String,
    /// Figures that the source states for loops that are not public, one for each key; `nan` for cells without.
    #[serde(default)]
    pub stated: Vec<f64>,
}

/// A laboratory that answers the question with tables of its own.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Laboratory {
    /// An experiment of `fxscope pages experiment`, by name.
    Pages(String),
    /// `fxscope jitter linpack` on this machine.
    Linpack(String),
    /// `fxscope jitter simulate`: the cost of these noise models for phases between synchronisations.
    Noise(Noise),
    /// `fxscope latency check`: programs with slower memory.
    Latency(Latency),
    /// The lines that a stream's accesses prefetch.
    Prefetched(Prefetched),
}

/// Options of [`Laboratory::Noise`].
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Noise {
    /// Noise models, by name.
    pub models: Vec<String>,
    /// Numbers of nodes.
    pub nodes: Vec<u32>,
    /// Cores of each node that compute.
    pub cores_per_node: u32,
    /// The network, by name.
    pub network: String,
}

/// Options of [`Laboratory::Latency`].
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Latency {
    /// The machine.
    pub machine: String,
    /// Memory latencies, nanoseconds.
    pub latencies: Vec<f64>,
    /// The programs.
    pub programs: Vec<Subject>,
}

/// A program of [`Latency`].
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Subject {
    /// Name in the table.
    pub name: String,
    /// The program.
    pub program: String,
    /// Its arguments, separated by blanks.
    pub arguments: String,
    /// Its region.
    pub region: String,
}

/// Options of [`Laboratory::Prefetched`].
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prefetched {
    /// Distance into L1, lines.
    pub l1: u32,
    /// Distance into L2, lines.
    pub l2: u32,
    /// For each access after the first: the published lines prefetched into L2 and into L1, behind the first miss.
    pub published: Vec<[Vec<u64>; 2]>,
}

/// What a cell compares.
pub(super) enum Figure<'a> {
    /// A measured row.
    Row(&'a Row),
    /// A run without a published figure.
    Own(Run, Formula),
    /// A published figure without a run.
    Stated(f64),
    /// Nothing.
    None,
}

impl Guide {
    /// Returns the experiments that fxscope contains.
    ///
    /// # Errors
    /// If a file is invalid or names what does not exist: the file, and what is wrong. Tests read the same files.
    pub fn built_in() -> Result<Guide, Error> {
        Guide::of(FILES, Suite::built_in()?)
    }

    pub(super) fn of(files: &[(&str, &str)], suite: Suite) -> Result<Guide, Error> {
        let chapter = |(name, text): &(&str, &str)| {
            let wrong = |what: String| Error::Request(format!("data/guide/{name}.toml: {what}"));
            let chapter: Chapter = toml::from_str(text).map_err(|e| wrong(e.to_string()))?;
            if chapter.chapter != *name {
                return Err(wrong(format!("its chapter is '{}'; it must be named as the file", chapter.chapter)));
            }
            Ok(chapter)
        };
        let chapters = files.iter().map(chapter).collect::<Result<Vec<_>, Error>>()?;
        let guide = Guide { chapters, suite };
        guide.check()?;
        Ok(guide)
    }

    /// Returns all experiments, each with its chapter.
    pub fn experiments(&self) -> impl Iterator<Item = (&Chapter, &Experiment)> {
        self.chapters.iter().flat_map(|chapter| chapter.experiments.iter().map(move |experiment| (chapter, experiment)))
    }

    /// Returns the experiments of these names, which may be those of chapters; all if there are none.
    ///
    /// # Errors
    /// If there is no such experiment: the similar ones, or the chapters.
    pub fn choose(&self, names: &[String]) -> Result<Vec<(&Chapter, &Experiment)>, Error> {
        let is = |name: &str, (chapter, experiment): &(&Chapter, &Experiment)| {
            chapter.chapter == name || experiment.id == name
        };
        for name in names {
            if !self.experiments().any(|one| is(name, &one)) {
                return Err(self.unknown(name).into());
            }
        }
        let chosen = |one: &(&Chapter, &Experiment)| names.is_empty() || names.iter().any(|name| is(name, one));
        Ok(self.experiments().filter(chosen).collect())
    }

    fn unknown(&self, name: &str) -> String {
        let chapter = name.split('.').next().unwrap_or(name);
        let similar: Vec<&str> =
            self.experiments().filter(|(c, _)| c.chapter == chapter).map(|(_, e)| e.id.as_str()).collect();
        let chapters: Vec<&str> = self.chapters.iter().map(|c| c.chapter.as_str()).collect();
        let known =
            if similar.is_empty() { format!("the chapters {}", chapters.join(", ")) } else { similar.join(", ") };
        format!("unknown experiment '{name}'; choose from {known} (fxscope guide lists all)")
    }

    /// Returns a measured row.
    pub(super) fn row(&self, name: &str) -> Option<&Row> {
        self.suite.families.iter().flat_map(|family| &family.rows).map(|(row, _)| row).find(|row| row.row == name)
    }

    /// Returns what a cell compares.
    ///
    /// # Errors
    /// If there is no such row, or its own run is incomplete.
    pub(super) fn figure(&self, table: &Table, column: &Column, key: usize) -> Result<Figure<'_>, String> {
        match column.figures.get(key).map(String::as_str) {
            Some(name) if !name.is_empty() => {
                return self.row(name).map(Figure::Row).ok_or_else(|| format!("no measured row '{name}'"));
            }
            _ => {}
        }
        if !column.program.is_empty() {
            let formula = filled(table, &column.simulated, key);
            let formula = Formula::parse(&formula).map_err(|e| format!("formula '{formula}': {e}"))?;
            return Ok(Figure::Own(self.own_run(table, column, key), formula));
        }
        Ok(column
            .stated
            .get(key)
            .filter(|stated| !stated.is_nan())
            .map_or(Figure::None, |&stated| Figure::Stated(stated)))
    }

    /// Returns the run of a cell: that of a measured row if it is the same.
    fn own_run(&self, table: &Table, column: &Column, key: usize) -> Run {
        let [arguments, options] = [&column.arguments, &column.options].map(|text| filled(table, text, key));
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let same = |run: &&Run| {
            run.program == column.program
                && words(&run.arguments) == words(&arguments)
                && words(&run.options) == words(&options)
        };
        let known = self.suite.runs.values().find(same).cloned();
        known.unwrap_or_else(|| Run {
            run: format!("{} {arguments} {options}", column.program).trim_end().to_owned(),
            program: column.program.clone(),
            arguments,
            options,
            suite: Size::Full,
        })
    }

    /// Checks that experiments have unique names of their chapters, and cells what they name.
    fn check(&self) -> Result<(), Error> {
        let mut names = BTreeSet::new();
        for (chapter, experiment) in self.experiments() {
            let wrong = |what: String| format!("data/guide/{}.toml: {}: {what}", chapter.chapter, experiment.id);
            if experiment.id.split_once('.').is_none_or(|(first, _)| first != chapter.chapter) {
                return Err(wrong(format!("the name does not begin with '{}.'", chapter.chapter)).into());
            }
            if !names.insert(&experiment.id) {
                return Err(wrong("a second experiment has this name".to_owned()).into());
            }
            if experiment.tables.is_empty() == experiment.laboratory.is_none() {
                return Err(wrong("it needs tables or a laboratory, and not both".to_owned()).into());
            }
            for table in &experiment.tables {
                self.check_table(table).map_err(|e| wrong(format!("table '{}': {e}", table.title)))?;
            }
        }
        Ok(())
    }

    fn check_table(&self, table: &Table) -> Result<(), String> {
        let keys = table.keys.len();
        let fits = |length: usize| length == 0 || length == keys;
        for (what, length) in [("values", table.values.len()), ("units", table.units.len())] {
            if !fits(length) {
                return Err(format!("{length} {what} for {keys} keys"));
            }
        }
        for column in &table.columns {
            for (what, length) in [("figures", column.figures.len()), ("stated", column.stated.len())] {
                if !fits(length) {
                    return Err(format!("column '{}' has {length} {what} for {keys} keys", column.title));
                }
            }
            let is_own = |key: usize| {
                Ok::<_, String>(matches!(self.figure(table, column, key)?, Figure::Own(..) | Figure::Stated(_)))
            };
            for key in 0..keys {
                if is_own(key)? && table.unit_of(key).is_empty() {
                    return Err(format!(
                        "column '{}' has cells without a measured row; give the table a unit",
                        column.title
                    ));
                }
            }
        }
        Ok(())
    }
}

impl Table {
    /// Returns the unit of the cells of a row that name no measured row.
    pub(super) fn unit_of(&self, key: usize) -> &str {
        self.units.get(key).unwrap_or(&self.unit)
    }
}

/// Replaces `{key}` by the value of a row.
fn filled(table: &Table, text: &str, key: usize) -> String {
    let value = table.values.get(key).or(table.keys.get(key));
    text.replace("{key}", value.map_or("", String::as_str))
}
