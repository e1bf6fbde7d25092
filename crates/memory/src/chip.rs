//! What the cores of a chip share: the L2 caches and memories of all CMGs, the ring between them, and who holds which
//! line.
//!
//! The core that runs has the chip; the others wait ([`crate::turns`]), but for cores of other CMGs that are simulated beside
//! it ([`crate::apart`]). States follow the MESI protocol (manual 9.3), at two
//! levels: an L1D line that is not marked shared is exclusive, and so is an L2 line. L2 has all lines of the L1 caches
//! above it and knows who holds them, whether one of them may write ([`Line::OWNED`]), and whether memory is behind
//! ([`Line::DIRTY`], from the first write in L1 on). What is known here is up to date at any time; what a core has to
//! do about it in its private part waits in its notices.

mod claims;

use std::sync::Arc;

use fxscope_calendar::Cycle;
use fxscope_counts::{READS_FROM_MEMORY, Signal, Signals, WRITES_TO_CMG};
use fxscope_machine::Spec;

use crate::apart::{Beside, Cmgs};
use crate::cmg::{Cmg, Gone, Holders, fill_cycles};
use crate::frames::{Frames, Nodes, PageRange};
use crate::hierarchy::Cause;
use crate::ring::Ring;
use crate::sectors::{Joins, Sector};
use crate::tags::{Line, Slot};
use crate::turns::Notice;

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
    /// Where L2 has it (a matter of the host's speed only).
    pub slot: Slot,
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

/// All that cores share.
pub struct Chip {
    pub(crate) cmgs: Cmgs,
    pub(crate) ring: Ring,
    /// Physical memory. Cores that are simulated side by side read it; only the whole chip changes it.
    pub(crate) frames: Arc<Frames>,
    /// Set while cores of other CMGs are simulated beside those that have this.
    pub(crate) beside: Option<Box<Beside>>,
    /// More than one core has had a turn.
    pub(crate) several: bool,
    /// Claims on lines of other cores so far.
    pub(crate) claims: u64,
    pub(crate) shape: Shape,
}

/// What does not change.
#[derive(Clone, Copy, Default)]
pub(crate) struct Shape {
    nodes: Nodes,
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
        let request = spec.l2_timing.request;
        let to_l2 = u64::from(spec.l1d.line_bytes.div_ceil(spec.l2_timing.writeback_bytes_per_cycle));
        let frames = Frames::new(spec);
        Chip {
            cmgs: (0..spec.topology.cmgs).map(|cmg| Cmg::new(spec, cmg)).collect(),
            ring: Ring::new(spec),
            beside: None,
            several: false,
            claims: 0,
            shape: Shape {
                nodes: frames.nodes(),
                line_shift: spec.l2.line_bytes.trailing_zeros(),
                request,
                fill: fill_cycles(spec) + spec.load_store.move_in,
                answer: [spec.load_store.move_out_clean + request, spec.load_store.move_out_dirty + to_l2 + request],
            },
            frames: Arc::new(frames),
        }
    }

    /// What a core has while another one has the chip: nothing that could be asked.
    #[must_use]
    pub fn elsewhere() -> Chip {
        Chip {
            cmgs: Cmgs::default(),
            ring: Ring::default(),
            frames: Arc::default(),
            beside: None,
            several: false,
            claims: 0,
            shape: Shape::default(),
        }
    }

    /// The core that runs will ask for nothing before `now` any more. What cores that wait may still ask for stays.
    #[inline(always)]
    pub fn advance(&mut self, now: Cycle) {
        let others = self.beside.as_ref().map_or(Cycle::MAX, |beside| beside.others_from);
        let now = self.cmgs.iter().fold(now.min(others), |now, cmg| now.min(cmg.turns.earliest()));
        self.cmgs.iter_mut().for_each(|cmg| cmg.advance(now));
        self.ring.advance(now);
    }

    /// The CMG whose memory holds `line`.
    #[inline(always)]
    pub(crate) fn home(&self, line: u64) -> usize {
        self.shape.nodes.of(line << self.shape.line_shift)
    }

    // ---- cores that wait ----------------------------------------------------------------------

    /// The core at `seat` will ask for nothing before `from`; [`Cycle::MAX`] when it runs or has nothing to do.
    pub fn waits(&mut self, seat: Seat, from: Cycle) {
        self.several |= from != Cycle::MAX;
        self.cmgs[seat.cmg].turns.set(seat.core, from);
    }

    /// Claims on lines of other cores so far: the core that runs takes lines from others while this grows.
    #[inline(always)]
    #[must_use]
    pub fn claims(&self) -> u64 {
        self.claims
    }

    /// A core asks for a line itself: claims of it that it has not heard of yet need not be told. Returns whether there
    /// was one.
    #[inline(always)]
    pub fn withdraw(&mut self, seat: Seat, line: u64) -> bool {
        self.cmgs[seat.cmg].turns.withdraw(seat.core, line)
    }

    /// The first notice of a core that it gets to know by `now`.
    pub fn next_notice(&mut self, seat: Seat, now: Cycle) -> Option<Notice> {
        self.cmgs.get_mut(seat.cmg)?.turns.next(seat.core, now)
    }

    // ---- memory -------------------------------------------------------------------------------

    /// Physical memory.
    #[must_use]
    pub fn frames(&self) -> &Frames {
        &self.frames
    }

    /// Physical memory, to change it.
    pub(crate) fn frames_mut(&mut self) -> &mut Frames {
        Arc::get_mut(&mut self.frames).expect("the whole chip has physical memory for itself")
    }

    /// The physical address of the page at `page`, which lies in `range` and a core of CMG `local` translates.
    pub fn frame(&mut self, page: u64, range: PageRange, local: usize) -> u64 {
        match self.frames.known(page, range) {
            Some(physical) => physical,
            None => self.together(|chip| chip.frames_mut().frame(page, range, local)),
        }
    }

    /// The physical address of the translation table `name` of so many bytes, which a core of CMG `local` needs.
    pub fn table(&mut self, name: u64, bytes: u64, local: usize) -> u64 {
        match self.frames.known_table(name) {
            Some(physical) => physical,
            None => self.together(|chip| chip.frames_mut().table(name, bytes, local)),
        }
    }

    // ---- lines --------------------------------------------------------------------------------

    /// Whether the answer to a request for `line` hangs on other CMGs than that of the core.
    #[inline(always)]
    fn asks_others(&self, seat: Seat, line: u64, write: bool) -> bool {
        let cmg = &self.cmgs[seat.cmg];
        match cmg.find(line) {
            Some(slot) => write && cmg.line(slot).has(Line::SHARED),
            None => self.home(line) != seat.cmg || cmg.abroad.may_have(line),
        }
    }

    /// Reads a line for a core. Returns the answer and the line that had to leave the core's L2 if that is dirty or the
    /// core itself may hold it; other cores get notice.
    #[inline(always)]
    pub fn read(&mut self, seat: Seat, request: Request, signals: &mut Signals) -> (Answer, Option<Evicted>) {
        if self.beside.is_some() && self.asks_others(seat, request.line, request.write) {
            return self.together(|chip| chip.read_line(seat, &request, signals));
        }
        self.read_line(seat, &request, signals)
    }

    fn read_line(&mut self, seat: Seat, request: &Request, signals: &mut Signals) -> (Answer, Option<Evicted>) {
        signals.add(Signal::L2dCache, 1);
        let mut cmg = &mut self.cmgs[seat.cmg];
        let start = cmg.bank_slot(request.line, request.at, signals);
        let set = cmg.set_of(request.line);
        let Some(slot) = cmg.find_again(set, request.line) else {
            return self.read_beyond(seat, request, set, start, signals);
        };
        cmg.touch(slot);
        let (hit, detected) = (start + cmg.hit(seat.core), start + cmg.miss_detect);
        let state = cmg.line_mut(slot);
        state.join(request.joins);
        let on_its_way = state.ready() > hit;
        if request.cause == Cause::Demand {
            let prefetched = state.take(Line::PREFETCHED);
            signals.add(Signal::L2dSwapDm, u64::from(on_its_way && prefetched));
        }
        let missed = (on_its_way && state.has(Line::FROM_MEMORY)).then_some(detected);
        let ready = hit.max(state.ready());
        let mut answer = Answer { ready, taken: start, missed, shared: true, own: false, slot };
        if request.holder != Holder::None {
            let me = Holders::one(seat.core, request.holder);
            if cmg.others_answer(slot, me, request.write) {
                self.settle(seat, slot, me, request, start, &mut answer);
                cmg = &mut self.cmgs[seat.cmg];
            }
            cmg.hold(slot, me, request, self.shape.fill, &mut answer);
        }
        (answer, None)
    }

    /// Reads a line that is not in the core's L2, where its `set` is.
    fn read_beyond(
        &mut self,
        seat: Seat,
        request: &Request,
        set: usize,
        start: Cycle,
        signals: &mut Signals,
    ) -> (Answer, Option<Evicted>) {
        let Request { line, cause, write, holder, .. } = *request;
        signals.add(Signal::L2dCacheRefill, 1);
        signals.add(cause.l2_refill(), 1);
        signals.add(Signal::L2dCacheRefillPrf, u64::from(cause == Cause::HardwarePrefetch));
        let home = self.home(line);
        let mut cmg = &mut self.cmgs[seat.cmg];
        let missed = start + cmg.miss_detect;
        let buffer = cmg.misses.first_free(missed);
        if buffer.at > missed {
            signals.add(Signal::L2PipeVal, cmg.refuse(seat.core, missed, buffer.at));
        }
        let (ready, abroad) = if home == seat.cmg && !cmg.abroad.may_have(line) {
            signals.add(Signal::BusReadTotalMem, 1);
            count_of(READS_FROM_MEMORY, home, signals);
            (cmg.read_memory(seat.core, line, cause == Cause::Demand, buffer.at, signals), false)
        } else {
            let answer = self.read_around(seat, request, home, buffer.at, signals);
            cmg = &mut self.cmgs[seat.cmg];
            answer
        };
        cmg.misses.hold(buffer, buffer.at, ready);
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
        let (slot, gone) = cmg.insert(set, line, state, Holders::one(seat.core, holder), missed);
        self.goes_out(seat.cmg, line, home);
        let answer = Answer { ready, taken: buffer.at, missed: Some(missed), shared: !alone, own: false, slot };
        (answer, gone.and_then(|gone| self.leaves(seat, gone, missed)))
    }

    /// A line has left a core's L2 at `now`. Returns it if it is dirty or the core itself may hold it.
    #[inline(always)]
    fn leaves(&mut self, seat: Seat, (victim, holders): Gone, now: Cycle) -> Option<Evicted> {
        self.comes_home(seat.cmg, victim.line);
        let others = holders.cores() & !(1 << seat.core);
        let mut at = now;
        if others != 0 {
            let notice = Notice { line: victim.line, at: now + self.shape.request, keeps: false };
            self.cmgs[seat.cmg].turns.notify(others, notice);
            at += self.shape.request + self.shape.answer[usize::from(victim.state.has(Line::OWNED))];
        }
        let mine = holders.cores() >> seat.core & 1 == 1;
        let (dirty, code) = (victim.dirty(), holders.code >> seat.core & 1 == 1);
        (mine || dirty).then_some(Evicted { line: victim.line, dirty, code, at })
    }

    /// L2 of `cmg` has `line` from now on, whose memory is that of CMG `home`.
    #[inline(always)]
    fn goes_out(&mut self, cmg: usize, line: u64, home: usize) {
        if home != cmg {
            self.cmgs[home].abroad.add(line);
        }
    }

    /// L2 of `cmg` does not have `line` any more.
    #[inline(always)]
    fn comes_home(&mut self, cmg: usize, line: u64) {
        let home = self.home(line);
        if home != cmg {
            match &mut self.beside {
                None => self.cmgs[home].abroad.remove(line),
                Some(beside) => beside.owed.returned.push(line),
            }
        }
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
        if self.several {
            self.mark(seat, held, |state, _| state.set(Line::DIRTY, true));
        }
    }

    /// A clean line leaves an L1 cache of a core. L2 is told of it (manual 7.2: its move-out takes two flows).
    #[inline(always)]
    pub fn left(&mut self, seat: Seat, held: Held, holder: Holder) {
        if self.several {
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
        if self.beside.is_some() && self.asks_others(seat, line, true) {
            return self.together(|chip| chip.zero_line(seat, line, joins, t, signals));
        }
        self.zero_line(seat, line, joins, t, signals)
    }

    fn zero_line(
        &mut self,
        seat: Seat,
        line: u64,
        joins: Joins,
        t: Cycle,
        signals: &mut Signals,
    ) -> (Answer, Option<Evicted>) {
        signals.add(Signal::L2dCache, 1);
        let mut cmg = &mut self.cmgs[seat.cmg];
        let start = cmg.bank_slot(line, t, signals);
        let Some(slot) = cmg.find(line) else { return self.zero_beyond(seat, line, joins, start) };
        let ready = start + cmg.hit(seat.core);
        let mut answer = Answer { ready, taken: start, missed: None, shared: false, own: false, slot };
        cmg.touch(slot);
        let request = Request { line, at: start, cause: Cause::Demand, holder: Holder::Data, write: true, joins };
        let me = Holders::one(seat.core, Holder::Data);
        if cmg.others_answer(slot, me, true) {
            self.settle(seat, slot, me, &request, start, &mut answer);
            cmg = &mut self.cmgs[seat.cmg];
        }
        cmg.hold(slot, me, &request, self.shape.fill, &mut answer);
        let (state, holders) = cmg.parts_mut(slot);
        state.join(joins);
        answer.ready = answer.ready.max(state.ready());
        state.set_ready(answer.ready);
        release(state, holders, *holders);
        (answer, None)
    }

    /// The same for a line that is not in the core's L2.
    fn zero_beyond(&mut self, seat: Seat, line: u64, joins: Joins, start: Cycle) -> (Answer, Option<Evicted>) {
        let cmg = &self.cmgs[seat.cmg];
        let (set, mut ready) = (cmg.set_of(line), start + cmg.hit(seat.core));
        let home = self.home(line);
        if home != seat.cmg || self.cmgs[home].abroad.may_have(line) {
            ready = ready.max(self.recall(seat.cmg, line, start) + self.shape.request);
        }
        let state = Line::arriving(ready).in_sector(joins.sector).with(Line::DIRTY, true);
        let (slot, gone) = self.cmgs[seat.cmg].insert(set, line, state, Holders::NONE, start);
        self.goes_out(seat.cmg, line, home);
        let answer = Answer { ready, taken: start, missed: None, shared: false, own: false, slot };
        (answer, gone.and_then(|gone| self.leaves(seat, gone, start)))
    }

    /// A line that has left an L2 cache of `cmg` is written to its memory.
    pub fn write_memory(&mut self, cmg: usize, line: u64, t: Cycle, signals: &mut Signals) {
        let home = self.home(line);
        if home != cmg
            && let Some(beside) = &mut self.beside
        {
            beside.owed.writes.push((cmg, line, t));
            return;
        }
        signals.add(Signal::L2dCacheWb, 1);
        signals.add(Signal::BusWriteTotalMem, u64::from(home == cmg));
        count_of(WRITES_TO_CMG, home, signals);
        let at = if home == cmg { t } else { self.ring.transfer(cmg, home, t) };
        self.cmgs[home].write_memory(line, at, signals);
    }

    /// The same when no core of `cmg` is there to count it: the next one that has its turn does.
    pub(crate) fn write_from_outside(&mut self, cmg: usize, line: u64, t: Cycle) {
        let mut counts = std::mem::take(&mut self.cmgs[cmg].from_outside);
        self.write_memory(cmg, line, t, &mut counts);
        (self.cmgs[cmg].from_outside, self.cmgs[cmg].caused_outside) = (counts, true);
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
