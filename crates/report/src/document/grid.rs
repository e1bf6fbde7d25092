//! Tables with the same quantities for threads, CMGs and processes.

use fxscope_record::Run;

/// A table of a report.
#[derive(Clone, Debug, PartialEq)]
pub struct Grid {
    /// Identifier: a letter or a word.
    pub id: String,
    /// Columns.
    pub headings: Vec<Heading>,
    /// Rows: parts before their totals.
    pub records: Vec<Record>,
    /// Marked cells, column by column, by ascending rows.
    pub marks: Vec<Mark>,
}

/// Heading of a column.
#[derive(Clone, Debug, PartialEq)]
pub struct Heading {
    /// Identifier, such as "A01".
    pub id: String,
    /// Title.
    pub title: String,
    /// Unit, as in metrics.
    pub unit: String,
}

/// A row of a table.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// What it is about.
    pub place: Place,
    /// A value for each heading; `None` if unknown.
    pub values: Vec<Option<f64>>,
}

/// A process in a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessName {
    /// Its number in the record.
    pub number: u32,
    /// Whether the number is its rank.
    pub is_rank: bool,
}

impl ProcessName {
    /// Returns the name of process `number` of a run.
    #[must_use]
    pub fn of(run: &Run, number: u32) -> ProcessName {
        let is_rank = run.parallel.processes.iter().any(|process| process.number == number && process.rank.is_some());
        ProcessName { number, is_rank }
    }

    /// Returns whether it need not be named: it is the first, and no rank.
    #[must_use]
    pub fn is_plain(self) -> bool {
        self.number == 0 && !self.is_rank
    }
}

impl std::fmt::Display for ProcessName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", if self.is_rank { "rank" } else { "process" }, self.number)
    }
}

/// The part of a region's work that a row is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// A thread.
    Thread {
        /// Its process.
        process: ProcessName,
        /// Its number.
        thread: u32,
        /// The CPU it ran on.
        cpu: u32,
    },
    /// All threads of a process on one CMG.
    Cmg {
        /// The process.
        process: ProcessName,
        /// The CMG, counted from 0.
        cmg: u32,
    },
    /// All threads of a process.
    Process(ProcessName),
    /// All threads.
    Total,
    /// Half of the width of the intervals of the totals, in a sampled run.
    HalfWidth,
}

impl Place {
    /// Returns the display name.
    #[must_use]
    pub fn label(self) -> String {
        match self {
            Place::Thread { process, thread, .. } if process.is_plain() => format!("thread {thread}"),
            Place::Thread { process, thread, .. } => format!("{process} thread {thread}"),
            Place::Cmg { process, cmg } if process.is_plain() => format!("CMG {cmg}"),
            Place::Cmg { process, cmg } => format!("{process} CMG {cmg}"),
            Place::Process(process) => process.to_string(),
            Place::Total => "total".to_owned(),
            Place::HalfWidth => "±".to_owned(),
        }
    }
}

/// A marked cell, and its interpretation.
#[derive(Clone, Debug, PartialEq)]
pub struct Mark {
    /// Row index.
    pub record: usize,
    /// Column index.
    pub column: usize,
    /// Whether the mark is favourable.
    pub good: bool,
    /// Interpretation.
    pub reading: String,
}

impl Grid {
    /// Returns the mark of a cell.
    #[must_use]
    pub fn mark(&self, record: usize, column: usize) -> Option<&Mark> {
        let place = self.marks.binary_search_by_key(&(column, record), |m| (m.column, m.record));
        place.ok().map(|place| &self.marks[place])
    }
}
