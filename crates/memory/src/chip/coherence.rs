//! Coherence: requests for lines that other cores of the CMG, or other CMGs, hold.

use fxscope_calendar::Cycle;
use fxscope_counts::{READS_FROM_L2, READS_FROM_MEMORY, Signal, Signals};

use super::{Answer, Chip, CoreId, Request, count_of};
use crate::cmg::Holders;
use crate::hierarchy::Cause;
use crate::reserve::delay;
use crate::snoop_queue::{Snoop, SnoopKind};
use crate::tags::{Line, Slot};

/// What another CMG answers to the snoop of a line that it holds.
#[derive(Clone, Copy)]
struct SnoopAnswer {
    /// Whether memory holds an older copy.
    dirty: bool,
    /// When that CMG's L2 has the copies of its cores.
    settled: Cycle,
    /// When the line is ready to be sent from there, the way from L2 to the requesting core included.
    ready: Cycle,
}

/// What a request does to other copies of its line: a write (GetM) invalidates them, a read (GetS) leaves shared ones.
fn snoop_of(write: bool) -> SnoopKind {
    if write { SnoopKind::Invalidate } else { SnoopKind::Downgrade }
}

impl Chip {
    /// Cycles for a message from one CMG to another. The latency of a tier includes those to it and from it.
    fn message<const TIMED: bool>(&self, from: usize, to: usize) -> Cycle {
        let between_cmgs = self.tier(from.max(to)).is_none();
        if TIMED && between_cmgs { self.ring.message(from, to) } else { 0 }
    }

    /// Transfers a line that is ready in CMG `from` at `t` to CMG `to`. Returns when it has arrived.
    fn transfer<const TIMED: bool>(&mut self, to: usize, from: usize, t: Cycle) -> Cycle {
        if TIMED { self.ring.read(to, from, t) } else { t }
    }

    /// Snoops the other holders of a line for a request of this core, whose cache is `me`. The answer waits until they
    /// have given up what they must. Returns whether another core owned the line.
    #[cold]
    #[inline(never)]
    pub(super) fn snoop_holders<const TIMED: bool>(
        &mut self,
        id: CoreId,
        slot: Slot,
        me: Holders,
        request: &Request,
        start: Cycle,
        answer: &mut Answer,
    ) -> bool {
        let Request { line, write, .. } = *request;
        let others = self.cmgs[id.cmg].holders_mut(slot).without(me);
        answer.own_copy_lost = others.cores() >> id.core & 1 == 1;
        let snoop = Snoop { line, at: start, kind: snoop_of(write) };
        let is_owned = self.cmgs[id.cmg].line_mut(slot).has(Line::OWNED);
        let mut settled = self.snoop_cores::<TIMED>(id.cmg, slot, others, snoop, Some(id.core));
        let state = self.cmgs[id.cmg].line_mut(slot);
        // An access that finds it in flight from now on waits for a core, not for memory.
        state.take(Line::FROM_MEMORY);
        if write && state.take(Line::SHARED) {
            settled = settled.max(self.invalidate_remote::<TIMED>(id.cmg, line, start));
        }
        let state = self.cmgs[id.cmg].line_mut(slot);
        let ready = settled + delay::<TIMED>(self.shape.request);
        state.set_ready(state.ready().max(ready));
        answer.ready = answer.ready.max(ready);
        is_owned && others.data != 0
    }

    /// Snoops cores of a CMG. Returns when L2 has their answers, with the line if one of them might write it: until it
    /// answers, L2 cannot tell whether it has.
    fn snoop_cores<const TIMED: bool>(
        &mut self,
        cmg: usize,
        slot: Slot,
        holders: Holders,
        snoop: Snoop,
        except: Option<usize>,
    ) -> Cycle {
        let state = self.cmgs[cmg].line_mut(slot);
        let owned = state.take(Line::OWNED);
        let snooped = match snoop.kind {
            SnoopKind::Downgrade => u64::from(holders.data),
            SnoopKind::Invalidate => holders.cores(),
        };
        if snooped == 0 {
            return snoop.at;
        }
        // A line in flight to a core is taken away after it has arrived.
        let (request, fill) = (delay::<TIMED>(self.shape.request), delay::<TIMED>(self.shape.fill));
        let at = (snoop.at + request).max(state.ready() + fill);
        let others = snooped & !except.map_or(0, |core| 1 << core);
        self.snoops += u64::from(others.count_ones());
        self.cmgs[cmg].snoop_queues.push(others, Snoop { at, ..snoop });
        at + delay::<TIMED>(self.shape.snoop_answer[usize::from(owned)])
    }

    /// Invalidates the copies of a line in other CMGs. The line's home CMG knows which have one. Returns when all have
    /// answered.
    pub(super) fn invalidate_remote<const TIMED: bool>(&mut self, cmg: usize, line: u64, start: Cycle) -> Cycle {
        let home = self.home(line);
        let at_home = start + self.message::<TIMED>(cmg, home);
        let mut answered = at_home + self.message::<TIMED>(home, cmg);
        for other in (0..self.cmgs.len()).filter(|&other| other != cmg) {
            let snoop = Snoop { line, at: at_home + self.message::<TIMED>(home, other), kind: SnoopKind::Invalidate };
            if let Some(answer) = self.snoop_cmg::<TIMED>(other, snoop, 0) {
                answered = answered.max(answer.settled + self.message::<TIMED>(other, cmg));
            }
        }
        answered
    }

    /// Snoops a CMG for core number `core` of another one; `None` when it does not hold the line.
    fn snoop_cmg<const TIMED: bool>(&mut self, cmg: usize, snoop: Snoop, core: usize) -> Option<SnoopAnswer> {
        let Snoop { line, at, kind } = snoop;
        let slot = self.cmgs[cmg].find(line)?;
        let start = self.cmgs[cmg].remote_bank_slot::<TIMED>(line, at);
        let found = self.cmgs[cmg].line_mut(slot).ready();
        let owned = self.cmgs[cmg].line_mut(slot).has(Line::OWNED);
        let mut settled = start;
        if kind == SnoopKind::Invalidate || owned {
            let holders = *self.cmgs[cmg].holders_mut(slot);
            settled = self.snoop_cores::<TIMED>(cmg, slot, holders, Snoop { at: start, ..snoop }, None);
        }
        let request = delay::<TIMED>(self.shape.request);
        let ready = (settled + request).max(found).max(start + delay::<TIMED>(self.cmgs[cmg].hit(core)));
        let state = self.cmgs[cmg].line_mut(slot);
        let dirty = state.take(Line::DIRTY);
        match kind {
            SnoopKind::Downgrade => {
                state.set(Line::SHARED, true);
                state.set_ready(found.max(settled + request));
            }
            SnoopKind::Invalidate => {
                self.cmgs[cmg].remove(line);
                self.forget_remote_copy(cmg, line);
            }
        }
        Some(SnoopAnswer { dirty, settled, ready })
    }

    /// Reads a line over the ring, from the CMG that holds it or from the memory of its home CMG. Returns when it is
    /// ready to be sent to the core, and whether others keep a copy.
    #[cold]
    #[inline(never)]
    pub(super) fn read_remote<const TIMED: bool>(
        &mut self,
        id: CoreId,
        request: &Request,
        home: usize,
        t: Cycle,
        signals: &mut Signals,
    ) -> (Cycle, bool) {
        let Request { line, write, .. } = *request;
        let at_home = t + self.message::<TIMED>(id.cmg, home);
        let mut source: Option<(usize, SnoopAnswer)> = None;
        let (mut answered, mut write_back) = (t, None);
        for other in (0..self.cmgs.len()).filter(|&other| other != id.cmg) {
            let snoop = Snoop { line, at: at_home + self.message::<TIMED>(home, other), kind: snoop_of(write) };
            let Some(answer) = self.snoop_cmg::<TIMED>(other, snoop, id.core) else { continue };
            if write {
                let way = self.message::<TIMED>(other, id.cmg) + delay::<TIMED>(self.shape.request);
                answered = answered.max(answer.settled + way);
            } else if answer.dirty {
                write_back = Some((other, answer.settled + delay::<TIMED>(self.shape.request)));
            }
            if answer.dirty || other == home || source.is_none() {
                source = Some((other, answer));
            }
        }
        if let Some((other, answer)) = source {
            count_of(READS_FROM_L2, other, signals);
            let ready = self.transfer::<TIMED>(id.cmg, other, answer.ready).max(answered);
            // Memory gets the line after the requesting core.
            if let Some((other, t)) = write_back {
                self.write_memory_remotely::<TIMED>(other, line, t);
            }
            return (ready, !write);
        }
        let demand = request.cause == Cause::Demand;
        if let Some(tier) = self.tier(home) {
            let ready = self.tiers[tier].read::<TIMED>(demand, at_home, signals);
            return (if TIMED { self.ring.from_tier(id.cmg, ready) } else { ready }, false);
        }
        signals.add(Signal::BusReadTotalMem, u64::from(home == id.cmg));
        count_of(READS_FROM_MEMORY, home, signals);
        let ready = self.cmgs[home].read_memory::<TIMED>(id.core, line, demand, at_home, signals);
        (self.transfer::<TIMED>(id.cmg, home, ready), false)
    }
}
