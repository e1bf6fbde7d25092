//! Timers of a process. They use its clocks: simulated time, or its CPU time.

use serde::{Deserialize, Serialize};

use crate::fs::poll::poke_ready;
use crate::guest::Guest;
use crate::kernel::Kernel;
use crate::process::Process;
use crate::sched::wait::FOR_EVER;
use crate::signal::{self, Origin, SigInfo, code};
use crate::system::System;

/// The clock of a timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Counts {
    /// Time since the start of the run; absolute times are on the real-time clock or on the monotonic one.
    Time { realtime: bool },
    /// CPU time of the process.
    Running,
}

impl Counts {
    /// Returns its current value in ns, when it is `now_ns` and the process has used `cpu_ns` of CPU time.
    fn clock(self, now_ns: u64, cpu_ns: u64) -> u64 {
        match self {
            Counts::Time { .. } => now_ns,
            Counts::Running => cpu_ns,
        }
    }

    /// Converts an absolute time given by the program to ns of this clock.
    pub(crate) fn since_start(self, at_ns: u64, system: &System) -> u64 {
        match self {
            Counts::Time { realtime } => system.since_start(at_ns, realtime),
            Counts::Running => at_ns,
        }
    }
}

/// What happens when a timer expires.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Notify {
    Nothing,
    /// A signal, with a value, to the process or to one of its threads.
    Signal {
        signal: u32,
        value: u64,
        thread: Option<u32>,
    },
    /// The signal of `setitimer`.
    Alarm(u32),
}

/// One timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Timer {
    pub counts: Counts,
    /// Expiration in ns of its clock; [`FOR_EVER`]: it is not armed.
    pub at_ns: u64,
    /// Interval of later expirations in ns, or 0 for none.
    pub interval_ns: u64,
    pub notify: Notify,
    /// Number of expirations missed before the last signal.
    pub overrun: u32,
}

impl Timer {
    /// Returns a timer that is not armed.
    pub(crate) fn new(counts: Counts, notify: Notify) -> Timer {
        Timer { counts, at_ns: FOR_EVER, interval_ns: 0, notify, overrun: 0 }
    }

    /// Returns the time until it expires when its clock is `now_ns`; 0: not armed.
    pub(crate) fn left(&self, now_ns: u64) -> u64 {
        if self.at_ns == FOR_EVER { 0 } else { self.at_ns.saturating_sub(now_ns).max(1) }
    }

    /// Expires it, if it is due. Returns how often it has expired since it was last examined.
    pub(crate) fn expire(&mut self, now_ns: u64) -> u64 {
        if self.at_ns > now_ns {
            return 0;
        }
        if self.interval_ns == 0 {
            (self.at_ns, self.overrun) = (FOR_EVER, 0);
            return 1;
        }
        let missed = (now_ns - self.at_ns) / self.interval_ns;
        self.overrun = u32::try_from(missed).unwrap_or(i32::MAX as u32);
        self.at_ns = self.at_ns.saturating_add((missed + 1).saturating_mul(self.interval_ns));
        missed + 1
    }
}

/// Number of `setitimer`'s timers: real, virtual, profiling.
pub(crate) const ALARMS: usize = 3;

/// The timers of a process.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Timers {
    pub alarms: [Timer; ALARMS],
    /// Timers of `timer_create`, by number.
    pub numbered: Vec<Option<Timer>>,
}

impl Timers {
    pub(crate) fn new() -> Timers {
        use signal::number::{SIGALRM, SIGPROF, SIGVTALRM};
        let alarm = |counts, signal| Timer::new(counts, Notify::Alarm(signal));
        let alarms = [
            alarm(Counts::Time { realtime: false }, SIGALRM),
            alarm(Counts::Running, SIGVTALRM),
            alarm(Counts::Running, SIGPROF),
        ];
        Timers { alarms, numbered: Vec::new() }
    }

    fn all(&self) -> impl Iterator<Item = &Timer> {
        self.alarms.iter().chain(self.numbered.iter().flatten())
    }
}

impl Process {
    /// Returns the earliest simulated time at which one of its timers may expire, when it is `now_ns` and its threads have used
    /// `cpu_ns` of CPU time. Timers of CPU time are ignored unless it `runs`; they cannot expire sooner than if it continued to
    /// run.
    fn next_timer(&self, now_ns: u64, cpu_ns: u64, runs: bool) -> u64 {
        let armed = self.timers.all().filter(|t| t.at_ns != FOR_EVER);
        let times = armed.filter(|t| runs || t.counts != Counts::Running).map(|t| {
            let left = t.at_ns.saturating_sub(t.counts.clock(now_ns, cpu_ns));
            now_ns.saturating_add(left)
        });
        times.min().unwrap_or(FOR_EVER)
    }

    /// Returns the signals of the timers that have expired, with the thread they are for.
    fn expired(&mut self, now_ns: u64, cpu_ns: u64) -> Vec<(SigInfo, Option<u32>)> {
        let mut signals = Vec::new();
        let numbered = self.timers.numbered.iter_mut().enumerate().filter_map(|(id, t)| Some((id, t.as_mut()?)));
        for (id, timer) in self.timers.alarms.iter_mut().map(|t| (0, t)).chain(numbered) {
            if timer.expire(timer.counts.clock(now_ns, cpu_ns)) == 0 {
                continue;
            }
            match timer.notify {
                Notify::Nothing => {}
                Notify::Alarm(signal) => {
                    let origin = Origin::Sender { pid: 0, uid: 0 };
                    signals.push((SigInfo { signal, code: code::SI_KERNEL, origin }, None));
                }
                Notify::Signal { signal, value, thread } => {
                    let origin = Origin::Queued { pid: id as u32, uid: timer.overrun, value };
                    signals.push((SigInfo { signal, code: code::SI_TIMER, origin }, thread));
                }
            }
        }
        signals
    }
}

impl Kernel<'_> {
    /// Returns the current value of a clock of the running process, in ns.
    pub(crate) fn timer_clock(&self, counts: Counts) -> u64 {
        counts.clock(self.system.now_ns, self.cpu_ns())
    }

    /// Sends the signals of all timers that have expired.
    fn expire_timers(&mut self) {
        let (now_ns, cpu_ns) = (self.system.now_ns, self.cpu_ns());
        let with_pid = |pid| move |(info, thread)| (pid, info, thread);
        let mut due: Vec<_> =
            self.process.expired(now_ns, cpu_ns).into_iter().map(with_pid(self.process.pid)).collect();
        for other in self.other_processes.iter_mut() {
            due.extend(other.expired(now_ns, other.cpu_ns).into_iter().map(with_pid(other.pid)));
        }
        for (pid, info, thread) in due {
            if let Some(receiver) = self.all_threads_mut().find(|t| thread == Some(t.tid)) {
                signal::queue(receiver, info);
                continue;
            }
            signal::send_to_process(self, pid, info);
        }
    }
}

impl Guest {
    /// Sends the signals of all timers that have expired, if any may have.
    pub(crate) fn expire_timers(&mut self) {
        if self.system.next_event_ns > self.system.now_ns {
            return;
        }
        self.system.cpus.invalidate();
        let mut k = self.kernel();
        k.expire_timers();
        if k.system.objects.tick(k.system.now_ns) && k.files_are_waited_for() {
            poke_ready(&mut k, 0);
        }
    }

    /// Returns the earliest time at which a timer of any process may expire.
    pub(crate) fn next_timer(&self, runs: bool) -> u64 {
        let (now_ns, running) = (self.system.now_ns, self.threads[self.running].process);
        let times = self.processes.iter().map(|(id, process)| match id == running {
            true => process.next_timer(now_ns, process.cpu_ns + self.system.running_ns(), runs),
            false => process.next_timer(now_ns, process.cpu_ns, false),
        });
        times.chain([self.system.objects.next_timer()]).min().unwrap_or(FOR_EVER)
    }
}
