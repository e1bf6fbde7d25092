//! Commit: in order, some a cycle, one group a cycle; and the account of cycles without commit.

use fxscope_base::{Cycle, Signal, Signals};
use fxscope_memory::Level;

use crate::resolve::{Action, RUop};

/// The commit clock.
pub struct Commit {
    /// Cycle of the last commit.
    now: Cycle,
    /// Micro-operations, instructions and MOVPRFX instructions committed in that cycle.
    uops: u32,
    insts: u32,
    movprfx: u32,
    /// A taken branch committed in that cycle: nothing may join it.
    closed: bool,
    width: u32,
    /// The store port was full when dispatch last stood still.
    pub store_port_full_until: Cycle,
}

/// What is needed to commit a micro-operation.
#[derive(Clone, Copy)]
pub struct Completion {
    /// When it was dispatched.
    pub dispatched: Cycle,
    /// First cycle in which it may commit.
    pub complete: Cycle,
    /// How far its memory access had to go.
    pub level: Level,
    /// It opens a new group.
    pub opens_group: bool,
    /// It is a taken branch.
    pub taken: bool,
}

impl Commit {
    /// Nothing has committed.
    #[must_use]
    pub fn new(width: u32) -> Commit {
        Commit { now: 0, uops: 0, insts: 0, movprfx: 0, closed: false, width, store_port_full_until: 0 }
    }

    /// Cycle of the last commit.
    #[inline(always)]
    #[must_use]
    pub fn now(&self) -> Cycle {
        self.now
    }

    /// Commits a micro-operation; returns the cycle and the number of cycles since the commit before.
    #[inline(always)]
    pub fn commit(&mut self, uop: &RUop, c: Completion, signals: &mut Signals) -> (Cycle, u64) {
        let mut t = c.complete.max(self.now);
        if t == self.now && (self.uops >= self.width || c.opens_group || self.closed) {
            t += 1;
        }
        let passed = t - self.now;
        if passed > 0 {
            self.close_cycle(signals);
            if passed > 1 {
                self.account(uop, &c, self.now + 1, t, signals);
            }
            self.now = t;
            self.closed = false;
        }
        self.uops += 1;
        self.insts += u32::from(uop.last);
        self.movprfx += u32::from(uop.last && uop.movprfx);
        self.closed |= c.taken;
        (t, passed)
    }

    /// Counts the cycle that is over by what committed in it.
    #[inline(always)]
    fn close_cycle(&mut self, signals: &mut Signals) {
        const BY_COUNT: [Signal; 5] =
            [Signal::Commit0, Signal::Commit1, Signal::Commit2, Signal::Commit3, Signal::Commit4];
        let effective = self.insts - self.movprfx;
        if effective == 0 {
            let what = if self.insts > 0 { Signal::SingleMovprfxCommit } else { Signal::UopOnlyCommit };
            signals.add(what, u64::from(self.uops > 0));
        }
        // Before the first commit there is no cycle to count.
        signals.add(BY_COUNT[effective.min(4) as usize], u64::from(self.uops > 0));
        (self.uops, self.insts, self.movprfx) = (0, 0, 0);
    }

    /// Charges the cycles `[from, to)` without commit to what the oldest micro-operation waits for.
    #[inline(never)]
    fn account(&mut self, uop: &RUop, c: &Completion, from: Cycle, to: Cycle, signals: &mut Signals) {
        let cycles = to - from;
        signals.add(Signal::Commit0, cycles);
        let empty = c.dispatched.clamp(from, to) - from;
        if empty > 0 {
            signals.add(Signal::RobEmpty, empty);
            if self.store_port_full_until >= c.dispatched {
                signals.add(Signal::RobEmptyStqBusy, empty);
            }
        }
        let waited = cycles - empty;
        match uop.action {
            Action::Load | Action::Store | Action::Prefetch | Action::Zero => {
                let integer_load = uop.action == Action::Load && !uop.vector;
                let mut add = |all: Signal, integer: Signal| {
                    signals.add(all, waited);
                    signals.add(integer, if integer_load { waited } else { 0 });
                };
                add(Signal::LdCompWait, Signal::LdCompWaitEx);
                match c.level {
                    Level::L1 => {}
                    Level::L2 => add(Signal::LdCompWaitL1Miss, Signal::LdCompWaitL1MissEx),
                    Level::Memory => add(Signal::LdCompWaitL2Miss, Signal::LdCompWaitL2MissEx),
                }
            }
            Action::Compute | Action::None => {
                signals.add(Signal::EuCompWait, waited);
                if uop.vector {
                    signals.add(Signal::FlCompWait, waited);
                }
            }
            Action::BranchDirect | Action::BranchOnFlags | Action::BranchExecuted => {
                signals.add(Signal::BrCompWait, waited);
            }
        }
    }

    /// Nothing executes before `t`: the thread waits in the kernel.
    pub fn idle_until(&mut self, t: Cycle, signals: &mut Signals) {
        if t > self.now + 1 {
            self.close_cycle(signals);
            let cycles = t - self.now - 1;
            signals.add(Signal::Commit0, cycles);
            signals.add(Signal::RobEmpty, cycles);
            // The last idle cycle is accounted for: the next commit comes after it.
            self.now = t - 1;
            self.closed = false;
        }
    }

    /// Ends the account: the cycle of the last commit is counted.
    pub fn finish(&mut self, signals: &mut Signals) {
        self.close_cycle(signals);
    }
}
