//! What a host says of itself and counts, as functions over the texts of `/proc` and `/sys`.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::trace::{Cause, Counted, Kind};

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
pub fn list(cores: &[u32]) -> String {
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

/// What the kernel has counted since it started, by core.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Counts {
    by_core: BTreeMap<u32, BTreeMap<Cause, (u64, bool)>>,
}

impl Counts {
    /// Reads `/proc/interrupts`, `/proc/softirqs` and `/proc/stat` below `root`. What cannot be read is not among them.
    #[must_use]
    pub fn read(root: &Path) -> Counts {
        let text = |path: &str| fs::read_to_string(root.join(path)).unwrap_or_default();
        Counts::parse(&text("proc/interrupts"), &text("proc/softirqs"), &text("proc/stat"))
    }

    /// Understands the three texts; lines that are not understood are left out.
    #[must_use]
    pub fn parse(interrupts: &str, softirqs: &str, stat: &str) -> Counts {
        let mut counts = Counts::default();
        counts.table(interrupts, Kind::Interrupt);
        counts.table(softirqs, Kind::SoftInterrupt);
        counts.steal(stat);
        counts
    }

    fn add(&mut self, core: u32, cause: Cause, amount: u64, time: bool) {
        self.by_core.entry(core).or_default().insert(cause, (amount, time));
    }

    /// A table with a column for each core, in which the names stand before and behind.
    fn table(&mut self, text: &str, kind: Kind) {
        let mut lines = text.lines();
        let heading = lines.next().unwrap_or_default().split_whitespace();
        let cores: Option<Vec<u32>> = heading.map(|word| word.strip_prefix("CPU")?.parse().ok()).collect();
        for line in lines {
            let (Some(cores), Some((name, rest))) = (&cores, line.split_once(':')) else { continue };
            let words: Vec<&str> = rest.split_whitespace().collect();
            let numbers: Vec<u64> = words.iter().map_while(|word| word.parse().ok()).take(cores.len()).collect();
            // Totals such as ERR have one number for all cores.
            if numbers.len() < cores.len() {
                continue;
            }
            let label = label(kind, name.trim(), &words[cores.len()..]);
            for (&core, amount) in cores.iter().zip(numbers) {
                let kind = if kind == Kind::Interrupt && name.trim() == "NMI" { Kind::Nmi } else { kind };
                self.add(core, Cause::new(kind, label.clone()), amount, false);
            }
        }
    }

    /// Time that a hypervisor took, in hundredths of a second.
    fn steal(&mut self, stat: &str) {
        for line in stat.lines() {
            let mut words = line.split_whitespace();
            let core = words.next().and_then(|word| word.strip_prefix("cpu")?.parse().ok());
            let steal = words.nth(7).and_then(|word| word.parse::<u64>().ok());
            if let (Some(core), Some(steal)) = (core, steal) {
                self.add(core, Cause::new(Kind::Hypervisor, "steal"), steal.saturating_mul(10_000_000), true);
            }
        }
    }

    /// What a core counted since `before`, the largest numbers first.
    #[must_use]
    pub fn since(&self, before: &Counts, core: u32) -> Vec<Counted> {
        let old = before.by_core.get(&core);
        let grown = |(cause, &(amount, time)): (&Cause, &(u64, bool))| {
            let old = old.and_then(|old| old.get(cause)).map_or(0, |old| old.0);
            let amount = amount.saturating_sub(old);
            (amount > 0).then(|| Counted { cause: cause.clone(), amount, time })
        };
        let mut counted: Vec<Counted> = self.by_core.get(&core).into_iter().flatten().filter_map(grown).collect();
        counted.sort_by(|a, b| (b.time, b.amount, &a.cause).cmp(&(a.time, a.amount, &b.cause)));
        counted
    }
}

/// What people call an interrupt: its description when its name is a number or an abbreviation.
fn label(kind: Kind, name: &str, words: &[&str]) -> String {
    if kind != Kind::Interrupt || words.is_empty() {
        return name.to_owned();
    }
    // Numbered ones end with the device, behind the controller and the line.
    if name.bytes().all(|b| b.is_ascii_digit()) {
        return format!("{name} {}", words[words.len() - 1]);
    }
    words.join(" ")
}
