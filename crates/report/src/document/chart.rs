//! What a report draws.

use super::Tone;

/// What the time of threads is made of, one bar for each.
#[derive(Clone, Debug, PartialEq)]
pub struct Stack {
    /// The unit of all values.
    pub unit: String,
    /// The parts; the first stands on top.
    pub parts: Vec<StackPart>,
    /// The bars, each with a value for each part.
    pub bars: Vec<Bar>,
}

impl Stack {
    /// The bars of wholes alone.
    #[must_use]
    pub fn without_threads(&self) -> Stack {
        let bars = self.bars.iter().filter(|bar| bar.thread.is_none()).cloned().collect();
        Stack { bars, ..self.clone() }
    }
}

/// A part of what bars are made of.
#[derive(Clone, Debug, PartialEq)]
pub struct StackPart {
    /// Its identifier in the tables.
    pub id: String,
    /// What it is.
    pub label: String,
    /// What it is akin to, which its colour tells.
    pub family: Family,
}

/// Parts that are akin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Family {
    /// No place for a prefetch.
    Prefetch,
    /// Data from memory.
    Memory,
    /// Data from the L2 cache.
    L2,
    /// Data from the L1 cache.
    L1,
    /// Results of operations.
    Operation,
    /// Other reasons to wait: branches, stores, instructions.
    Other,
    /// Sleep, at a barrier or in the kernel.
    Barrier,
    /// The kernel works for the program.
    Kernel,
    /// Instructions commit.
    Commit,
}

impl Family {
    /// Whether work is done.
    #[must_use]
    pub fn tone(self) -> Tone {
        if self == Family::Commit { Tone::Work } else { Tone::Wait }
    }
}

/// One bar.
#[derive(Clone, Debug, PartialEq)]
pub struct Bar {
    /// What it is about.
    pub label: String,
    /// The number of the thread that it is about, if it is one's.
    pub thread: Option<u32>,
    /// A value for each part.
    pub values: Vec<f64>,
}

/// How busy a unit is.
#[derive(Clone, Debug, PartialEq)]
pub struct Gauge {
    /// The unit's name.
    pub label: String,
    /// The fraction of time, from 0 to 1, in which it works.
    pub fraction: f64,
    /// The fraction from which on it stands out.
    pub limit: Option<f64>,
    /// What it means to be above that.
    pub reading: String,
}

impl Gauge {
    /// Whether it stands out.
    #[must_use]
    pub fn is_high(&self) -> bool {
        self.limit.is_some_and(|limit| self.fraction > limit)
    }
}

/// Rates of operations against what the machine can do.
#[derive(Clone, Debug, PartialEq)]
pub struct Roofline {
    /// Most operations each second, 1e9.
    pub roofs: Vec<Roof>,
    /// What moving data allows.
    pub slopes: Vec<Slope>,
    /// What the region reached, which is where its points are.
    pub reached: Roof,
    /// What moved for it, where that is known and not nothing.
    pub points: Vec<Point>,
    /// Levels of memory from and to which nothing moved: slopes' labels.
    pub idle: Vec<String>,
    /// How to read where a point lies.
    pub reading: String,
}

/// Operations each second: the most of a kind, or those of a region.
#[derive(Clone, Debug, PartialEq)]
pub struct Roof {
    /// Which operations, or whose.
    pub label: String,
    /// How many each second, 1e9.
    pub gflops: f64,
}

/// Most bytes that a level of memory can move each second.
#[derive(Clone, Debug, PartialEq)]
pub struct Slope {
    /// The level.
    pub label: String,
    /// 1e9 bytes each second.
    pub gigabytes: f64,
}

/// What moved for the operations of a region.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// The level of memory whose bytes were counted: a slope's label.
    pub level: String,
    /// Operations for each byte.
    pub intensity: f64,
}

/// What goes from where to where.
#[derive(Clone, Debug, PartialEq)]
pub struct Matrix {
    /// The unit of all values.
    pub unit: String,
    /// The sources, one for each row.
    pub rows: Vec<String>,
    /// The destinations, one for each column.
    pub columns: Vec<String>,
    /// The values, row by row; none where it is not known.
    pub values: Vec<Vec<Option<f64>>>,
    /// How to read it; empty where there is nothing to read.
    pub reading: String,
}
