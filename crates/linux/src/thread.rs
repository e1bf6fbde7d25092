//! What belongs to one thread of a process.

use fxscope_aarch64::{Cpu, Trap};
use fxscope_guestmem::Memory;
use serde::{Deserialize, Serialize};

use crate::budget::Charge;
use crate::death::Fault;
use crate::fs::files::OpenFile;
use crate::mm::pages::Policy;
use crate::perf::ThreadUse;
use crate::process::Process;
use crate::sched::cpus::Queued;
use crate::sched::probe::Probe;
use crate::sched::wait::{Blocked, Resumed, Wait};
use crate::signal::{AltStack, SigInfo, bit, code, number};
use crate::table::Id;

/// One thread: registers and kernel state.
#[derive(Serialize, Deserialize)]
pub struct Thread {
    /// Registers.
    pub cpu: Cpu,
    /// Thread number, unique among all threads and processes of a run.
    pub tid: u32,
    /// Number of its process.
    pub pid: u32,
    /// Its process.
    pub(crate) process: Id<Process>,
    /// Blocked signals.
    pub(crate) mask: u64,
    /// The mask to restore after `rt_sigsuspend` and similar calls.
    pub(crate) mask_after_suspend: Option<u64>,
    /// Signals pending for this thread only.
    pub(crate) pending: Vec<SigInfo>,
    pub(crate) alt_stack: AltStack,
    /// Name set by `prctl`, zero-terminated.
    pub(crate) name: [u8; 16],
    /// CPUs on which it may run, as a bit mask over CPU numbers.
    pub(crate) affinity: Vec<u64>,
    /// The CPU on which it runs, or last ran.
    pub(crate) cpu_number: u32,
    /// Its position in the queue of all threads in functional runs: the lowest runs next.
    pub(crate) turn: u64,
    /// Its position in the run queue of its CPU, if it is ready and CPUs have run queues.
    pub(crate) queued: Option<Queued>,
    /// The unhandled trap that stopped its last block.
    pub(crate) trap: Option<Trap>,
    /// Where its memory is placed.
    pub(crate) policy: Policy,
    /// What it waits for in a system call. The call's arguments are still in the registers.
    pub(crate) blocked: Option<Blocked>,
    /// The state of an earlier attempt, while a system call is repeated.
    pub(crate) resumed: Option<Resumed>,
    /// The FIFO that it is opening, while the other end is missing.
    #[serde(skip)]
    pub(crate) opening: Option<OpenFile>,
    /// The last fault whose signal it handled.
    pub(crate) fault: Option<Fault>,
    /// Whether a signal has arrived for it: it must be examined although it is blocked.
    pub(crate) poked: bool,
    /// Whether an event has ended its `WFE` and it has not continued yet.
    pub(crate) event_ended_wait: bool,
    /// Whether it gave up the rest of its quantum.
    pub(crate) yielded: bool,
    /// Whether it waits for another thread by looking again and again ([`Guest::set_polls`](crate::Guest::set_polls)).
    pub(crate) polls: bool,
    /// Whether it was seen to do so, in functional runs.
    pub(crate) probe: Probe,
    /// Its process is stopped (`SIGSTOP`): it does not run until that continues.
    pub(crate) stopped: bool,
    /// It has ended and will be removed.
    pub(crate) ended: bool,
    /// What it has used, except for the time.
    pub(crate) uses: ThreadUse,
    /// Its scheduling policy and priorities, which the model does not consider.
    pub(crate) scheduling: Scheduling,
    /// `PR_SET_TIMERSLACK`, in ns.
    pub(crate) timer_slack_ns: u64,
    /// Simulated time at which `clone` created it, ns; 0 for a program's first thread.
    pub(crate) created_ns: u64,
    /// CPU time until it last stopped, in ns of simulated time.
    pub(crate) cpu_ns: u64,
    /// Where to write 0 and wake a futex at its end (`CLONE_CHILD_CLEARTID`), or 0.
    pub(crate) clear_tid: u64,
    /// Head of its list of robust futexes, or 0.
    pub(crate) robust_list: u64,
    /// The vector lengths of programs that it executes.
    pub(crate) next_vl: NextVl,
    /// Its cost, unless it is the first of its process.
    #[serde(skip)]
    pub(crate) charge: Charge,
}

/// The time by which Linux may delay the end of a sleep by default, in ns. The simulator delays none.
pub(crate) const DEFAULT_SLACK_NS: u64 = 50_000;

/// Scheduling policy and priorities of a thread (sched(7)).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Scheduling {
    /// `SCHED_OTHER` (0) and so on.
    pub policy: u32,
    /// Of a real-time policy, 1 to 99; otherwise 0.
    pub priority: u32,
    /// -20 to 19.
    pub nice: i32,
}

/// The vector length of a thread after `execve` (`PR_SVE_SET_VL`, Linux `Documentation/arch/arm64/sve.rst`, section 5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct NextVl {
    /// `PR_SVE_VL_INHERIT`: every `execve` keeps the length.
    pub inherit: bool,
    /// The length in bytes after the next `execve`; `None`: the system's default.
    pub on_exec: Option<usize>,
}

impl NextVl {
    /// Returns the length in bytes for the program being executed; `default` is the system's.
    pub(crate) fn take(&mut self, default: usize) -> usize {
        let vl = self.on_exec.unwrap_or(default);
        if !self.inherit {
            self.on_exec = None;
        }
        vl
    }
}

impl Thread {
    /// Returns the first thread of a process.
    pub(crate) fn new(
        cpu: Cpu,
        pid: u32,
        process: Id<Process>,
        affinity: Vec<u64>,
        cpu_number: u32,
        program: &[u8],
    ) -> Thread {
        Thread {
            cpu,
            tid: pid,
            pid,
            process,
            mask: 0,
            mask_after_suspend: None,
            pending: Vec::new(),
            alt_stack: AltStack::NONE,
            name: name_of(program),
            affinity,
            cpu_number,
            turn: 0,
            queued: None,
            trap: None,
            policy: Policy::default(),
            blocked: None,
            resumed: None,
            opening: None,
            fault: None,
            poked: false,
            event_ended_wait: false,
            yielded: false,
            polls: false,
            probe: Probe::default(),
            stopped: false,
            ended: false,
            uses: ThreadUse::default(),
            scheduling: Scheduling::default(),
            timer_slack_ns: DEFAULT_SLACK_NS,
            created_ns: 0,
            cpu_ns: 0,
            clear_tid: 0,
            robust_list: 0,
            next_vl: NextVl::default(),
            charge: Charge::default(),
        }
    }

    /// Returns a copy for `clone`: the same registers, mask and affinity; nothing pending.
    pub(crate) fn duplicate(&self, tid: u32, pid: u32) -> Thread {
        let mut cpu = self.cpu.clone();
        cpu.monitor = None;
        Thread {
            mask: self.mask_after_suspend.unwrap_or(self.mask),
            alt_stack: self.alt_stack,
            name: self.name,
            policy: self.policy,
            next_vl: self.next_vl,
            scheduling: self.scheduling,
            timer_slack_ns: self.timer_slack_ns,
            tid,
            ..Thread::new(cpu, pid, self.process, self.affinity.clone(), self.cpu_number, b"")
        }
    }

    /// Clears the SVE state beyond the SIMD&FP registers, as Linux does at every system call (`sve.rst`, section 4).
    pub(crate) fn discard_sve_state(&mut self) {
        for z in &mut self.cpu.z {
            z.0[2..].fill(0);
        }
        self.cpu.p = [0; 16];
        self.cpu.ffr = 0;
    }

    /// Returns the CPU on which it runs, or last ran.
    #[must_use]
    pub fn cpu_number(&self) -> u32 {
        self.cpu_number
    }

    /// Returns the simulated time at which `clone` created it, ns; 0 for a program's first thread.
    #[must_use]
    pub fn created_ns(&self) -> u64 {
        self.created_ns
    }

    /// Delivers an event, such as that of `SEV`: it ends the current `WFE` or the next one.
    pub(crate) fn event(&mut self) {
        match &self.blocked {
            Some(Blocked { wait: Wait::Event(_), .. }) => (self.blocked, self.event_ended_wait) = (None, true),
            _ => self.cpu.event = true,
        }
    }

    /// Delivers an event to a thread that waits for one with its monitor armed, if the monitored address has been written. Its
    /// address space must be active in `mem`.
    pub(crate) fn look_at_monitor(&mut self, mem: &mut Memory) {
        let Some(Blocked { wait: Wait::Event(Some(monitor)), .. }) = &self.blocked else { return };
        if !monitor.holds(mem) {
            self.event();
        }
    }

    /// Moves the thread back to the instruction that it has just executed and that turned out to be undefined; returns the signal
    /// for it.
    pub(crate) fn undefined_before_pc(&mut self) -> SigInfo {
        self.cpu.pc = self.cpu.pc.wrapping_sub(4);
        SigInfo::fault(number::SIGILL, code::ILL_ILLOPC, self.cpu.pc)
    }

    /// Returns whether an arriving signal matters: not blocked, or waited for.
    pub(crate) fn wants(&self, signal: u32) -> bool {
        let waited_for = self.blocked.as_ref().map_or(0, |b| b.wait.signals());
        (!self.mask | waited_for) & bit(signal) != 0
    }
}

/// Returns a thread's name, from the path of its program.
pub(crate) fn name_of(program: &[u8]) -> [u8; 16] {
    let base = program.rsplit(|&b| b == b'/').next().unwrap_or_default();
    let mut name = [0; 16];
    let len = base.len().min(15);
    name[..len].copy_from_slice(&base[..len]);
    name
}
