//! Where the program's clocks get their time from.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// The time that a program sees.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ClockSource {
    /// Simulated time, which the driver of the run sets: the same on every run.
    #[default]
    Simulated,
    /// The host's time. Runs do not repeat exactly, and sleeping takes as long as it says.
    Host,
}

/// The host's clock since the start of a run.
pub(crate) struct HostClock {
    start: Instant,
}

impl HostClock {
    pub(crate) fn start() -> HostClock {
        HostClock { start: Instant::now() }
    }

    /// Time since the start in ns.
    pub(crate) fn now_ns(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }
}

/// The host's time of day in ns since 1970; 0 when it is set to an earlier one.
pub(crate) fn unix_ns() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| u64::try_from(d.as_nanos()).unwrap_or(u64::MAX))
}
