//! Which thread runs. All threads of all processes of a run take turns on one host thread. In functional runs it is
//! round robin, each for [`QUANTUM`] instructions or until it waits, yields or ends; with time, `cpus` chooses among the
//! threads of a CPU. Nothing about it depends on the host, so that a run can be repeated exactly.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

use rustix::io::Errno;

use crate::attempt;
use crate::channels::Channels;
use crate::cmg::SharedRegisters;
use crate::cpus::{Cpus, Turn};
use crate::descriptors::{SLICE_NS, outside_can_help, poke_ready};
use crate::guest::{Guest, Step};
use crate::kernel::{End, Kernel, Waiting};
use crate::pages::PageUse;
use crate::processes::{Parked, Zombie};
use crate::signal;
use crate::syscalls;
use crate::terminal::Terminal;
use crate::thread::Thread;
use crate::wait::{Blocked, FOR_EVER, Resumed, Wait};

/// Instructions a thread runs before others that can run have their turn. Long enough that switching costs
/// nothing that could be measured, short enough that a thread that spins does not hold up the others for long.
pub const QUANTUM: u64 = 1 << 14;

/// What all processes of a run share. It is kept with the process that runs.
pub(crate) struct System {
    /// All threads but the one that runs, next one first.
    pub threads: VecDeque<Box<Thread>>,
    /// The last number given to a thread or process.
    pub last_id: u32,
    /// Waits begun so far.
    pub waits: u64,
    /// No time limit or timer expires before this simulated time in ns.
    pub next_event_ns: u64,
    /// Simulated time up to which running is accounted for, in ns.
    accounted_ns: u64,
    /// Which thread runs on which CPU, when each CPU runs one.
    pub cpus: Cpus,
    /// Threads have moved from one CPU to another.
    pub cpus_stale: bool,
    /// Calls of system calls that are not implemented, by number.
    pub unknown_calls: BTreeMap<u64, u64>,
    /// All processes but the one that runs, by number.
    pub processes: BTreeMap<u32, Box<Parked>>,
    /// Processes that have ended, in that order.
    pub zombies: Vec<Zombie>,
    /// Registers that the cores of a CMG have in common.
    pub shared_registers: SharedRegisters,
    /// Pages that processes had that have ended.
    pub page_use: Vec<PageUse>,
    /// Pipes and sockets that programs have made or opened.
    pub channels: Channels,
    /// Who is told of what programs do at the host's terminal.
    pub terminal: Terminal,
}

impl System {
    pub(crate) fn new(last_id: u32) -> System {
        System {
            threads: VecDeque::new(),
            last_id,
            waits: 0,
            next_event_ns: FOR_EVER,
            accounted_ns: 0,
            cpus: Cpus::default(),
            cpus_stale: false,
            unknown_calls: BTreeMap::new(),
            processes: BTreeMap::new(),
            zombies: Vec::new(),
            shared_registers: SharedRegisters::default(),
            page_use: Vec::new(),
            channels: Channels::default(),
            terminal: Terminal::default(),
        }
    }

    /// A number for a new thread or process.
    pub(crate) fn new_id(&mut self) -> u32 {
        self.last_id += 1;
        self.last_id
    }

    /// Counts a call of a system call that is not implemented. Programs can make any number of them up.
    pub(crate) fn note_unknown(&mut self, number: u64) {
        /// Most numbers that are told apart.
        const MOST: usize = 100;
        let known = self.unknown_calls.len() < MOST || self.unknown_calls.contains_key(&number);
        *self.unknown_calls.entry(if known { number } else { u64::MAX }).or_default() += 1;
    }

    /// How long the thread that runs has been running since this was last added up, in ns.
    pub(crate) fn running_ns(&self, now_ns: u64) -> u64 {
        now_ns.saturating_sub(self.accounted_ns)
    }

    /// Running is accounted for from `now_ns` on, which another CPU's clock shows.
    pub(crate) fn start_accounting(&mut self, now_ns: u64) {
        self.accounted_ns = now_ns;
    }
}

impl Thread {
    /// Whether it has something to do, or at least to look at.
    pub(crate) fn has_work(&self, now_ns: u64) -> bool {
        self.blocked.as_ref().is_none_or(|b| self.poked || b.until_ns <= now_ns)
    }

    /// Whether it waits for descriptors, or something else of the host's.
    pub(crate) fn waits_for_files(&self) -> bool {
        matches!(self.blocked, Some(Blocked { wait: Wait::Files(_) | Wait::Attempt(_), .. }))
    }

    /// The times of `times`, around `now_ns`, at which it has work if it has some now, as long as nothing is done to it.
    pub(crate) fn stays_so(&self, now_ns: u64, times: Range<u64>) -> Range<u64> {
        match &self.blocked {
            // What its monitor watches may change at any time.
            Some(Blocked { wait: Wait::Event(Some(_)), .. }) if !self.ended => 0..0,
            Some(b) if b.until_ns <= now_ns => times.start.max(b.until_ns)..times.end,
            Some(b) => times.start..times.end.min(b.until_ns),
            None => times,
        }
    }
}

impl Guest {
    /// Deals with what the last block left and with what has come since, and chooses the thread to go on with.
    /// `None`: run its next block.
    #[cold]
    #[inline(never)]
    pub(crate) fn attend(&mut self) -> Option<Step> {
        if self.end.is_some() {
            return Some(Step::Ended);
        }
        if self.host_clock.is_some() {
            self.set_now_ns(0);
        }
        self.account();
        self.kernel.note_touched(&self.thread);
        if let Some(trap) = self.thread.trap.take() {
            self.kernel.system.cpus.stir();
            self.handle(trap);
        }
        self.expire_timers();
        if let Some(step) = self.choose() {
            return Some(step);
        }
        if self.announced != self.thread.tid {
            self.announced = self.thread.tid;
            return Some(Step::Switched);
        }
        if self.blocks.vl() != self.thread.cpu.vl {
            self.kernel.code_changed = true;
        }
        if std::mem::take(&mut self.kernel.code_changed) {
            self.blocks.flush(self.thread.cpu.vl);
            return Some(Step::CodeChanged);
        }
        self.set_deadline();
        None
    }

    /// Adds the time since the last look to whoever was running.
    pub(crate) fn account(&mut self) {
        let now_ns = self.kernel.now_ns;
        let ran = self.kernel.system.running_ns(now_ns);
        // Nobody runs while the thread at the front waits or has ended.
        if self.thread.blocked.is_none() && !self.thread.ended {
            self.thread.cpu_ns += ran;
            self.kernel.cpu_ns += ran;
        }
        self.kernel.system.accounted_ns = now_ns;
    }

    /// Brings a thread that can run to the front. `Some`: there is none, for the reason given.
    fn choose(&mut self) -> Option<Step> {
        loop {
            if let Some(end) = self.kernel.end.take() {
                self.kernel.system.cpus.stir();
                match self.end_process(end) {
                    Some(step) => return Some(step),
                    None => continue,
                }
            }
            if !self.thread.ended {
                self.settle();
                if self.kernel.end.is_some() {
                    continue;
                }
            }
            let turn = if self.kernel.system.cpus.on() { self.choose_here() } else { self.choose_any() };
            match turn {
                Some(Turn::GoOn) => return None,
                Some(Turn::Stop(step)) => return Some(step),
                None => {}
            }
        }
    }

    /// Chooses among all threads. `None`: the thread in place has changed and must be looked at.
    fn choose_any(&mut self) -> Option<Turn> {
        let can_run = !self.thread.ended && self.thread.blocked.is_none();
        let quantum_over = self.instructions >= self.quantum_end || std::mem::take(&mut self.thread.yielded);
        if can_run && !quantum_over {
            return Some(Turn::GoOn);
        }
        if self.kernel.files_are_waited_for(&self.thread)
            && poke_ready(&mut self.kernel, &mut self.thread, 0)
            && !can_run
        {
            // The thread in place may be one of those.
            self.settle_ready();
            if self.thread.blocked.is_none() && !self.thread.ended {
                return None;
            }
        }
        match self.next_with_work() {
            Some(index) => {
                self.switch_to(index);
                None
            }
            None if can_run => {
                self.quantum_end = self.instructions + QUANTUM;
                Some(Turn::GoOn)
            }
            None => Some(Turn::Stop(self.idle())),
        }
    }

    /// Makes the system call that the thread is blocked in again, if there may be something for it.
    pub(crate) fn settle_ready(&mut self) {
        let poked = std::mem::take(&mut self.thread.poked);
        if poked && self.thread.blocked.as_ref().is_some_and(|b| b.wait.is_repeated()) {
            self.call_again();
        }
    }

    /// What has happened to the thread at the front: signals, the end of its wait.
    fn settle(&mut self) {
        if matches!(self.thread.blocked.as_ref().map(|b| &b.wait), Some(Wait::Child { vfork: Some(_) })) {
            return;
        }
        self.settle_ready();
        signal::deliver_pending(&mut self.kernel, &mut self.thread);
        let Some(blocked) = &self.thread.blocked else { return };
        if self.kernel.end.is_some() || blocked.until_ns > self.kernel.now_ns {
            return;
        }
        match blocked.wait {
            Wait::Futex { .. } => self.thread.finish_call(-i64::from(Errno::TIMEDOUT.raw_os_error())),
            Wait::Sleep { .. } => self.thread.finish_call(0),
            Wait::Event(_) => {
                self.kernel.take_barrier_event(self.thread.cpu_number(), self.kernel.now_ns);
                self.thread.event();
            }
            Wait::Signal(_) | Wait::Files(_) | Wait::Attempt(_) | Wait::Child { .. } => self.call_again(),
        }
    }

    /// Makes the system call that the thread is blocked in again.
    fn call_again(&mut self) {
        let Some(blocked) = self.thread.blocked.take() else { return };
        self.kernel.system.cpus.stir();
        self.thread.resumed = Some(Resumed { until_ns: blocked.until_ns, progress: blocked.progress });
        syscalls::call(&mut self.kernel, &mut self.thread);
        self.thread.resumed = None;
    }

    /// The next thread in turn that has something to do.
    fn next_with_work(&mut self) -> Option<usize> {
        let now_ns = self.kernel.now_ns;
        self.kernel.system.threads.iter().position(|t| t.has_work(now_ns))
    }

    /// Puts a thread in the place of the one that runs, which goes to the end of the line.
    fn switch_to(&mut self, index: usize) {
        self.exchange(index);
        let Some(old) = self.kernel.system.threads.remove(index) else { return };
        // What is between a load-exclusive and its store-exclusive must not be seen as undisturbed.
        self.thread.cpu.monitor = None;
        if !old.ended {
            self.kernel.system.threads.push_back(old);
        }
        if self.thread.pid != self.kernel.pid {
            self.switch_process(self.thread.pid);
        }
        self.quantum_end = self.instructions + QUANTUM;
    }

    /// The thread in place and a parked one change places. The process in place may not be that of the thread then.
    pub(crate) fn exchange(&mut self, index: usize) {
        let before = self.kernel.toucher(&self.thread);
        self.kernel.leave_core(&self.thread);
        self.kernel.note_touched(&self.thread);
        let counter = self.thread.cpu.counter;
        std::mem::swap(&mut self.thread, &mut self.kernel.system.threads[index]);
        self.thread.cpu.counter = counter;
        self.kernel.enter_core(&mut self.thread);
        let who = self.kernel.toucher(&self.thread);
        if who != before {
            self.kernel.pages.toucher_changed(before, who);
        }
    }

    /// Nobody can run: until when, or that it is for ever.
    pub(crate) fn idle(&mut self) -> Step {
        let until_ns = self.next_event();
        if self.host_clock.is_some() && until_ns != FOR_EVER {
            let patience_ns = until_ns.saturating_sub(self.kernel.now_ns);
            poke_ready(&mut self.kernel, &mut self.thread, patience_ns);
            return Step::Waiting;
        }
        if outside_can_help(&self.kernel, &self.thread) {
            // Until something happens there, a second there is a second here.
            let slice_ns = if attempt::any(&self.kernel, &self.thread) { attempt::PAUSE_NS } else { SLICE_NS };
            let patience_ns = until_ns.saturating_sub(self.kernel.now_ns).min(slice_ns);
            let found = poke_ready(&mut self.kernel, &mut self.thread, patience_ns);
            return match until_ns {
                FOR_EVER => Step::Waiting,
                _ if found => Step::Waiting,
                _ => Step::Sleep { until_ns: self.kernel.now_ns + patience_ns },
            };
        }
        if until_ns != FOR_EVER {
            return Step::Sleep { until_ns };
        }
        let end = self.deadlock();
        self.end_run(end)
    }

    /// The earliest time limit, or [`FOR_EVER`].
    pub(crate) fn next_event(&self) -> u64 {
        let threads = self.kernel.system.threads.iter().map(Box::as_ref).chain([&*self.thread]);
        let waits = threads.filter_map(|t| t.blocked.as_ref()).map(|b| b.until_ns);
        waits.chain([self.next_timer(false)]).min().unwrap_or(FOR_EVER)
    }

    fn kernel_of(&self, pid: u32) -> Option<&Kernel> {
        if pid == self.kernel.pid { Some(&self.kernel) } else { Some(&self.kernel.system.processes.get(&pid)?.kernel) }
    }

    fn deadlock(&self) -> End {
        let all = self.kernel.system.threads.iter().map(Box::as_ref).chain([&*self.thread]);
        let mut threads: Vec<Waiting> = all
            .filter_map(|t| {
                let blocked = t.blocked.as_ref()?;
                Some(Waiting {
                    pid: t.pid,
                    tid: t.tid,
                    pc: t.cpu.pc,
                    function: self.kernel_of(t.pid).and_then(|k| k.function_at(t.cpu.pc)),
                    waits_for: blocked.wait.to_string(),
                })
            })
            .collect();
        threads.sort_unstable_by_key(|t| t.tid);
        End::Deadlock { threads }
    }

    /// When [`Guest::attend`] is called next, if nothing else makes it.
    fn set_deadline(&mut self) {
        if self.kernel.system.next_event_ns <= self.kernel.now_ns {
            let now_ns = self.kernel.now_ns;
            let threads = self.kernel.system.threads.iter();
            let later = threads.filter_map(|t| t.blocked.as_ref()).map(|b| b.until_ns).filter(|&ns| ns > now_ns);
            self.kernel.system.next_event_ns = later.chain([self.next_timer(true)]).min().unwrap_or(FOR_EVER);
        }
        let alone = self.kernel.system.threads.is_empty() || self.kernel.system.cpus.on();
        self.deadline = if alone { u64::MAX } else { self.quantum_end };
    }
}
