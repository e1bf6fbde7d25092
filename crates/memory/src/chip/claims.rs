//! Claims on lines that others hold: cores of the same CMG, and other CMGs.

use fxscope_calendar::Cycle;
use fxscope_counts::{READS_FROM_L2, READS_FROM_MEMORY, Signal, Signals};

use super::{Answer, Chip, Request, Seat, count_of};
use crate::cmg::Holders;
use crate::hierarchy::Cause;
use crate::tags::{Line, Slot};
use crate::turns::Notice;

/// A line that another CMG has given up, or shares from now on.
#[derive(Clone, Copy)]
struct Taken {
    /// Whether memory is behind.
    dirty: bool,
    /// When that CMG's L2 has what its cores had.
    settled: Cycle,
    /// When the line is ready to be sent from there; the way from L2 to the core that asked is part of it.
    ready: Cycle,
}

impl Chip {
    /// Other holders of a line learn that this core, whose cache is `me`, wants it. The answer waits until they have given
    /// up what they must.
    #[cold]
    #[inline(never)]
    pub(super) fn settle(
        &mut self,
        seat: Seat,
        slot: Slot,
        me: Holders,
        request: &Request,
        start: Cycle,
        answer: &mut Answer,
    ) {
        let Request { line, write, .. } = *request;
        let others = self.cmgs[seat.cmg].holders_mut(slot).without(me);
        answer.own = others.cores() >> seat.core & 1 == 1;
        let claim = Notice { line, at: start, keeps: !write };
        let mut settled = self.ask_cores(seat.cmg, slot, others, claim, Some(seat.core));
        let state = self.cmgs[seat.cmg].line_mut(slot);
        // Whoever finds it on its way from now on waits for a core.
        state.take(Line::FROM_MEMORY);
        if write && state.take(Line::SHARED) {
            settled = settled.max(self.recall(seat.cmg, line, start));
        }
        let state = self.cmgs[seat.cmg].line_mut(slot);
        let ready = settled + self.shape.request;
        state.set_ready(state.ready().max(ready));
        answer.ready = answer.ready.max(ready);
    }

    /// Cores give up a line, or the right to write it. Returns when L2 has their answers, with the line if one of them
    /// might write it, which is told from one that has written by the answer only.
    fn ask_cores(&mut self, cmg: usize, slot: Slot, holders: Holders, claim: Notice, except: Option<usize>) -> Cycle {
        let state = self.cmgs[cmg].line_mut(slot);
        let owned = state.take(Line::OWNED);
        let asked = if claim.keeps { u64::from(holders.data) } else { holders.cores() };
        if asked == 0 {
            return claim.at;
        }
        // A line on its way to a core is taken away when it has come.
        let at = (claim.at + self.shape.request).max(state.ready() + self.shape.fill);
        let others = asked & !except.map_or(0, |core| 1 << core);
        self.claims += u64::from(others.count_ones());
        self.cmgs[cmg].turns.notify(others, Notice { at, ..claim });
        at + self.shape.answer[usize::from(owned)]
    }

    /// Copies of a line in other CMGs are given up; its memory's CMG knows which have one. Returns when all have
    /// answered.
    pub(super) fn recall(&mut self, cmg: usize, line: u64, start: Cycle) -> Cycle {
        let home = self.home(line);
        let at_home = start + self.ring.message(cmg, home);
        let mut answered = at_home + self.ring.message(home, cmg);
        for other in (0..self.cmgs.len()).filter(|&other| other != cmg) {
            let claim = Notice { line, at: at_home + self.ring.message(home, other), keeps: false };
            if let Some(taken) = self.take_from(other, claim, 0) {
                answered = answered.max(taken.settled + self.ring.message(other, cmg));
            }
        }
        answered
    }

    /// Core number `core` of another CMG claims a line that this one may have: it gives it up, or keeps a copy.
    fn take_from(&mut self, cmg: usize, claim: Notice, core: usize) -> Option<Taken> {
        let Notice { line, at, keeps } = claim;
        let slot = self.cmgs[cmg].find(line)?;
        let start = self.cmgs[cmg].bank_slot_from_outside(line, at);
        let found = self.cmgs[cmg].line_mut(slot).ready();
        let owned = self.cmgs[cmg].line_mut(slot).has(Line::OWNED);
        let mut settled = start;
        if !keeps || owned {
            let holders = *self.cmgs[cmg].holders_mut(slot);
            settled = self.ask_cores(cmg, slot, holders, Notice { at: start, ..claim }, None);
        }
        let ready = (settled + self.shape.request).max(found).max(start + self.cmgs[cmg].hit(core));
        let state = self.cmgs[cmg].line_mut(slot);
        let dirty = state.take(Line::DIRTY);
        if keeps {
            state.set(Line::SHARED, true);
            state.set_ready(found.max(settled + self.shape.request));
        } else {
            self.cmgs[cmg].remove(line);
            self.comes_home(cmg, line);
        }
        Some(Taken { dirty, settled, ready })
    }

    /// Reads a line over the ring: from the CMG that holds it, or from the memory of another one. Returns when it is
    /// ready to be sent to the core, and whether others keep a copy.
    #[cold]
    #[inline(never)]
    pub(super) fn read_around(
        &mut self,
        seat: Seat,
        request: &Request,
        home: usize,
        t: Cycle,
        signals: &mut Signals,
    ) -> (Cycle, bool) {
        let Request { line, write, .. } = *request;
        let at_home = t + self.ring.message(seat.cmg, home);
        let mut source: Option<(usize, Taken)> = None;
        let (mut answered, mut behind) = (t, None);
        for other in (0..self.cmgs.len()).filter(|&other| other != seat.cmg) {
            let claim = Notice { line, at: at_home + self.ring.message(home, other), keeps: !write };
            let Some(taken) = self.take_from(other, claim, seat.core) else { continue };
            if write {
                answered = answered.max(taken.settled + self.ring.message(other, seat.cmg) + self.shape.request);
            } else if taken.dirty {
                behind = Some((other, taken.settled + self.shape.request));
            }
            if taken.dirty || other == home || source.is_none() {
                source = Some((other, taken));
            }
        }
        if let Some((other, taken)) = source {
            count_of(READS_FROM_L2, other, signals);
            let ready = self.ring.transfer(other, seat.cmg, taken.ready).max(answered);
            // Memory gets it after whoever asked for it.
            if let Some((other, t)) = behind {
                self.write_from_outside(other, line, t);
            }
            return (ready, !write);
        }
        signals.add(Signal::BusReadTotalMem, u64::from(home == seat.cmg));
        count_of(READS_FROM_MEMORY, home, signals);
        let demand = request.cause == Cause::Demand;
        let ready = self.cmgs[home].read_memory(seat.core, line, demand, at_home, signals);
        (self.ring.transfer(home, seat.cmg, ready), false)
    }
}
