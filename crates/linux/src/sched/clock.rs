//! Sources of time for the program's clocks.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use crate::system::System;

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

/// Time for which the simulated machine has been up when the run begins, in ns: four hours. `CLOCK_MONOTONIC`, `CLOCK_BOOTTIME`,
/// the virtual counter, `/proc/uptime` and `sysinfo` count from there. Programs expect a clock that has run for a while: Open MPI
/// takes a start at 0 for a clock that it has not read yet.
pub(crate) const UPTIME_NS: u64 = 4 * 3600 * 1_000_000_000;

impl System {
    /// Returns the time since the simulated machine started, in ns: `CLOCK_MONOTONIC`.
    pub(crate) fn monotonic_ns(&self) -> u64 {
        self.now_ns.saturating_add(UPTIME_NS)
    }

    /// Returns the virtual counter (`CNTVCT_EL0`), which counts as long as `CLOCK_MONOTONIC`.
    pub(crate) fn counter(&self) -> u64 {
        let (now_ns, hz) = (self.monotonic_ns(), self.platform.counter_hz);
        let (seconds, ns) = (now_ns / 1_000_000_000, now_ns % 1_000_000_000);
        seconds.saturating_mul(hz).saturating_add(ns * hz / 1_000_000_000)
    }

    /// Returns the time of day in ns since 1970: `CLOCK_REALTIME`.
    pub(crate) fn realtime_ns(&self) -> u64 {
        self.start_unix_ns.saturating_add(self.now_ns)
    }

    /// Returns the time of day at which the simulated machine started, in ns since 1970.
    pub(crate) fn boot_unix_ns(&self) -> u64 {
        self.start_unix_ns.saturating_sub(UPTIME_NS)
    }

    /// Converts a time on `CLOCK_REALTIME`, or else on `CLOCK_MONOTONIC`, to simulated ns since the start of the run. Times before
    /// that are 0.
    pub(crate) fn since_start(&self, at_ns: u64, realtime: bool) -> u64 {
        at_ns.saturating_sub(if realtime { self.start_unix_ns } else { UPTIME_NS })
    }
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
