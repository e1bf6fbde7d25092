//! Tables of a report: the same quantities for threads, CMGs and processes.

/// A table of a report.
#[derive(Clone, Debug, PartialEq)]
pub struct Grid {
    /// What tells it from other tables: a letter, or a word.
    pub id: String,
    /// Its columns.
    pub headings: Vec<Heading>,
    /// Its rows: parts before what they are parts of.
    pub records: Vec<Record>,
    /// Cells that stand out, column by column, by ascending rows.
    pub marks: Vec<Mark>,
}

/// What a column of a table is.
#[derive(Clone, Debug, PartialEq)]
pub struct Heading {
    /// Its identifier, as "A01".
    pub id: String,
    /// Its name for people.
    pub title: String,
    /// Its unit, as metrics name them.
    pub unit: String,
}

/// A row of a table.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// What it is about.
    pub place: Place,
    /// A value for each heading; none where it is not known.
    pub values: Vec<Option<f64>>,
}

/// What of a region's work a row is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// One thread.
    Thread {
        /// Its process.
        process: u32,
        /// Its number.
        thread: u32,
        /// The CPU it ran on.
        cpu: u32,
    },
    /// All threads of a process on the CPUs of a core memory group.
    Cmg {
        /// The process.
        process: u32,
        /// The group, counted from 0.
        cmg: u32,
    },
    /// All threads of a process.
    Process(u32),
    /// All threads.
    Total,
}

impl Place {
    /// Its name for people.
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

/// A cell that stands out, and how to read it.
#[derive(Clone, Debug, PartialEq)]
pub struct Mark {
    /// Its row.
    pub record: usize,
    /// Its column.
    pub column: usize,
    /// Whether it is good news.
    pub good: bool,
    /// What it tells.
    pub reading: String,
}

impl Grid {
    /// The mark of a cell.
    #[must_use]
    pub fn mark(&self, record: usize, column: usize) -> Option<&Mark> {
        let place = self.marks.binary_search_by_key(&(column, record), |m| (m.column, m.record));
        place.ok().map(|place| &self.marks[place])
    }
}
