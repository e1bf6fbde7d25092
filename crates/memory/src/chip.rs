//! What the cores of a chip share: the L2 caches and memories of all CMGs, the ring between them, and who holds which
//! line.
//!
//! The core that runs has the chip; the others wait. What a core must do about a line that another one takes is left in
//! its [`Notice`]s, which it reads when it runs again.

use fxscope_base::{Cycle, Signal, Signals};
use fxscope_machine::Spec;

use crate::cmg::Cmg;
use crate::frames::Frames;
use crate::hierarchy::Cause;
use crate::ring::Ring;
use crate::tags::{Line, Slot, Victim};

/// An answer of the L2 cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// When the line is ready to be sent to the core.
    pub ready: Cycle,
    /// When it was known not to be in this L2 cache, if it was not.
    pub missed: Option<Cycle>,
    /// Whether others may hold it too: it must not be written without asking.
    pub shared: bool,
}

/// Which core of the chip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seat {
    /// Its CMG.
    pub cmg: usize,
    /// Its number in the CMG.
    pub core: usize,
}

impl Seat {
    /// Of core number `core` of the chip, counted from 0.
    #[must_use]
    pub fn of(spec: &Spec, core: u32) -> Seat {
        let each = spec.topology.cores_per_cmg;
        Seat { cmg: (core / each) as usize, core: (core % each) as usize }
    }
}

/// A request to L2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// The line.
    pub line: u64,
    /// When it reaches L2.
    pub at: Cycle,
    /// Who asks.
    pub cause: Cause,
    /// For whom: L1 data or instructions, or L2 alone.
    pub holder: Holder,
    /// Whether the line is to be written.
    pub write: bool,
}

/// Which cache will hold a line that is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holder {
    /// The core's L1D.
    Data,
    /// The core's L1I.
    Code,
    /// L2 alone (a prefetch).
    None,
}

/// What becomes of a copy that is newer than L2's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Newer {
    /// It goes to whoever asked.
    Asked,
    /// It goes to L2.
    ToL2,
    /// It goes to memory: L2 has given the line up.
    ToMemory,
}

/// What another core's doing means for a line that this core may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Notice {
    /// The line.
    pub line: u64,
    /// When.
    pub at: Cycle,
    /// Whether the core may keep a copy, which it must not write without asking.
    pub keeps: bool,
    /// What becomes of a changed copy.
    pub newer: Newer,
}

/// All that cores share.
pub struct Chip {
    cmgs: Box<[Cmg]>,
    ring: Ring,
    /// Physical memory.
    pub frames: Frames,
    /// What each core must do before it goes on, CMG by CMG.
    notices: Box<[Vec<Notice>]>,
    cores_per_cmg: usize,
    /// Lines held by L2 caches of other CMGs than their memory's.
    abroad: u64,
    line_shift: u32,
    /// From an L2 that needs a copy of an L1 to the copy: request, the line out, transfer.
    snoop: Cycle,
}

impl Chip {
    /// Empty caches, free memory.
    #[must_use]
    pub fn new(spec: &Spec) -> Chip {
        let cmgs = spec.topology.cmgs as usize;
        let cores_per_cmg = spec.topology.cores_per_cmg as usize;
        let to_l2 = u64::from(spec.l1d.line_bytes / spec.l2_timing.writeback_bytes_per_cycle);
        Chip {
            cmgs: (0..cmgs).map(|_| Cmg::new(spec)).collect(),
            ring: Ring::new(spec),
            frames: Frames::new(spec),
            notices: vec![Vec::new(); cmgs * cores_per_cmg].into(),
            cores_per_cmg,
            abroad: 0,
            line_shift: spec.l2.line_bytes.trailing_zeros(),
            snoop: 2 * spec.l2_timing.request + spec.load_store.move_out_dirty + to_l2,
        }
    }

    /// Nothing before `now` will be asked for any more.
    #[inline(always)]
    pub fn advance(&mut self, now: Cycle) {
        for cmg in &mut self.cmgs {
            cmg.advance(now);
        }
        self.ring.advance(now);
    }

    /// The CMG whose memory holds `line`.
    #[inline(always)]
    fn home(&self, line: u64) -> usize {
        self.frames.node_of(line << self.line_shift)
    }

    /// Reads a line for a core. Returns the answer and the line that had to leave the core's L2, if the core itself may
    /// hold it; other cores get notice.
    pub fn read(&mut self, seat: Seat, request: Request, signals: &mut Signals) -> (Answer, Option<Victim>) {
        signals.add(Signal::L2dCache, 1);
        let cmg = &mut self.cmgs[seat.cmg];
        let start = cmg.bank_slot(request.line, request.at, signals);
        let Some(slot) = cmg.find(request.line) else { return self.read_beyond(seat, request, start, signals) };
        cmg.touch(slot);
        let hit = cmg.hit(seat.core);
        let state = cmg.line_mut(slot);
        let on_its_way = state.ready() > start + hit;
        if request.cause == Cause::Demand {
            let prefetched = state.take(Line::PREFETCHED);
            signals.add(Signal::L2dSwapDm, u64::from(on_its_way && prefetched));
        }
        let ready = (start + hit).max(state.ready());
        let missed = (on_its_way && state.has(Line::FROM_MEMORY)).then_some(start + cmg.miss_detect);
        let (settled, shared) = self.hold(seat, slot, request, start);
        (Answer { ready: ready.max(settled), missed, shared }, None)
    }

    /// The core becomes a holder of a line in L2. Returns when others have given up what they must, and whether it
    /// holds the line in common with others.
    #[inline(always)]
    fn hold(&mut self, seat: Seat, slot: Slot, request: Request, start: Cycle) -> (Cycle, bool) {
        if request.holder == Holder::None {
            return (start, false);
        }
        let me = 1 << seat.core;
        let cmg = &mut self.cmgs[seat.cmg];
        let others = *cmg.holders_mut(slot) & !me;
        let state = cmg.line_mut(slot);
        let code = request.holder == Holder::Code;
        let abroad = state.has(Line::SHARED);
        let settled = if others != 0 || (request.write && abroad) {
            self.settle(seat, slot, others, request, start)
        } else {
            start
        };
        let cmg = &mut self.cmgs[seat.cmg];
        let state = cmg.line_mut(slot);
        let alone = request.write || (others == 0 && !abroad && !code);
        state.take(Line::OWNED);
        *state = state.with(Line::OWNED, alone).with(Line::CODE, code);
        let holders = cmg.holders_mut(slot);
        *holders = if request.write { me } else { *holders | me };
        (settled, !alone)
    }

    /// Other holders of a line learn that this core wants it.
    #[inline(never)]
    fn settle(&mut self, seat: Seat, slot: Slot, others: u64, request: Request, start: Cycle) -> Cycle {
        let Request { line, write, .. } = request;
        let state = self.cmgs[seat.cmg].line_mut(slot);
        let owned = state.take(Line::OWNED);
        let mut settled = start;
        if write && state.take(Line::SHARED) {
            settled = settled.max(self.recall(seat.cmg, line, start));
        }
        if others != 0 && (write || owned) {
            settled = settled.max(start + self.snoop);
            let newer = if write { Newer::Asked } else { Newer::ToL2 };
            let everybody =
                if write && self.cmgs[seat.cmg].line_mut(slot).take(Line::CODE) { u64::MAX } else { others };
            let except = Some(seat.core);
            self.notify(seat.cmg, everybody, except, Notice { line, at: settled, keeps: !write, newer });
        }
        settled
    }

    /// Copies of a line in other CMGs are given up. Returns when all have answered.
    fn recall(&mut self, cmg: usize, line: u64, start: Cycle) -> Cycle {
        let mut answered = start;
        for other in (0..self.cmgs.len()).filter(|&other| other != cmg) {
            let there = start + self.ring.message(cmg, other);
            if self.take_from(other, line, there, false).is_some() {
                answered = answered.max(there + self.ring.message(other, cmg));
            }
        }
        answered
    }

    /// Another CMG asks for a line that this one may hold: it gives it up, or keeps a copy. Returns whether it was dirty,
    /// if it was there.
    fn take_from(&mut self, cmg: usize, line: u64, t: Cycle, keeps: bool) -> Option<bool> {
        let slot = self.cmgs[cmg].find(line)?;
        let holders = self.cmgs[cmg].holders_of(slot);
        let state = self.cmgs[cmg].line_mut(slot);
        let owned = state.take(Line::OWNED);
        let code = state.has(Line::CODE);
        let dirty = state.take(Line::DIRTY);
        if keeps {
            state.set(Line::SHARED, true);
            if owned {
                self.notify(cmg, holders, None, Notice { line, at: t, keeps, newer: Newer::ToMemory });
            }
            return Some(dirty);
        }
        self.notify(
            cmg,
            if code { u64::MAX } else { holders },
            None,
            Notice { line, at: t, keeps, newer: Newer::Asked },
        );
        self.cmgs[cmg].remove(line);
        self.abroad -= u64::from(self.home(line) != cmg);
        Some(dirty)
    }

    /// Leaves a notice with those cores of a CMG.
    fn notify(&mut self, cmg: usize, cores: u64, except: Option<usize>, notice: Notice) {
        let first = cmg * self.cores_per_cmg;
        for core in (0..self.cores_per_cmg).filter(|&core| cores >> core & 1 == 1 && Some(core) != except) {
            self.notices[first + core].push(notice);
        }
    }

    /// What a core must do before it goes on.
    pub fn notices(&mut self, seat: Seat) -> Vec<Notice> {
        match self.notices.get_mut(seat.cmg * self.cores_per_cmg + seat.core) {
            Some(notices) => std::mem::take(notices),
            None => Vec::new(),
        }
    }

    /// Reads a line that is not in the core's L2.
    fn read_beyond(
        &mut self,
        seat: Seat,
        request: Request,
        start: Cycle,
        signals: &mut Signals,
    ) -> (Answer, Option<Victim>) {
        let Request { line, cause, write, holder, .. } = request;
        signals.add(Signal::L2dCacheRefill, 1);
        signals.add(cause.l2_refill(), 1);
        signals.add(Signal::L2dCacheRefillPrf, u64::from(cause == Cause::HardwarePrefetch));
        let cmg = &mut self.cmgs[seat.cmg];
        let missed = start + cmg.miss_detect;
        let buffer = cmg.misses.first_free(missed);
        let home = self.home(line);
        let (ready, abroad) = if home == seat.cmg && self.abroad == 0 {
            signals.add(Signal::BusReadTotalMem, 1);
            (self.cmgs[home].read_memory(seat.core, buffer.at), false)
        } else {
            self.read_around(seat, request, home, buffer.at, signals)
        };
        self.cmgs[seat.cmg].misses.hold(buffer, buffer.at, ready);
        signals.add(Signal::L2MissWait, ready - buffer.at);
        let code = holder == Holder::Code;
        let holders = if holder == Holder::None { 0 } else { 1 << seat.core };
        let alone = holder == Holder::Data && (write || !abroad);
        let state = Line::arriving(ready)
            .with(Line::FROM_MEMORY, true)
            .with(Line::PREFETCHED, cause != Cause::Demand)
            .with(Line::SHARED, abroad)
            .with(Line::OWNED, alone)
            .with(Line::CODE, code);
        let left = self.insert(seat, line, state, holders, ready);
        (Answer { ready, missed: Some(missed), shared: !alone }, left)
    }

    /// Reads a line over the ring: from the CMG that holds it, or from the memory of another one. Returns when it is
    /// ready to be sent to the core, and whether others keep a copy.
    #[inline(never)]
    fn read_around(
        &mut self,
        seat: Seat,
        request: Request,
        home: usize,
        t: Cycle,
        signals: &mut Signals,
    ) -> (Cycle, bool) {
        let Request { line, write, .. } = request;
        let at_home = t + self.ring.message(seat.cmg, home);
        let mut newer = None;
        let mut kept = false;
        for other in (0..self.cmgs.len()).filter(|&other| other != seat.cmg) {
            let asked = at_home + self.ring.message(home, other);
            let Some(dirty) = self.take_from(other, line, asked, !write) else { continue };
            kept |= !write;
            if dirty || newer.is_none() {
                newer = Some((other, asked));
            }
            if dirty && !write {
                self.write_memory(other, line, asked, signals);
            }
        }
        if let Some((other, asked)) = newer {
            let start = self.cmgs[other].bank_slot(line, asked, signals);
            let ready = start + self.cmgs[other].hit(seat.core);
            return (self.ring.transfer(other, seat.cmg, ready), kept);
        }
        signals.add(Signal::BusReadTotalMem, 1);
        let ready = self.cmgs[home].read_memory(seat.core, at_home);
        (self.ring.transfer(home, seat.cmg, ready), false)
    }

    /// Puts a line into a core's L2. Returns the line that had to leave if the core itself may hold it or it is dirty.
    #[inline(always)]
    fn insert(&mut self, seat: Seat, line: u64, state: Line, holders: u64, now: Cycle) -> Option<Victim> {
        self.abroad += u64::from(self.home(line) != seat.cmg);
        let (victim, holders) = self.cmgs[seat.cmg].insert(line, state, holders, now)?;
        self.abroad -= u64::from(self.home(victim.line) != seat.cmg);
        let code = victim.state.has(Line::CODE);
        let others = if code { u64::MAX } else { holders } & !(1 << seat.core);
        if others != 0 {
            let newer = if victim.dirty() { Newer::Asked } else { Newer::ToMemory };
            let notice = Notice { line: victim.line, at: now, keeps: false, newer };
            self.notify(seat.cmg, others, Some(seat.core), notice);
        }
        Some(victim)
    }

    /// `line` will be asked for soon by a core of `cmg` (a matter of the host's speed only).
    #[inline(always)]
    pub fn expect(&self, cmg: usize, line: u64) {
        self.cmgs[cmg].expect(line);
    }

    /// A line comes back from a core, dirty.
    pub fn write_back(&mut self, seat: Seat, line: u64, t: Cycle, signals: &mut Signals) -> Option<Victim> {
        let cmg = &mut self.cmgs[seat.cmg];
        let start = cmg.bank_slot(line, t, signals);
        if let Some(slot) = cmg.find(line) {
            let state = cmg.line_mut(slot);
            state.set(Line::DIRTY, true);
            state.take(Line::OWNED);
            *cmg.holders_mut(slot) &= !(1 << seat.core);
            return None;
        }
        let state = Line::arriving(start).with(Line::DIRTY, true);
        self.insert(seat, line, state, 0, start)
    }

    /// A core that keeps a line has sent what it had changed.
    pub fn changed(&mut self, seat: Seat, line: u64, t: Cycle, signals: &mut Signals) {
        let cmg = &mut self.cmgs[seat.cmg];
        cmg.bank_slot(line, t, signals);
        if let Some(slot) = cmg.find(line) {
            cmg.line_mut(slot).set(Line::DIRTY, true);
        }
    }

    /// Makes `line` a line of zeros without reading memory. Returns when it can be used.
    pub fn zero(&mut self, seat: Seat, line: u64, t: Cycle, signals: &mut Signals) -> (Cycle, Option<Victim>) {
        signals.add(Signal::L2dCache, 1);
        let cmg = &mut self.cmgs[seat.cmg];
        let start = cmg.bank_slot(line, t, signals);
        let ready = start + cmg.hit(seat.core);
        let Some(slot) = cmg.find(line) else {
            let settled = if self.abroad == 0 { start } else { self.recall(seat.cmg, line, start) };
            let state = Line::arriving(ready.max(settled)).with(Line::DIRTY, true);
            return (ready.max(settled), self.insert(seat, line, state, 0, start));
        };
        cmg.touch(slot);
        let request = Request { line, at: start, cause: Cause::Demand, holder: Holder::Data, write: true };
        let ready = ready.max(self.hold(seat, slot, request, start).0);
        let cmg = &mut self.cmgs[seat.cmg];
        *cmg.holders_mut(slot) = 0;
        let state = cmg.line_mut(slot);
        state.take(Line::OWNED);
        state.set(Line::DIRTY, true);
        state.set_ready(ready);
        (ready, None)
    }

    /// A line that has left an L2 cache of `cmg` is written to its memory.
    pub fn write_memory(&mut self, cmg: usize, line: u64, t: Cycle, signals: &mut Signals) {
        signals.add(Signal::L2dCacheWb, 1);
        signals.add(Signal::BusWriteTotalMem, 1);
        let home = self.home(line);
        let at = if home == cmg { t } else { self.ring.transfer(cmg, home, t) };
        self.cmgs[home].write_memory(at);
    }

    /// Whether L2 of `cmg` has the line or waits for it.
    #[must_use]
    pub fn holds(&self, cmg: usize, line: u64) -> bool {
        self.cmgs[cmg].find(line).is_some()
    }
}
