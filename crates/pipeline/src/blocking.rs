//! Operations that block their pipe for others like them until they end (manual 6.3: operation blocking).
//!
//! When one ends, the oldest one that is ready starts. A younger one that is ready while all older ones wait for
//! operands starts before them. It is visited after them, when their starts are booked already: those that it delays
//! are moved after it, and what followed from them is corrected.

use fxscope_calendar::{Calendar, Cycle};
use fxscope_counts::Signal;

use crate::bind::BoundUop;
use crate::bypass::Value;
use crate::core::Pipeline;
use crate::dispatch::{Dispatch, Station};
use crate::execute::{Begun, port};

/// Operations of one pipe that are tracked: a capacity of the simulator, more than wait in a station of 20 entries with
/// one that has left it. With larger stations the oldest one keeps its start, and all others start after its end
/// (docs/model/limits.md#one-visit).
const WAITING: usize = 24;

/// A blocking operation with its start.
#[derive(Clone, Copy, serde::Deserialize, serde::Serialize)]
struct Blocker {
    /// When its operands are available.
    ready: Cycle,
    /// When it starts.
    start: Cycle,
    /// How long it takes.
    cycles: Cycle,
    /// The register it writes.
    register: u8,
    /// From its end to its commit.
    to_commit: Cycle,
    /// Its station, and how long before its start it releases its entry.
    station: Station,
    released: Cycle,
    /// Its place among the groups of the commit stack.
    group: u16,
}

impl Blocker {
    /// When it ends.
    fn end(&self) -> Cycle {
        self.start + self.cycles
    }

    /// Its start has moved from `before`, because of an operation that was just dispatched: corrects what followed from
    /// it. Returns the earliest completion of the other one, which commits after this one.
    fn moved(&self, before: Cycle, value: &mut Value, own: usize, dispatch: &mut Dispatch) -> Cycle {
        let (end, was) = (self.end(), before + self.cycles);
        // Unless the register has been overwritten.
        if value.at(own) == was {
            value.there = value.there + end - was;
        }
        let release = |start: Cycle| start.saturating_sub(self.released);
        dispatch.move_release(self.station, release(before), release(self.start));
        if end > was { end + dispatch.delay_commits(self.group, end + self.to_commit) } else { 0 }
    }
}

/// The blocking operations of one pipe.
#[derive(Clone, serde::Deserialize, serde::Serialize)]
pub(crate) struct Blockers {
    /// Those that younger ones may still overtake, in program order.
    waiting: [Blocker; WAITING],
    count: usize,
    /// When all others have ended.
    free: Cycle,
}

impl Default for Blockers {
    fn default() -> Blockers {
        let nobody = Blocker {
            ready: 0,
            start: 0,
            cycles: 0,
            register: 0,
            to_commit: 0,
            station: Station::Rsbr,
            released: 0,
            group: 0,
        };
        Blockers { waiting: [nobody; WAITING], count: 0, free: 0 }
    }
}

impl Blockers {
    /// Books a start for `new`, the youngest operation, in a free cycle of `port`. `moved` is called for each operation
    /// whose start moves because of it, with the old start.
    fn enter(
        &mut self,
        dispatched: Cycle,
        new: Blocker,
        port: &mut Calendar,
        mut moved: impl FnMut(&Blocker, Cycle),
    ) -> Cycle {
        self.forget(dispatched);
        let place = self.count;
        self.waiting[place] = new;
        self.count += 1;
        let (mut open, mut free) = self.behind(place);
        while let Some(next) = self.next(open, free) {
            open &= !(1 << next);
            let w = &mut self.waiting[next];
            let from = w.ready.max(free);
            let before = w.start;
            // Its own cycle is not free, so it keeps it unless an earlier one is free.
            if from > before || port.first_free(from) < before {
                w.start = port.book(from);
                if next != place {
                    moved(w, before);
                }
            }
            free = w.end();
        }
        self.waiting[place].start
    }

    /// The operation at `place` and, as bits, those that do not start before it is ready; and when all others have
    /// ended.
    fn behind(&self, place: usize) -> (u32, Cycle) {
        let ready = self.waiting[place].ready;
        let (mut open, mut free) = (1 << place, self.free);
        for (i, w) in self.waiting[..place].iter().enumerate() {
            if w.start > ready {
                open |= 1 << i;
            } else {
                free = free.max(w.end());
            }
        }
        (open, free)
    }

    /// The one that starts next when the pipe is free at `free`: the oldest of `open` that is ready then, or the first
    /// to be ready.
    fn next(&self, open: u32, free: Cycle) -> Option<usize> {
        let those = || (0..self.count).filter(|i| open >> i & 1 == 1);
        let first = those().map(|i| self.waiting[i].ready).min()?;
        those().find(|&i| self.waiting[i].ready <= first.max(free))
    }

    /// Drops those that have started when the youngest is dispatched, since they cannot be overtaken, and the first
    /// when there is no room.
    fn forget(&mut self, dispatched: Cycle) {
        let full = self.count == WAITING;
        let mut kept = 0;
        for i in 0..self.count {
            let w = self.waiting[i];
            if w.start <= dispatched || (full && i == 0) {
                self.free = self.free.max(w.end());
            } else {
                self.waiting[kept] = w;
                kept += 1;
            }
        }
        self.count = kept;
    }
}

impl Pipeline {
    /// The first flow of a blocking operation, dispatched at `d`, whose operands are in `pipe` at `ready`.
    #[cold]
    #[inline(never)]
    pub(crate) fn first_of_blocking(
        &mut self,
        uop: &BoundUop,
        pipe: usize,
        ready: Cycle,
        d: Cycle,
        station: Station,
    ) -> Begun {
        let new = Blocker {
            ready,
            start: Cycle::MAX,
            cycles: uop.flows[..usize::from(uop.nflows)].iter().map(|f| u64::from(f.latency)).sum(),
            register: uop.dsts[0],
            to_commit: u64::from(uop.to_commit - (uop.judgement & self.judgement_skipped)),
            station,
            released: self.released[pipe],
            group: self.dispatch.open_group(),
        };
        self.signals.add(Signal::DivideCycles, new.cycles);
        let Pipeline { blockers, pipes, dispatch, values, .. } = self;
        let mut pushed = 0;
        let start = blockers[pipe].enter(d, new, &mut pipes[port(pipe)], |older, before| {
            pushed = pushed.max(older.moved(before, &mut values[usize::from(older.register)], pipe, dispatch));
        });
        Begun { pipe, start, pushed }
    }
}
