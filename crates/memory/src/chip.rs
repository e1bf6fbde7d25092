//! What the cores of a chip share: the L2 caches and memories of all CMGs, the ring between them, and who holds which
//! line.
//!
//! One core runs at a time; the others have their snoops queued ([`crate::snoop_queue`]). Cores of other CMGs may run
//! in other partitions ([`crate::partition`]). States follow the MESI protocol (manual 9.3) at two levels: an L1D line
//! that is not marked shared is exclusive, and so is an L2 line. L2 is inclusive of the L1 caches above it. It knows
//! which of them hold a line, whether one of them may write it ([`Line::OWNED`]), and whether memory holds an older
//! copy ([`Line::DIRTY`], set by the first write in L1). The state here is always up to date; a core's private caches
//! follow when it handles its snoops.

mod coherence;
mod zeroing;

use std::sync::Arc;

use fxscope_calendar::Cycle;
use fxscope_counts::{READS_FROM_MEMORY, Signal, Signals, WRITES_TO_CMG};
use fxscope_machine::Spec;

use crate::cmg::{self, Cmg, Holders, fill_cycles};
use crate::frames::{Frames, Nodes, PageRange};
use crate::hierarchy::Cause;
use crate::partition::{Cmgs, PartitionCtx};
use crate::reserve::{delay, first_free, hold};
use crate::ring::Ring;
use crate::sectors::{Joins, Sector};
use crate::snoop_filter::SnoopFilter;
use crate::snoop_queue::{Snoop, SnoopKind};
use crate::tags::{Line, Slot};
use crate::tiers::Tier;

/// An answer of the L2 cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// When the line is ready to be sent to the core.
    pub ready: Cycle,
    /// When L2 had taken the request: a cycle of its pipeline and, for a miss, a miss buffer.
    pub taken: Cycle,
    /// When it was known not to be in this L2 cache, if it was not.
    pub missed: Option<Cycle>,
    /// Whether it was not, and its data comes from main memory, behind a memory-side cache if there is one.
    pub from_main: bool,
    /// Whether others may hold it, too: a write must request permission first.
    pub shared: bool,
    /// Whether the core's other L1 cache lost its copy, or its right to write it.
    pub own_copy_lost: bool,
    /// Where L2 has it (a hint for simulator speed; no effect on timing).
    pub slot: Slot,
}

/// A core of the chip.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub struct CoreId {
    /// Its CMG.
    pub cmg: usize,
    /// Its number in the CMG.
    pub core: usize,
}

impl CoreId {
    /// Core number `core` of the chip, counted from 0.
    #[must_use]
    pub fn of(spec: &Spec, core: u32) -> CoreId {
        let each = spec.topology.cores_per_cmg;
        CoreId { cmg: (core / each) as usize, core: (core % each) as usize }
    }
}

/// A request to L2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// The line.
    pub line: u64,
    /// When it reaches L2.
    pub at: Cycle,
    /// What caused it.
    pub cause: Cause,
    /// Which cache gets the line.
    pub holder: Holder,
    /// Whether the line will be written.
    pub write: bool,
    /// The sector of the access.
    pub joins: Joins,
}

/// The cache that gets a requested line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holder {
    /// The core's L1D.
    Data,
    /// The core's L1I.
    Code,
    /// L2 alone (a prefetch).
    None,
}

/// A line that an L1 cache holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held {
    /// The line.
    pub line: u64,
    /// Where it probably is in L2 (a hint for simulator speed; no effect on timing).
    pub l2_slot_hint: Slot,
}

/// A line evicted from an L2 cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Evicted {
    /// The line.
    pub line: u64,
    /// Whether memory holds an older copy.
    pub dirty: bool,
    /// Whether the instruction cache of the requesting core holds it.
    pub code: bool,
    /// When L2 has the copies of other cores.
    pub at: Cycle,
}

/// What the cores share.
#[derive(serde::Deserialize, serde::Serialize)]
pub struct Chip {
    pub(crate) cmgs: Cmgs,
    pub(crate) ring: Ring,
    /// Memory nodes without cores, whose numbers follow those of the CMGs.
    pub(crate) tiers: Box<[Tier]>,
    /// Physical memory. Partitions read it; only the whole chip changes it.
    pub(crate) frames: Arc<Frames>,
    /// Set when this is a partition of a chip.
    #[serde(skip)]
    pub(crate) partition: Option<Box<PartitionCtx>>,
    /// More than one core has run.
    pub(crate) multicore: bool,
    /// Snoops sent to other cores so far.
    pub(crate) snoops: u64,
    pub(crate) shape: Shape,
}

/// The constants of a chip.
#[derive(Clone, Copy, Default, serde::Deserialize, serde::Serialize)]
pub(crate) struct Shape {
    nodes: Nodes,
    cmgs: usize,
    line_shift: u32,
    /// L2 to a core, or back.
    request: Cycle,
    /// From the start of a line's transfer from L2 to its being in L1.
    fill: Cycle,
    /// From a snoop reaching a core to L2 having the answer: without and with the line itself.
    snoop_answer: [Cycle; 2],
}

impl Clone for Chip {
    /// A copy of a whole chip.
    ///
    /// # Panics
    /// When this is a partition of a chip.
    fn clone(&self) -> Chip {
        assert!(self.partition.is_none(), "only a whole chip can be cloned");
        let Chip { cmgs, ring, tiers, frames, partition: _, multicore, snoops, shape } = self;
        Chip {
            cmgs: cmgs.clone(),
            ring: ring.clone(),
            tiers: tiers.clone(),
            frames: Arc::clone(frames),
            partition: None,
            multicore: *multicore,
            snoops: *snoops,
            shape: *shape,
        }
    }
}

impl Chip {
    /// Empty caches and free memory.
    #[must_use]
    pub fn new(spec: &Spec) -> Chip {
        let request = spec.l2_timing.request;
        let to_l2 = u64::from(spec.l1d.line_bytes.div_ceil(spec.l2_timing.writeback_bytes_per_cycle));
        let frames = Frames::new(spec);
        Chip {
            cmgs: (0..spec.topology.cmgs).map(|cmg| Cmg::new(spec, cmg)).collect(),
            ring: Ring::new(spec),
            tiers: Tier::all(spec),
            partition: None,
            multicore: false,
            snoops: 0,
            shape: Shape {
                nodes: frames.nodes(),
                cmgs: spec.topology.cmgs as usize,
                line_shift: spec.l2.line_bytes.trailing_zeros(),
                request,
                fill: fill_cycles(spec) + spec.load_store.move_in,
                snoop_answer: [
                    spec.load_store.move_out_clean + request,
                    spec.load_store.move_out_dirty + to_l2 + request,
                ],
            },
            frames: Arc::new(frames),
        }
    }

    /// The running core sends no more requests before `now`. Reservations that waiting cores may still need are kept.
    #[inline(always)]
    pub fn advance(&mut self, now: Cycle) {
        let others = self.partition.as_ref().map_or(Cycle::MAX, |ctx| ctx.others_lookahead);
        let now = self.cmgs.iter().fold(now.min(others), |now, cmg| now.min(cmg.snoop_queues.lookahead()));
        self.cmgs.iter_mut().for_each(|cmg| cmg.advance(now));
        self.ring.advance(now);
        self.tiers.iter_mut().for_each(|tier| tier.advance(now));
    }

    /// The node whose memory holds `line`: a CMG, or a tier behind them.
    #[inline(always)]
    pub(crate) fn home(&self, line: u64) -> usize {
        self.shape.nodes.of(line << self.shape.line_shift)
    }

    /// The number of the tier that is node `home`; `None` if that is a CMG.
    #[inline(always)]
    pub(crate) fn tier(&self, home: usize) -> Option<usize> {
        home.checked_sub(self.shape.cmgs)
    }

    /// The filter that knows lines of node `home` which L2 caches may hold, those of the node itself left out. Only the whole chip
    /// has those of all nodes.
    pub(crate) fn snoop_filter(&mut self, home: usize) -> &mut SnoopFilter {
        match self.tier(home) {
            Some(tier) => &mut self.tiers[tier].snoop_filter,
            None => &mut self.cmgs[home].snoop_filter,
        }
    }

    // ---- waiting cores ------------------------------------------------------------------------

    /// Core `id` sends no request before `from`; [`Cycle::MAX`] when it runs or has nothing to do.
    pub fn set_lookahead(&mut self, id: CoreId, from: Cycle) {
        self.multicore |= from != Cycle::MAX;
        self.cmgs[id.cmg].snoop_queues.set_lookahead(id.core, from);
    }

    /// Snoops sent to other cores so far: while this grows the running core takes lines from others.
    #[inline(always)]
    #[must_use]
    pub fn snoops(&self) -> u64 {
        self.snoops
    }

    /// A core requests a line itself: queued invalidations of it are superseded by the answer. Returns whether there
    /// was one.
    #[inline(always)]
    pub fn absorb_invalidations(&mut self, id: CoreId, line: u64) -> bool {
        self.cmgs[id.cmg].snoop_queues.absorb_invalidations(id.core, line)
    }

    /// Removes and returns the first snoop that has reached a core by `now`.
    pub fn pop_snoop(&mut self, id: CoreId, now: Cycle) -> Option<Snoop> {
        self.cmgs.get_mut(id.cmg)?.snoop_queues.pop(id.core, now)
    }

    // ---- memory -------------------------------------------------------------------------------

    /// Physical memory.
    #[must_use]
    pub fn frames(&self) -> &Frames {
        &self.frames
    }

    /// Physical memory, to be changed. No partition reads it at that time; a clone of the chip gets its own copy.
    pub(crate) fn frames_mut(&mut self) -> &mut Frames {
        Arc::make_mut(&mut self.frames)
    }

    /// The physical address of the page at `page` in `range`, which a core of CMG `local` translates.
    pub fn frame(&mut self, page: u64, range: PageRange, local: usize) -> u64 {
        match self.frames.known(page, range) {
            Some(physical) => physical,
            None => self.with_whole_chip(|chip| chip.frames_mut().frame(page, range, local)),
        }
    }

    /// The physical address of the translation table `name` of `bytes` bytes, which a core of CMG `local` needs.
    pub fn table(&mut self, name: u64, bytes: u64, local: usize) -> u64 {
        match self.frames.known_table(name) {
            Some(physical) => physical,
            None => self.with_whole_chip(|chip| chip.frames_mut().table(name, bytes, local)),
        }
    }

    // ---- lines --------------------------------------------------------------------------------

    /// Whether the answer to a request for `line` depends on CMGs other than the core's.
    #[inline(always)]
    fn involves_other_cmgs(&self, id: CoreId, line: u64, write: bool) -> bool {
        let cmg = &self.cmgs[id.cmg];
        match cmg.find(line) {
            Some(slot) => write && cmg.line(slot).has(Line::SHARED),
            None => self.home(line) != id.cmg || cmg.snoop_filter.may_hold(line),
        }
    }

    /// Reads a line for a core. Returns the answer, and the line evicted from the core's L2 if it is dirty or the core
    /// itself may hold it; other cores are snooped.
    #[inline(always)]
    pub fn read<const TIMED: bool>(
        &mut self,
        id: CoreId,
        request: Request,
        signals: &mut Signals,
    ) -> (Answer, Option<Evicted>) {
        if self.partition.is_some() && self.involves_other_cmgs(id, request.line, request.write) {
            return self.with_whole_chip(|chip| chip.read_l2::<TIMED>(id, &request, signals));
        }
        self.read_l2::<TIMED>(id, &request, signals)
    }

    fn read_l2<const TIMED: bool>(
        &mut self,
        id: CoreId,
        request: &Request,
        signals: &mut Signals,
    ) -> (Answer, Option<Evicted>) {
        signals.add(Signal::L2dCache, 1);
        let mut cmg = &mut self.cmgs[id.cmg];
        let start = cmg.bank_slot::<TIMED>(request.line, request.at, signals);
        let set = cmg.set_of(request.line);
        let Some(slot) = cmg.find_again(set, request.line) else {
            return self.read_miss::<TIMED>(id, request, set, start, signals);
        };
        cmg.touch(slot);
        let hit = start + delay::<TIMED>(cmg.hit(id.core));
        let detected = start + delay::<TIMED>(cmg.miss_detect);
        let state = cmg.line_mut(slot);
        state.join(request.joins);
        let in_flight = TIMED && state.ready() > hit;
        if request.cause == Cause::Demand {
            let prefetched = state.take(Line::PREFETCHED);
            signals.add(Signal::L2dSwapDm, u64::from(in_flight && prefetched));
        }
        let missed = (in_flight && state.has(Line::FROM_MEMORY)).then_some(detected);
        let from_main = missed.is_some() && state.has(Line::L2_FROM_MAIN);
        let ready = hit.max(state.ready());
        let mut answer = Answer { ready, taken: start, missed, from_main, shared: true, own_copy_lost: false, slot };
        if request.holder != Holder::None {
            let me = Holders::one(id.core, request.holder);
            if cmg.must_snoop(slot, me, request.write) {
                let is_owned = self.snoop_holders::<TIMED>(id, slot, me, request, start, &mut answer);
                signals.add(Signal::OwnedElsewhere, u64::from(is_owned));
                cmg = &mut self.cmgs[id.cmg];
            }
            cmg.hold(slot, me, request, delay::<TIMED>(self.shape.fill), &mut answer);
        }
        (answer, None)
    }

    /// Reads a line that the core's L2 does not have. `set` is the line's set there.
    fn read_miss<const TIMED: bool>(
        &mut self,
        id: CoreId,
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
        let mut cmg = &mut self.cmgs[id.cmg];
        let missed = start + delay::<TIMED>(cmg.miss_detect);
        let evicts = cmg.can_evict::<TIMED>(missed);
        let buffer = first_free::<TIMED>(&mut cmg.mshrs, evicts);
        if buffer.at > missed {
            signals.add(Signal::L2PipeVal, cmg.refuse(id.core, missed, buffer.at));
        }
        let read_before = signals.get(Signal::MainMemoryRead);
        let (ready, shared) = if home == id.cmg && !cmg.snoop_filter.may_hold(line) {
            signals.add(Signal::BusReadTotalMem, 1);
            count_of(READS_FROM_MEMORY, home, signals);
            (cmg.read_memory::<TIMED>(id.core, line, cause == Cause::Demand, buffer.at, signals), false)
        } else {
            let answer = self.read_remote::<TIMED>(id, request, home, buffer.at, signals);
            cmg = &mut self.cmgs[id.cmg];
            answer
        };
        hold::<TIMED>(&mut cmg.mshrs, buffer, buffer.at, ready);
        // The line passes the pipeline into the cache; the core gets it without waiting for that (manual 9.5).
        cmg.bank_slot::<TIMED>(line, ready, signals);
        signals.add(Signal::L2MissWait, ready - buffer.at);
        let from_main = signals.get(Signal::MainMemoryRead) > read_before;
        signals.add(Signal::L2MissMainStore, u64::from(from_main && write && cause == Cause::Demand));
        let alone = holder == Holder::Data && (write || !shared);
        let state = Line::arriving(ready)
            .in_sector(request.joins.sector)
            .with(Line::FROM_MEMORY, true)
            .with(Line::L2_FROM_MAIN, from_main)
            .with(Line::PREFETCHED, cause != Cause::Demand)
            .with(Line::SHARED, shared)
            .with(Line::OWNED, alone)
            .with(Line::DIRTY, write);
        // The victim leaves before the line arrives (manual 9.4).
        let (slot, gone) = cmg.insert(set, line, state, Holders::one(id.core, holder), missed);
        self.note_remote_copy(id.cmg, line, home);
        let (taken, missed_at) = (buffer.at, Some(missed));
        let answer = Answer { ready, taken, missed: missed_at, from_main, shared: !alone, own_copy_lost: false, slot };
        (answer, gone.and_then(|gone| self.evicted::<TIMED>(id, gone, missed)))
    }

    /// A line was evicted from a core's L2 at `now`. Returns it if it is dirty or the core itself may hold it.
    #[inline(always)]
    fn evicted<const TIMED: bool>(
        &mut self,
        id: CoreId,
        (victim, holders): cmg::Evicted,
        now: Cycle,
    ) -> Option<Evicted> {
        self.forget_remote_copy(id.cmg, victim.line);
        let others = holders.cores() & !(1 << id.core);
        let mut at = now;
        if others != 0 {
            let snoop =
                Snoop { line: victim.line, at: now + delay::<TIMED>(self.shape.request), kind: SnoopKind::Invalidate };
            self.cmgs[id.cmg].snoop_queues.push(others, snoop);
            let answer = self.shape.snoop_answer[usize::from(victim.state.has(Line::OWNED))];
            at += delay::<TIMED>(self.shape.request + answer);
        }
        let mine = holders.cores() >> id.core & 1 == 1;
        let (dirty, code) = (victim.dirty(), holders.code >> id.core & 1 == 1);
        (mine || dirty).then_some(Evicted { line: victim.line, dirty, code, at })
    }

    /// L2 of `cmg` got `line` of the memory of CMG `home`.
    #[inline(always)]
    fn note_remote_copy(&mut self, cmg: usize, line: u64, home: usize) {
        if home != cmg {
            self.snoop_filter(home).add(line);
        }
    }

    /// L2 of `cmg` lost `line`.
    #[inline(always)]
    fn forget_remote_copy(&mut self, cmg: usize, line: u64) {
        let home = self.home(line);
        if home != cmg {
            match &mut self.partition {
                None => self.snoop_filter(home).remove(line),
                Some(ctx) => ctx.deferred.returned.push(line),
            }
        }
    }

    /// L2 of `cmg` will soon be asked for `line`, which it does not have, and then for the line `step` after it (a hint
    /// for simulator speed; no effect on timing).
    #[inline(always)]
    pub fn expect(&self, cmg: usize, line: u64, step: i64) {
        self.cmgs[cmg].expect(line, step);
    }

    /// Where L2 of `cmg` probably has `line`, which was requested lately (a hint for simulator speed; no effect on
    /// timing).
    #[inline(always)]
    #[must_use]
    pub fn remembered(&self, cmg: usize, line: u64) -> Slot {
        self.cmgs[cmg].remembered(line)
    }

    /// The line at `slot` of L2 of `cmg` will soon be evicted or written (a hint for simulator speed; no effect on
    /// timing).
    #[inline(always)]
    pub fn expect_at(&self, cmg: usize, slot: Slot) {
        self.cmgs[cmg].expect_at(slot);
    }

    /// L2 of `cmg` got `line` lately and will soon be asked for it (a hint for simulator speed; no effect on timing).
    #[inline(always)]
    pub fn expect_again(&self, cmg: usize, line: u64) {
        self.cmgs[cmg].expect_again(line);
    }

    /// A core wrote a line that it holds exclusively for the first time. L2 must know before others request the line.
    #[inline(always)]
    pub fn first_write(&mut self, id: CoreId, held: Held) {
        if self.multicore {
            self.update(id, held, |state, _| state.set(Line::DIRTY, true));
        }
    }

    /// An L1 cache of a core evicted a clean line and notifies L2 (manual 7.2: its move-out takes two flows).
    #[inline(always)]
    pub fn clean_eviction(&mut self, id: CoreId, held: Held, holder: Holder) {
        if self.multicore {
            self.update(id, held, |state, holders| release(state, holders, Holders::one(id.core, holder)));
        }
    }

    /// A core's L1D writes back a dirty line.
    pub fn write_back<const TIMED: bool>(
        &mut self,
        id: CoreId,
        held: Held,
        joins: Joins,
        t: Cycle,
        signals: &mut Signals,
    ) {
        self.cmgs[id.cmg].bank_slot::<TIMED>(held.line, t, signals);
        self.update(id, held, |state, holders| {
            state.join(joins);
            state.set(Line::DIRTY, true);
            release(state, holders, Holders::one(id.core, Holder::Data));
        });
    }

    /// Updates the state of a line. L2 does not have it if another CMG has just taken it and the core has not handled
    /// the snoop yet.
    #[inline(always)]
    fn update(&mut self, id: CoreId, held: Held, change: impl FnOnce(&mut Line, &mut Holders)) {
        let cmg = &mut self.cmgs[id.cmg];
        if let Some(slot) = cmg.find_at(held.l2_slot_hint, held.line) {
            let (state, holders) = cmg.parts_mut(slot);
            change(state, holders);
        }
    }

    /// An L2 cache of `cmg` writes a line back to the memory that the line belongs to.
    pub fn write_memory<const TIMED: bool>(&mut self, cmg: usize, line: u64, t: Cycle, signals: &mut Signals) {
        let home = self.home(line);
        if home != cmg
            && let Some(ctx) = &mut self.partition
        {
            ctx.deferred.writes.push((cmg, line, t));
            return;
        }
        signals.add(Signal::L2dCacheWb, 1);
        let t = self.cmgs[cmg].bank_slot::<TIMED>(line, t, signals);
        if let Some(tier) = self.tier(home) {
            let at = if TIMED { self.ring.to_tier(cmg, t) } else { t };
            let full_until = self.tiers[tier].write::<TIMED>(at, signals);
            self.cmgs[cmg].keeps_none_until(full_until);
            return;
        }
        signals.add(Signal::BusWriteTotalMem, u64::from(home == cmg));
        count_of(WRITES_TO_CMG, home, signals);
        let at = if TIMED && home != cmg { self.ring.write_back(cmg, home, t) } else { t };
        self.cmgs[home].write_memory::<TIMED>(line, at, signals);
    }

    /// The same when no core of `cmg` runs to count it: the next one that runs does.
    pub(crate) fn write_memory_remotely<const TIMED: bool>(&mut self, cmg: usize, line: u64, t: Cycle) {
        let mut counts = std::mem::take(&mut self.cmgs[cmg].remote_counts);
        self.write_memory::<TIMED>(cmg, line, t, &mut counts);
        (self.cmgs[cmg].remote_counts, self.cmgs[cmg].has_remote_counts) = (counts, true);
    }

    /// A core of `cmg` begins to run: what other CMGs have caused in this one meanwhile is added to its counts.
    pub fn take_remote_counts(&mut self, cmg: usize, signals: &mut Signals) {
        self.cmgs[cmg].take_remote_counts(signals);
    }

    /// Limits one pair of sectors of the L2 of `cmg`. The last limits set by a core of the CMG hold.
    pub fn limit_sectors(&mut self, cmg: usize, pair: Sector, ways: Option<[u8; 2]>) {
        self.cmgs[cmg].limit_sectors(pair, ways);
    }

    /// The sector of a line that L2 of `cmg` has or has requested.
    #[must_use]
    pub fn sector_of(&self, cmg: usize, line: u64) -> Option<Sector> {
        self.cmgs[cmg].sector_of(line)
    }

    /// Whether L2 of `cmg` has the line or has requested it.
    #[must_use]
    pub fn holds(&self, cmg: usize, line: u64) -> bool {
        self.cmgs[cmg].find(line).is_some()
    }
}

/// Counts a line by the CMG it comes from or goes to. A machine may have more CMGs than there are counters.
#[inline(always)]
fn count_of(counts: [Signal; 4], cmg: usize, signals: &mut Signals) {
    if let Some(&count) = counts.get(cmg) {
        signals.add(count, 1);
    }
}

/// The caches `gone` no longer hold a line.
fn release(state: &mut Line, holders: &mut Holders, gone: Holders) {
    // A core that has not handled its snoop yet does not end the ownership of another one.
    if holders.data & gone.data != 0 {
        state.take(Line::OWNED);
    }
    *holders = holders.without(gone);
}
