//! Tables with the same quantities for threads, CMGs and processes.

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

/// The part of a region's work that a row is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// A thread.
    Thread {
        /// Its process.
        process: u32,
        /// Its number.
        thread: u32,
        /// The CPU it ran on.
        cpu: u32,
    },
    /// All threads of a process on one CMG.
    Cmg {
        /// The process.
        process: u32,
        /// The CMG, counted from 0.
        cmg: u32,
    },
    /// All threads of a process.
    Process(u32),
    /// All threads.
    Total,
}

impl Place {
    /// Returns the display name.
    #[must_use]
    pub fn label(self) -> String {
        match self {
            Place::Thread { process: 0, thread, .. } => format!("thread {thread}"),
            Place::Thread { process, thread, .. } => format!("process {process} thread {thread}"),
            Place::Cmg { process: 0, cmg } => format!("CMG {cmg}"),
            Place::Cmg { process, cmg } => format!("process {process} CMG {cmg}"),
            Place::Process(process) => format!("process {process}"),
            Place::Total => "total".to_owned(),
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
