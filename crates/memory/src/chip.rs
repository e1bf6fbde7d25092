//! What the cores of a chip share: the L2 caches and memories of all CMGs, the ring between them, and who holds which
//! line.
//!
//! The core that runs has the chip; the others wait ([`Turns`]). States follow the MESI protocol (manual 9.3), at two
//! levels: an L1D line that is not marked shared is exclusive, and so is an L2 line. L2 has all lines of the L1 caches
//! above it and knows who holds them, whether one of them may write ([`Line::OWNED`]), and whether memory is behind
//! ([`Line::DIRTY`], from the first write in L1 on). What is known here is up to date at any time; what a core has to
//! do about it in its private part waits in its notices.

use fxscope_base::{Cycle, READS_FROM_L2, READS_FROM_MEMORY, Signal, Signals, WRITES_TO_CMG};
use fxscope_machine::Spec;

use crate::cmg::{Cmg, Holders, fill_cycles};
use crate::frames::Frames;
use crate::hierarchy::Cause;
use crate::ring::Ring;
use crate::sectors::{Joins, Sector};
use crate::tags::{Line, Slot};
use crate::turns::{Notice, Turns};

/// An answer of the L2 cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// When the line is ready to be sent to the core.
    pub ready: Cycle,
    /// When L2 had taken the request: a cycle of its pipeline and, for a miss, a miss buffer.
    pub taken: Cycle,
    /// When it was known not to be in this L2 cache, if it was not.
    pub missed: Option<Cycle>,
    /// Whether others may hold it too: it must not be written without asking.
    pub shared: bool,
    /// Whether the core's other L1 cache had to give up its copy, or its right to write it.
    pub own: bool,
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
    /// The sector it is for.
    pub joins: Joins,
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

/// A line that an L1 cache has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held {
    /// The line.
    pub line: u64,
    /// Where it is likely to be in L2 (a matter of the host's speed only).
    pub beneath: Slot,
}

/// A line that had to leave an L2 cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Evicted {
    /// The line.
    pub line: u64,
    /// Whether memory is behind.
    pub dirty: bool,
    /// Whether the core that asked for its successor has it in its instruction cache.
    pub code: bool,
    /// When L2 has what other cores had of it.
    pub at: Cycle,
}

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

/// All that cores share.
pub struct Chip {
    cmgs: Box<[Cmg]>,
    ring: Ring,
    /// Physical memory.
    pub frames: Frames,
    /// The cores that wait.
    pub turns: Turns,
    /// Lines held by L2 caches of other CMGs than their memory's.
    abroad: u64,
    line_shift: u32,
    /// L2 to a core, or back.
    request: Cycle,
    /// L2 starts to send a line to it being in L1.
    fill: Cycle,
    /// A core hears that it must give up a line to L2 having the answer: without and with the line itself.
    answer: [Cycle; 2],
}

impl Chip {
    /// Empty caches, free memory; for the core that runs.
    #[must_use]
    pub fn new(spec: &Spec) -> Chip {
        let cmgs = spec.topology.cmgs as usize;
        let request = spec.l2_timing.request;
        let to_l2 = u64::from(spec.l1d.line_bytes.div_ceil(spec.l2_timing.writeback_bytes_per_cycle));
        Chip {
            cmgs: (0..cmgs).map(|_| Cmg::new(spec)).collect(),
            ring: Ring::new(spec),
            frames: Frames::new(spec),
            turns: Turns::new(cmgs, spec.topology.cores_per_cmg as usize),
            abroad: 0,
            line_shift: spec.l2.line_bytes.trailing_zeros(),
            request,
            fill: fill_cycles(spec) + spec.load_store.move_in,
            answer: [spec.load_store.move_out_clean + request, spec.load_store.move_out_dirty + to_l2 + request],
        }
    }

    /// What a core has while another one has the chip: nothing that could be asked.
    #[must_use]
    pub fn elsewhere() -> Chip {
        Chip {
            cmgs: Box::default(),
            ring: Ring::default(),
            frames: Frames::default(),
            turns: Turns::default(),
            abroad: 0,
            line_shift: 0,
            request: 0,
            fill: 0,
            answer: [0; 2],
        }
    }

    /// The core that runs will ask for nothing before `now` any more. What cores that wait may still ask for stays.
    #[inline(always)]
    pub fn advance(&mut self, now: Cycle) {
        let now = now.min(self.turns.earliest());
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

    /// Reads a line for a core. Returns the answer and the line that had to leave the core's L2 if that is dirty or the
    /// core itself may hold it; other cores get notice.
    pub fn read(&mut self, seat: Seat, request: Request, signals: &mut Signals) -> (Answer, Option<Evicted>) {
        signals.add(Signal::L2dCache, 1);
        let cmg = &mut self.cmgs[seat.cmg];
        let start = cmg.bank_slot(request.line, request.at, signals);
        let Some(slot) = cmg.find_again(request.line) else { return self.read_beyond(seat, request, start, signals) };
        cmg.touch(slot);
        let hit = cmg.hit(seat.core);
        let state = cmg.line_mut(slot);
        state.join(request.joins);
        let on_its_way = state.ready() > start + hit;
        if request.cause == Cause::Demand {
            let prefetched = state.take(Line::PREFETCHED);
            signals.add(Signal::L2dSwapDm, u64::from(on_its_way && prefetched));
        }
        let ready = (start + hit).max(state.ready());
        let missed = (on_its_way && state.has(Line::FROM_MEMORY)).then_some(start + cmg.miss_detect);
        let mut answer = Answer { ready, taken: start, missed, shared: true, own: false };
        if request.holder != Holder::None {
            self.hold(seat, slot, request, start, &mut answer);
        }
        (answer, None)
    }

    /// The core becomes a holder of a line in L2 that it asked for at `start`. The answer waits until others have given
    /// up what they must.
    #[inline(always)]
    fn hold(&mut self, seat: Seat, slot: Slot, request: Request, start: Cycle, answer: &mut Answer) {
        let me = Holders::one(seat.core, request.holder);
        let cmg = &mut self.cmgs[seat.cmg];
        let holders_before = *cmg.holders_mut(slot);
        let others = holders_before.without(me);
        let state = cmg.line_mut(slot);
        let (abroad, owned) = (state.has(Line::SHARED), state.has(Line::OWNED));
        if request.write && (abroad || others != Holders::NONE) || owned && others.data != 0 {
            answer.ready = answer.ready.max(self.settle(seat, slot, others, request, start));
            answer.own = others.cores() >> seat.core & 1 == 1;
        }
        let alone = request.write || (request.holder == Holder::Data && !abroad && others == Holders::NONE);
        answer.shared = !alone;
        let cmg = &mut self.cmgs[seat.cmg];
        let state = cmg.line_mut(slot);
        if alone {
            // Nobody else gets the line before the core has it. The right to write alone is used in the next cycle.
            if answer.missed.is_none() {
                let sooner = if holders_before.data & me.data == 0 { 0 } else { self.fill - 1 };
                state.take(Line::FROM_MEMORY);
                state.set_ready(answer.ready - sooner);
            }
            *state = state.with(Line::OWNED, true).with(Line::DIRTY, request.write);
        }
        let holders = cmg.holders_mut(slot);
        *holders = if request.write { me } else { holders.and(me) };
    }

    /// Other holders of a line learn that this core wants it. Returns when the answer is with the core: L2 waits until they
    /// have given up what they must.
    #[cold]
    #[inline(never)]
    fn settle(&mut self, seat: Seat, slot: Slot, others: Holders, request: Request, start: Cycle) -> Cycle {
        let Request { line, write, .. } = request;
        let claim = Notice { line, at: start, keeps: !write };
        let mut settled = self.ask_cores(seat.cmg, slot, others, claim, Some(seat.core));
        let state = self.cmgs[seat.cmg].line_mut(slot);
        // Whoever finds it on its way from now on waits for a core.
        state.take(Line::FROM_MEMORY);
        if write && state.take(Line::SHARED) {
            settled = settled.max(self.recall(seat.cmg, line, start));
        }
        let state = self.cmgs[seat.cmg].line_mut(slot);
        let ready = settled + self.request;
        state.set_ready(state.ready().max(ready));
        ready
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
        let at = (claim.at + self.request).max(state.ready() + self.fill);
        self.turns.claim(cmg, asked & !except.map_or(0, |core| 1 << core), Notice { at, ..claim });
        at + self.answer[usize::from(owned)]
    }

    /// Copies of a line in other CMGs are given up; its memory's CMG knows which have one. Returns when all have
    /// answered.
    fn recall(&mut self, cmg: usize, line: u64, start: Cycle) -> Cycle {
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
        let ready = (settled + self.request).max(found).max(start + self.cmgs[cmg].hit(core));
        let state = self.cmgs[cmg].line_mut(slot);
        let dirty = state.take(Line::DIRTY);
        if keeps {
            state.set(Line::SHARED, true);
            state.set_ready(found.max(settled + self.request));
        } else {
            self.cmgs[cmg].remove(line);
            self.abroad -= u64::from(self.home(line) != cmg);
        }
        Some(Taken { dirty, settled, ready })
    }

    /// Reads a line that is not in the core's L2.
    fn read_beyond(
        &mut self,
        seat: Seat,
        request: Request,
        start: Cycle,
        signals: &mut Signals,
    ) -> (Answer, Option<Evicted>) {
        let Request { line, cause, write, holder, .. } = request;
        signals.add(Signal::L2dCacheRefill, 1);
        signals.add(cause.l2_refill(), 1);
        signals.add(Signal::L2dCacheRefillPrf, u64::from(cause == Cause::HardwarePrefetch));
        let cmg = &mut self.cmgs[seat.cmg];
        let missed = start + cmg.miss_detect;
        let buffer = cmg.misses.first_free(missed);
        if buffer.at > missed {
            signals.add(Signal::L2PipeVal, cmg.refuse(seat.core, missed, buffer.at));
        }
        let home = self.home(line);
        let (ready, abroad) = if home == seat.cmg && self.abroad == 0 {
            signals.add(Signal::BusReadTotalMem, 1);
            count_of(READS_FROM_MEMORY, home, signals);
            (self.cmgs[home].read_memory(seat.core, line, cause == Cause::Demand, buffer.at, signals), false)
        } else {
            self.read_around(seat, request, home, buffer.at, signals)
        };
        self.cmgs[seat.cmg].misses.hold(buffer, buffer.at, ready);
        signals.add(Signal::L2MissWait, ready - buffer.at);
        let alone = holder == Holder::Data && (write || !abroad);
        let state = Line::arriving(ready)
            .in_sector(request.joins.sector)
            .with(Line::FROM_MEMORY, true)
            .with(Line::PREFETCHED, cause != Cause::Demand)
            .with(Line::SHARED, abroad)
            .with(Line::OWNED, alone)
            .with(Line::DIRTY, write);
        // Room is made before the line is there (manual 9.4).
        let left = self.insert(seat, line, state, Holders::one(seat.core, holder), missed);
        (Answer { ready, taken: buffer.at, missed: Some(missed), shared: !alone, own: false }, left)
    }

    /// Reads a line over the ring: from the CMG that holds it, or from the memory of another one. Returns when it is
    /// ready to be sent to the core, and whether others keep a copy.
    #[cold]
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
        let mut source: Option<(usize, Taken)> = None;
        let (mut answered, mut behind) = (t, None);
        for other in (0..self.cmgs.len()).filter(|&other| other != seat.cmg) {
            let claim = Notice { line, at: at_home + self.ring.message(home, other), keeps: !write };
            let Some(taken) = self.take_from(other, claim, seat.core) else { continue };
            if write {
                answered = answered.max(taken.settled + self.ring.message(other, seat.cmg) + self.request);
            } else if taken.dirty {
                behind = Some((other, taken.settled + self.request));
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
                let mut counts = std::mem::take(&mut self.cmgs[other].from_outside);
                self.write_memory(other, line, t, &mut counts);
                self.cmgs[other].from_outside = counts;
            }
            return (ready, !write);
        }
        signals.add(Signal::BusReadTotalMem, u64::from(home == seat.cmg));
        count_of(READS_FROM_MEMORY, home, signals);
        let demand = request.cause == Cause::Demand;
        let ready = self.cmgs[home].read_memory(seat.core, line, demand, at_home, signals);
        (self.ring.transfer(home, seat.cmg, ready), false)
    }

    /// Puts a line into a core's L2. Returns the line that had to leave if that is dirty or the core itself may hold it.
    #[inline(always)]
    fn insert(&mut self, seat: Seat, line: u64, state: Line, holders: Holders, now: Cycle) -> Option<Evicted> {
        self.abroad += u64::from(self.home(line) != seat.cmg);
        let (victim, holders) = self.cmgs[seat.cmg].insert(line, state, holders, now)?;
        self.abroad -= u64::from(self.home(victim.line) != seat.cmg);
        let others = holders.cores() & !(1 << seat.core);
        let mut at = now;
        if others != 0 {
            self.turns.notify(seat.cmg, others, Notice { line: victim.line, at: now + self.request, keeps: false });
            at += self.request + self.answer[usize::from(victim.state.has(Line::OWNED))];
        }
        let mine = holders.cores() >> seat.core & 1 == 1;
        let (dirty, code) = (victim.dirty(), holders.code >> seat.core & 1 == 1);
        (mine || dirty).then_some(Evicted { line: victim.line, dirty, code, at })
    }

    /// L2 of `cmg` does not have `line` and will be asked for it soon, and then for the line `step` behind it (a matter of
    /// the host's speed only).
    #[inline(always)]
    pub fn expect(&self, cmg: usize, line: u64, step: i64) {
        self.cmgs[cmg].expect(line, step);
    }

    /// Where L2 of `cmg` is likely to have `line`, which it has been asked for lately (a matter of the host's speed only).
    #[inline(always)]
    #[must_use]
    pub fn remembered(&self, cmg: usize, line: u64) -> Slot {
        self.cmgs[cmg].remembered(line)
    }

    /// A line at `slot` of L2 of `cmg` will be given up or written soon (a matter of the host's speed only).
    #[inline(always)]
    pub fn expect_at(&self, cmg: usize, slot: Slot) {
        self.cmgs[cmg].expect_at(slot);
    }

    /// L2 of `cmg` got `line` lately and will be asked for it soon (a matter of the host's speed only).
    #[inline(always)]
    pub fn expect_again(&self, cmg: usize, line: u64) {
        self.cmgs[cmg].expect_again(line);
    }

    /// A core that has a line for itself has written it for the first time. L2 needs to know before others ask for it.
    #[inline(always)]
    pub fn written(&mut self, seat: Seat, held: Held) {
        if self.turns.several() {
            self.mark(seat, held, |state, _| state.set(Line::DIRTY, true));
        }
    }

    /// A clean line leaves an L1 cache of a core. L2 is told of it (manual 7.2: its move-out takes two flows).
    #[inline(always)]
    pub fn left(&mut self, seat: Seat, held: Held, holder: Holder) {
        if self.turns.several() {
            self.mark(seat, held, |state, holders| release(state, holders, Holders::one(seat.core, holder)));
        }
    }

    /// A dirty line comes back from a core's L1D.
    pub fn write_back(&mut self, seat: Seat, held: Held, joins: Joins, t: Cycle, signals: &mut Signals) {
        self.cmgs[seat.cmg].bank_slot(held.line, t, signals);
        self.mark(seat, held, |state, holders| {
            state.join(joins);
            state.set(Line::DIRTY, true);
            release(state, holders, Holders::one(seat.core, Holder::Data));
        });
    }

    /// Changes what is known of a line. L2 does not have it if it has just given it to another CMG and the core has not
    /// heard of that yet.
    #[inline(always)]
    fn mark(&mut self, seat: Seat, held: Held, change: impl FnOnce(&mut Line, &mut Holders)) {
        let cmg = &mut self.cmgs[seat.cmg];
        if let Some(slot) = cmg.find_at(held.beneath, held.line) {
            let (state, holders) = cmg.parts_mut(slot);
            change(state, holders);
        }
    }

    /// Makes `line` a line of zeros without reading memory. Returns when it can be used.
    pub fn zero(
        &mut self,
        seat: Seat,
        line: u64,
        joins: Joins,
        t: Cycle,
        signals: &mut Signals,
    ) -> (Answer, Option<Evicted>) {
        signals.add(Signal::L2dCache, 1);
        let cmg = &mut self.cmgs[seat.cmg];
        let start = cmg.bank_slot(line, t, signals);
        let ready = start + cmg.hit(seat.core);
        let mut answer = Answer { ready, taken: start, missed: None, shared: false, own: false };
        let Some(slot) = cmg.find(line) else {
            if self.abroad != 0 || self.home(line) != seat.cmg {
                answer.ready = ready.max(self.recall(seat.cmg, line, start) + self.request);
            }
            let state = Line::arriving(answer.ready).in_sector(joins.sector).with(Line::DIRTY, true);
            return (answer, self.insert(seat, line, state, Holders::NONE, start));
        };
        cmg.touch(slot);
        let request = Request { line, at: start, cause: Cause::Demand, holder: Holder::Data, write: true, joins };
        self.hold(seat, slot, request, start, &mut answer);
        let (state, holders) = self.cmgs[seat.cmg].parts_mut(slot);
        state.join(joins);
        answer.ready = answer.ready.max(state.ready());
        state.set_ready(answer.ready);
        release(state, holders, *holders);
        (answer, None)
    }

    /// A line that has left an L2 cache of `cmg` is written to its memory.
    pub fn write_memory(&mut self, cmg: usize, line: u64, t: Cycle, signals: &mut Signals) {
        signals.add(Signal::L2dCacheWb, 1);
        let home = self.home(line);
        signals.add(Signal::BusWriteTotalMem, u64::from(home == cmg));
        count_of(WRITES_TO_CMG, home, signals);
        let at = if home == cmg { t } else { self.ring.transfer(cmg, home, t) };
        self.cmgs[home].write_memory(line, at, signals);
    }

    /// A core of `cmg` has its turn: what others have caused in this CMG meanwhile is added to its counts.
    pub fn count_outside(&mut self, cmg: usize, signals: &mut Signals) {
        self.cmgs[cmg].count_outside(signals);
    }

    /// The cores of `cmg` limit one pair of its L2's sectors; the last one to do so is obeyed.
    pub fn limit_sectors(&mut self, cmg: usize, pair: Sector, ways: Option<[u8; 2]>) {
        self.cmgs[cmg].limit_sectors(pair, ways);
    }

    /// The sector of a line that L2 of `cmg` has or waits for.
    #[must_use]
    pub fn sector_of(&self, cmg: usize, line: u64) -> Option<Sector> {
        self.cmgs[cmg].sector_of(line)
    }

    /// Whether L2 of `cmg` has the line or waits for it.
    #[must_use]
    pub fn holds(&self, cmg: usize, line: u64) -> bool {
        self.cmgs[cmg].find(line).is_some()
    }
}

/// Counts a line by the CMG it comes from or goes to; machines may have more CMGs than there are counts.
#[inline(always)]
fn count_of(counts: [Signal; 4], cmg: usize, signals: &mut Signals) {
    if let Some(&count) = counts.get(cmg) {
        signals.add(count, 1);
    }
}

/// The caches `gone` have given up a line.
fn release(state: &mut Line, holders: &mut Holders, gone: Holders) {
    // Of a core that has not heard yet that another one owns the line, nothing follows for the owner.
    if holders.data & gone.data != 0 {
        state.take(Line::OWNED);
    }
    *holders = holders.without(gone);
}
