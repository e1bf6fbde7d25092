//! What each instruction's accesses bring into the caches and translate: kept where it is rare, read after each block.

use fxscope_calendar::Cycle;

use crate::hierarchy::Cause;

/// What an access, or a prefetch that it triggered, did beyond the first level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefillKind {
    /// A line came into L1D from L2, or from another core through it.
    FromL2,
    /// A line came into L1D that this core's L2 did not have.
    FromMemory,
    /// A line came into L2 only.
    IntoL2,
    /// The permission to write a line that others may hold; its data did not move.
    Permission,
    /// Both levels of the TLB missed.
    Walk,
    /// The first write to a line that L1D had and nobody else: nothing was requested. Only noted for an observer.
    Written,
    /// L2 made a line of zeros that it did not have, without reading memory. Only noted for an observer.
    Zeroed,
}

/// A refill, or a walk of the translation tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refill {
    /// The instruction that accessed memory, by its place in its block.
    pub inst: u8,
    /// A virtual address in the line; of a demand access, that of its first byte in the line.
    pub address: u64,
    /// What happened.
    pub kind: RefillKind,
    /// Whether the instruction itself needed it, or a prefetch.
    pub cause: Cause,
    /// Whether the access writes.
    pub write: bool,
    /// When it was requested.
    pub at: Cycle,
}

/// The refills of a core since its list was last read.
#[derive(Clone, Debug, Default)]
pub struct Refills {
    /// The instruction that accesses memory now, by its place in its block.
    pub inst: u8,
    list: Vec<Refill>,
    /// Those that have been counted, for an observer; `None`: nobody observes them.
    observed: Option<Vec<Refill>>,
}

/// Refills that an observer can leave unread. More are dropped, so that a list that nobody reads cannot grow.
const MOST_UNREAD: usize = 1 << 20;

impl Refills {
    /// Adds a refill of the current instruction.
    pub(crate) fn add(&mut self, address: u64, kind: RefillKind, cause: Cause, write: bool, at: Cycle) {
        self.list.push(Refill { inst: self.inst, address, kind, cause, write, at });
    }

    /// Adds a write of the current instruction that brings nothing into L1D, if somebody observes it.
    pub(crate) fn note_write(&mut self, address: u64, kind: RefillKind, at: Cycle) {
        if self.observed.is_some() {
            self.add(address, kind, Cause::Demand, true, at);
        }
    }

    /// Returns whether there are none.
    #[inline(always)]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Passes all to `count`, and keeps them if they are observed.
    pub fn take(&mut self, mut count: impl FnMut(&Refill)) {
        self.list.iter().for_each(&mut count);
        match &mut self.observed {
            Some(observed) if observed.len() < MOST_UNREAD => observed.append(&mut self.list),
            _ => self.list.clear(),
        }
    }

    /// Keeps refills for [`Refills::observed`] from now on.
    pub fn observe(&mut self) {
        self.observed.get_or_insert_default();
    }

    /// Returns whether refills are kept.
    #[must_use]
    pub fn is_observed(&self) -> bool {
        self.observed.is_some()
    }

    /// Removes and returns the refills that have been kept, in the order of their requests.
    pub fn observed(&mut self) -> impl Iterator<Item = Refill> + '_ {
        self.observed.iter_mut().flat_map(|list| list.drain(..))
    }
}
