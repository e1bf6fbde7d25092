//! Thread selection. One host thread runs all guest threads. In functional runs they run in turn, each for [`QUANTUM`]
//! instructions or until it waits, yields or ends; in timed runs, `cpus` chooses among the threads of a CPU. Nothing depends on
//! the host, so runs are reproducible.

use std::ops::Range;

use fxscope_aarch64::Engine;

use crate::code::{Code, has_within};
use crate::end::End;
use crate::fs::attempt;
use crate::fs::poll::{SLICE_NS, outside_can_help, poke_ready};
use crate::guest::{Guest, Step};
use crate::sched::cpus::Turn;
use crate::sched::wait::{Blocked, FOR_EVER, Wait};
use crate::table::Id;
use crate::thread::Thread;

/// Instructions that a thread runs before other ready threads in functional runs: enough to make the cost of switches negligible,
/// and few enough that a spinning thread does not delay the others for long.
pub const QUANTUM: u64 = 1 << 14;

/// The same for a thread that waits for another one by looking again and again: enough for a few looks.
const POLLING_QUANTUM: u64 = 1 << 9;

impl Thread {
    /// Returns whether it neither waits nor has ended.
    pub(crate) fn can_run(&self) -> bool {
        self.blocked.is_none() && !self.ended && !self.stopped
    }

    /// Returns whether it waits for this.
    pub(crate) fn waits_for(&self, wait: &Wait) -> bool {
        self.blocked.as_ref().is_some_and(|blocked| blocked.wait == *wait)
    }

    /// Returns whether it can run, or must be examined.
    pub(crate) fn has_work(&self, now_ns: u64) -> bool {
        !self.stopped && self.blocked.as_ref().is_none_or(|b| self.poked || b.until_ns <= now_ns)
    }

    /// Returns whether it waits for descriptors or for something else on the host.
    pub(crate) fn waits_for_files(&self) -> bool {
        matches!(self.blocked, Some(Blocked { wait: Wait::Files(_) | Wait::Attempt(_), .. }))
    }

    /// Returns the part of `times`, around `now_ns`, for which [`Thread::has_work`] returns the same as now, unless the thread's
    /// state is changed.
    pub(crate) fn unchanged_during(&self, now_ns: u64, times: Range<u64>) -> Range<u64> {
        match &self.blocked {
            _ if self.stopped => times,
            // The memory that its monitor watches may change at any time.
            Some(Blocked { wait: Wait::Event(Some(_)), .. }) if !self.ended => 0..0,
            Some(b) if b.until_ns <= now_ns => times.start.max(b.until_ns)..times.end,
            Some(b) => times.start..times.end.min(b.until_ns),
            None => times,
        }
    }
}

impl Guest {
    /// Handles the result of the last block and any events since, and chooses the thread to run. `None`: run its next block.
    #[cold]
    #[inline(never)]
    pub(crate) fn attend<E: Engine>(&mut self, code: &mut Code<E>) -> Option<Step> {
        if self.end.is_some() {
            return Some(Step::Ended);
        }
        if self.host_clock.is_some() {
            self.set_now_ns(0);
        }
        self.account();
        self.note_touched();
        if let Some(trap) = self.thread_mut().trap.take() {
            self.system.cpus.invalidate();
            self.handle(trap);
        }
        self.expire_timers();
        if let Some(step) = self.choose() {
            return Some(step);
        }
        let thread = &self.threads[self.running];
        let (pid, vl) = (thread.pid, thread.cpu.vl);
        code.enter(pid, vl, &self.processes);
        if self.announced != thread.tid {
            self.announced = thread.tid;
            return Some(Step::Switched);
        }
        let process = &mut self.processes[thread.process];
        let (changed, ranges) = (std::mem::take(&mut process.code_changed), std::mem::take(&mut process.changed_code));
        if changed {
            code.forget_stops();
        }
        if changed || code.running.vl() != vl || has_within(&code.running, &ranges) {
            code.running.flush(vl);
            process.code_full = false;
            return Some(Step::CodeChanged);
        }
        if code.needs_stops(process.symbols.version()) {
            return Some(Step::Symbols);
        }
        self.set_deadline();
        None
    }

    /// Charges the time since the last call to the running thread.
    pub(crate) fn account(&mut self) {
        let ran = self.system.running_ns();
        let executed = self.instructions - self.system.accounted_instructions;
        self.system.accounted_instructions = self.instructions;
        let thread = &mut self.threads[self.running];
        thread.uses.instructions += executed;
        self.processes[thread.process].instructions += executed;
        // No thread runs while this one waits or has ended.
        if thread.can_run() {
            thread.cpu_ns += ran;
            self.system.note_busy(thread.cpu_number, ran);
            self.processes[thread.process].cpu_ns += ran;
        }
        self.system.accounted_ns = self.system.now_ns;
    }

    /// Makes a thread that can run the running one. `Some`: there is none, for the reason given.
    fn choose(&mut self) -> Option<Step> {
        loop {
            if let Some(end) = self.process_mut().end.take() {
                self.system.cpus.invalidate();
                match self.end_process(end) {
                    Some(step) => return Some(step),
                    None => continue,
                }
            }
            if !self.threads[self.running].ended {
                self.settle();
                if self.process().end.is_some() {
                    continue;
                }
            }
            let turn = if self.system.cpus.are_separate() { self.choose_on_active() } else { self.choose_any() };
            match turn {
                Some(Turn::Continue) => return None,
                Some(Turn::Stop(step)) => return Some(step),
                None => {}
            }
        }
    }

    /// Chooses among all threads. `None`: the running thread has changed and must be examined.
    fn choose_any(&mut self) -> Option<Turn> {
        let (instructions, quantum_end) = (self.instructions, self.quantum_end);
        let thread = self.thread_mut();
        let can_run = thread.can_run();
        let quantum_over = instructions >= quantum_end || std::mem::take(&mut thread.yielded);
        if can_run && !quantum_over {
            return Some(Turn::Continue);
        }
        let mut k = self.kernel();
        if k.files_are_waited_for() && poke_ready(&mut k, 0) && !can_run {
            // The running thread may be one of those.
            self.settle_ready();
            if self.threads[self.running].can_run() {
                return None;
            }
        }
        match self.next_with_work() {
            Some(next) => {
                self.switch_to(next);
                None
            }
            None if can_run => {
                self.quantum_end = self.instructions + QUANTUM;
                Some(Turn::Continue)
            }
            None => Some(Turn::Stop(self.idle())),
        }
    }

    /// Returns the next thread in turn that has something to do, other than the running one.
    fn next_with_work(&self) -> Option<Id<Thread>> {
        let now_ns = self.system.now_ns;
        let others = self.threads.iter().filter(|(id, thread)| *id != self.running && thread.has_work(now_ns));
        others.min_by_key(|(_, thread)| thread.turn).map(|(id, _)| id)
    }

    /// Switches to another thread. The one that ran goes to the end of the queue.
    fn switch_to(&mut self, next: Id<Thread>) {
        self.thread_mut().turn = self.system.next_turn();
        self.run_thread(next);
        let instructions = self.instructions;
        let thread = self.thread_mut();
        // A switch between a load-exclusive and its store-exclusive must make the store fail.
        thread.cpu.monitor = None;
        if !thread.polls {
            thread.probe.begins();
        }
        self.turn_start = instructions;
        self.set_turn();
    }

    /// Sets when the turn of the running thread ends: soon if it waits by looking again and again while others have work.
    pub(crate) fn set_turn(&mut self) {
        let waits = |thread: &Thread| thread.polls || thread.probe.spins;
        let now_ns = self.system.now_ns;
        let works = |thread: &Thread| thread.has_work(now_ns) && !waits(thread);
        let is_short = waits(&self.threads[self.running]) && self.threads.values().any(works);
        self.quantum_end = self.turn_start + if is_short { POLLING_QUANTUM } else { QUANTUM };
        self.deadline = self.deadline.min(self.quantum_end);
    }

    /// Makes a thread the running one.
    pub(crate) fn run_thread(&mut self, next: Id<Thread>) {
        self.note_touched();
        let previous = self.running;
        let before = self.system.toucher(&self.threads[previous]);
        self.system.leave_core(&self.threads[previous]);
        let counter = self.threads[previous].cpu.counter;
        let can_run = self.threads[previous].can_run();
        self.threads[previous].uses.preemptions += u64::from(can_run);
        self.running = next;
        self.activate_space();
        self.forget_ended(previous);
        let thread = &mut self.threads[next];
        thread.cpu.counter = counter;
        self.system.enter_core(thread);
        let now = self.system.toucher(thread);
        if now != before {
            self.space_mut().pages.toucher_changed(before, now);
        }
    }

    /// Activates the address space of the running thread's process.
    fn activate_space(&mut self) {
        self.memory.activate(self.space().id);
    }

    /// Returns what the driver must do when no thread can run.
    pub(crate) fn idle(&mut self) -> Step {
        let until_ns = self.next_event();
        let left_ns = until_ns.saturating_sub(self.system.now_ns);
        let has_host_clock = self.host_clock.is_some();
        let mut k = self.kernel();
        if has_host_clock && until_ns != FOR_EVER {
            poke_ready(&mut k, left_ns);
            return Step::Waiting;
        }
        if outside_can_help(&k) {
            // Until something happens on the host, simulated time passes at the host's speed.
            let slice_ns = if attempt::any(&k) { attempt::PAUSE_NS } else { SLICE_NS };
            let patience_ns = left_ns.min(slice_ns);
            let found = poke_ready(&mut k, patience_ns);
            return match until_ns {
                FOR_EVER => Step::Waiting,
                _ if found => Step::Waiting,
                _ => Step::Sleep { until_ns: self.system.now_ns + patience_ns },
            };
        }
        if until_ns != FOR_EVER {
            return Step::Sleep { until_ns };
        }
        let end = End::Deadlock { threads: self.waiting() };
        self.end_run(end)
    }

    /// Returns the earliest time limit, or [`FOR_EVER`].
    pub(crate) fn next_event(&self) -> u64 {
        let waits = self.threads.values().filter(|t| !t.stopped).filter_map(|t| t.blocked.as_ref()).map(|b| b.until_ns);
        waits.chain([self.next_timer(false)]).min().unwrap_or(FOR_EVER)
    }

    /// Sets when [`Guest::attend`] is called next, if nothing else causes it.
    fn set_deadline(&mut self) {
        if self.system.next_event_ns <= self.system.now_ns {
            let now_ns = self.system.now_ns;
            let later = self.threads.values().filter_map(|t| t.blocked.as_ref()).map(|b| b.until_ns);
            let later = later.filter(|&ns| ns > now_ns);
            self.system.next_event_ns = later.chain([self.next_timer(true)]).min().unwrap_or(FOR_EVER);
        }
        let alone = self.system.cpus.are_separate() || self.threads.len() == 1;
        self.deadline = if alone { u64::MAX } else { self.quantum_end };
    }
}
