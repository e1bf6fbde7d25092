//! Loads and stores: L1D, what it asks L2 for, what leaves it.

use fxscope_calendar::Cycle;
use fxscope_counts::{Signal, Signals};

use super::{Cause, Hierarchy, Located, Misses, NEVER, Response};
use crate::chip::{Chip, Evicted, Held, Holder, Request};
use crate::pointer::Pointer;
use crate::sectors::{Joins, Sector};
use crate::tags::{Line, Slot, Victim};
use crate::turns::Notice;

/// What the flow of an access wants of its line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wants {
    /// An exclusive copy.
    pub write: bool,
    /// While the line is on its way the flow is sent again after so many cycles; 0: it need not have its line.
    pub again: Cycle,
}

impl Hierarchy {
    /// Line number of an address.
    #[inline(always)]
    #[must_use]
    pub fn line_of(&self, addr: u64) -> u64 {
        addr >> self.line_shift
    }

    /// A demand access whose flow ran at `t`.
    /// Returns when the line's data can be used, and how far the access had to go.
    #[inline(always)]
    pub fn access(&mut self, place: &Located, t: Cycle, wants: Wants, signals: &mut Signals) -> Response {
        let write = wants.write;
        let line = place.physical >> self.line_shift;
        signals.add(Signal::L1dCache, 1);
        let set = line as usize & self.l1d_set_mask;
        let Some(slot) = self.l1d.find_again(set, line) else { return self.miss(*place, line, t, write, signals) };
        self.l1d.touch(slot);
        if self.moves {
            let sector = self.sector_of(place.pointer);
            self.l1d.line_mut(slot).join(Joins { sector, moves: true });
        }
        if write && !self.l1d.line(slot).has(Line::DIRTY) {
            self.first_write(slot, line, t, signals);
        }
        let state = self.l1d.line_mut(slot);
        let first_use = state.take(Line::PREFETCHED);
        let state = *state;
        let response = if state.ready() <= t { Response::hit(t) } else { self.found_on_its_way(state, t, wants) };
        // The prefetcher sees misses and the first use of lines it brought, when that finds them, not every hit.
        if first_use || self.prefetcher.watches(place.pointer.steering) {
            self.follow_stream(place.pointer, false, response.at, signals);
        }
        response
    }

    /// A demand access to a line that L1D does not have.
    #[cold]
    #[inline(never)]
    fn miss(&mut self, place: Located, line: u64, t: Cycle, write: bool, signals: &mut Signals) -> Response {
        let sector = self.sector_of(place.pointer);
        let state = self.refill(line, sector, t, write, Cause::Demand, signals);
        self.follow_stream(place.pointer, true, t, signals);
        self.on_its_way(state, t, write)
    }

    /// A store to a line that is clean: an exclusive one becomes modified, others give up a shared one first.
    #[cold]
    #[inline(never)]
    fn first_write(&mut self, slot: Slot, line: u64, t: Cycle, signals: &mut Signals) {
        let state = self.l1d.line_mut(slot);
        state.set(Line::DIRTY, true);
        // Whether a line on its way is shared is known when it has come.
        let known = t.max(state.ready());
        if state.take(Line::SHARED) {
            let (ready, anew) = self.ask_to_write(slot, line, known, signals);
            let state = self.l1d.line_mut(slot);
            state.take(Line::ASKED);
            if anew { state.set_ready(ready) } else { state.ask(ready) }
        } else {
            let beneath = self.beneath[slot.number()];
            self.chip.written(self.seat, Held { line, beneath });
        }
    }

    /// Others give up a line before it is written. The request is one in flight as a refill's is, without data if the
    /// line stays. Returns when it can be written, and whether it comes anew.
    fn ask_to_write(&mut self, slot: Slot, line: u64, t: Cycle, signals: &mut Signals) -> (Cycle, bool) {
        let lost = self.lose_to_claims(line);
        signals.add(Signal::L1dCacheRefill, u64::from(lost));
        signals.add(Cause::Demand.l1_refill(), u64::from(lost));
        let buffer = self.misses.first_free(t);
        let at = self.requests.book(buffer.at) + self.request;
        let joins = self.sectors.in_l2(self.l1d.line(slot).sector());
        let request = Request { line, at, cause: Cause::Demand, holder: Holder::Data, write: true, joins };
        let (answer, left) = self.chip.read(self.seat, request, signals);
        self.give_up(left, signals);
        if answer.own {
            self.forget_code(line);
        }
        let ready = if lost { self.bus.fill(answer.ready) } else { answer.ready };
        self.misses.hold(buffer, buffer.at, ready);
        (ready, lost)
    }

    /// A claim that this core has not heard of yet comes to it before the answer to a request that it makes now: its own
    /// copies of the line are lost. Returns whether there was one.
    #[inline(always)]
    fn lose_to_claims(&mut self, line: u64) -> bool {
        let claimed = self.chip.withdraw(self.seat, line);
        if claimed {
            self.forget_code(line);
        }
        claimed
    }

    /// An access at `t` to a line that something else has asked for: its flow is sent again until that has come, as one
    /// that waits for a store is. (What asked for a line is sent when it comes; manual 7.2.)
    #[inline(never)]
    fn found_on_its_way(&mut self, line: Line, t: Cycle, wants: Wants) -> Response {
        let mut response = self.on_its_way(line, t, wants.write);
        if wants.again > 0 && response.at > t {
            response.at = self.pipes.in_vain(t, response.at, wants.again);
        }
        response
    }

    /// An access at `t` to a line that is not there yet.
    #[inline(always)]
    fn on_its_way(&self, line: Line, t: Cycle, write: bool) -> Response {
        let at = if write { line.ready() } else { line.readable() };
        if at <= t {
            return Response::hit(t);
        }
        let l1 = t + self.miss_known;
        let l2 = line.missed().map_or(NEVER, |l2| l2.max(l1));
        Response { at, misses: Misses { l1, l2, ..Misses::NONE } }
    }

    /// The sector of a data access. Lines whose sectors follow from addresses are where their first byte is.
    #[inline(always)]
    pub(super) fn sector_of(&self, pointer: Pointer) -> Sector {
        self.sectors.of(pointer.sector(), pointer.addr >> self.line_shift << self.line_shift)
    }

    /// Brings a line into a sector of L1D. Returns its state there.
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
        self.lose_to_claims(line);
        let t = if t < self.zeroing.until { self.zeroing.heard_of(line, t) } else { t };
        let buffer = self.misses.first_free(t);
        let asked = self.requests.book(buffer.at);
        let joins = self.sectors.in_l2(sector);
        let request = Request { line, at: asked + self.request, cause, holder: Holder::Data, write, joins };
        let (answer, left) = self.chip.read(self.seat, request, signals);
        self.give_up(left, signals);
        if answer.own {
            self.forget_code(line);
        }
        let ready = self.bus.fill(answer.ready);
        let arriving = match answer.missed {
            Some(missed) => Line::arriving_from_memory(ready, missed),
            None => Line::arriving(ready),
        };
        let mut state = arriving
            .in_sector(sector)
            .with(Line::DIRTY, write)
            .with(Line::SHARED, answer.shared)
            .with(Line::PREFETCHED, cause == Cause::HardwarePrefetch);
        let (slot, victim) = self.l1d.insert(line as usize & self.l1d_set_mask, line, state, t);
        self.l1d.remember(line, slot);
        let before = std::mem::replace(&mut self.beneath[slot.number()], answer.slot);
        if let Some(victim) = victim {
            let room = self.evict(victim, before, buffer.at, signals);
            if room > ready {
                state.set_ready(room);
                self.l1d.line_mut(slot).set_ready(room);
            }
        }
        self.misses.hold(buffer, buffer.at, state.ready());
        signals.add(Signal::L1MissWait, state.ready() - buffer.at);
        self.pipes.both(state.ready(), self.move_in);
        state
    }

    /// A line leaves L1D at `t`, of which L2 has a copy, most likely at `beneath`; returns when its place is free.
    fn evict(&mut self, victim: Victim, beneath: Slot, t: Cycle, signals: &mut Signals) -> Cycle {
        let held = Held { line: victim.line, beneath };
        if victim.dirty() {
            let (out, there) = self.send_out(t, signals);
            let joins = self.sectors.in_l2(victim.state.sector());
            self.chip.write_back(self.seat, held, joins, there, signals);
            return out;
        }
        let out = self.pipes.both(t, self.move_out_clean);
        self.bus.release(out);
        self.chip.left(self.seat, held, Holder::Data);
        out
    }

    /// A dirty line leaves L1D for a move-out buffer at `t`, and that for L2. Returns when it is in the buffer, and when
    /// L2 begins to take it.
    fn send_out(&mut self, t: Cycle, signals: &mut Signals) -> (Cycle, Cycle) {
        signals.add(Signal::L1dCacheWb, 1);
        let buffer = self.move_outs.first_free(t);
        let out = self.pipes.both(buffer.at, self.move_out_dirty);
        let (sent, all) = self.bus.write_back(out);
        self.move_outs.hold(buffer, buffer.at, all + self.request);
        (out, sent + self.request)
    }

    /// A line has left L2: L1 must give it up too.
    pub(super) fn give_up(&mut self, left: Option<Evicted>, signals: &mut Signals) {
        let Some(Evicted { line, dirty, code, at }) = left else { return };
        if code {
            self.forget_code(line);
        }
        let newer = self.take_out(line, at, signals);
        if dirty || newer.is_some() {
            self.chip.write_memory(self.seat.cmg, line, newer.unwrap_or(at), signals);
        }
    }

    /// Removes a line from L1D. Returns when it is in L2, if it was dirty.
    fn take_out(&mut self, line: u64, t: Cycle, signals: &mut Signals) -> Option<Cycle> {
        let state = self.l1d.remove(line as usize & self.l1d_set_mask, line)?;
        if state.has(Line::DIRTY) {
            return Some(self.send_out(t, signals).1);
        }
        self.pipes.both(t, self.move_out_clean);
        None
    }

    /// L1D keeps a line that others read, and does not write it any more without asking.
    pub(super) fn share(&mut self, line: u64, t: Cycle, signals: &mut Signals) {
        let Some(slot) = self.l1d.find(line as usize & self.l1d_set_mask, line) else { return };
        let state = self.l1d.line_mut(slot);
        state.set(Line::SHARED, true);
        if state.take(Line::DIRTY) {
            self.send_out(t, signals);
        }
    }

    /// This core goes on at `now` where `other` stops, which will ask for nothing before `from` when it goes on in its
    /// turn; [`NEVER`] if it has nothing more to do. What others have done to its lines meanwhile takes effect.
    pub fn take_over(&mut self, other: &mut Hierarchy, from: Cycle, now: Cycle, signals: &mut Signals) {
        other.chip.waits(other.seat, from);
        std::mem::swap(&mut self.chip, &mut other.chip);
        self.goes_on(now, signals);
    }

    /// This core, which has the chip, does nothing for a while, and asks for nothing before `from` then: it leaves the chip
    /// to whoever it is for.
    pub fn leave_chip(&mut self, from: Cycle) -> Box<Chip> {
        self.chip.waits(self.seat, from);
        std::mem::replace(&mut self.chip, Box::new(Chip::elsewhere()))
    }

    /// This core goes on at `now` and has `chip` from now on, or what is at hand of it.
    pub fn take_chip(&mut self, chip: Box<Chip>, now: Cycle, signals: &mut Signals) {
        self.chip = chip;
        self.goes_on(now, signals);
    }

    fn goes_on(&mut self, now: Cycle, signals: &mut Signals) {
        self.chip.waits(self.seat, NEVER);
        self.chip.count_outside(self.seat.cmg, signals);
        self.read_notices(now, signals);
    }

    /// What other cores have done to lines of this one, as far as it is known by `now`, takes effect.
    pub fn read_notices(&mut self, now: Cycle, signals: &mut Signals) {
        while let Some(Notice { line, at, keeps }) = self.chip.next_notice(self.seat, now) {
            if keeps {
                self.share(line, at, signals);
            } else {
                self.forget_code(line);
                self.take_out(line, at, signals);
            }
        }
    }

    /// `DC ZVA` on the line of `addr`, executed at `t`: a line of zeros appears in L2, without a read of
    /// memory; a copy in L1D goes back first. Returns when the core hears of it.
    pub fn zero_line(&mut self, pointer: Pointer, t: Cycle, signals: &mut Signals) -> Cycle {
        let place = self.translate(pointer, t, signals);
        let line = place.physical >> self.line_shift;
        let joins = self.sectors.in_l2(self.sector_of(pointer));
        let mut sent = place.ready;
        if let Some(state) = self.l1d.remove(line as usize & self.l1d_set_mask, line) {
            let cycles = if state.has(Line::DIRTY) { self.move_out_dirty } else { self.move_out_clean };
            sent = self.pipes.both(sent.max(state.ready()), cycles);
            if state.has(Line::DIRTY) {
                signals.add(Signal::L1dCacheWb, 1);
                sent = self.bus.write_back(sent).1;
                let beneath = self.chip.remembered(self.seat.cmg, line);
                self.chip.write_back(self.seat, Held { line, beneath }, joins, sent + self.request, signals);
            }
        }
        self.lose_to_claims(line);
        let start = self.requests.book(sent) + self.request;
        let (answer, left) = self.chip.zero(self.seat, line, joins, start, signals);
        self.give_up(left, signals);
        if answer.own {
            self.forget_code(line);
        }
        let heard = answer.ready + self.request;
        self.zeroing.add(line, heard);
        heard
    }
}

/// Lines that L2 was told to zero last. What misses them in L1D asks L2 for them when it is known that L2 has done so.
pub(super) struct Zeroing {
    lines: Box<[(u64, Cycle)]>,
    next: usize,
    /// When the last of them is done.
    pub(super) until: Cycle,
}

impl Zeroing {
    /// Of a core with so many entries of its write buffer, each of which waits for one line. As many lines are remembered
    /// that have left it: loads may be executed earlier than that.
    pub(super) fn new(write_buffer: u32) -> Zeroing {
        Zeroing { lines: vec![(0, 0); 2 * write_buffer as usize].into(), next: 0, until: 0 }
    }

    fn add(&mut self, line: u64, heard: Cycle) {
        self.lines[self.next] = (line, heard);
        self.next = (self.next + 1) % self.lines.len();
        self.until = self.until.max(heard);
    }

    /// When a request for `line` of `t` can be sent.
    #[cold]
    #[inline(never)]
    fn heard_of(&self, line: u64, t: Cycle) -> Cycle {
        self.lines.iter().filter(|zeroed| zeroed.0 == line).fold(t, |t, zeroed| t.max(zeroed.1))
    }
}
