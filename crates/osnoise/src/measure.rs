//! Measures detours on the cores of this host.
//!
//! Each measured core runs a pinned thread with one of the measuring loops ([`loops`]), which pushes detours into its
//! own ring. A writer thread drains the rings, on another core if one is free.

pub mod loops;
pub mod native;
mod prepare;
pub mod ring;
mod writer;

use std::io::{self, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use fxscope_hostinfo::cpus::{self, Host};
use thiserror::Error;

use crate::clock::{self, Clock, Counter, Monotonic, Timebase};
use crate::kernel_counts::Counts;
use crate::trace::{CoreHeader, CoreSummary, Header, Method, Overhead, Summary, Writer};
use loops::{Stats, Until};
use native::{Barrier, Member, Multiplication, Native, allowed, pin, prioritise};
use prepare::{Prepared, prepare};
use ring::Ring;

/// Settings of a measurement.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Method.
    pub method: Method,
    /// Cores to measure; if empty, all cores that this process may use.
    pub cores: Vec<u32>,
    /// Duration.
    pub duration: Duration,
    /// The quantum, ns: a piece of work (fixed work, dgemm) or an interval (fixed time). `None` for the method's
    /// default.
    pub quantum: Option<u64>,
    /// Shortest detour to record, ns. `None` for the method's default.
    pub threshold: Option<u64>,
    /// Blocks of a matrix multiplication between two barriers.
    pub blocks: u32,
    /// Real-time priority of the measuring threads, 1 to 99.
    pub priority: Option<u8>,
    /// Whether to read the system clock instead of the processor's counter.
    pub system_clock: bool,
}

/// Why a measurement fails.
#[derive(Debug, Error)]
pub enum Error {
    /// A core that does not exist or that this process may not use.
    #[error("{0}")]
    Core(String),
    /// Real-time priority is not permitted.
    #[error(
        "the measuring threads cannot get real-time priority {0} ({1}): this requires CAP_SYS_NICE (root, or setcap \
         cap_sys_nice+ep) or a sufficient limit (ulimit -r); without --rt the measurement works, and other programs of \
         the same priority count as noise"
    )]
    Priority(u8, String),
    /// The host would hang.
    #[error(
        "real-time threads on every core without a time limit (/proc/sys/kernel/sched_rt_runtime_us is -1) would hang \
         this machine: exclude a core with --cores, or measure without --rt"
    )]
    Standstill,
    /// The clock cannot be used.
    #[error("{0}")]
    Clock(#[from] clock::Error),
    /// An impossible quantum.
    #[error("{0}")]
    Quantum(String),
    /// The trace cannot be written.
    #[error("the trace cannot be written ({0}); check the free space")]
    Write(#[from] io::Error),
    /// A measuring thread cannot run.
    #[error("core {core}: {what}")]
    Thread {
        /// Its core.
        core: u32,
        /// The system's error.
        what: String,
    },
}

/// Observes and controls a running measurement.
#[derive(Clone, Copy)]
pub struct Control<'a> {
    /// Ends the measurement early when set.
    pub stop: &'a AtomicBool,
    /// Called with the elapsed time in ns whenever the trace is written. The call's time counts as the measurement's
    /// own.
    pub progress: &'a dyn Fn(u64),
}

impl<'a> Control<'a> {
    /// Returns a control that only allows ending the measurement early.
    #[must_use]
    pub fn until(stop: &'a AtomicBool) -> Control<'a> {
        Control { stop, progress: &|_| {} }
    }
}

/// Detours that a ring holds: 1 MiB.
const RING: usize = 1 << 16;

/// Measures, writing the trace to `out` on the way.
///
/// # Errors
/// If nothing can be measured, or the trace cannot be written.
pub fn run(plan: &Plan, out: impl Write, control: Control<'_>) -> Result<Summary, Error> {
    let host = Host::read(Path::new("/"));
    let counter_usable = host.invariant_tsc != Some(false);
    if plan.system_clock || !counter_usable {
        with_clock(plan, &host, Monotonic, "CLOCK_MONOTONIC", out, control)
    } else {
        with_clock(plan, &host, Counter, Counter::NAME, out, control)
    }
}

/// Returns the cores to measure, in order: `wanted` cores that are `allowed` or isolated, or by default all allowed
/// ones.
///
/// # Errors
/// If a wanted core does not exist, is offline, or may not be used by this process.
pub fn cores(wanted: &[u32], allowed: &[u32], host: &Host) -> Result<Vec<u32>, Error> {
    if wanted.is_empty() {
        return Ok(allowed.to_vec());
    }
    let mut cores = wanted.to_vec();
    cores.sort_unstable();
    cores.dedup();
    // The scheduler places no threads on isolated cores, but runs those that request them.
    let usable = |core: &u32| allowed.contains(core) || host.isolated.contains(core) && host.online.contains(core);
    let Some(&core) = cores.iter().find(|core| !usable(core)) else { return Ok(cores) };
    let usable = cpus::format_list(allowed);
    Err(Error::Core(if host.offline.contains(&core) {
        format!("core {core} is offline (an administrator can bring it online); cores {usable} can be measured")
    } else if host.online.contains(&core) {
        format!("core {core} is not available to this process (taskset, cpuset or container); cores {usable} are")
    } else {
        format!("there is no core {core} on this host; cores {usable} can be measured")
    }))
}

fn with_clock<C: Clock + Copy + Send + Sync>(
    plan: &Plan,
    host: &Host,
    mut clock: C,
    clock_name: &str,
    out: impl Write,
    control: Control<'_>,
) -> Result<Summary, Error> {
    let allowed = allowed()?;
    let cores = cores(&plan.cores, &allowed, host)?;
    let spare: Vec<u32> = allowed.iter().copied().filter(|core| !cores.contains(core)).collect();
    if plan.priority.is_some() && spare.is_empty() && host.realtime_limit.is_none() {
        return Err(Error::Standstill);
    }
    let base = clock::calibrate(&mut clock)?;
    let setting = Setting {
        plan,
        base,
        clock,
        barrier: Barrier::new(cores.len() as u32),
        stop: control.stop,
        go: &AtomicU64::new(0),
    };
    let rings: Vec<Ring> = cores.iter().map(|_| Ring::new(RING)).collect();
    std::thread::scope(|scope| {
        let (ready, prepared) = mpsc::channel();
        let measuring: Vec<_> = (cores.iter().zip(&rings).enumerate())
            .map(|(i, (&core, ring))| {
                let (ready, setting) = (ready.clone(), &setting);
                let name = format!("fxnoise/{core}");
                let measure = move || thread(setting, i == 0, core, ring, &ready);
                std::thread::Builder::new().name(name).spawn_scoped(scope, measure)
            })
            .collect::<io::Result<_>>()?;
        drop(ready);
        let abandon = |error: Error| {
            setting.go.store(u64::MAX, Ordering::Release);
            error
        };
        let mut found: Vec<Prepared> = Vec::new();
        for one in prepared.iter().take(cores.len()) {
            found.push(one.map_err(abandon)?);
        }
        found.sort_by_key(|one| one.core);

        let before = Counts::read(Path::new("/"));
        let mut base = base;
        let (ticks, monotonic) = clock::pair(&mut clock);
        let jumped = base.follow(ticks, monotonic).is_err();
        // Late enough for all threads to notice it.
        let begin = ticks + base.ticks_of(20_000_000);
        let mut header = header(plan, host, &found, &base, clock_name);
        header.monotonic_start = base.at(begin);
        header.notes.extend(notes(plan, host, &cores, &spare, jumped));
        let writer = Writer::new(out, &header).map_err(|e| abandon(e.into()))?;
        setting.go.store(begin, Ordering::Release);
        let rings: Vec<(u32, &Ring)> = cores.iter().copied().zip(&rings).collect();
        let waiting =
            writer::Sources { rings, spare: &spare, start: header.monotonic_start, progress: control.progress };
        let running = || measuring.iter().any(|thread| !thread.is_finished());
        let drained = waiting.drain(writer, &mut clock, base, running).inspect_err(|_| {
            control.stop.store(true, Ordering::Relaxed);
        });
        // The writer thread has moved itself to cores that are not measured.
        let _ = pin(&allowed);
        let (writer, mut notes) = drained?;
        let after = Counts::read(Path::new("/"));
        let done: Vec<Stats> =
            measuring.into_iter().map(|thread| thread.join().unwrap_or_else(|_| Stats::new(1.0))).collect();
        let summaries = cores.iter().zip(done).zip(&waiting.rings).map(|((&core, stats), (_, ring))| {
            let counted = after.since(&before, core);
            core_summary(core, &stats, ring.dropped(), &base, counted)
        });
        let cores: Vec<CoreSummary> = summaries.collect();
        notes.extend(closing_notes(&cores, header.virtual_machine));
        let total = cores.iter().map(|core| core.total).fold(0.0, f64::max);
        let summary = Summary { duration: total as u64, cores, notes };
        writer.finish(&summary)?;
        Ok(summary)
    })
}

/// State shared by the measuring threads.
struct Setting<'a, C> {
    plan: &'a Plan,
    base: Timebase,
    clock: C,
    barrier: Barrier,
    stop: &'a AtomicBool,
    /// Start time in ticks; 0 until it is known, `u64::MAX` to give up.
    go: &'a AtomicU64,
}

/// A measuring thread: prepares, reports ready, waits for the start, measures.
fn thread<C: Clock + Copy + Send + Sync>(
    setting: &Setting<'_, C>,
    leads: bool,
    core: u32,
    ring: &Ring,
    ready: &mpsc::Sender<Result<Prepared, Error>>,
) -> Stats {
    let mut stats = Stats::new(setting.base.rate);
    let begun = begin(setting.plan, core).and_then(|()| prepare(setting.plan, &setting.base, setting.clock, core));
    let prepared = match begun {
        Ok(prepared) => prepared,
        Err(error) => {
            // Nobody receives the error if another core has failed before.
            let _ = ready.send(Err(error));
            return stats;
        }
    };
    let _ = ready.send(Ok(prepared.clone()));
    let begin = loop {
        match setting.go.load(Ordering::Acquire) {
            0 => std::thread::sleep(Duration::from_millis(1)),
            u64::MAX => return stats,
            begin => break begin,
        }
    };
    let wanted = u64::try_from(setting.plan.duration.as_nanos()).unwrap_or(u64::MAX);
    let until = Until { end: begin.saturating_add(setting.base.ticks_of(wanted)), stop: setting.stop };
    let mut clock = setting.clock;
    while clock.now() < begin {
        std::hint::spin_loop();
    }
    let (mut sink, threshold) = (ring, setting.base.ticks_of(prepared.threshold));
    let mut member = Member { barrier: &setting.barrier, leads };
    match setting.plan.method {
        Method::Fwq => {
            stats.minimum = prepared.minimum;
            loops::fixed_work(&mut Native::new(clock), &mut sink, &mut stats, prepared.units, threshold, until);
        }
        Method::Ftq => {
            let mut interval = prepared.interval;
            loops::fixed_time(&mut Native::new(clock), &mut sink, &mut stats, &mut interval, threshold, until);
            stats.minimum = interval.piece >> 16;
        }
        Method::Dgemm => {
            stats.minimum = prepared.minimum;
            let work = (setting.plan.blocks.max(1), prepared.units);
            let core = &mut Multiplication::new(clock);
            loops::with_barriers(core, &mut member, &mut sink, &mut stats, work, threshold, until);
        }
        Method::Barrier => {
            let core = &mut Native::new(clock);
            loops::with_barriers(core, &mut member, &mut sink, &mut stats, (0, 0), threshold, until);
        }
        Method::Spin | Method::Imported => {
            stats.minimum = prepared.minimum;
            loops::spin(&mut Native::new(clock), &mut sink, &mut stats, threshold, until);
        }
    }
    stats
}

/// Pins a measuring thread and sets its priority.
fn begin(plan: &Plan, core: u32) -> Result<(), Error> {
    pin(&[core]).map_err(|e| Error::Thread { core, what: format!("no thread can be pinned to it ({e})") })?;
    plan.priority.map_or(Ok(()), |priority| prioritise(priority).map_err(|what| Error::Priority(priority, what)))
}

fn header(plan: &Plan, host: &Host, found: &[Prepared], base: &Timebase, clock: &str) -> Header {
    let first = found.first();
    let most = |part: fn(&Prepared) -> f64| found.iter().map(part).fold(0.0, f64::max);
    let ns = |ticks: f64| ticks / base.rate;
    let share = first.and_then(|one| one.share).map(|_| most(|one| one.share.unwrap_or_default()));
    let core = |one: &Prepared| CoreHeader { core: one.core, minimum: ns(one.minimum as f64) };
    let since_1970 = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    Header {
        host: host.name.clone(),
        kernel: host.kernel.clone(),
        processor: host.processor.clone(),
        virtual_machine: host.virtual_machine,
        method: plan.method,
        program: concat!("fxscope ", env!("CARGO_PKG_VERSION")).to_owned(),
        clock: clock.to_owned(),
        clock_hz: base.rate * 1e9,
        quantum: first.map_or(0, |one| one.quantum),
        threshold: first.map_or(0, |one| one.threshold),
        wanted: u64::try_from(plan.duration.as_nanos()).unwrap_or(u64::MAX),
        monotonic_start: 0,
        unix_start: since_1970.map_or(0, |time| time.as_secs()),
        priority: plan.priority,
        overhead: Some(Overhead { read: ns(most(|one| one.read)), record: ns(most(|one| one.record)), share }),
        cores: found.iter().map(core).collect(),
        notes: Vec::new(),
    }
}

/// Notes that are known before the measurement.
fn notes(plan: &Plan, host: &Host, cores: &[u32], spare: &[u32], jumped: bool) -> Vec<String> {
    let mut notes = Vec::new();
    if host.invariant_tsc == Some(false) {
        let why = "the processor's counter changes its rate or stops";
        notes
            .push(format!("{why} (no constant_tsc, nonstop_tsc): the system clock was read instead, at a higher cost"));
    } else if let Some(other) =
        host.clocksource.as_deref().filter(|_| host.invariant_tsc.is_some()).filter(|&c| c != "tsc")
    {
        notes.push(format!("the kernel keeps time with {other} instead of the TSC, which it may distrust"));
    }
    let among = |of: &[u32]| of.iter().copied().filter(|core| cores.contains(core)).collect::<Vec<u32>>();
    for (of, what) in [(&host.isolated, "isolated"), (&host.tickless, "without timer tick while one thread runs")] {
        let those = among(of);
        if !those.is_empty() {
            notes.push(format!("{what}: core {}", cpus::format_list(&those)));
        }
    }
    if !host.offline.is_empty() {
        notes.push(format!("offline and not measured: core {}", cpus::format_list(&host.offline)));
    }
    if spare.is_empty() {
        notes.push(
            "all cores are measured: the thread that writes the trace also runs on them, once a second".to_owned(),
        );
    }
    if let Some(limit) = host.realtime_limit.filter(|_| plan.priority.is_some()) {
        let [runtime, period, remainder] = [limit.runtime, limit.period, limit.remainder()].map(|ns| ns as f64 / 1e6);
        notes.push(format!(
            "the kernel limits real-time threads to {runtime} ms of every {period} ms: detours of {remainder} ms every {period} ms \
             are caused by measuring with --rt; where recognised, they are named accordingly, and fit, simulate and compare \
             leave them out. To remove the limit: echo -1 > /proc/sys/kernel/sched_rt_runtime_us; since Linux 6.12 also \
             write 0 to /sys/kernel/debug/sched/fair_server/cpu*/runtime"
        ));
    }
    if jumped {
        notes.push("the clocks disagreed before the measurement: one of them jumped".to_owned());
    }
    notes
}

fn core_summary(
    core: u32,
    stats: &Stats,
    dropped: u64,
    base: &Timebase,
    counted: Vec<crate::trace::Counted>,
) -> CoreSummary {
    let used = stats.histogram.iter().rposition(|&count| count > 0).map_or(0, |last| last + 1);
    let minimum = if stats.minimum == u64::MAX { 0 } else { stats.minimum };
    CoreSummary {
        core,
        iterations: stats.iterations,
        minimum: minimum as f64 / base.rate,
        total: stats.total as f64 / base.rate,
        waiting: stats.waiting as f64 / base.rate,
        longest: 0,
        dropped,
        backward: stats.backward,
        histogram: stats.histogram[..used].to_vec(),
        counted,
    }
}

/// Notes that are known after the measurement.
fn closing_notes(cores: &[CoreSummary], virtual_machine: Option<bool>) -> Vec<String> {
    let mut notes = Vec::new();
    let dropped: u64 = cores.iter().map(|core| core.dropped).sum();
    if dropped > 0 {
        notes.push(format!(
            "{dropped} detours came too fast to be recorded: use a higher --threshold to record the long ones"
        ));
    }
    for core in cores.iter().filter(|core| core.backward > 0) {
        notes.push(format!(
            "core {}: the clock went back {} times; the time around it is left out",
            core.core, core.backward
        ));
    }
    let steal = cores.iter().flat_map(|core| &core.counted).filter(|c| c.time).map(|c| c.amount).sum::<u64>();
    if steal > 0 {
        let ms = steal as f64 / 1e6;
        notes.push(format!("a hypervisor took {ms:.0} ms of the measured cores (steal in /proc/stat, to 10 ms)"));
    } else if virtual_machine == Some(true) {
        notes.push(
            "this is a virtual machine whose hypervisor reports no stolen time, but may have taken some".to_owned(),
        );
    }
    notes
}
