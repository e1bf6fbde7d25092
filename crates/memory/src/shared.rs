//! What the cores of a memory group share: the L2 cache and local memory.

use fxscope_base::{Calendar, Cycle, LineBus, Pool, Signal, Signals};
use fxscope_machine::Spec;

use crate::hierarchy::Cause;
use crate::tags::{Line, Tags, Victim};

/// An answer of the L2 cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// When the line is ready to be sent to the core.
    pub ready: Cycle,
    /// When it was known to be in no cache, if it comes from memory.
    pub missed: Option<Cycle>,
}

/// L2 cache, its banks and buffers, and the memory channel of one CMG.
pub struct Shared {
    tags: Tags,
    banks: Box<[Calendar]>,
    misses: Pool,
    channel: LineBus,
    /// Channel time that writes have used beyond whole slots, in 1/256 slot.
    write_debt: u64,
    write_slots_256: u64,
    sets_mask: usize,
    line_shift: u32,
    /// L2 pipeline start to line ready to send, hit.
    hit: Cycle,
    /// L2 pipeline start to the memory request.
    miss_detect: Cycle,
    /// Memory request granted to line ready to send.
    memory: Cycle,
}

impl Shared {
    /// An empty L2 cache, seen from core number `position` of its CMG.
    #[must_use]
    pub fn new(spec: &Spec, position: u32) -> Shared {
        let l2 = &spec.l2;
        let sets = (l2.bytes / u64::from(l2.ways) / u64::from(l2.line_bytes)) as usize;
        let usable = (l2.ways - l2.reserved_ways) as usize;
        let t = &spec.l2_timing;
        let between = |near: Cycle, far: Cycle| {
            let last = u64::from(spec.topology.cores_per_cmg.max(2) - 1);
            near + (far - near) * u64::from(position) / last
        };
        let hit = between(t.hit_nearest, t.hit_farthest);
        let memory = between(spec.memory.latency_nearest, spec.memory.latency_farthest);
        // What of the documented load-to-use lies outside this cache: the request, the line's way to L1 and into
        // it, and the load's second flow.
        let path = t.request + fill_cycles(spec) + spec.load_store.move_in + spec.load_store.load_integer;
        let bytes_per_cycle = spec.memory.peak_bytes_per_second as f64 / spec.clock.core_hz as f64;
        let period = f64::from(l2.line_bytes) / bytes_per_cycle / (spec.memory.read_efficiency / 100.0);
        Shared {
            tags: Tags::new(sets, usable),
            banks: (0..t.banks).map(|_| Calendar::default()).collect(),
            misses: Pool::new(l2.miss_buffers as usize),
            channel: LineBus::new((period * 256.0) as u64),
            write_debt: 0,
            write_slots_256: (spec.memory.write_cost * 256.0) as u64,
            sets_mask: sets - 1,
            line_shift: l2.line_bytes.trailing_zeros(),
            hit: hit.saturating_sub(path),
            miss_detect: t.miss_detect,
            memory: memory.saturating_sub(path + t.miss_detect),
        }
    }

    /// Nothing before `now` will be asked for any more.
    #[inline(always)]
    pub fn advance(&mut self, now: Cycle) {
        for bank in &mut self.banks {
            bank.advance(now);
        }
        self.channel.advance(now);
    }

    /// The hashed set index of a line (microarchitecture manual, table 9-3).
    #[inline(always)]
    fn set_of(&self, line: u64) -> usize {
        let pa = line << self.line_shift;
        let field = |high: u32, low: u32| pa >> low & ((1 << (high - low + 1)) - 1);
        let hash = field(36, 34) ^ field(32, 30) ^ field(31, 29) ^ field(27, 25) ^ field(23, 21);
        (hash << 8 ^ field(18, 8)) as usize & self.sets_mask
    }

    #[inline(always)]
    fn bank_slot(&mut self, line: u64, t: Cycle, signals: &mut Signals) -> Cycle {
        signals.add(Signal::L2PipeVal, 1);
        let bank = line as usize & (self.banks.len() - 1);
        self.banks[bank].book(t)
    }

    /// Reads `line` for a core (or for the cache itself, when `cause` is an L2 prefetch) at `t`.
    /// Returns the answer and the line that had to leave.
    pub fn read(&mut self, line: u64, t: Cycle, cause: Cause, signals: &mut Signals) -> (Answer, Option<Victim>) {
        signals.add(Signal::L2dCache, 1);
        let start = self.bank_slot(line, t, signals);
        let set = self.set_of(line);
        if let Some(slot) = self.tags.find(set, line) {
            self.tags.touch(slot);
            let state = self.tags.line_mut(slot);
            let on_its_way = state.ready() > start + self.hit;
            if on_its_way && state.has(Line::PREFETCHED) && cause == Cause::Demand {
                signals.add(Signal::L2dSwapDm, 1);
            }
            if cause == Cause::Demand {
                state.take(Line::PREFETCHED);
            }
            let ready = (start + self.hit).max(state.ready());
            let missed = (on_its_way && state.has(Line::FROM_MEMORY)).then_some(start + self.miss_detect);
            return (Answer { ready, missed }, None);
        }
        signals.add(Signal::L2dCacheRefill, 1);
        signals.add(cause.l2_refill(), 1);
        if cause == Cause::HardwarePrefetch {
            signals.add(Signal::L2dCacheRefillPrf, 1);
        }
        signals.add(Signal::BusReadTotalMem, 1);
        let missed = start + self.miss_detect;
        let buffer = self.misses.first_free(missed);
        let granted = self.channel.book(buffer.at);
        let ready = granted + self.memory;
        self.misses.hold(buffer, buffer.at, ready);
        signals.add(Signal::L2MissWait, ready - buffer.at);
        let state = Line::arriving(ready).with(Line::FROM_MEMORY, true).with(Line::PREFETCHED, cause != Cause::Demand);
        let (_, left) = self.tags.insert(set, line, state, ready);
        (Answer { ready, missed: Some(missed) }, left)
    }

    /// `line` will be asked for soon (a matter of the host's speed only).
    #[inline(always)]
    pub fn expect(&self, line: u64) {
        self.tags.expect(self.set_of(line));
    }

    /// A line comes back from a core, dirty.
    pub fn write_back(&mut self, line: u64, t: Cycle, signals: &mut Signals) -> Option<Victim> {
        let start = self.bank_slot(line, t, signals);
        let set = self.set_of(line);
        if let Some(slot) = self.tags.find(set, line) {
            self.tags.line_mut(slot).set(Line::DIRTY, true);
            return None;
        }
        let state = Line::arriving(start).with(Line::DIRTY, true);
        self.tags.insert(set, line, state, start).1
    }

    /// Makes `line` a line of zeros without reading memory. Returns when it can be used.
    pub fn zero(&mut self, line: u64, t: Cycle, signals: &mut Signals) -> (Cycle, Option<Victim>) {
        signals.add(Signal::L2dCache, 1);
        let start = self.bank_slot(line, t, signals);
        let ready = start + self.hit;
        let set = self.set_of(line);
        if let Some(slot) = self.tags.find(set, line) {
            self.tags.touch(slot);
            let state = self.tags.line_mut(slot);
            state.set(Line::DIRTY, true);
            state.set_ready(ready);
            return (ready, None);
        }
        let state = Line::arriving(ready).with(Line::DIRTY, true);
        (ready, self.tags.insert(set, line, state, start).1)
    }

    /// A line that has left L2 is written to memory.
    pub fn write_memory(&mut self, t: Cycle, signals: &mut Signals) {
        signals.add(Signal::L2dCacheWb, 1);
        signals.add(Signal::BusWriteTotalMem, 1);
        self.write_debt += self.write_slots_256;
        while self.write_debt >= 256 {
            self.channel.book(t);
            self.write_debt -= 256;
        }
    }

    /// Whether the line is in L2 or on its way.
    #[must_use]
    pub fn holds(&self, line: u64) -> bool {
        self.tags.find(self.set_of(line), line).is_some()
    }
}

/// Cycles a line needs on the bus from L2 to L1.
#[must_use]
pub fn fill_cycles(spec: &Spec) -> Cycle {
    u64::from(spec.l1d.line_bytes / spec.l2_timing.fill_bytes_per_cycle)
}
