//! The memory hierarchy as one core sees it.
//!
//! * This file: requests and responses, and the core's private structures.
//! * [`translation`](self): virtual to physical addresses. Walks, data, prefetches and instructions have a file each.

mod data;
mod inactive;
mod instructions;
mod outstanding;
mod prefetching;
mod repeats;
mod translation;
mod walk;
mod warming;

use std::sync::Arc;

use fxscope_calendar::{BufferPool, Cycle, LineBus};
use fxscope_counts::Signal;
use fxscope_machine::Spec;

use crate::bus::CacheBus;
use crate::chip::{Chip, CoreId};
use crate::cmg::fill_cycles;
use crate::frames::PageRange;
use crate::pipes::LoadStorePipes;
use crate::prefetch::Prefetcher;
use crate::refills::Refills;
use crate::sectors::{Assignment, Limits, SECTORS};
use crate::tables::Tables;
use crate::tags::{Slot, Tags};
use crate::tlb::Tlb;
use crate::walks::Walks;

use outstanding::Outstanding;
use repeats::Repeats;

pub use data::Wants;
pub use translation::Located;

/// The level that served an access.
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

/// What caused a request for a line.
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
    /// The counter of L2 refills for this cause.
    #[must_use]
    pub fn l2_refill(self) -> Signal {
        match self {
            Cause::Demand => Signal::L2dCacheRefillDm,
            Cause::SoftwarePrefetch => Signal::L2dCacheRefillPrf,
            Cause::HardwarePrefetch => Signal::L2dCacheRefillHwprf,
        }
    }
    pub(crate) fn l1_refill(self) -> Signal {
        match self {
            Cause::Demand => Signal::L1dCacheRefillDm,
            Cause::SoftwarePrefetch => Signal::L1dCacheRefillPrf,
            Cause::HardwarePrefetch => Signal::L1dCacheRefillHwprf,
        }
    }
}

/// When an access was known to miss; [`NEVER`]: it did not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Misses {
    /// The L1D cache.
    pub l1: Cycle,
    /// The L2 cache.
    pub l2: Cycle,
    /// From when on it waited for a prefetch port only.
    pub port: Cycle,
}

/// Not at any time.
pub const NEVER: Cycle = Cycle::MAX;

impl Misses {
    /// The access hit.
    pub const NONE: Misses = Misses { l1: NEVER, l2: NEVER, port: NEVER };

    /// Of two accesses that complete together.
    #[inline(always)]
    #[must_use]
    pub fn or(self, other: Misses) -> Misses {
        Misses { l1: self.l1.min(other.l1), l2: self.l2.min(other.l2), port: self.port.min(other.port) }
    }
    /// The level that served the access.
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

/// The outcome of an access.
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
    /// Of two accesses, the response when both have their data.
    #[inline(always)]
    #[must_use]
    pub fn and(self, other: Response) -> Response {
        Response { at: self.at.max(other.at), misses: self.misses.or(other.misses) }
    }
}

/// The memory hierarchy as a running core sees it: its private structures, and the chip that it shares with the other
/// cores. Borrowed for as long as the core runs. `TIMED`: its accesses are timed; otherwise they only keep its state warm, each as a
/// whole at its time.
pub struct Hierarchy<'a, const TIMED: bool = true> {
    /// The private structures of the core.
    pub core: &'a mut CoreMemory,
    /// The chip, or the core's partition of it.
    pub chip: &'a mut Chip,
}

/// The private memory structures of a core: L1 caches, translation, prefetcher.
#[derive(Clone, serde::Deserialize, serde::Serialize)]
pub struct CoreMemory {
    /// The load/store pipes.
    pub pipes: LoadStorePipes,
    id: CoreId,
    l1d: Tags,
    /// For each slot of L1D, where L2 probably has the same line.
    l2_slot_hints: Box<[Slot]>,
    l1i: Tags,
    l1d_set_mask: usize,
    l1i_set_mask: usize,
    line_shift: u32,
    data_tlb: Tlb,
    code_tlb: Tlb,
    tables: Tables,
    walkers: BufferPool,
    walks: Walks,
    /// Cycles of a walk in addition to its reads.
    walk_extra: Cycle,
    /// Cycles of the trap that replaces a walk, or 0.
    miss_trap: Cycle,
    /// Accesses without active elements look up their pages, too.
    inactive_lookup: bool,
    /// Cycles that the system takes for one whose page is absent.
    absent_trap: Cycle,
    /// Misses take no time and stop no prefetch.
    free_misses: bool,
    /// The number of the address space, above the bits of virtual addresses.
    space: u64,
    pages: Arc<[PageRange]>,
    /// The range of `pages` that was used last.
    page: PageRange,
    /// The range of addresses that are in none of `pages`.
    no_pages: PageRange,
    /// Miss buffers of L1D.
    mshrs: BufferPool,
    /// Miss buffers of L1I.
    code_mshrs: BufferPool,
    /// Dirty lines on their way from L1D to L2 (move-out buffers).
    writeback_buffers: BufferPool,
    /// Between L1D and L2, for both directions.
    bus: CacheBus,
    /// Requests of this core to L2.
    requests: LineBus,
    prefetcher: Prefetcher,
    /// Held by prefetches into L2 until L2 has accepted them.
    prefetch_ports: BufferPool,
    port_granted: Cycle,
    /// Cycles between replays of a flow whose prefetch waits for a port or an MSHR.
    port_replay: Cycle,
    sectors: Assignment,
    /// Lines that an access finds in L1D move to the access's sector. False until a sector has a limit.
    moves: bool,
    request: Cycle,
    /// Cycles from a flow in the pipe to its L1D miss being known.
    miss_known: Cycle,
    outstanding: Outstanding,
    fill_cycles: Cycle,
    move_in: Cycle,
    move_out_dirty: Cycle,
    move_out_clean: Cycle,
    /// From a written-back line being in L2 to its move-out buffer being free.
    acknowledge: Cycle,
    /// Virtual line number of the last instruction fetch.
    fetched: u64,
    /// Accesses over which warming passes.
    #[serde(skip)]
    repeats: Repeats,
    /// What instructions have brought into the caches since this was last read. Empty between blocks.
    #[serde(skip)]
    pub refills: Refills,
}

impl CoreMemory {
    /// Cold caches of core `id`.
    #[must_use]
    pub fn new(spec: &Spec, id: CoreId) -> CoreMemory {
        let sets = |c: &fxscope_machine::spec::Cache| (c.bytes / u64::from(c.ways) / u64::from(c.line_bytes)) as usize;
        let usable = |c: &fxscope_machine::spec::Cache| (c.ways - c.reserved_ways) as usize;
        let tags = |c: &fxscope_machine::spec::Cache| Tags::new(sets(c), usable(c)).replacing(c.replacement);
        let l1d = tags(&spec.l1d);
        let no_pages = translation::no_pages(spec.pages.normal.trailing_zeros());
        CoreMemory {
            pipes: LoadStorePipes::default(),
            id,
            l2_slot_hints: vec![Slot::default(); l1d.places()].into(),
            l1d,
            l1i: tags(&spec.l1i),
            l1d_set_mask: sets(&spec.l1d) - 1,
            l1i_set_mask: sets(&spec.l1i) - 1,
            line_shift: spec.l1d.line_bytes.trailing_zeros(),
            data_tlb: Tlb::new(&spec.tlb),
            code_tlb: Tlb::new(&spec.tlb),
            tables: Tables::new(&spec.tlb),
            walkers: BufferPool::new(spec.tlb.walkers as usize),
            walks: Walks::new(spec.tiering.enabled),
            walk_extra: spec.tlb.walk_extra,
            miss_trap: spec.tlb.miss_trap,
            inactive_lookup: spec.tlb.inactive_lookup,
            absent_trap: spec.tlb.absent_trap,
            free_misses: spec.tlb.free_misses,
            space: 0,
            pages: Arc::default(),
            page: no_pages,
            no_pages,
            mshrs: BufferPool::new(spec.l1d.miss_buffers as usize),
            code_mshrs: BufferPool::new(spec.l1i.miss_buffers as usize),
            writeback_buffers: BufferPool::new(spec.load_store.move_out_buffers as usize),
            bus: CacheBus::new(spec),
            requests: LineBus::new((spec.l2_timing.request_period * 256.0) as u64),
            prefetcher: Prefetcher::new(&spec.prefetch, spec.l1d.line_bytes.trailing_zeros()),
            prefetch_ports: BufferPool::new(spec.prefetch.ports as usize),
            port_granted: 0,
            port_replay: spec.stages.commit_short + spec.load_store.resubmit,
            sectors: Assignment::default(),
            moves: false,
            request: spec.l2_timing.request,
            // A miss is known when the data would have been there.
            miss_known: spec.load_store.load_integer,
            outstanding: Outstanding::default(),
            fill_cycles: fill_cycles(spec),
            move_in: spec.load_store.move_in,
            move_out_dirty: spec.load_store.move_out_dirty,
            move_out_clean: spec.load_store.move_out_clean,
            acknowledge: spec.l2_timing.acknowledge,
            fetched: u64::MAX,
            repeats: Repeats::default(),
            refills: Refills::default(),
        }
    }

    /// The hierarchy of this core with `chip`.
    #[inline(always)]
    pub fn with<'a>(&'a mut self, chip: &'a mut Chip) -> Hierarchy<'a> {
        Hierarchy { core: self, chip }
    }

    /// The same for accesses that are not timed: they take no resources, and whatever they find or request is there at once.
    #[inline(always)]
    pub fn untimed<'a>(&'a mut self, chip: &'a mut Chip) -> Hierarchy<'a, false> {
        Hierarchy { core: self, chip }
    }

    /// Sets how accesses get their sectors.
    pub fn assign_sectors(&mut self, sectors: Assignment) {
        self.moves &= sectors.moves();
        self.sectors = sectors;
        self.repeats.forget_all();
    }
    /// How accesses get their sectors.
    #[must_use]
    pub fn sectors(&self) -> &Assignment {
        &self.sectors
    }
}

impl Hierarchy<'_> {
    /// No request before `now` follows.
    #[inline(always)]
    pub fn advance(&mut self, now: Cycle) {
        self.core.pipes.advance(now);
        self.core.bus.advance(now);
        self.core.requests.advance(now);
        self.chip.advance(now);
    }

    /// Limits the ways of the sectors of L1D, and of the two sectors of L2 that the core uses; `None`: no limits. Cores
    /// of a CMG that use the same two sectors share their limits.
    pub fn limit_sectors(&mut self, l1: Option<[u8; SECTORS]>, l2: Option<[u8; 2]>) {
        self.core.moves |= self.core.sectors.moves() && (l1.is_some() || l2.is_some());
        self.core.repeats.forget_all();
        self.core.l1d.limit(l1.map_or_else(Limits::default, Limits::new));
        self.chip.limit_sectors(self.core.id.cmg, self.core.sectors.group(), l2);
    }
}
