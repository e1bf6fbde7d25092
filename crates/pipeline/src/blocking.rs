//! Operations that keep others like them out of their pipe until they end (manual 6.3: operation blocking).
//!
//! Of those that wait for a pipe the oldest that is ready starts when the one before it ends. A younger one that is ready
//! while all older ones wait for operands starts before them. It is visited after them, when they have been given their
//! starts already: those that it is in the way of are moved behind it, and what followed from them is put right.

use fxscope_calendar::{Calendar, Cycle};

use crate::bind::BoundUop;
use crate::bypass::Value;
use crate::core::Pipeline;
use crate::dispatch::{Dispatch, Station};
use crate::execute::{Begun, port};

/// Operations of one pipe that are kept in view: more than wait in a station.
const WAITING: usize = 24;

/// A blocking operation that has been given its start.
#[derive(Clone, Copy)]
struct Blocker {
    /// When its operands are there.
    ready: Cycle,
    /// When it starts.
    start: Cycle,
    /// How long it takes.
    cycles: Cycle,
    /// The register it writes.
    register: u8,
    /// From its end to its commit.
    to_commit: Cycle,
    /// Its station, and how long before its start it leaves that.
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

    /// It was to start at `before`, but an operation that was dispatched just now is in its way, or no longer: puts right
    /// what followed from that. Returns when the other one is done at the earliest, as it commits behind this one.
    fn moved(&self, before: Cycle, value: &mut Value, own: usize, dispatch: &mut Dispatch) -> Cycle {
        let (end, was) = (self.end(), before + self.cycles);
        // Unless the register has another value meanwhile.
        if value.at(own) == was {
            value.there = value.there + end - was;
        }
        let release = |start: Cycle| start.saturating_sub(self.released);
        dispatch.move_release(self.station, release(before), release(self.start));
        if end > was { end + dispatch.commits_later(self.group, end + self.to_commit) } else { 0 }
    }
}

/// The blocking operations of one pipe.
pub(crate) struct Blockers {
    /// Those that others may still overtake, in program order.
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
    /// Gives `new`, which is younger than all before, its start, in a free cycle of `port`. `moved` is told of those that
    /// start at other times because of it, and when they were to.
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
            // Its own cycle is not free, so it stays there unless there is an earlier one.
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

    /// The operation at `place` and, as bits, those that do not start before it is ready; and when all others have ended.
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

    /// Who starts next when the pipe is free from `free` on: of those in `open` the oldest that is ready then, or is
    /// ready first.
    fn next(&self, open: u32, free: Cycle) -> Option<usize> {
        let those = || (0..self.count).filter(|i| open >> i & 1 == 1);
        let first = those().map(|i| self.waiting[i].ready).min()?;
        those().find(|&i| self.waiting[i].ready <= first.max(free))
    }

    /// Those that have started when the youngest is dispatched cannot be overtaken; nor can, for want of room, the first.
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
        let Pipeline { blockers, pipes, dispatch, values, .. } = self;
        let mut pushed = 0;
        let start = blockers[pipe].enter(d, new, &mut pipes[port(pipe)], |older, before| {
            pushed = pushed.max(older.moved(before, &mut values[usize::from(older.register)], pipe, dispatch));
        });
        Begun { pipe, start, pushed }
    }
}
