//! One core's way through the memory hierarchy.
//!
//! * This file: what an access asks and is answered, and the core's private structures.
//! * [`translation`](self): virtual to physical addresses. Walks, data, prefetches and instructions have a file each.

mod data;
mod inactive;
mod instructions;
mod prefetching;
mod translation;
mod walk;

use std::sync::Arc;

use fxscope_calendar::{Cycle, LineBus, Pool};
use fxscope_counts::Signal;
use fxscope_machine::Spec;

use self::data::Zeroing;
use crate::bus::CacheBus;
use crate::chip::{Chip, Seat};
use crate::cmg::fill_cycles;
use crate::frames::PageRange;
use crate::pipes::LoadStorePipes;
use crate::prefetch::Prefetcher;
use crate::sectors::{Assignment, Limits, SECTORS};
use crate::tables::Tables;
use crate::tags::{Slot, Tags};
use crate::tlb::Tlb;

pub use data::Wants;
pub use translation::Located;

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
    pub(crate) fn l1_refill(self) -> Signal {
        match self {
            Cause::Demand => Signal::L1dCacheRefillDm,
            Cause::SoftwarePrefetch => Signal::L1dCacheRefillPrf,
            Cause::HardwarePrefetch => Signal::L1dCacheRefillHwprf,
        }
    }
}

/// What an access waited for, and since when it was known; [`NEVER`]: it did not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Misses {
    /// The L1D cache.
    pub l1: Cycle,
    /// The L2 cache.
    pub l2: Cycle,
    /// From when on it only waited for a prefetch port.
    pub port: Cycle,
}

/// Not at any time.
pub const NEVER: Cycle = Cycle::MAX;

impl Misses {
    /// Of an access that hit.
    pub const NONE: Misses = Misses { l1: NEVER, l2: NEVER, port: NEVER };

    /// Of two accesses that are waited for together.
    #[inline(always)]
    #[must_use]
    pub fn or(self, other: Misses) -> Misses {
        Misses { l1: self.l1.min(other.l1), l2: self.l2.min(other.l2), port: self.port.min(other.port) }
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

/// The private part of a core: L1 caches, translation, prefetcher. While the core runs it has the chip, too.
pub struct Hierarchy {
    /// The load/store pipes.
    pub pipes: LoadStorePipes,
    /// What the cores share. Another core has it while this one does not run.
    chip: Box<Chip>,
    seat: Seat,
    l1d: Tags,
    /// For each place of L1D, where L2 is likely to have the same line.
    beneath: Box<[Slot]>,
    l1i: Tags,
    l1d_set_mask: usize,
    l1i_set_mask: usize,
    line_shift: u32,
    data_tlb: Tlb,
    code_tlb: Tlb,
    tables: Tables,
    walkers: Pool,
    /// What a walk takes besides its reads.
    walk_extra: Cycle,
    /// What a trap takes that does a walk's work, or 0.
    miss_trap: Cycle,
    /// Accesses without active elements look up their pages.
    inactive_lookup: bool,
    /// What the system takes for one whose page is not there.
    absent_trap: Cycle,
    /// Number of the address space, above the bits of virtual addresses.
    space: u64,
    pages: Arc<[PageRange]>,
    /// The range of `pages` that was needed last.
    page: PageRange,
    misses: Pool,
    code_misses: Pool,
    /// Lines that L2 has been told to zero, and when this core hears that it has.
    zeroing: Zeroing,
    /// Dirty lines on their way out of L1D.
    move_outs: Pool,
    /// Between L1D and L2: lines in both directions share it.
    bus: CacheBus,
    /// Requests of this core to L2.
    requests: LineBus,
    prefetcher: Prefetcher,
    /// Held by prefetches into L2 until L2 has taken them.
    prefetch_ports: Pool,
    port_granted: Cycle,
    sectors: Assignment,
    /// Lines that accesses find in L1D move to the accesses' sectors. Not before any sector has a limit.
    moves: bool,
    request: Cycle,
    /// A flow's cycle to its miss in the L1D cache.
    miss_known: Cycle,
    fill_cycles: Cycle,
    move_in: Cycle,
    move_out_dirty: Cycle,
    move_out_clean: Cycle,
    /// Line of the last instruction fetch, as a virtual line number.
    fetched: u64,
}

impl Hierarchy {
    /// Cold caches of the core at `seat`, which has `chip`.
    #[must_use]
    pub fn new(spec: &Spec, seat: Seat, chip: Box<Chip>) -> Hierarchy {
        let sets = |c: &fxscope_machine::spec::Cache| (c.bytes / u64::from(c.ways) / u64::from(c.line_bytes)) as usize;
        let usable = |c: &fxscope_machine::spec::Cache| (c.ways - c.reserved_ways) as usize;
        let l1d = Tags::new(sets(&spec.l1d), usable(&spec.l1d));
        Hierarchy {
            pipes: LoadStorePipes::default(),
            chip,
            seat,
            beneath: vec![Slot::default(); l1d.places()].into(),
            l1d,
            l1i: Tags::new(sets(&spec.l1i), usable(&spec.l1i)),
            l1d_set_mask: sets(&spec.l1d) - 1,
            l1i_set_mask: sets(&spec.l1i) - 1,
            line_shift: spec.l1d.line_bytes.trailing_zeros(),
            data_tlb: Tlb::new(&spec.tlb),
            code_tlb: Tlb::new(&spec.tlb),
            tables: Tables::new(&spec.tlb),
            walkers: Pool::new(spec.tlb.walkers as usize),
            walk_extra: spec.tlb.walk_extra,
            miss_trap: spec.tlb.miss_trap,
            inactive_lookup: spec.tlb.inactive_lookup,
            absent_trap: spec.tlb.absent_trap,
            space: 0,
            pages: Arc::default(),
            page: translation::NO_PAGES,
            misses: Pool::new(spec.l1d.miss_buffers as usize),
            code_misses: Pool::new(spec.l1i.miss_buffers as usize),
            zeroing: Zeroing::new(spec.load_store.write_buffer),
            move_outs: Pool::new(spec.load_store.move_out_buffers as usize),
            bus: CacheBus::new(spec),
            requests: LineBus::new((spec.l2_timing.request_period * 256.0) as u64),
            prefetcher: Prefetcher::new(&spec.prefetch, spec.l1d.line_bytes.trailing_zeros()),
            prefetch_ports: Pool::new(spec.prefetch.ports as usize),
            port_granted: 0,
            sectors: Assignment::default(),
            moves: false,
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

    /// Cold caches of the core at `seat`, while another core has the chip.
    #[must_use]
    pub fn waiting(spec: &Spec, seat: Seat) -> Hierarchy {
        Hierarchy::new(spec, seat, Box::new(Chip::elsewhere()))
    }

    /// Nothing before `now` will be asked for any more.
    #[inline(always)]
    pub fn advance(&mut self, now: Cycle) {
        self.pipes.advance(now);
        self.bus.advance(now);
        self.requests.advance(now);
        self.chip.advance(now);
    }

    /// From now on accesses get their sectors so.
    pub fn assign_sectors(&mut self, sectors: Assignment) {
        self.moves &= sectors.moves();
        self.sectors = sectors;
    }
    /// How accesses get their sectors.
    #[must_use]
    pub fn sectors(&self) -> &Assignment {
        &self.sectors
    }

    /// From now on sectors have these ways: those of L1D, and the two of L2 that the core uses, if they have limits.
    /// Other cores of the CMG that use the same two have the same limits.
    pub fn limit_sectors(&mut self, l1: Option<[u8; SECTORS]>, l2: Option<[u8; 2]>) {
        self.moves |= self.sectors.moves() && (l1.is_some() || l2.is_some());
        self.l1d.limit(l1.map_or_else(Limits::default, Limits::new));
        self.chip.limit_sectors(self.seat.cmg, self.sectors.group(), l2);
    }

    /// This core, which has a part of the chip, lets other parts have what they wait for ([`Chip::look_in`]).
    pub fn look_in(&mut self) {
        self.chip.look_in();
    }

    /// What the cores share, while this core runs ([`Hierarchy::take_over`]).
    #[must_use]
    pub fn chip(&self) -> &Chip {
        &self.chip
    }
}
