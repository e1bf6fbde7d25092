//! Cores, processor, clock source and real-time limits of a host, from `/proc` and `/sys`.

use std::fs;
use std::path::Path;

/// What a measurement must know of the host.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Host {
    /// Its name.
    pub name: String,
    /// Kernel and version.
    pub kernel: String,
    /// The processor's name.
    pub processor: String,
    /// Whether it is a virtual machine, where that is known.
    pub virtual_machine: Option<bool>,
    /// Cores that run.
    pub online: Vec<u32>,
    /// Cores that are there and do not run.
    pub offline: Vec<u32>,
    /// Cores that the scheduler leaves alone.
    pub isolated: Vec<u32>,
    /// Cores on which the timer tick stops while one thread runs.
    pub tickless: Vec<u32>,
    /// The clock that the kernel keeps time with.
    pub clocksource: Option<String>,
    /// Whether the TSC runs at one rate and never stops; none where there is no TSC.
    pub invariant_tsc: Option<bool>,
    /// The kernel's limit of real-time threads, where there is one.
    pub realtime_limit: Option<RealtimeLimit>,
}

/// How long real-time threads may have a core (`sched_rt_period_us` and `sched_rt_runtime_us` in `/proc/sys/kernel`; sched(7)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RealtimeLimit {
    /// The period, ns.
    pub period: u64,
    /// Of each period, ns.
    pub runtime: u64,
}

impl RealtimeLimit {
    /// What is left to other threads of each period, ns.
    #[must_use]
    pub fn others(&self) -> u64 {
        self.period - self.runtime
    }
}

impl Host {
    /// Reads this host below `root`.
    #[must_use]
    pub fn read(root: &Path) -> Host {
        let text = |path: &str| fs::read_to_string(root.join(path)).unwrap_or_default();
        let cpuinfo = text("proc/cpuinfo");
        let cpus = "sys/devices/system/cpu";
        let list = |name: &str| parse_list(text(&format!("{cpus}/{name}")).trim()).unwrap_or_default();
        // Without a limit the time is -1.
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

/// Only x86 processors tell.
fn virtual_machine(cpuinfo: &str) -> Option<bool> {
    flags(cpuinfo).map(|flags| flags.contains(&"hypervisor"))
}

/// Understands a list of cores such as `0-3,8`. `None` if it is none.
#[must_use]
pub fn parse_list(text: &str) -> Option<Vec<u32>> {
    /// Linux has 8192 at most on the largest machines.
    const MOST: u32 = 1 << 16;
    if text.is_empty() {
        return Some(Vec::new());
    }
    let mut cores = Vec::new();
    for part in text.split(',') {
        let (from, to) = part.split_once('-').unwrap_or((part, part));
        let (from, to) = (from.trim().parse::<u32>().ok()?, to.trim().parse::<u32>().ok()?);
        if from > to || to >= MOST {
            return None;
        }
        cores.extend(from..=to);
    }
    cores.sort_unstable();
    cores.dedup();
    Some(cores)
}

/// Writes cores as a list such as `0-3,8`.
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
