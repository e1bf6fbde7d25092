//! Commit: in order, several micro-operations and one group per cycle; and the accounting of cycles without commit.

use fxscope_calendar::Cycle;
use fxscope_counts::{Signal, Signals, Stall, Stalls};
use fxscope_memory::Misses;

use crate::bind::{Action, BoundUop, Profile};

/// The commit clock.
#[derive(Clone, serde::Deserialize, serde::Serialize)]
pub struct Commit {
    /// Cycle of the last commit.
    now: Cycle,
    /// The commits of that cycle, in the form of [`counts`].
    counted: u32,
    /// The instruction whose micro-operation committed first in that cycle, by its place in its block.
    first: u8,
    /// A taken branch committed in that cycle: nothing may join it.
    closed: bool,
    width: u32,
    /// Until when decoding waited for a store port.
    pub store_port_full_until: Cycle,
    /// Cycles without commit, by cause.
    pub stalls: Stalls,
}

/// A completed micro-operation, as commit sees it.
#[derive(Clone, Copy)]
pub struct Completion<'a> {
    /// When it was dispatched.
    pub dispatched: Cycle,
    /// First cycle in which it may commit.
    pub complete: Cycle,
    /// When its memory access was known to miss. A reference, since copying it right after it was written stalls the
    /// host.
    pub misses: &'a Misses,
    /// It opens a new group.
    pub opens_group: bool,
}

/// What a micro-operation counts as at its commit: itself, an effective instruction, a MOVPRFX, a byte each.
#[must_use]
pub const fn counts(last: bool, movprfx: bool) -> u32 {
    match (last, movprfx) {
        (false, _) => 0x00_00_01,
        (true, false) => 0x00_01_01,
        (true, true) => 0x01_00_01,
    }
}

impl Commit {
    /// Nothing has committed.
    #[must_use]
    pub fn new(width: u32) -> Commit {
        Commit {
            now: 0,
            counted: 0,
            first: 0,
            closed: false,
            width,
            store_port_full_until: 0,
            stalls: Stalls::default(),
        }
    }

    /// Cycle of the last commit.
    #[inline(always)]
    #[must_use]
    pub fn now(&self) -> Cycle {
        self.now
    }

    /// Commits a micro-operation of the instruction described by `profiles[uop.inst]`; returns the cycle.
    #[inline(always)]
    pub fn commit(&mut self, uop: &BoundUop, c: Completion, profiles: &mut [Profile], signals: &mut Signals) -> Cycle {
        let mut t = c.complete.max(self.now);
        if t == self.now && (self.counted & 0xff >= self.width || c.opens_group || self.closed) {
            t += 1;
        }
        let passed = t - self.now;
        if passed > 0 {
            if !self.close_cycle(signals) {
                self.charge_incomplete(uop, profiles);
            }
            let own = &mut profiles[usize::from(uop.inst)];
            own.cycles += passed;
            if passed > 1 {
                self.account(uop, &c, self.now + 1, t, own);
            }
            self.now = t;
            self.first = uop.inst;
            self.closed = false;
        }
        self.counted += uop.counts;
        t
    }

    /// The micro-operation that committed last is a taken branch.
    #[inline(always)]
    pub fn close(&mut self) {
        self.closed = true;
    }

    /// Counts the last cycle by its commits. Returns false when no whole instruction committed in it.
    #[inline(always)]
    fn close_cycle(&mut self, signals: &mut Signals) -> bool {
        const BY_COUNT: [Signal; 4] = [Signal::Commit1, Signal::Commit2, Signal::Commit3, Signal::Commit4];
        let effective = self.counted >> 8 & 0xff;
        if effective == 0 {
            return false;
        }
        signals.add(BY_COUNT[effective.min(4) as usize - 1], 1);
        self.counted = 0;
        true
    }

    /// What the last cycle counts as, in which no instruction was completed.
    fn incomplete(&mut self) -> Option<Stall> {
        let what = if self.counted >> 16 > 0 { Stall::Movprfx } else { Stall::UopOnly };
        // Before the first commit there is no cycle to count.
        let counts = self.counted > 0;
        self.counted = 0;
        counts.then_some(what)
    }

    /// The last cycle before the commit of `uop` completed no instruction: it is charged to the instruction whose
    /// micro-operation committed first in it, which is that of `uop` or a MOVPRFX before it.
    #[cold]
    #[inline(never)]
    fn charge_incomplete(&mut self, uop: &BoundUop, profiles: &mut [Profile]) {
        let Some(what) = self.incomplete() else { return };
        // A MOVPRFX may be in the previous block, whose profile is not available here.
        self.charge(what, 1, &mut profiles[usize::from(self.first.min(uop.inst))]);
    }

    #[inline(always)]
    fn charge(&mut self, what: Stall, cycles: u64, profile: &mut Profile) {
        self.stalls[what as usize] += cycles;
        profile.stalls[what as usize] += cycles;
    }

    /// Charges the cycles `[from, to)` without commit to what the oldest micro-operation, `uop`, waits for.
    #[cold]
    #[inline(never)]
    fn account(&mut self, uop: &BoundUop, c: &Completion, from: Cycle, to: Cycle, profile: &mut Profile) {
        let dispatched = c.dispatched.clamp(from, to);
        let port_free = self.store_port_full_until.clamp(from, dispatched);
        self.charge(Stall::StorePort, port_free - from, profile);
        self.charge(Stall::Fetch, dispatched - port_free, profile);
        let port_wanted = c.misses.port.clamp(dispatched, to);
        self.charge(port_stall(uop), to - port_wanted, profile);
        let to = port_wanted;
        let l1_missed = c.misses.l1.clamp(dispatched, to);
        let l2_missed = c.misses.l2.clamp(l1_missed, to);
        self.charge(uop.wait, l1_missed - dispatched, profile);
        let (l2, memory) = match uop.wait {
            Stall::BaseL1 => (Stall::BaseL2, Stall::BaseMemory),
            _ => (Stall::VectorL2, Stall::VectorMemory),
        };
        self.charge(l2, l2_missed - l1_missed, profile);
        self.charge(memory, to - l2_missed, profile);
    }

    /// Moves the state `cycles` later. These cycles are accounted for already.
    pub fn fast_forward(&mut self, cycles: Cycle) {
        self.now += cycles;
        self.store_port_full_until += cycles;
    }

    /// Moves the clock `cycles` later without accounting for them.
    #[inline(always)]
    pub fn skip(&mut self, cycles: Cycle) {
        self.now += cycles;
    }

    /// Nothing executes before `t`, for the cause `why`.
    pub fn idle_until(&mut self, t: Cycle, why: Stall, signals: &mut Signals) {
        if t > self.now + 1 {
            self.finish(signals);
            self.stalls[why as usize] += t - self.now - 1;
            // The last idle cycle is accounted for: the next commit comes after it.
            self.now = t - 1;
            self.closed = false;
        }
    }

    /// Ends the accounting: the cycle of the last commit is counted.
    pub fn finish(&mut self, signals: &mut Signals) {
        if !self.close_cycle(signals)
            && let Some(what) = self.incomplete()
        {
            self.stalls[what as usize] += 1;
        }
    }
}

/// The stall cause of cycles in which only a prefetch port is missing.
fn port_stall(uop: &BoundUop) -> Stall {
    match (uop.action, uop.wait) {
        (Action::Prefetch, _) => Stall::SoftwarePrefetchPort,
        (_, Stall::BaseL1) => Stall::BasePrefetchPort,
        _ => Stall::VectorPrefetchPort,
    }
}
