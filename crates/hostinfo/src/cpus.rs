//! Cores, processor, clock source and real-time limits of a host, from `/proc` and `/sys`.

use std::fs;
use std::path::Path;

/// Properties of a host that matter for measurements.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Host {
    /// Host name.
    pub name: String,
    /// Kernel name and version.
    pub kernel: String,
    /// Processor name.
    pub processor: String,
    /// Whether the host is a virtual machine, if known.
    pub virtual_machine: Option<bool>,
    /// Online cores.
    pub online: Vec<u32>,
    /// Offline cores.
    pub offline: Vec<u32>,
    /// Cores isolated from the scheduler.
    pub isolated: Vec<u32>,
    /// Cores on which the timer tick stops while a single thread runs.
    pub tickless: Vec<u32>,
    /// The kernel's clock source.
    pub clocksource: Option<String>,
    /// Whether the TSC runs at a constant rate and never stops; `None` without a TSC.
    pub invariant_tsc: Option<bool>,
    /// The kernel's limit on real-time threads, if it has one.
    pub realtime_limit: Option<RealtimeLimit>,
}

/// Time that real-time threads may use a core (`sched_rt_period_us` and `sched_rt_runtime_us` in `/proc/sys/kernel`;
/// sched(7)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RealtimeLimit {
    /// The period, ns.
    pub period: u64,
    /// Time for real-time threads in each period, ns.
    pub runtime: u64,
}

impl RealtimeLimit {
    /// Returns the time left to other threads in each period, ns.
    #[must_use]
    pub fn remainder(&self) -> u64 {
        self.period - self.runtime
    }
}

impl Host {
    /// Reads the host's files below `root`.
    #[must_use]
    pub fn read(root: &Path) -> Host {
        let text = |path: &str| fs::read_to_string(root.join(path)).unwrap_or_default();
        let cpuinfo = text("proc/cpuinfo");
        let cpus = "sys/devices/system/cpu";
        let list = |name: &str| parse_list(text(&format!("{cpus}/{name}")).trim()).unwrap_or_default();
        // The runtime is -1 if there is no limit.
        let ns = |path: &str| text(path).trim().parse::<u64>().ok()?.checked_mul(1000);
        let runtime = ns("proc/sys/kernel/sched_rt_runtime_us");
        let period = ns("proc/sys/kernel/sched_rt_period_us");
        let clocksource = text("sys/devices/system/clocksource/clocksource0/current_clocksource").trim().to_owned();
        Host {
            name: text("proc/sys/kernel/hostname").trim().to_owned(),
            kernel: format!("Linux {}", text("proc/sys/kernel/osrelease").trim()).trim_end().to_owned(),
            processor: processor(&cpuinfo),
            virtual_machine: virtual_machine(&cpuinfo),
            online: list("online"),
            offline: list("offline"),
            isolated: list("isolated"),
            tickless: list("nohz_full"),
            clocksource: Some(clocksource).filter(|name| !name.is_empty()),
            invariant_tsc: flags(&cpuinfo)
                .filter(|flags| flags.contains(&"tsc"))
                .map(|flags| flags.contains(&"constant_tsc") && flags.contains(&"nonstop_tsc")),
            realtime_limit: (runtime.zip(period))
                .filter(|(runtime, period)| runtime < period)
                .map(|(runtime, period)| RealtimeLimit { period, runtime }),
        }
    }
}

fn value<'a>(cpuinfo: &'a str, key: &str) -> Option<&'a str> {
    cpuinfo.lines().find_map(|line| line.split_once(':').filter(|(name, _)| name.trim() == key).map(|(_, v)| v.trim()))
}

fn processor(cpuinfo: &str) -> String {
    let arm = || {
        let part = value(cpuinfo, "CPU part")?;
        Some(format!("implementer {} part {part}", value(cpuinfo, "CPU implementer")?))
    };
    value(cpuinfo, "model name").map(str::to_owned).or_else(arm).unwrap_or_default()
}

fn flags(cpuinfo: &str) -> Option<Vec<&str>> {
    value(cpuinfo, "flags").map(|flags| flags.split_whitespace().collect())
}

/// Returns whether the host is a virtual machine; only x86 processors report it.
fn virtual_machine(cpuinfo: &str) -> Option<bool> {
    flags(cpuinfo).map(|flags| flags.contains(&"hypervisor"))
}

/// Parses a list of cores such as `0-3,8`. `None` if it is malformed.
#[must_use]
pub fn parse_list(text: &str) -> Option<Vec<u32>> {
    /// Linux supports at most 8192 cores.
    const MAX: u32 = 1 << 16;
    if text.is_empty() {
        return Some(Vec::new());
    }
    let mut cores = Vec::new();
    for part in text.split(',') {
        let (from, to) = part.split_once('-').unwrap_or((part, part));
        let (from, to) = (from.trim().parse::<u32>().ok()?, to.trim().parse::<u32>().ok()?);
        if from > to || to >= MAX {
            return None;
        }
        cores.extend(from..=to);
    }
    cores.sort_unstable();
    cores.dedup();
    Some(cores)
}

/// Formats cores as a list such as `0-3,8`.
#[must_use]
pub fn format_list(cores: &[u32]) -> String {
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for &core in cores {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == core => *last = core,
            _ => runs.push((core, core)),
        }
    }
    let run = |&(from, to): &(u32, u32)| if from == to { from.to_string() } else { format!("{from}-{to}") };
    runs.iter().map(run).collect::<Vec<_>>().join(",")
}
