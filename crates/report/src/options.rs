//! What a report shows.

/// How much a report shows: what 1, 5, 11 and 17 runs of a program give under Fujitsu's profiler, which can count
/// eight events at a time. One simulated run gives all of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Level {
    /// Statistics: 1 run.
    Single,
    /// And cycle accounting in its main parts, busy rates, misses: 5 runs.
    Brief,
    /// And nearly everything else: 11 runs.
    Standard,
    /// Everything: 17 runs, and what the model alone counts.
    #[default]
    Detailed,
}

impl Level {
    /// The level's number, as groups of events have it.
    pub(crate) fn number(self) -> u8 {
        match self {
            Level::Single => 1,
            Level::Brief => 2,
            Level::Standard => 3,
            Level::Detailed => 4,
        }
    }
}

/// The smallest parts of a region's work that have rows of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum By {
    /// Each thread, each CMG, each process.
    #[default]
    Thread,
    /// Each CMG, each process.
    Cmg,
    /// Each process.
    Process,
}

/// What a report shows.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Options {
    /// How much.
    pub level: Level,
    /// In which parts.
    pub by: By,
    /// Of this region only.
    pub region: Option<String>,
}
