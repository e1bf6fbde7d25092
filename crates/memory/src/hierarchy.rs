//! One core's way through the memory hierarchy.

use fxscope_base::{Cycle, LineBus, Pool, Signal, Signals};
use fxscope_machine::Spec;

use crate::pipes::LoadStorePipes;
use crate::pointer::{Pointer, Steering};
use crate::prefetch::{Prefetcher, Requests};
use crate::shared::{Shared, fill_cycles};
use crate::tags::{Line, Tags, Victim};
use crate::tlb::{PageRange, Tlb, Translation};

/// How far an access had to go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Level {
    /// L1 cache.
    #[default]
    L1,
    /// L2 cache.
    L2,
    /// Memory.
    Memory,
}

/// Who asks for a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// A load or store.
    Demand,
    /// A prefetch instruction.
    SoftwarePrefetch,
    /// The hardware prefetcher.
    HardwarePrefetch,
}

impl Cause {
    /// The counter of L2 refills by this cause.
    #[must_use]
    pub fn l2_refill(self) -> Signal {
        match self {
            Cause::Demand => Signal::L2dCacheRefillDm,
            Cause::SoftwarePrefetch => Signal::L2dCacheRefillPrf,
            Cause::HardwarePrefetch => Signal::L2dCacheRefillHwprf,
        }
    }
    fn l1_refill(self) -> Signal {
        match self {
            Cause::Demand => Signal::L1dCacheRefillDm,
            Cause::SoftwarePrefetch => Signal::L1dCacheRefillPrf,
            Cause::HardwarePrefetch => Signal::L1dCacheRefillHwprf,
        }
    }
}

/// When an access was known to miss; [`NEVER`] for a cache that it did not miss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Misses {
    /// The L1D cache.
    pub l1: Cycle,
    /// The L2 cache.
    pub l2: Cycle,
}

/// Not at any time.
pub const NEVER: Cycle = Cycle::MAX;

impl Misses {
    /// Of an access that hit.
    pub const NONE: Misses = Misses { l1: NEVER, l2: NEVER };

    /// Of two accesses that are waited for together.
    #[inline(always)]
    #[must_use]
    pub fn or(self, other: Misses) -> Misses {
        Misses { l1: self.l1.min(other.l1), l2: self.l2.min(other.l2) }
    }
    /// How far the access had to go.
    #[inline(always)]
    #[must_use]
    pub fn level(self) -> Level {
        match self {
            Misses { l1: NEVER, .. } => Level::L1,
            Misses { l2: NEVER, .. } => Level::L2,
            _ => Level::Memory,
        }
    }
}

/// How an access went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Response {
    /// The load/store pipe cycle of the flow that found its data.
    pub at: Cycle,
    /// When it was known to miss.
    pub misses: Misses,
}

impl Response {
    /// The flow at `at` found its data.
    #[inline(always)]
    #[must_use]
    pub fn hit(at: Cycle) -> Response {
        Response { at, misses: Misses::NONE }
    }
    /// Of two accesses, when both have their data.
    #[inline(always)]
    #[must_use]
    pub fn and(self, other: Response) -> Response {
        Response { at: self.at.max(other.at), misses: self.misses.or(other.misses) }
    }
}

/// A range without pages.
const NO_PAGES: PageRange = PageRange { start: 0, end: 0, shift: UNMAPPED_SHIFT };
/// Page size taken for addresses outside all ranges: 64 KiB.
const UNMAPPED_SHIFT: u32 = 16;

/// The private part of a core: L1 caches, translation, prefetcher.
pub struct Hierarchy {
    /// The load/store pipes.
    pub pipes: LoadStorePipes,
    l1d: Tags,
    l1i: Tags,
    l1d_set_mask: usize,
    l1i_set_mask: usize,
    line_shift: u32,
    data_tlb: Tlb,
    code_tlb: Tlb,
    pages: Vec<PageRange>,
    /// The range of `pages` that was needed last.
    page: PageRange,
    misses: Pool,
    code_misses: Pool,
    /// Between L1D and L2: lines in both directions share it.
    bus: LineBus,
    /// Slots of the bus a line takes on its way back to L2.
    write_back_slots: u64,
    /// Requests of this core to L2.
    requests: LineBus,
    prefetcher: Prefetcher,
    shared: Shared,
    request: Cycle,
    /// A flow's cycle to its miss in the L1D cache.
    miss_known: Cycle,
    fill_cycles: Cycle,
    move_in: Cycle,
    move_out_dirty: Cycle,
    move_out_clean: Cycle,
    /// Line of the last instruction fetch.
    fetched: u64,
}

impl Hierarchy {
    /// Cold caches of core number `position` of its CMG.
    #[must_use]
    pub fn new(spec: &Spec, position: u32) -> Hierarchy {
        let sets = |c: &fxscope_machine::spec::Cache| (c.bytes / u64::from(c.ways) / u64::from(c.line_bytes)) as usize;
        let usable = |c: &fxscope_machine::spec::Cache| (c.ways - c.reserved_ways) as usize;
        let line = u64::from(spec.l1d.line_bytes);
        Hierarchy {
            pipes: LoadStorePipes::default(),
            l1d: Tags::new(sets(&spec.l1d), usable(&spec.l1d)),
            l1i: Tags::new(sets(&spec.l1i), usable(&spec.l1i)),
            l1d_set_mask: sets(&spec.l1d) - 1,
            l1i_set_mask: sets(&spec.l1i) - 1,
            line_shift: spec.l1d.line_bytes.trailing_zeros(),
            data_tlb: Tlb::new(&spec.tlb),
            code_tlb: Tlb::new(&spec.tlb),
            pages: Vec::new(),
            page: NO_PAGES,
            misses: Pool::new(spec.l1d.miss_buffers as usize),
            code_misses: Pool::new(spec.l1i.miss_buffers as usize),
            bus: LineBus::new(line * 256 / u64::from(spec.l2_timing.fill_bytes_per_cycle)),
            write_back_slots: u64::from(
                spec.l2_timing.fill_bytes_per_cycle.div_ceil(spec.l2_timing.writeback_bytes_per_cycle),
            ),
            requests: LineBus::new((spec.l2_timing.request_period * 256.0) as u64),
            prefetcher: Prefetcher::new(&spec.prefetch),
            shared: Shared::new(spec, position),
            request: spec.l2_timing.request,
            // A miss is known when the data would have been there.
            miss_known: spec.load_store.load_integer,
            fill_cycles: fill_cycles(spec),
            move_in: spec.load_store.move_in,
            move_out_dirty: spec.load_store.move_out_dirty,
            move_out_clean: spec.load_store.move_out_clean,
            fetched: u64::MAX,
        }
    }

    /// The address space has these pages now, lowest address first. Cached translations stay.
    pub fn set_pages(&mut self, pages: Vec<PageRange>) {
        self.pages = pages;
        self.page = NO_PAGES;
    }

    /// Nothing before `now` will be asked for any more.
    #[inline(always)]
    pub fn advance(&mut self, now: Cycle) {
        self.pipes.advance(now);
        self.bus.advance(now);
        self.requests.advance(now);
        self.shared.advance(now);
    }

    /// Line number of an address.
    #[inline(always)]
    #[must_use]
    pub fn line_of(&self, addr: u64) -> u64 {
        addr >> self.line_shift
    }

    #[inline(always)]
    fn page_shift(&mut self, addr: u64) -> u32 {
        if self.page.start <= addr && addr < self.page.end { self.page.shift } else { self.search_pages(addr) }
    }

    #[inline(never)]
    fn search_pages(&mut self, addr: u64) -> u32 {
        let i = self.pages.partition_point(|p| p.end <= addr);
        match self.pages.get(i) {
            Some(page) if page.start <= addr => {
                self.page = *page;
                page.shift
            }
            _ => UNMAPPED_SHIFT,
        }
    }

    // ---- data ---------------------------------------------------------------------------------

    /// Translates a data address for an access at `t`; returns when it can go on.
    #[inline(always)]
    pub fn translate(&mut self, addr: u64, t: Cycle, signals: &mut Signals) -> Cycle {
        match self.data_tlb.ready(addr) {
            Some(ready) => t.max(ready),
            None => self.translate_slow(addr, t, signals),
        }
    }

    #[inline(never)]
    fn translate_slow(&mut self, addr: u64, t: Cycle, signals: &mut Signals) -> Cycle {
        let shift = self.page_shift(addr);
        let (ready, how) = self.data_tlb.refill(addr, shift, t);
        signals.add(Signal::L1dTlbRefill, 1);
        signals.add(Signal::L2dTlb, 1);
        if how == Translation::Walk {
            signals.add(Signal::L2dTlbRefill, 1);
        }
        ready
    }

    /// A demand access to the line of a pointer, whose flow ran at `t`. `write` asks for an exclusive copy.
    /// Returns when the line's data can be used, and how far the access had to go.
    #[inline(always)]
    pub fn access(&mut self, pointer: Pointer, t: Cycle, write: bool, signals: &mut Signals) -> Response {
        let Pointer { addr, steering } = pointer;
        let line = self.line_of(addr);
        signals.add(Signal::L1dCache, 1);
        let (response, first_use) = self.lookup(line, steering, t, write, signals);
        // The prefetcher sees misses and the first use of lines it brought, not every hit.
        if first_use && let Some(requests) = self.prefetcher.access(line, steering) {
            self.prefetch(requests, addr, t, signals);
        }
        response
    }

    #[inline(always)]
    fn lookup(
        &mut self,
        line: u64,
        steering: Steering,
        t: Cycle,
        write: bool,
        signals: &mut Signals,
    ) -> (Response, bool) {
        let set = line as usize & self.l1d_set_mask;
        if let Some(slot) = self.l1d.find_again(set, line) {
            self.l1d.touch(slot);
            let state = self.l1d.line_mut(slot);
            state.set(Line::DIRTY, write);
            let first_use = state.take(Line::PREFETCHED);
            if state.ready() <= t {
                return (Response::hit(t), first_use);
            }
            let line = *state;
            return (self.on_its_way(line, t), first_use);
        }
        self.prefetcher.missed(line, steering);
        let state = self.refill(line, t, write, Cause::Demand, signals);
        (self.on_its_way(state, t), true)
    }

    /// An access at `t` to a line that is not there yet.
    #[inline(always)]
    fn on_its_way(&self, line: Line, t: Cycle) -> Response {
        let l1 = t + self.miss_known;
        Response { at: line.ready(), misses: Misses { l1, l2: line.missed().map_or(NEVER, |l2| l2.max(l1)) } }
    }

    /// Brings a line into L1D. Returns its state there.
    #[inline(never)]
    fn refill(&mut self, line: u64, t: Cycle, write: bool, cause: Cause, signals: &mut Signals) -> Line {
        signals.add(Signal::L1dCacheRefill, 1);
        signals.add(cause.l1_refill(), 1);
        if cause == Cause::HardwarePrefetch {
            signals.add(Signal::L1dCacheRefillPrf, 1);
        }
        let buffer = self.misses.first_free(t);
        let asked = self.requests.book(buffer.at);
        let (answer, left) = self.shared.read(line, asked + self.request, cause, signals);
        self.give_up(left, answer.ready, signals);
        let sent = self.bus.book(answer.ready);
        let ready = sent + self.fill_cycles;
        self.misses.hold(buffer, buffer.at, ready);
        signals.add(Signal::L1MissWait, ready - buffer.at);
        self.pipes.both(ready, self.move_in);
        let arriving = match answer.missed {
            Some(missed) => Line::arriving_from_memory(ready, missed),
            None => Line::arriving(ready),
        };
        let state = arriving.with(Line::DIRTY, write).with(Line::PREFETCHED, cause == Cause::HardwarePrefetch);
        let (_, victim) = self.l1d.insert(line as usize & self.l1d_set_mask, line, state, t);
        if let Some(victim) = victim {
            self.evict(victim, buffer.at, signals);
        }
        state
    }

    /// A line leaves L1D at `t`.
    fn evict(&mut self, victim: Victim, t: Cycle, signals: &mut Signals) {
        if !victim.dirty {
            self.pipes.both(t, self.move_out_clean);
            return;
        }
        signals.add(Signal::L1dCacheWb, 1);
        let out = self.pipes.both(t, self.move_out_dirty);
        let sent = self.send_back(out);
        let left = self.shared.write_back(victim.line, sent + self.request, signals);
        self.give_up(left, sent, signals);
    }

    /// A line goes to L2 from `t` on; returns when its transfer starts.
    fn send_back(&mut self, t: Cycle) -> Cycle {
        let start = self.bus.book(t);
        for _ in 1..self.write_back_slots {
            self.bus.book(start);
        }
        start
    }

    /// A line has left L2: L1 must give it up too.
    fn give_up(&mut self, victim: Option<Victim>, t: Cycle, signals: &mut Signals) {
        let Some(Victim { line, dirty }) = victim else { return };
        self.l1i.remove(line as usize & self.l1i_set_mask, line);
        let mut written = t;
        let copy = self.l1d.remove(line as usize & self.l1d_set_mask, line);
        let newer = copy.is_some_and(|state| state.has(Line::DIRTY));
        if newer {
            signals.add(Signal::L1dCacheWb, 1);
            let out = self.pipes.both(t, self.move_out_dirty);
            written = self.send_back(out) + self.request;
        }
        if dirty || newer {
            self.shared.write_memory(written, signals);
        }
    }

    #[inline(never)]
    fn prefetch(&mut self, r: Requests, addr: u64, t: Cycle, signals: &mut Signals) {
        let shift = self.page_shift(addr);
        for i in 0..r.l2.1 {
            let line = r.l2.0.wrapping_add_signed(r.step * i64::from(i));
            if !self.data_tlb.holds(line << self.line_shift, shift) {
                return self.prefetcher.stop(r.entry);
            }
            signals.add(Signal::L2HwpfStreamPf, 1);
            let hit = self.prefetch_l2(line, t, Cause::HardwarePrefetch, signals);
            self.shared.expect(line.wrapping_add_signed(r.step));
            self.prefetcher.l2_answered(r.entry, hit);
        }
        for i in 0..r.l1.1 {
            let line = r.l1.0.wrapping_add_signed(r.step * i64::from(i));
            if !self.data_tlb.holds(line << self.line_shift, shift) {
                return self.prefetcher.stop(r.entry);
            }
            signals.add(Signal::L1HwpfStreamPf, 1);
            if self.prefetch_l1(line, t, Cause::HardwarePrefetch, signals) {
                self.prefetcher.l1_missed_l2(r.entry);
            }
        }
    }

    /// Brings a line into L2; returns whether it was there.
    fn prefetch_l2(&mut self, line: u64, t: Cycle, cause: Cause, signals: &mut Signals) -> bool {
        let asked = self.requests.book(t);
        let (answer, left) = self.shared.read(line, asked + self.request, cause, signals);
        self.give_up(left, answer.ready, signals);
        answer.missed.is_none()
    }

    /// A prefetched line's copy is exclusive but unwritten: the store that comes makes it dirty.
    /// Returns whether the line comes from memory.
    fn prefetch_l1(&mut self, line: u64, t: Cycle, cause: Cause, signals: &mut Signals) -> bool {
        if self.l1d.find(line as usize & self.l1d_set_mask, line).is_some() {
            return false;
        }
        self.refill(line, t, false, cause, signals).has(Line::FROM_MEMORY)
    }

    /// A prefetch instruction for `addr` into cache level `level` (1 or 2), whose flow ran at `t`.
    /// It is dropped when the page is not in the TLB.
    pub fn prefetch_instruction(&mut self, pointer: Pointer, level: u8, t: Cycle, signals: &mut Signals) {
        let addr = pointer.addr;
        let shift = self.page_shift(addr);
        if !self.data_tlb.holds(addr, shift) {
            return;
        }
        let line = self.line_of(addr);
        match level {
            1 => self.prefetch_l1(line, t, Cause::SoftwarePrefetch, signals),
            _ => self.prefetch_l2(line, t, Cause::SoftwarePrefetch, signals),
        };
    }

    /// `DC ZVA` on the line of `addr`, executed at `t`: a line of zeros appears in L2, without a read of
    /// memory; a copy in L1D goes back first.
    pub fn zero_line(&mut self, pointer: Pointer, t: Cycle, signals: &mut Signals) -> Cycle {
        let line = self.line_of(pointer.addr);
        let mut start = t + self.request;
        if let Some(state) = self.l1d.remove(line as usize & self.l1d_set_mask, line) {
            let cycles = if state.has(Line::DIRTY) { self.move_out_dirty } else { self.move_out_clean };
            let out = self.pipes.both(t.max(state.ready()), cycles);
            start = out + self.request;
            if state.has(Line::DIRTY) {
                signals.add(Signal::L1dCacheWb, 1);
                let sent = self.send_back(out);
                start = sent + self.write_back_slots * self.bus.period() + self.request;
                let left = self.shared.write_back(line, start, signals);
                self.give_up(left, start, signals);
            }
        }
        let (ready, left) = self.shared.zero(line, start, signals);
        self.give_up(left, ready, signals);
        ready
    }

    // ---- instructions -------------------------------------------------------------------------

    /// Fetch of the block at `addr`, wanted at `t`: when its bytes can be read.
    #[inline(always)]
    pub fn fetch(&mut self, addr: u64, t: Cycle, signals: &mut Signals) -> Cycle {
        let line = self.line_of(addr);
        signals.add(Signal::L1iCache, 1);
        if line == self.fetched {
            return t;
        }
        self.fetched = line;
        self.fetch_line(addr, t, signals)
    }

    /// Translates the address of an instruction for a fetch at `t`; returns when it can go on.
    fn translate_code(&mut self, addr: u64, t: Cycle, signals: &mut Signals) -> Cycle {
        if let Some(ready) = self.code_tlb.ready(addr) {
            return t.max(ready);
        }
        let shift = self.page_shift(addr);
        let (ready, how) = self.code_tlb.refill(addr, shift, t);
        signals.add(Signal::L1iTlbRefill, 1);
        signals.add(Signal::L2iTlb, 1);
        if how == Translation::Walk {
            signals.add(Signal::L2iTlbRefill, 1);
        }
        ready
    }

    #[inline(never)]
    fn fetch_line(&mut self, addr: u64, mut t: Cycle, signals: &mut Signals) -> Cycle {
        t = self.translate_code(addr, t, signals);
        let line = self.line_of(addr);
        let set = line as usize & self.l1i_set_mask;
        if let Some(slot) = self.l1i.find(set, line) {
            self.l1i.touch(slot);
            return t.max(self.l1i.line(slot).ready());
        }
        signals.add(Signal::L1iCacheRefill, 1);
        let buffer = self.code_misses.first_free(t);
        let (answer, left) = self.shared.read(line, buffer.at + self.request, Cause::Demand, signals);
        self.give_up(left, answer.ready, signals);
        let ready = self.bus.book(answer.ready) + self.fill_cycles;
        self.code_misses.hold(buffer, buffer.at, ready);
        self.l1i.insert(set, line, Line::arriving(ready), t);
        ready
    }
}
