//! Options of a report.

use crate::verdict::{self, Hottest};

/// Level of detail: what 1, 5, 11 or 17 runs of a program give with Fujitsu's profiler, which counts eight events at a
/// time. One simulated run gives all of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Level {
    /// Statistics: 1 run.
    Single,
    /// Also the main components of cycle accounting, busy rates and misses: 5 runs.
    Brief,
    /// Also nearly everything else: 11 runs.
    Standard,
    /// Everything: 17 runs, and counts that only the model has.
    #[default]
    Detailed,
}

impl Level {
    /// The levels by name, each with what it has.
    pub const NAMED: &[(&str, Level, &str)] = &[
        ("single", Level::Single, "Statistics: 1 run"),
        ("brief", Level::Brief, "In addition, cycle accounting in its main parts, busy rates, misses: 5 runs"),
        ("standard", Level::Standard, "In addition, nearly everything else: 11 runs"),
        ("detailed", Level::Detailed, "Everything: 17 runs, and what only the model counts"),
    ];

    /// Returns the level's number, as in event groups.
    pub(crate) fn number(self) -> u8 {
        match self {
            Level::Single => 1,
            Level::Brief => 2,
            Level::Standard => 3,
            Level::Detailed => 4,
        }
    }
}

/// The smallest parts of a region that have rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum By {
    /// Threads, CMGs and processes.
    #[default]
    Thread,
    /// CMGs and processes.
    Cmg,
    /// Processes.
    Process,
}

/// Options of a report.
#[derive(Clone, Debug)]
pub struct Options {
    /// Level of detail.
    pub level: Level,
    /// Smallest parts.
    pub by: By,
    /// Only this region.
    pub region: Option<String>,
    /// Finds where most cycles went.
    pub hottest: Hottest,
}

impl Default for Options {
    fn default() -> Options {
        let hottest = verdict::hottest_functions;
        Options { level: Level::default(), by: By::default(), region: None, hottest }
    }
}
