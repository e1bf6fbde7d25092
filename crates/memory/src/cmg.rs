//! One core memory group: its L2 cache and its memory.

use fxscope_calendar::{BufferPool, Calendar, Cycle};
use fxscope_counts::{Signal, Signals};
use fxscope_hint::fetch_early;
use fxscope_machine::Spec;

use crate::channel::{Channel, Rate};
use crate::chip::{Answer, Holder, Request};
use crate::sectors::{Limits, Sector};
use crate::side_cache::{Found, SideCache};
use crate::snoop_filter::SnoopFilter;
use crate::snoop_queue::SnoopQueues;
use crate::tags::{Line, Slot, Tags, Victim};

/// The L1 caches of a CMG that hold a line, a bit for each core. Small, since L2 keeps one for each of its lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub struct Holders {
    /// Cores whose L1D has it.
    pub data: u32,
    /// Cores whose L1I has it.
    pub code: u32,
}

impl Holders {
    /// None.
    pub const NONE: Holders = Holders { data: 0, code: 0 };

    /// One cache of core number `core`.
    #[inline(always)]
    #[must_use]
    pub fn one(core: usize, holder: Holder) -> Holders {
        match holder {
            Holder::Data => Holders { data: 1 << core, code: 0 },
            Holder::Code => Holders { data: 0, code: 1 << core },
            Holder::None => Holders::NONE,
        }
    }
    /// Holders of either.
    #[inline(always)]
    #[must_use]
    pub fn and(self, other: Holders) -> Holders {
        Holders { data: self.data | other.data, code: self.code | other.code }
    }
    /// Those that are not in `others`.
    #[inline(always)]
    #[must_use]
    pub fn without(self, others: Holders) -> Holders {
        Holders { data: self.data & !others.data, code: self.code & !others.code }
    }
    /// Cores with the line in either cache.
    #[inline(always)]
    #[must_use]
    pub fn cores(self) -> u64 {
        u64::from(self.data | self.code)
    }
}

/// A line evicted from L2, with its holders.
pub type Evicted = (Victim, Holders);

/// L2 cache, its banks and buffers, and the memory channel of one CMG.
#[derive(Clone, serde::Deserialize, serde::Serialize)]
pub struct Cmg {
    tags: Tags<RECENT>,
    /// Sector limits.
    limits: Limits,
    /// For each slot of the tags, the L1 caches that hold the line.
    holders: Box<[Holders]>,
    banks: Box<[Calendar]>,
    /// Move-in buffers (MSHRs).
    pub(crate) mshrs: BufferPool,
    /// The channel of main memory.
    channel: Channel,
    /// The memory-side cache, if the machine has one.
    side_cache: Option<Box<SideCache>>,
    sets_mask: usize,
    /// The lowest bit of the set number that is hashed.
    hash_at: u32,
    /// The hashed bits, shifted to bit 0.
    hash_mask: u64,
    /// The lowest bit of each hashed field of the line number.
    hash_fields: [u32; HASH_FIELDS],
    /// For each core, cycles from the start in the L2 pipeline to the line being ready to send, on a hit.
    hit: Box<[Cycle]>,
    /// Cycles that zeroing a line takes beyond a hit.
    pub(crate) zero: Cycle,
    /// For each core, cycles from main memory's grant of a request to the line being ready to send.
    memory: Box<[Cycle]>,
    /// Cycles from the start in the L2 pipeline to the memory request.
    pub(crate) miss_detect: Cycle,
    /// Cycles from a core to this cache.
    request: Cycle,
    /// For each core, until when its request is known to be refused.
    refused: Box<[Cycle]>,
    /// Until when lines that wait to be written to a memory tier take all room for evicted lines.
    full_until: Cycle,
    /// Counts caused here by cores of other CMGs since a core of this one ran.
    pub(crate) remote_counts: Signals,
    /// `remote_counts` has counts.
    pub(crate) has_remote_counts: bool,
    /// Snoops of its cores.
    pub(crate) snoop_queues: SnoopQueues,
    /// Lines of its memory that the L2 caches of other CMGs may hold.
    pub(crate) snoop_filter: SnoopFilter,
}

/// Remembered slots: many more than the lines that cores have requested ahead, about a hundred each.
const RECENT: usize = 8192;

/// Most fields of a line number that can be hashed.
const HASH_FIELDS: usize = 8;
/// A shift that leaves nothing of a line number, which has fewer bits.
const NO_FIELD: u32 = u64::BITS - 1;

/// The lowest bits of the fields of line numbers that the machine hashes.
fn hash_fields(spec: &Spec) -> [u32; HASH_FIELDS] {
    let mut shifts = [NO_FIELD; HASH_FIELDS];
    for (shift, &field) in shifts.iter_mut().zip(&spec.l2_hash.fields) {
        *shift = field as u32 - spec.l2.line_bytes.trailing_zeros();
    }
    shifts
}

impl Cmg {
    /// CMG number `number` of the chip, with an empty L2 cache.
    #[must_use]
    pub fn new(spec: &Spec, number: u32) -> Cmg {
        let l2 = &spec.l2;
        let sets = (l2.bytes / u64::from(l2.ways) / u64::from(l2.line_bytes)) as usize;
        let t = &spec.l2_timing;
        // The part of the documented load-to-use latency outside this cache: the request, the line's way to L1 and into
        // it, and the load's second flow.
        let path = t.request + fill_cycles(spec) + spec.load_store.move_in + spec.load_store.load_integer;
        let tags = Tags::new(sets, spec.l2_ways(number) as usize).replacing(l2.replacement);
        let memory = &spec.memory;
        let slower = (memory.added_ns * spec.clock.core_hz as f64 / 1e9).round() as Cycle;
        let rate = Rate {
            peak: memory.peak_bytes_per_second,
            read_efficiency: memory.read_efficiency,
            write_cost: memory.write_cost,
        };
        let side = &spec.memory_side_cache;
        let missed = path + t.miss_detect;
        let hit = by_position(spec, side.hit_nearest, side.hit_farthest, missed);
        let side_cache = SideCache::new(spec, hit).map(Box::new);
        let to_memory = missed + side_cache.as_ref().map_or(0, |_| side.miss_detect);
        Cmg {
            holders: vec![Holders::NONE; tags.places()].into(),
            tags,
            limits: Limits::default(),
            banks: (0..t.banks).map(|_| Calendar::default()).collect(),
            mshrs: BufferPool::new(l2.miss_buffers as usize),
            channel: Channel::new(&rate, l2.line_bytes, spec.clock.core_hz),
            side_cache,
            sets_mask: sets - 1,
            hash_at: sets.trailing_zeros().saturating_sub(spec.l2_hash.bits),
            hash_mask: (1 << spec.l2_hash.bits) - 1,
            hash_fields: hash_fields(spec),
            hit: by_position(spec, t.hit_nearest, t.hit_farthest, path),
            zero: t.zero,
            memory: by_position(spec, memory.latency_nearest + slower, memory.latency_farthest + slower, to_memory),
            miss_detect: t.miss_detect,
            request: t.request,
            refused: vec![0; spec.topology.cores_per_cmg as usize].into(),
            full_until: 0,
            remote_counts: Signals::default(),
            has_remote_counts: false,
            snoop_queues: SnoopQueues::new(spec.topology.cores_per_cmg as usize),
            snoop_filter: SnoopFilter::default(),
        }
    }

    /// No request before `now` follows.
    #[inline(always)]
    pub fn advance(&mut self, now: Cycle) {
        for bank in &mut self.banks {
            bank.advance(now);
        }
        self.channel.advance(now);
        if let Some(cache) = &mut self.side_cache {
            cache.advance(now);
        }
    }

    /// The hashed set number of a line. The hash changes the highest bits of the number.
    #[inline(always)]
    pub fn set_of(&self, line: u64) -> usize {
        let hash = self.hash_fields.iter().fold(0, |hash, &field| hash ^ line >> field) & self.hash_mask;
        (hash << self.hash_at ^ line) as usize & self.sets_mask
    }

    /// The cycle in which the line's bank serves a request, or a line on its way to or from memory, that arrives at `t`.
    #[inline(always)]
    pub fn bank_slot<const TIMED: bool>(&mut self, line: u64, t: Cycle, signals: &mut Signals) -> Cycle {
        signals.add(Signal::L2PipeVal, 1);
        self.book_bank::<TIMED>(line, t)
    }

    /// The same for a request from another CMG.
    pub fn remote_bank_slot<const TIMED: bool>(&mut self, line: u64, t: Cycle) -> Cycle {
        self.remote_counts.add(Signal::L2PipeVal, 1);
        self.has_remote_counts = true;
        self.book_bank::<TIMED>(line, t)
    }

    /// Adds what other CMGs have caused here to the counts of a core of this one.
    pub fn take_remote_counts(&mut self, signals: &mut Signals) {
        if std::mem::take(&mut self.has_remote_counts) {
            signals.merge(&std::mem::take(&mut self.remote_counts));
        }
    }

    #[inline(always)]
    fn book_bank<const TIMED: bool>(&mut self, line: u64, t: Cycle) -> Cycle {
        if !TIMED {
            return t;
        }
        let bank = line as usize & (self.banks.len() - 1);
        self.banks[bank].book(t)
    }

    /// Cycles from the start in the L2 pipeline to the line being ready to send to core number `core`.
    #[inline(always)]
    #[must_use]
    pub fn hit(&self, core: usize) -> Cycle {
        self.hit[core]
    }

    /// A request of core number `core` finds no free move-in buffer from `t` to `end`. The first such request of a core
    /// passes the pipeline again whenever it is known to have missed in vain. Returns how often it does.
    #[inline(never)]
    pub fn refuse(&mut self, core: usize, t: Cycle, end: Cycle) -> u64 {
        let from = t.max(self.refused[core]);
        if end <= from {
            return 0;
        }
        let period = self.miss_detect.max(1);
        let times = (end - from).div_ceil(period);
        self.refused[core] = from + times * period;
        times
    }

    /// Lines that wait to be written take all room for evicted lines until `t`.
    pub(crate) fn keeps_none_until(&mut self, t: Cycle) {
        self.full_until = self.full_until.max(t);
    }

    /// When a miss that is known at `t` can evict a line.
    #[inline(always)]
    pub(crate) fn can_evict<const TIMED: bool>(&self, t: Cycle) -> Cycle {
        if TIMED { t.max(self.full_until) } else { t }
    }

    /// Reads a line from memory, or from the memory-side cache, requested at `t`. Returns when it is ready to be sent
    /// to core number `core`.
    #[inline(always)]
    pub fn read_memory<const TIMED: bool>(
        &mut self,
        core: usize,
        line: u64,
        demand: bool,
        t: Cycle,
        signals: &mut Signals,
    ) -> Cycle {
        match self.side_cache {
            None => self.read_main::<TIMED>(core, demand, t, t, signals),
            Some(_) => self.read_through::<TIMED>(core, line, demand, t, signals),
        }
    }

    /// Reads main memory at `t`; the L2 miss was known at `missed`.
    #[inline(always)]
    fn read_main<const TIMED: bool>(
        &mut self,
        core: usize,
        demand: bool,
        missed: Cycle,
        t: Cycle,
        signals: &mut Signals,
    ) -> Cycle {
        let ready = if TIMED { self.channel.read(t) + self.memory[core] } else { t };
        signals.add(Signal::MainMemoryRead, 1);
        signals.add(Signal::MainMemoryReadWait, ready - t);
        signals.add(Signal::L2MissMainDm, u64::from(demand));
        signals.add(Signal::L2MissWaitMainDm, if demand { ready - missed } else { 0 });
        ready
    }

    #[inline(never)]
    fn read_through<const TIMED: bool>(
        &mut self,
        core: usize,
        line: u64,
        demand: bool,
        t: Cycle,
        signals: &mut Signals,
    ) -> Cycle {
        let cache = self.side_cache.as_mut().expect("checked by read_memory");
        match cache.read::<TIMED>(core, line, t, signals) {
            Found::Line(ready) => ready,
            Found::Nothing { asked, writes_back } => {
                let ready = self.read_main::<TIMED>(core, demand, t, asked, signals);
                if writes_back {
                    self.write_main::<TIMED>(asked, signals);
                }
                self.side_cache.as_mut().expect("checked before").fill::<TIMED>(ready);
                ready
            }
        }
    }

    /// Writes a line to memory, or to the memory-side cache.
    #[inline(always)]
    pub fn write_memory<const TIMED: bool>(&mut self, line: u64, t: Cycle, signals: &mut Signals) {
        match &mut self.side_cache {
            None => self.write_main::<TIMED>(t, signals),
            Some(cache) => {
                if let Some(t) = cache.write::<TIMED>(line, t, signals) {
                    self.write_main::<TIMED>(t, signals);
                }
            }
        }
    }

    #[inline(always)]
    fn write_main<const TIMED: bool>(&mut self, t: Cycle, signals: &mut Signals) {
        signals.add(Signal::MainMemoryWrite, 1);
        if TIMED {
            self.channel.write(t);
        }
    }

    /// Where `line` is.
    #[inline(always)]
    #[must_use]
    pub fn find(&self, line: u64) -> Option<Slot> {
        self.tags.find(self.set_of(line), line)
    }

    /// As [`Cmg::find`], when the line is probably at `slot`.
    #[inline(always)]
    #[must_use]
    pub fn find_at(&self, slot: Slot, line: u64) -> Option<Slot> {
        if self.tags.is_at(slot, line) { Some(slot) } else { self.find(line) }
    }

    /// Where `line`, which was found or inserted lately, probably is.
    #[inline(always)]
    #[must_use]
    pub fn remembered(&self, line: u64) -> Slot {
        self.tags.remembered(line)
    }

    /// As [`Cmg::find`], for lines that were found or inserted lately; `set` is the set of the line.
    #[inline(always)]
    pub fn find_again(&mut self, set: usize, line: u64) -> Option<Slot> {
        self.tags.find_if_known(set, line)
    }

    /// Marks a line as just used.
    #[inline(always)]
    pub fn touch(&mut self, slot: Slot) {
        self.tags.touch(slot);
    }

    /// The state of a line.
    #[inline(always)]
    #[must_use]
    pub fn line(&self, slot: Slot) -> Line {
        *self.tags.line(slot)
    }

    /// The state of a line, to be changed.
    #[inline(always)]
    pub fn line_mut(&mut self, slot: Slot) -> &mut Line {
        self.tags.line_mut(slot)
    }

    /// The L1 caches that hold a line.
    #[inline(always)]
    pub fn holders_mut(&mut self, slot: Slot) -> &mut Holders {
        &mut self.holders[slot.number()]
    }

    /// The state of a line, and the L1 caches that hold it.
    #[inline(always)]
    pub fn parts_mut(&mut self, slot: Slot) -> (&mut Line, &mut Holders) {
        (self.tags.line_mut(slot), &mut self.holders[slot.number()])
    }

    /// Whether other holders must be snooped before `me` becomes a holder of a line, to `write` it or not.
    #[inline(always)]
    pub fn must_snoop(&mut self, slot: Slot, me: Holders, write: bool) -> bool {
        let (state, holders) = self.parts_mut(slot);
        let others = holders.without(me);
        write && (state.has(Line::SHARED) || others != Holders::NONE) || state.has(Line::OWNED) && others.data != 0
    }

    /// A core's cache, `me`, becomes a holder of a line that the core requested. `fill`: cycles from L2 into L1.
    #[inline(always)]
    pub fn hold(&mut self, slot: Slot, me: Holders, request: &Request, fill: Cycle, answer: &mut Answer) {
        let (state, holders) = self.parts_mut(slot);
        let free = !state.has(Line::SHARED) && holders.without(me) == Holders::NONE;
        let alone = request.write || (request.holder == Holder::Data && free);
        answer.shared = !alone;
        if alone {
            // Nobody else gets the line before the core has it. Write permission without data is used in the next
            // cycle.
            if answer.missed.is_none() {
                let sooner = if holders.data & me.data == 0 { 0 } else { fill.saturating_sub(1) };
                state.take(Line::FROM_MEMORY);
                state.set_ready(answer.ready - sooner);
            }
            *state = state.with(Line::OWNED, true).with(Line::DIRTY, request.write);
        }
        *holders = if request.write { me } else { holders.and(me) };
    }

    /// Inserts a line with its holders into its `set` at `now`. Returns its slot and the evicted line.
    #[inline(always)]
    pub fn insert(
        &mut self,
        set: usize,
        line: u64,
        state: Line,
        holders: Holders,
        now: Cycle,
    ) -> (Slot, Option<Evicted>) {
        let (slot, victim) = self.tags.insert(set, line, state, now);
        self.tags.remember(line, slot);
        let before = std::mem::replace(self.holders_mut(slot), holders);
        (slot, victim.map(|v| (v, before)))
    }

    /// Removes a line.
    pub fn remove(&mut self, line: u64) {
        self.tags.remove(self.set_of(line), line);
    }

    /// Limits one pair of sectors to these ways, or lifts its limits.
    pub fn limit_sectors(&mut self, pair: Sector, ways: Option<[u8; 2]>) {
        self.limits = self.limits.with_pair(pair, ways);
        self.tags.limit(self.limits);
    }

    /// The sector of a line.
    #[must_use]
    pub fn sector_of(&self, line: u64) -> Option<Sector> {
        self.find(line).map(|slot| self.tags.line(slot).sector())
    }

    /// `line` will soon be inserted, and the line `step` after it next (a hint for simulator speed; no effect on
    /// timing).
    #[inline(always)]
    pub fn expect(&self, line: u64, step: i64) {
        let set = self.set_of(line);
        // The hash rarely differs between neighbours.
        let next = set.wrapping_add_signed(step as isize) & self.sets_mask;
        let place = self.tags.expect(set, next);
        fetch_early(&self.holders, place.number());
    }

    /// The state at `slot` will soon change (a hint for simulator speed; no effect on timing).
    #[inline(always)]
    pub fn expect_at(&self, slot: Slot) {
        self.tags.expect_at(slot);
        fetch_early(&self.holders, slot.number());
    }

    /// `line`, inserted lately, will soon be requested (a hint for simulator speed; no effect on timing).
    #[inline(always)]
    pub fn expect_again(&self, line: u64) {
        let place = self.tags.expect_again(line);
        fetch_early(&self.holders, place.number());
    }
}

/// For each core of a CMG, the latency interpolated between the nearest and the farthest core, minus `path`.
fn by_position(spec: &Spec, near: Cycle, far: Cycle, path: Cycle) -> Box<[Cycle]> {
    let cores = u64::from(spec.topology.cores_per_cmg);
    let last = cores.max(2) - 1;
    (0..cores).map(|core| (near + (far - near) * core / last).saturating_sub(path)).collect()
}

/// Cycles that a line takes on the bus from L2 to L1.
#[must_use]
pub fn fill_cycles(spec: &Spec) -> Cycle {
    u64::from(spec.l1d.line_bytes / spec.l2_timing.fill_bytes_per_cycle)
}
