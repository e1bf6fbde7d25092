//! Spinning cores are not scheduled until a watched address changes.
//!
//! A spinning core ([`Spin::Spins`]) stands at the beginning of an iteration. What it would have done up to a later
//! time is known, and is added at once when somebody writes an address that its loop reads, when a counter in a
//! register runs out, when its thread is disturbed otherwise, and at the latest after [`REACH`] cycles.

use std::ops::Range;

use fxscope_aarch64::{BlockId, Engine};
use fxscope_calendar::Cycle;
use fxscope_memory::NEVER;

use super::Spin;
use super::detect::{Iterations, Seen};
use super::summary::SpinSummary;
use crate::timing::Driver;

/// Maximum number of cycles for which a spinning core is not scheduled.
const REACH: Cycle = 1 << 16;

/// A spinning core.
#[derive(Clone, serde::Deserialize, serde::Serialize)]
pub(crate) struct Spinning {
    pub(crate) index: usize,
    thread: u32,
    pid: u32,
    reads: Vec<Range<u64>>,
}

impl Spinning {
    /// Returns the number of its thread.
    pub(crate) fn thread(&self) -> u32 {
        self.thread
    }
}

impl<E: Engine> Driver<'_, E> {
    /// Returns whether the core of CPU number `index` spins.
    pub(crate) fn spins(&self, index: usize) -> bool {
        self.timing.spinning.iter().any(|spinning| spinning.index == index)
    }

    /// Examines a block of the active core, which is watched. Returns whether it is no longer watched. `is_brief`: a known loop is recognised
    /// from few iterations.
    #[cold]
    pub(crate) fn watch_block(&mut self, id: BlockId, executed: usize, is_brief: bool) -> bool {
        let core = self.timing.machine.core_mut();
        let Spin::Watched(iterations) = &mut core.spin else { return false };
        let now = core.pipeline.now();
        let last = self.code.block(id).end - 4;
        if core.markers.is_met(last, self.guest.cpu().pc) {
            core.spin = Spin::backed_off();
            return true;
        }
        let mut is_new = false;
        let summary = match iterations.block(id, self.code, executed, self.guest.cpu(), now) {
            Seen::Continues => None,
            Seen::Differs => {
                // The end of a wait says nothing against the next one.
                core.spin = if iterations.may_be(&core.known_loops) { Spin::default() } else { Spin::backed_off() };
                return true;
            }
            Seen::Iterated => iterations.known(&core.known_loops, &core.pipeline, is_brief),
            Seen::Repeats(period) => {
                let known = iterations.known(&core.known_loops, &core.pipeline, is_brief);
                is_new = known.is_none();
                known.or_else(|| iterations.measure(period, &core.pipeline, &core.blocks))
            }
        };
        let Some(summary) = summary else { return false };
        if let Spin::Watched(iterations) = std::mem::take(&mut core.spin) {
            self.begin_to_spin(&iterations, summary, is_new);
        }
        true
    }

    /// Lets the active core spin as `iterations` and `summary` say, if it reads private memory only, and remembers the loop if it is new.
    fn begin_to_spin(&mut self, iterations: &Iterations, summary: SpinSummary, is_new: bool) {
        let (index, thread, pid) = (self.timing.machine.active, self.guest.thread().tid, self.guest.pid());
        let private =
            |range: &Range<u64>| self.guest.memory().region_at(range.start).is_some_and(|r| r.backing.is_none());
        let reads = summary.reads().filter(|reads| reads.iter().all(private));
        let core = self.timing.machine.core_mut();
        let Some(reads) = reads else { return core.spin = Spin::backed_off() };
        if is_new {
            iterations.add_to(&mut core.known_loops, &summary);
        }
        core.spin = Spin::Spins(Box::new(summary));
        self.timing.spinning.push(Spinning { index, thread, pid, reads });
        self.watch_memory();
        self.continue_to_spin(self.timing.spinning.len() - 1);
    }

    /// Watches the addresses that spinning threads of the current process read.
    fn watch_memory(&mut self) {
        let pid = self.guest.pid();
        let of_it = self.timing.spinning.iter().filter(|spinning| spinning.pid == pid);
        let mut ranges: Vec<Range<u64>> = of_it.flat_map(|spinning| spinning.reads.iter().cloned()).collect();
        ranges.sort_unstable_by_key(|range| (range.start, range.end));
        ranges.dedup();
        if ranges.is_empty() {
            self.guest.memory_mut().take_written();
        }
        self.guest.memory_mut().watch(ranges);
    }

    /// Lets spinning core number `entry`, which has reached the end of what was known, continue to spin if it can.
    fn continue_to_spin(&mut self, entry: usize) {
        let Spinning { index, thread, .. } = self.timing.spinning[entry];
        let undisturbed = self.guest.is_undisturbed(thread);
        let Some(core) = self.timing.machine.get_mut(index) else { return };
        let Spin::Spins(summary) = &mut core.spin else { return };
        let most = REACH / summary.cycles();
        let look = summary.iterations_to_follow(most);
        let iterations =
            if undisturbed { self.guest.iterations_ahead(thread, &mut summary.iteration, look) } else { 0 };
        summary.left = (iterations / summary.iterations()).min(most);
        match self.spins_until(index) {
            Some(until) => self.timing.clocks.set(index, until),
            None => self.stop_spinning(entry),
        }
    }

    /// Returns until when the core of CPU number `index` can spin; `None`: not at all.
    fn spins_until(&mut self, index: usize) -> Option<Cycle> {
        let due_ns = self.guest.next_due_ns();
        let core = self.timing.machine.get_mut(index)?;
        let now = core.pipeline.now();
        let due = due_ns.map_or(NEVER, |ns| core.cycle_at(ns));
        let Spin::Spins(summary) = &core.spin else { return None };
        let periods = summary.left.min(due.saturating_sub(now) / summary.cycles());
        (periods > 0).then(|| now + periods * summary.cycles())
    }

    /// Called when the time is reached until which the core of CPU number `index` was known to spin.
    #[cold]
    pub(crate) fn spun(&mut self, index: usize) {
        let Some(entry) = self.timing.spinning.iter().position(|spinning| spinning.index == index) else { return };
        self.fast_forward(entry, self.timing.clocks[index]);
        self.continue_to_spin(entry);
    }

    /// Lets spinning core number `entry` do all iterations that begin before `until`, as far as they are known.
    fn fast_forward(&mut self, entry: usize, until: Cycle) {
        let Spinning { index, thread, .. } = self.timing.spinning[entry];
        let Some(core) = self.timing.machine.get_mut(index) else { return };
        let (now, began_ns) = (core.pipeline.now(), core.now_ns());
        let Spin::Spins(summary) = &mut core.spin else { return };
        let periods = until.saturating_sub(now).div_ceil(summary.cycles()).min(summary.left);
        summary.fast_forward(periods, &mut core.pipeline, &mut core.blocks);
        self.timing.spun += periods * summary.cycles();
        let ns = core.now_ns() - began_ns;
        let Spin::Spins(summary) = &core.spin else { return };
        self.guest.skip_iterations(thread, &summary.iteration, periods * summary.iterations(), ns);
    }

    /// Simulates spinning core number `entry` again.
    fn stop_spinning(&mut self, entry: usize) {
        let Spinning { index, .. } = self.timing.spinning.remove(entry);
        let Some(core) = self.timing.machine.get_mut(index) else { return };
        // What the iterations have counted is in the core's counts only.
        (core.spin, core.event_sampler) = (Spin::default(), None);
        let now = core.pipeline.now();
        self.timing.clocks.set(index, now);
        self.watch_memory();
    }

    /// Handles the write of a block that began at `now` to an address that a spinning thread reads.
    #[cold]
    pub(crate) fn watched_written(&mut self, now: Cycle) {
        let written = self.guest.memory_mut().take_written();
        let pid = self.guest.pid();
        for entry in (0..self.timing.spinning.len()).rev() {
            let spinning = &self.timing.spinning[entry];
            if spinning.pid == pid && spinning.reads.iter().any(|range| written.contains(range)) {
                self.fast_forward(entry, now);
                self.stop_spinning(entry);
            }
        }
    }

    /// Examines all spinning threads again: they may have something else to do, and time limits may be nearer.
    #[cold]
    pub(crate) fn review_spinning(&mut self) {
        let now = self.timing.now();
        for entry in (0..self.timing.spinning.len()).rev() {
            let Spinning { index, thread, .. } = self.timing.spinning[entry];
            let until = if self.guest.is_undisturbed(thread) { self.spins_until(index) } else { None };
            match until {
                Some(until) => self.timing.clocks.set(index, until),
                None => {
                    self.fast_forward(entry, now);
                    self.stop_spinning(entry);
                }
            }
        }
    }

    /// Brings every spinning core up to date and simulates it again.
    #[cold]
    pub(crate) fn stop_all_spinning(&mut self) {
        let now = self.timing.now();
        for entry in (0..self.timing.spinning.len()).rev() {
            self.fast_forward(entry, now);
            self.stop_spinning(entry);
        }
    }
}
