//! Cores whose threads wait in loops have no turns until something happens to them.
//!
//! A core that waits ([`Spin::Waits`]) is at the beginning of a round. What it would have done up to some later time is
//! known: it does that at once when somebody writes a place that its loop reads, when a count in a register runs out, when
//! its thread is disturbed otherwise, and at the latest after [`REACH`] cycles.

use std::ops::Range;

use fxscope_aarch64::BlockId;
use fxscope_calendar::Cycle;
use fxscope_memory::NEVER;

use crate::core::Core;
use crate::spin::{Seen, Spin};
use crate::timing::{Driver, Timing};

/// Cycles that a core waits without being looked at, at most.
const REACH: Cycle = 1 << 16;

/// A core that waits.
pub(crate) struct Waiting {
    index: usize,
    thread: u32,
    process: u32,
    reads: Vec<Range<u64>>,
}

impl Timing {
    /// The core of CPU number `index`.
    pub(crate) fn core_at(&mut self, index: usize) -> Option<&mut Core> {
        if index == self.here { Some(&mut self.core) } else { self.parked[index].as_deref_mut() }
    }
}

impl Driver<'_> {
    /// Whether the core of CPU number `index` waits.
    pub(crate) fn waits(&self, index: usize) -> bool {
        self.timing.waiting.iter().any(|waiting| waiting.index == index)
    }

    /// The core in place is watched, and a block ran. Returns whether it is not watched any more.
    #[cold]
    pub(crate) fn watch_block(&mut self, id: BlockId, executed: usize) -> bool {
        let core = &mut *self.timing.core;
        let Spin::Watched(rounds) = &mut core.spin else { return false };
        let now = core.pipeline.now();
        let last = self.process.block(id).end - 4;
        if core.marks.is_met(last, self.process.cpu().pc) {
            core.spin = Spin::rests();
            return true;
        }
        match rounds.block(id, self.process.block(id), executed, self.process.cpu(), now) {
            Seen::Goes => false,
            Seen::Differs => {
                core.spin = Spin::rests();
                true
            }
            Seen::Repeats(period) => match rounds.measure(period, &core.pipeline, &core.blocks) {
                None => false,
                Some(wait) => {
                    core.spin = Spin::Waits(Box::new(wait));
                    self.begin_to_wait();
                    true
                }
            },
        }
    }

    /// The core in place begins to wait, if that is of use.
    fn begin_to_wait(&mut self) {
        let (index, thread, process) = (self.timing.here, self.process.thread().tid, self.process.pid());
        let Spin::Waits(wait) = &self.timing.core.spin else { return };
        let private = |range: &Range<u64>| self.process.memory().region_at(range.start).is_some_and(|r| !r.shared);
        let reads = wait.reads().filter(|reads| reads.iter().all(private));
        let Some(reads) = reads else { return self.timing.core.spin = Spin::rests() };
        self.timing.waiting.push(Waiting { index, thread, process, reads });
        self.watch_memory();
        self.go_on_waiting(self.timing.waiting.len() - 1);
    }

    /// What the threads that wait read is watched.
    fn watch_memory(&mut self) {
        let pid = self.process.pid();
        let of_it = self.timing.waiting.iter().filter(|waiting| waiting.process == pid);
        let mut ranges: Vec<Range<u64>> = of_it.flat_map(|waiting| waiting.reads.iter().cloned()).collect();
        ranges.sort_unstable_by_key(|range| (range.start, range.end));
        ranges.dedup();
        self.process.memory_mut().watch(ranges);
    }

    /// Entry `entry` of those that wait has come to the end of what was known, and goes on waiting if it can.
    fn go_on_waiting(&mut self, entry: usize) {
        let Waiting { index, thread, .. } = self.timing.waiting[entry];
        let undisturbed = self.process.is_undisturbed(thread);
        let Some(core) = self.timing.core_at(index) else { return };
        let Spin::Waits(wait) = &mut core.spin else { return };
        let most = REACH / wait.cycles();
        let look = wait.rounds_to_look_into(most);
        let rounds = if undisturbed { self.process.rounds_ahead(thread, &mut wait.round, look) } else { 0 };
        wait.left = (rounds / wait.rounds).min(most);
        match self.waits_until(index) {
            Some(until) => self.timing.clocks.set(index, until),
            None => self.stop_waiting(entry),
        }
    }

    /// Until when the core of CPU number `index` can wait; `None`: it cannot.
    fn waits_until(&mut self, index: usize) -> Option<Cycle> {
        let due_ns = self.process.next_due_ns();
        let core = self.timing.core_at(index)?;
        let now = core.pipeline.now();
        let due = due_ns.map_or(NEVER, |ns| core.cycle_at(ns));
        let Spin::Waits(wait) = &core.spin else { return None };
        let periods = wait.left.min(due.saturating_sub(now) / wait.cycles());
        (periods > 0).then(|| now + periods * wait.cycles())
    }

    /// The time has come until which the core of CPU number `index` waits.
    #[cold]
    pub(crate) fn waited(&mut self, index: usize) {
        let Some(entry) = self.timing.waiting.iter().position(|waiting| waiting.index == index) else { return };
        self.leap(entry, self.timing.clocks[index]);
        self.go_on_waiting(entry);
    }

    /// Entry `entry` of those that wait has done all rounds that begin before `until`, as far as they are known.
    fn leap(&mut self, entry: usize, until: Cycle) {
        let Waiting { index, thread, .. } = self.timing.waiting[entry];
        let Some(core) = self.timing.core_at(index) else { return };
        let (now, began_ns) = (core.pipeline.now(), core.now_ns());
        let Spin::Waits(wait) = &mut core.spin else { return };
        let periods = until.saturating_sub(now).div_ceil(wait.cycles()).min(wait.left);
        wait.leap(periods, &mut core.pipeline, &mut core.blocks);
        let ns = core.now_ns() - began_ns;
        let Spin::Waits(wait) = &core.spin else { return };
        self.process.skip_rounds(thread, &wait.round, periods * wait.rounds, ns);
    }

    /// Entry `entry` of those that wait is simulated again.
    fn stop_waiting(&mut self, entry: usize) {
        let Waiting { index, .. } = self.timing.waiting.remove(entry);
        let Some(core) = self.timing.core_at(index) else { return };
        core.spin = Spin::default();
        let now = core.pipeline.now();
        self.timing.clocks.set(index, now);
        self.watch_memory();
    }

    /// A place that threads read who wait was written by a block that began at `now`.
    #[cold]
    pub(crate) fn watched_written(&mut self, now: Cycle) {
        let written = self.process.memory_mut().take_written();
        let pid = self.process.pid();
        for entry in (0..self.timing.waiting.len()).rev() {
            let waiting = &self.timing.waiting[entry];
            if waiting.process == pid && waiting.reads.iter().any(|range| written.contains(range)) {
                self.leap(entry, now);
                self.stop_waiting(entry);
            }
        }
    }

    /// Threads that wait may have got something else to do, and time limits may be nearer.
    #[cold]
    pub(crate) fn look_at_waiting(&mut self) {
        let now = self.timing.now();
        for entry in (0..self.timing.waiting.len()).rev() {
            let Waiting { index, thread, .. } = self.timing.waiting[entry];
            let until = if self.process.is_undisturbed(thread) { self.waits_until(index) } else { None };
            match until {
                Some(until) => self.timing.clocks.set(index, until),
                None => {
                    self.leap(entry, now);
                    self.stop_waiting(entry);
                }
            }
        }
    }

    /// Nobody waits any more.
    #[cold]
    pub(crate) fn stop_all_waiting(&mut self) {
        let now = self.timing.now();
        for entry in (0..self.timing.waiting.len()).rev() {
            self.leap(entry, now);
            self.stop_waiting(entry);
        }
    }
}
