//! The effect of large pages without counters: pairs of runs with and without them.

use std::ffi::OsString;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use fxscope_host::{Helper, Signal};
use fxscope_hostinfo::memory::Host;
use rustix::thread::{disable_transparent_huge_pages, transparent_huge_pages_are_disabled};
use serde::Serialize;

use crate::{Error, Progress};

/// The GNU C library's variable whose `malloc` asks for transparent huge pages (glibc 2.35 and later).
pub const TUNABLES: &str = "GLIBC_TUNABLES";
/// Its value for large pages.
pub const LARGE: &str = "glibc.malloc.hugetlb=1";
/// Interval at which a stop is looked for.
const LOOK: Duration = Duration::from_millis(200);
/// Interval at which the pages of a run that is not timed are looked at.
const GLANCE: Duration = Duration::from_millis(10);
/// Time that a program has to end after it was asked to.
const GRACE: Duration = Duration::from_secs(5);
/// Least probability that an interval holds the median.
const CONFIDENCE: f64 = 0.95;

/// Times with and without large pages.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Measured {
    /// Seconds of each run without transparent huge pages.
    pub small: Vec<f64>,
    /// Seconds of each run with them, in the same order.
    pub large: Vec<f64>,
    /// Share of the time that large pages save: median over pairs.
    pub saving: f64,
    /// An interval that holds the true median with a probability of at least 95 %, whatever the distribution.
    pub interval: [f64; 2],
    /// Most memory in large pages in a run with them, bytes; `None` if the kernel does not say.
    pub large_bytes: Option<u64>,
}

/// Runs a program in pairs without and with transparent huge pages, in turn, after a run of each that is not counted.
///
/// Without: `PR_SET_THP_DISABLE` (prctl(2)). With: [`TUNABLES`], for programs that use the GNU C library's `malloc`.
///
/// # Errors
/// If the host has no such pages, the program fails, or the user stops it.
pub fn measure(command: &[OsString], pairs: usize, host: &Host, progress: &dyn Progress) -> Result<Measured, Error> {
    can_control(host)?;
    run(command, Side::Small, None, progress)?;
    let mut bytes = None;
    run(command, Side::Large, Some(&mut bytes), progress)?;
    let (mut small, mut large) = (Vec::new(), Vec::new());
    for pair in 0..pairs {
        progress.message(&format!("pair {} of {pairs}", pair + 1));
        // Every other pair begins with the other side, so that a drift of the host affects both alike.
        let order = if pair % 2 == 0 { [Side::Small, Side::Large] } else { [Side::Large, Side::Small] };
        for side in order {
            let seconds = run(command, side, None, progress)?;
            if side == Side::Small { small.push(seconds) } else { large.push(seconds) }
        }
    }
    let (saving, interval) = saving(&small, &large);
    Ok(Measured { small, large, saving, interval, large_bytes: bytes })
}

/// The least number of pairs that give an interval.
pub const LEAST_PAIRS: usize = 6;

/// Returns the median of the pairs' savings, and an interval for it from their order (that of the sign test).
fn saving(small: &[f64], large: &[f64]) -> (f64, [f64; 2]) {
    let mut all: Vec<f64> = small.iter().zip(large).map(|(small, large)| 1.0 - large / small).collect();
    all.sort_by(f64::total_cmp);
    let n = all.len();
    let median = f64::midpoint(all[(n - 1) / 2], all[n / 2]);
    let rank = rank(n);
    (median, [all[rank], all[n - 1 - rank]])
}

/// Returns how many of `n` values can be left out at each end of an interval for the median.
fn rank(n: usize) -> usize {
    // Probability that at most `rank` of `n` values lie on one side of the median.
    let (mut term, mut tail, mut rank) = (0.5f64.powi(n as i32), 0.0, 0);
    loop {
        tail += term;
        if 2.0 * tail > 1.0 - CONFIDENCE || rank * 2 + 2 >= n {
            return rank.saturating_sub(1);
        }
        term *= (n - rank) as f64 / (rank + 1) as f64;
        rank += 1;
    }
}

/// Pages of a run.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Small,
    Large,
}

/// Checks that transparent huge pages can be switched.
fn can_control(host: &Host) -> Result<(), Error> {
    let enabled = host.thp.as_ref().and_then(|thp| thp.enabled.as_deref());
    match enabled {
        None => Err("this kernel has no transparent huge pages, so that their effect cannot be measured; those of hugetlbfs need \
                     glibc.malloc.hugetlb=2 and a pool (vm.nr_hugepages)"
            .into()),
        Some("never") => Err("transparent huge pages are off (/sys/kernel/mm/transparent_hugepage/enabled is never), so that their effect \
                              cannot be measured; the administrator can write madvise there"
            .into()),
        Some(_) => Ok(()),
    }
}

/// Disables transparent huge pages for programs that this process starts, until it is dropped.
pub(super) struct Disabled {
    before: bool,
}

impl Disabled {
    pub(super) fn new(disabled: bool) -> Result<Disabled, Error> {
        let failed = |e| {
            Error::from(format!(
                "transparent huge pages cannot be switched for one program (prctl PR_SET_THP_DISABLE: {e}); the kernel, or a container, does \
                 not allow it"
            ))
        };
        let before = transparent_huge_pages_are_disabled().map_err(failed)?;
        disable_transparent_huge_pages(disabled).map_err(failed)?;
        Ok(Disabled { before })
    }
}

impl Drop for Disabled {
    fn drop(&mut self) {
        // It succeeded before.
        let _ = disable_transparent_huge_pages(self.before);
    }
}

/// Returns the user's tunables with that for large pages, or without it.
pub(super) fn tunables(mine: Option<OsString>, large: bool) -> String {
    let mine = mine.and_then(|text| text.into_string().ok()).unwrap_or_default();
    let others = mine.split(':').filter(|one| !one.is_empty() && !one.starts_with("glibc.malloc.hugetlb="));
    others.chain(large.then_some(LARGE)).collect::<Vec<_>>().join(":")
}

/// Runs the program once; returns its seconds. `bytes` becomes the most memory that it had in large pages.
fn run(
    command: &[OsString],
    side: Side,
    mut bytes: Option<&mut Option<u64>>,
    progress: &dyn Progress,
) -> Result<f64, Error> {
    let (program, arguments) = command.split_first().ok_or("name the program and its arguments after --")?;
    let mut child = Command::new(program);
    child.args(arguments).stdin(Stdio::null()).stdout(Stdio::null());
    child.env(TUNABLES, tunables(std::env::var_os(TUNABLES), side == Side::Large));
    let disabled = Disabled::new(side == Side::Small)?;
    let begin = Instant::now();
    let mut helper = Helper::start(child).map_err(|e| format!("cannot start {}: {e}", program.display()))?;
    drop(disabled);
    let patience = if bytes.is_some() { GLANCE } else { LOOK };
    let status = loop {
        if let Some(status) = helper.ended_within(patience)? {
            break status;
        }
        if let Some(bytes) = bytes.as_deref_mut() {
            *bytes = (*bytes).max(large_bytes(helper.id()));
        }
        if progress.stop_requested() {
            helper.signal(Signal::TERM);
            helper.wait(GRACE)?;
            return Err(Error::Stopped);
        }
    };
    let seconds = begin.elapsed().as_secs_f64();
    if status.success() {
        return Ok(seconds);
    }
    Err(format!("{} failed ({status}), so that its time means nothing; nothing was measured", program.display()).into())
}

/// Returns the memory of a process in transparent huge pages, bytes.
fn large_bytes(process: u32) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{process}/smaps_rollup")).ok()?;
    let kib = |line: &str| line.strip_prefix("AnonHugePages:")?.trim().strip_suffix("kB")?.trim().parse::<u64>().ok();
    text.lines().find_map(kib).map(|kib| kib << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn savings_are_medians_of_pairs_with_an_interval_of_the_sign_test() {
        let small = [10.0; 9];
        let large: Vec<f64> = (1..=9).map(|n| 10.0 - f64::from(n)).collect();
        let (median, interval) = saving(&small, &large);
        // Of nine, one at each end can be left out: 2 (1 + 9) / 2^9 = 3.9 %; with two it is 18 %.
        assert!((median - 0.5).abs() < 1e-12 && (interval[0] - 0.2).abs() < 1e-12 && (interval[1] - 0.8).abs() < 1e-12);
        assert_eq!([6, 8, 9, 12, 20].map(rank), [0, 0, 1, 2, 5]);
    }

    #[test]
    fn the_users_other_tunables_stay() {
        let mine = || Some("glibc.malloc.hugetlb=2:glibc.malloc.arena_max=1".into());
        assert_eq!(tunables(mine(), true), "glibc.malloc.arena_max=1:glibc.malloc.hugetlb=1");
        assert_eq!(tunables(mine(), false), "glibc.malloc.arena_max=1");
        assert_eq!(tunables(None, false), "");
    }
}
