//! Loads and stores: L1D, what it asks L2 for, what leaves it.

use fxscope_calendar::Cycle;
use fxscope_counts::{Signal, Signals};

use super::{Cause, CoreMemory, Hierarchy, Located, Misses, NEVER, Response};
use crate::chip::{Evicted, Held, Holder, Request};
use crate::pointer::Pointer;
use crate::refills::RefillKind;
use crate::reserve::{delay, first_free, hold};
use crate::sectors::{Joins, Sector};
use crate::snoop_queue::{Snoop, SnoopKind};
use crate::tags::{Line, Slot, Victim};

/// What the flow of an access requires of its line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wants {
    /// An exclusive copy.
    pub write: bool,
    /// Cycles between replays of the flow while the line is in flight; 0: it does not need the line.
    pub replay_period: Cycle,
}

impl<const TIMED: bool> Hierarchy<'_, TIMED> {
    /// A demand access whose flow ran at `t`. Returns when the line's data can be used, and which level served the
    /// access.
    #[inline(always)]
    pub fn access(&mut self, place: &Located, t: Cycle, wants: Wants, signals: &mut Signals) -> Response {
        let write = wants.write;
        let line = place.physical >> self.core.line_shift;
        signals.add(Signal::L1dCache, 1);
        let set = line as usize & self.core.l1d_set_mask;
        let Some(slot) = self.core.l1d.find_again(set, line) else { return self.miss(*place, line, t, write, signals) };
        self.core.l1d.touch(slot);
        if self.core.moves {
            let sector = self.core.sector_of(place.pointer);
            self.core.l1d.line_mut(slot).join(Joins { sector, moves: true });
        }
        if write && !self.core.l1d.line(slot).has(Line::DIRTY) {
            self.first_write(slot, line, place.pointer.addr, t, signals);
        }
        let state = self.core.l1d.line_mut(slot);
        let first_use = state.take(Line::PREFETCHED);
        let state = *state;
        let in_flight = TIMED && state.ready() > t;
        let response = if in_flight { self.core.hit_in_flight(state, t, wants, signals) } else { Response::hit(t) };
        // The prefetcher sees misses and the first hit of each prefetched line, not every hit.
        if first_use || self.core.prefetcher.watches(place.pointer.steering) {
            self.follow_stream(place.pointer, false, response.at, signals);
        }
        response
    }

    /// A demand access to a line that L1D does not have.
    #[cold]
    #[inline(never)]
    fn miss(&mut self, place: Located, line: u64, t: Cycle, write: bool, signals: &mut Signals) -> Response {
        let sector = self.core.sector_of(place.pointer);
        let before = signals.get(Signal::L2dCacheRefill);
        let state = self.refill(line, sector, t, write, Cause::Demand, signals);
        let missed_l2 = signals.get(Signal::L2dCacheRefill) > before;
        self.refilled(place.pointer.addr, missed_l2, Cause::Demand, write, t);
        self.follow_stream(place.pointer, true, t, signals);
        self.core.wait_for(state, t, write, signals)
    }

    /// A store to a clean line: an exclusive one becomes modified; a shared one must be upgraded first.
    #[cold]
    #[inline(never)]
    fn first_write(&mut self, slot: Slot, line: u64, address: u64, t: Cycle, signals: &mut Signals) {
        let state = self.core.l1d.line_mut(slot);
        state.set(Line::DIRTY, true);
        // Whether a line in flight is shared is known when it arrives.
        let known = t.max(state.ready());
        if state.take(Line::SHARED) {
            let (ready, refilled) = self.upgrade(slot, line, known, signals);
            if TIMED {
                let kind = if refilled { RefillKind::FromL2 } else { RefillKind::Permission };
                self.core.refills.add(address, kind, Cause::Demand, true, known);
            }
            let state = self.core.l1d.line_mut(slot);
            state.take(Line::ASKED);
            if refilled { state.set_ready(ready) } else { state.ask(ready) }
        } else {
            if TIMED {
                self.core.refills.note_write(address, RefillKind::Written, t);
            }
            let l2_slot_hint = self.core.l2_slot_hints[slot.number()];
            self.chip.first_write(self.core.id, Held { line, l2_slot_hint });
        }
    }

    /// Requests write permission for a shared line: other holders are invalidated first. The request takes an MSHR as a
    /// refill does, but transfers no data if this core still holds the line. Returns when the line can be written, and
    /// whether it was refilled.
    fn upgrade(&mut self, slot: Slot, line: u64, t: Cycle, signals: &mut Signals) -> (Cycle, bool) {
        let lost = self.absorb_invalidations(line);
        signals.add(Signal::L1dCacheRefill, u64::from(lost));
        signals.add(Cause::Demand.l1_refill(), u64::from(lost));
        let buffer = first_free::<TIMED>(&mut self.core.mshrs, t);
        let at = self.core.at_l2::<TIMED>(buffer.at);
        let joins = self.core.sectors.in_l2(self.core.l1d.line(slot).sector());
        let request = Request { line, at, cause: Cause::Demand, holder: Holder::Data, write: true, joins };
        let (answer, evicted) = self.chip.read::<TIMED>(self.core.id, request, signals);
        self.back_invalidate(evicted, signals);
        if answer.own_copy_lost {
            self.core.invalidate_code(line);
        }
        let ready = if lost { self.core.fill::<TIMED>(answer.ready) } else { answer.ready };
        hold::<TIMED>(&mut self.core.mshrs, buffer, buffer.at, ready);
        (ready, lost)
    }

    /// A pending invalidation of a line reaches this core before the answer to a request that it sends now: it loses
    /// its own copies. Returns whether there was one.
    #[inline(always)]
    fn absorb_invalidations(&mut self, line: u64) -> bool {
        let invalidated = self.chip.absorb_invalidations(self.core.id, line);
        if invalidated {
            self.core.invalidate_code(line);
        }
        invalidated
    }

    /// Refills a line into a sector of L1D. Returns its state there.
    #[inline(never)]
    pub(super) fn refill(
        &mut self,
        line: u64,
        sector: Sector,
        t: Cycle,
        write: bool,
        cause: Cause,
        signals: &mut Signals,
    ) -> Line {
        signals.add(Signal::L1dCacheRefill, 1);
        signals.add(cause.l1_refill(), 1);
        if cause == Cause::HardwarePrefetch {
            signals.add(Signal::L1dCacheRefillPrf, 1);
        }
        self.absorb_invalidations(line);
        let buffer = first_free::<TIMED>(&mut self.core.mshrs, t);
        let joins = self.core.sectors.in_l2(sector);
        let request =
            Request { line, at: self.core.at_l2::<TIMED>(buffer.at), cause, holder: Holder::Data, write, joins };
        let (answer, evicted) = self.chip.read::<TIMED>(self.core.id, request, signals);
        self.back_invalidate(evicted, signals);
        if answer.own_copy_lost {
            self.core.invalidate_code(line);
        }
        let ready = self.core.fill::<TIMED>(answer.ready);
        let arriving = match answer.missed {
            Some(missed) => Line::arriving_from_memory(ready, missed),
            None => Line::arriving(ready),
        };
        let mut state = arriving
            .in_sector(sector)
            .with(Line::DIRTY, write)
            .with(Line::SHARED, answer.shared)
            .with(Line::L1_FROM_MAIN, answer.from_main)
            .with(Line::PREFETCHED, cause == Cause::HardwarePrefetch);
        if !TIMED && cause != Cause::Demand {
            self.core.repeats.forget(line);
        }
        let (slot, victim) = self.core.l1d.insert(line as usize & self.core.l1d_set_mask, line, state, t);
        self.core.l1d.remember(line, slot);
        let before = std::mem::replace(&mut self.core.l2_slot_hints[slot.number()], answer.slot);
        if let Some(victim) = victim {
            let room = self.evict(victim, before, buffer.at, signals);
            if room > ready {
                state.set_ready(room);
                self.core.l1d.line_mut(slot).set_ready(room);
            }
        }
        hold::<TIMED>(&mut self.core.mshrs, buffer, buffer.at, state.ready());
        if TIMED {
            signals.add(Signal::L1MissWait, state.ready() - buffer.at);
            self.core.pipes.both(state.ready(), self.core.move_in);
        }
        state
    }

    /// Notes what the instruction at hand has brought into L1D, and perhaps into L2: the line of a virtual address.
    pub(super) fn refilled(&mut self, address: u64, missed_l2: bool, cause: Cause, write: bool, t: Cycle) {
        if TIMED {
            let kind = if missed_l2 { RefillKind::FromMemory } else { RefillKind::FromL2 };
            self.core.refills.add(address, kind, cause, write, t);
        }
    }

    /// Evicts a line from L1D at `t`. L2 probably has it at `l2_slot_hint`. Returns when its slot is free.
    fn evict(&mut self, victim: Victim, l2_slot_hint: Slot, t: Cycle, signals: &mut Signals) -> Cycle {
        let held = Held { line: victim.line, l2_slot_hint };
        if victim.dirty() {
            let (out, at_l2) = self.core.write_back::<TIMED>(t, signals);
            let joins = self.core.sectors.in_l2(victim.state.sector());
            self.chip.write_back::<TIMED>(self.core.id, held, joins, at_l2, signals);
            return out;
        }
        self.chip.clean_eviction(self.core.id, held, Holder::Data);
        if !TIMED {
            return t;
        }
        let out = self.core.pipes.both(t, self.core.move_out_clean);
        self.core.bus.release(out);
        out
    }

    /// L2 evicted a line: L1 must give it up, too.
    pub(super) fn back_invalidate(&mut self, evicted: Option<Evicted>, signals: &mut Signals) {
        let Some(Evicted { line, dirty, code, at }) = evicted else { return };
        if code {
            self.core.invalidate_code(line);
        }
        let newer = self.core.invalidate_data::<TIMED>(line, at, signals);
        if dirty || newer.is_some() {
            self.chip.write_memory::<TIMED>(self.core.id.cmg, line, newer.unwrap_or(at), signals);
        }
    }

    /// The core begins to run at `now`. Its snoops that have arrived take effect.
    pub fn resume(&mut self, now: Cycle, signals: &mut Signals) {
        self.chip.set_lookahead(self.core.id, NEVER);
        self.chip.take_remote_counts(self.core.id.cmg, signals);
        self.handle_snoops(now, signals);
    }

    /// The core stops running. It sends no request before `from` when it resumes; [`NEVER`] if it has nothing to do.
    pub fn suspend(&mut self, from: Cycle) {
        self.chip.set_lookahead(self.core.id, from);
    }

    /// Handles the snoops that have reached this core by `now`.
    pub fn handle_snoops(&mut self, now: Cycle, signals: &mut Signals) {
        while let Some(Snoop { line, at, kind }) = self.chip.pop_snoop(self.core.id, now) {
            match kind {
                SnoopKind::Downgrade => self.core.downgrade::<TIMED>(line, at, signals),
                SnoopKind::Invalidate => {
                    self.core.invalidate_code(line);
                    self.core.invalidate_data::<TIMED>(line, at, signals);
                }
            }
        }
    }

    /// `DC ZVA` on the line of `pointer`, sent at `t`: L2 makes a line of zeros without reading memory. Returns when the
    /// core learns that it is done.
    pub fn zero_line(&mut self, pointer: Pointer, t: Cycle, signals: &mut Signals) -> Cycle {
        let place = self.translate(pointer, t, signals);
        let line = place.physical >> self.core.line_shift;
        let joins = self.core.sectors.in_l2(self.core.sector_of(pointer));
        // It passes to L2 as the notice of a clean line's eviction does, which has no data either.
        if TIMED {
            if self.core.refills.is_observed() && !self.chip.holds(self.core.id.cmg, line) {
                self.core.refills.note_write(pointer.addr, RefillKind::Zeroed, t);
            }
            self.core.bus.release(place.ready);
        }
        let at_l2 = self.core.at_l2::<TIMED>(place.ready);
        let start = self.recall(line, joins, at_l2, signals);
        self.absorb_invalidations(line);
        let (answer, evicted) = self.chip.zero::<TIMED>(self.core.id, line, joins, start, signals);
        self.back_invalidate(evicted, signals);
        if answer.own_copy_lost {
            self.core.invalidate_code(line);
        }
        answer.ready + delay::<TIMED>(self.core.request)
    }

    /// L2, which zeroes a line for this core at `t`, first asks for the core's copy (manual 9.6). Returns when L2 has it.
    fn recall(&mut self, line: u64, joins: Joins, t: Cycle, signals: &mut Signals) -> Cycle {
        let Some(slot) = self.core.l1d.find(line as usize & self.core.l1d_set_mask, line) else { return t };
        let asked = (t + delay::<TIMED>(self.core.request)).max(self.core.l1d.line(slot).ready());
        let l2_slot_hint = self.core.l2_slot_hints[slot.number()];
        let Some(at_l2) = self.core.invalidate_data::<TIMED>(line, asked, signals) else {
            return asked + delay::<TIMED>(self.core.move_out_clean + self.core.request);
        };
        self.chip.write_back::<TIMED>(self.core.id, Held { line, l2_slot_hint }, joins, at_l2, signals);
        at_l2
    }
}

impl CoreMemory {
    /// The line number of an address.
    #[inline(always)]
    #[must_use]
    pub fn line_of(&self, addr: u64) -> u64 {
        addr >> self.line_shift
    }

    /// An access at `t` to a line that another access has requested. Its flow is replayed until the line arrives, like
    /// one that waits for a store. (The access that requested the line is sent when it arrives; manual 7.2.)
    #[inline(never)]
    fn hit_in_flight(&mut self, line: Line, t: Cycle, wants: Wants, signals: &mut Signals) -> Response {
        let mut response = self.wait_for(line, t, wants.write, signals);
        if wants.replay_period > 0 && response.at > t {
            response.at = self.pipes.replay(t, response.at, wants.replay_period);
        }
        response
    }

    /// An access at `t` waits for a line in flight.
    #[inline(always)]
    fn wait_for(&mut self, line: Line, t: Cycle, write: bool, signals: &mut Signals) -> Response {
        let at = if write { line.ready() } else { line.readable() };
        if at <= t {
            return Response::hit(t);
        }
        let l1 = t + self.miss_known;
        let l2 = line.missed().map_or(NEVER, |l2| l2.max(l1));
        if !write && l2 != NEVER {
            self.outstanding.load(l2, at, line.has(Line::L1_FROM_MAIN), signals);
        }
        Response { at, misses: Misses { l1, l2, ..Misses::NONE } }
    }

    /// When a request that the core sends from `t` on reaches L2.
    #[inline(always)]
    pub(super) fn at_l2<const TIMED: bool>(&mut self, t: Cycle) -> Cycle {
        if TIMED { self.requests.book(t) + self.request } else { t }
    }

    /// When a line that L2 sends from `t` on has arrived in L1.
    #[inline(always)]
    pub(super) fn fill<const TIMED: bool>(&mut self, t: Cycle) -> Cycle {
        if TIMED { self.bus.fill(t) } else { t }
    }

    /// The sector of a data access. Where addresses decide, the first byte of the line does.
    #[inline(always)]
    pub(super) fn sector_of(&self, pointer: Pointer) -> Sector {
        self.sectors.of(pointer.sector(), pointer.addr >> self.line_shift << self.line_shift)
    }

    /// A dirty line leaves L1D at `t` for a write-back buffer, and from there for L2. Returns when it is in the buffer,
    /// and when it reaches L2.
    fn write_back<const TIMED: bool>(&mut self, t: Cycle, signals: &mut Signals) -> (Cycle, Cycle) {
        signals.add(Signal::L1dCacheWb, 1);
        if !TIMED {
            return (t, t);
        }
        let buffer = self.writeback_buffers.first_free(t);
        let out = self.pipes.both(buffer.at, self.move_out_dirty);
        let (sent, all) = self.bus.write_back(out);
        self.writeback_buffers.hold(buffer, buffer.at, all + self.request + self.acknowledge);
        (out, sent + self.request)
    }

    /// Removes a line from L1D. Returns when it reaches L2, if it was dirty.
    fn invalidate_data<const TIMED: bool>(&mut self, line: u64, t: Cycle, signals: &mut Signals) -> Option<Cycle> {
        self.repeats.forget(line);
        let state = self.l1d.remove(line as usize & self.l1d_set_mask, line)?;
        if state.has(Line::DIRTY) {
            return Some(self.write_back::<TIMED>(t, signals).1);
        }
        if TIMED {
            self.pipes.both(t, self.move_out_clean);
        }
        None
    }

    /// L1D keeps a shared copy of a line that others read.
    pub(super) fn downgrade<const TIMED: bool>(&mut self, line: u64, t: Cycle, signals: &mut Signals) {
        let Some(slot) = self.l1d.find(line as usize & self.l1d_set_mask, line) else { return };
        self.repeats.forget(line);
        let state = self.l1d.line_mut(slot);
        state.set(Line::SHARED, true);
        if state.take(Line::DIRTY) {
            self.write_back::<TIMED>(t, signals);
        }
    }
}
