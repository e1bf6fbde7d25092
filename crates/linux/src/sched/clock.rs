//! Sources of time for the program's clocks.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// The time that a program sees.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ClockSource {
    /// Simulated time, set by the driver of the run: the same in every run.
    #[default]
    Simulated,
    /// The host's time. Runs are not reproducible, and sleeping takes real time.
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

    /// Returns the time since the start in ns.
    pub(crate) fn now_ns(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }
}

/// Returns the host's time of day in ns since 1970; 0 if it is set to an earlier time.
pub(crate) fn unix_ns() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| u64::try_from(d.as_nanos()).unwrap_or(u64::MAX))
}
