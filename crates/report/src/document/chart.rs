//! Charts of a report.

use super::Tone;

/// Components of the time of threads, one bar for each.
#[derive(Clone, Debug, PartialEq)]
pub struct Stack {
    /// Unit of all values.
    pub unit: String,
    /// The components; the first is on top.
    pub parts: Vec<StackPart>,
    /// The bars, each with a value for each component.
    pub bars: Vec<Bar>,
}

impl Stack {
    /// Returns the bars of totals only.
    #[must_use]
    pub fn without_threads(&self) -> Stack {
        let bars = self.bars.iter().filter(|bar| bar.thread.is_none()).cloned().collect();
        Stack { bars, ..self.clone() }
    }
}

/// A component of the bars.
#[derive(Clone, Debug, PartialEq)]
pub struct StackPart {
    /// Identifier in the tables.
    pub id: String,
    /// Label.
    pub label: String,
    /// Family, which determines its colour.
    pub family: Family,
}

/// Families of components.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Family {
    /// No resources for a prefetch.
    Prefetch,
    /// Waiting for data from memory.
    Memory,
    /// Waiting for data from the L2 cache.
    L2,
    /// Waiting for data from the L1 cache.
    L1,
    /// Waiting for results of operations.
    Operation,
    /// Other waiting: branches, stores, instructions.
    Other,
    /// Waiting at a barrier, or sleeping in the kernel.
    Barrier,
    /// The kernel's work for the program.
    Kernel,
    /// Instructions commit.
    Commit,
}

impl Family {
    /// Returns what threads do or wait for in its components.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Family::Prefetch => "prefetch ports busy",
            Family::Memory => "memory",
            Family::L2 => "L2 cache",
            Family::L1 => "L1 cache",
            Family::Operation => "operations",
            Family::Other => "other waits",
            Family::Barrier => "barriers, sleep",
            Family::Kernel => "kernel",
            Family::Commit => "instructions commit",
        }
    }

    /// Returns whether it is useful work.
    #[must_use]
    pub fn tone(self) -> Tone {
        if self == Family::Commit { Tone::Work } else { Tone::Wait }
    }
}

/// A bar.
#[derive(Clone, Debug, PartialEq)]
pub struct Bar {
    /// Label.
    pub label: String,
    /// The thread's number, if it is a thread's bar.
    pub thread: Option<u32>,
    /// A value for each component.
    pub values: Vec<f64>,
}

/// Utilisation of a unit.
#[derive(Clone, Debug, PartialEq)]
pub struct Gauge {
    /// Name of the unit.
    pub label: String,
    /// Fraction of time that it is busy, from 0 to 1.
    pub fraction: f64,
    /// Fraction above which it is marked.
    pub limit: Option<f64>,
    /// What exceeding it means.
    pub reading: String,
}

impl Gauge {
    /// Returns whether it is marked.
    #[must_use]
    pub fn is_high(&self) -> bool {
        self.limit.is_some_and(|limit| self.fraction > limit)
    }
}

/// Rates of operations compared with the machine's peaks.
#[derive(Clone, Debug, PartialEq)]
pub struct Roofline {
    /// Peak operations per second, 1e9.
    pub roofs: Vec<Roof>,
    /// Bandwidth limits.
    pub slopes: Vec<Slope>,
    /// The rate that the region reached, and at which its points lie.
    pub reached: Roof,
    /// Data moved by the region, where known and nonzero.
    pub points: Vec<Point>,
    /// Memory levels without traffic: labels of slopes.
    pub idle: Vec<String>,
    /// The loops with most cycles, the hottest first.
    pub loops: Vec<LoopPoint>,
    /// How to interpret a point's position.
    pub reading: String,
}

/// Operations per second: a peak, or a region's rate.
#[derive(Clone, Debug, PartialEq)]
pub struct Roof {
    /// Which operations, or which region.
    pub label: String,
    /// Rate, 1e9 per second.
    pub gflops: f64,
}

/// Peak bandwidth of a memory level.
#[derive(Clone, Debug, PartialEq)]
pub struct Slope {
    /// The level.
    pub label: String,
    /// 1e9 bytes per second.
    pub gigabytes: f64,
}

/// Data moved for a region's operations.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// The memory level whose bytes were counted: a slope's label.
    pub level: String,
    /// Operations per byte.
    pub intensity: f64,
}

/// A loop of a roofline.
#[derive(Clone, Debug, PartialEq)]
pub struct LoopPoint {
    /// Name.
    pub name: String,
    /// Its share of the cycles of all threads, without inner loops, from 0 to 1.
    pub share: f64,
    /// Its rate if all cores execute it as its threads do, 1e9 operations per second.
    pub gflops: f64,
    /// Data that it moves, where known and nonzero.
    pub points: Vec<Point>,
}

/// Traffic from sources to destinations.
#[derive(Clone, Debug, PartialEq)]
pub struct Matrix {
    /// Unit of all values.
    pub unit: String,
    /// The sources, one per row.
    pub rows: Vec<String>,
    /// The destinations, one per column.
    pub columns: Vec<String>,
    /// The values, row by row; `None` if unknown.
    pub values: Vec<Vec<Option<f64>>>,
    /// How to interpret it; may be empty.
    pub reading: String,
}
