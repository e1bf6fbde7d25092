//! Data objects of a run: the variables, heap blocks and stacks that its misses are in.

/// What a data object is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum ObjectKind {
    /// A static variable.
    Variable,
    /// Heap blocks that one call has allocated.
    Heap,
    /// Mappings that one call has made.
    Mapping,
    /// Stacks.
    Stack,
    /// Anything else: a part of the address space, or a file.
    #[default]
    Other,
}

impl ObjectKind {
    /// All kinds.
    pub const ALL: [ObjectKind; 5] =
        [ObjectKind::Variable, ObjectKind::Heap, ObjectKind::Mapping, ObjectKind::Stack, ObjectKind::Other];

    /// Returns its name in records and reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            ObjectKind::Variable => "variable",
            ObjectKind::Heap => "heap",
            ObjectKind::Mapping => "mapping",
            ObjectKind::Stack => "stack",
            ObjectKind::Other => "other",
        }
    }
}

/// A line of a source file.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct SourceLine {
    /// The file, as given to the compiler.
    pub file: String,
    /// The line, counted from 1.
    pub line: u32,
}

/// What happened in a data object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct DataCounts {
    /// Lines brought into L1D, prefetches included, and those that an access itself had to request.
    pub l1_refills: u64,
    /// See `l1_refills`.
    pub l1_misses: u64,
    /// Lines brought into L2, prefetches included, and those that an access itself had to request.
    pub l2_refills: u64,
    /// See `l2_refills`.
    pub l2_misses: u64,
    /// Walks of the translation tables.
    pub walks: u64,
    /// Requests for the permission to write a line that other cores may hold.
    pub upgrades: u64,
    /// Lines that several threads have requested, and those that threads on several CMGs have.
    pub shared_lines: u64,
    /// See `shared_lines`.
    pub lines_across_cmgs: u64,
    /// How often lines moved from one thread to another, of which at least one wrote.
    pub transfers: u64,
    /// Lines that moved although no thread touched bytes that another one wrote, and how often they did.
    pub falsely_shared_lines: u64,
    /// See `falsely_shared_lines`.
    pub false_transfers: u64,
}

impl DataCounts {
    /// Returns the counts in a fixed order.
    pub(crate) fn to_numbers(self) -> [u64; 11] {
        let c = self;
        [
            c.l1_refills,
            c.l1_misses,
            c.l2_refills,
            c.l2_misses,
            c.walks,
            c.upgrades,
            c.shared_lines,
            c.lines_across_cmgs,
            c.transfers,
            c.falsely_shared_lines,
            c.false_transfers,
        ]
    }

    /// Returns the counts that are given in this order.
    pub(crate) fn from_numbers(numbers: [u64; 11]) -> DataCounts {
        let [l1_refills, l1_misses, l2_refills, l2_misses, walks, upgrades, rest @ ..] = numbers;
        let [shared_lines, lines_across_cmgs, transfers, falsely_shared_lines, false_transfers] = rest;
        DataCounts {
            l1_refills,
            l1_misses,
            l2_refills,
            l2_misses,
            walks,
            upgrades,
            shared_lines,
            lines_across_cmgs,
            transfers,
            falsely_shared_lines,
            false_transfers,
        }
    }
}

/// A data object.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct DataObject {
    /// What it is.
    pub kind: ObjectKind,
    /// Its name: that of the variable, or the function of the call that made it with the offset of the call in it.
    pub name: String,
    /// The line of that call, if debug information has it.
    pub source: Option<SourceLine>,
    /// Number of blocks of it; 0 if not known.
    pub blocks: u64,
    /// Most bytes of it at any time; 0 if not known.
    pub bytes: u64,
    /// What happened in it.
    pub counts: DataCounts,
}

/// A line that moved between threads.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct DataLine {
    /// Its object, as an index into [`Data::objects`].
    pub object: u32,
    /// Where it begins in the block of the object, bytes.
    pub offset: u64,
    /// How often it moved.
    pub transfers: u64,
    /// Whether no thread touched bytes that another one wrote.
    pub is_falsely_shared: bool,
    /// The threads that requested it, in the order in which they first did.
    pub users: Vec<DataUser>,
}

/// A thread's use of a line: what those of its accesses touched that had to request the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct DataUser {
    /// The process, as in [`crate::Thread::process`].
    pub process: u32,
    /// The thread, by its number in the process.
    pub thread: u32,
    /// Its CMG, counted from 0.
    pub cmg: u32,
    /// First and last byte that it touched, and that it wrote.
    pub touched: Option<(u32, u32)>,
    /// See `touched`.
    pub written: Option<(u32, u32)>,
}

/// The data objects of a run.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Data {
    /// Objects with misses, those with most refills of L1D first.
    pub objects: Vec<DataObject>,
    /// The lines that moved most often between threads, most often first.
    pub lines: Vec<DataLine>,
}
