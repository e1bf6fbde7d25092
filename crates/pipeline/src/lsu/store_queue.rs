//! The store queue: store-to-load forwarding, interlocks and ordering violations (manual 7.5).

use std::ops::Range;

use fxscope_calendar::Cycle;
use fxscope_machine::spec::LoadStore;

use super::rules::forwards;

/// Flows of stores in the queue: a capacity of the simulator, one bit of a word for each. It is more than 24 store ports
/// and 8 entries of a write buffer hold together. With more of them, or with scatters of many flows, a load does not notice
/// an older store in flight that is more flows away (docs/model/limits.md#one-visit).
const REMEMBERED: usize = 64;
/// Log2 bytes of the blocks by which stores are looked up first.
const BLOCK_SHIFT: u8 = 6;

/// Bytes `[start, end)`, at least one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub struct Span {
    /// First byte.
    pub start: u64,
    /// One past the last byte.
    pub end: u64,
}

impl Span {
    /// `bytes` bytes at `start`.
    #[inline(always)]
    #[must_use]
    pub fn of(start: u64, bytes: u64) -> Span {
        Span { start, end: start + bytes.max(1) }
    }
    /// The aligned blocks of `1 << shift` bytes it touches.
    #[inline(always)]
    #[must_use]
    pub fn blocks(self, shift: u8) -> Range<u64> {
        self.start >> shift..((self.end - 1) >> shift) + 1
    }
    /// It touches more than one aligned block of `1 << shift` bytes.
    #[inline(always)]
    #[must_use]
    pub fn crosses(self, shift: u8) -> bool {
        (self.start ^ (self.end - 1)) >> shift != 0
    }
    /// Extended to whole blocks of `1 << shift` bytes.
    #[inline(always)]
    #[must_use]
    pub fn widened(self, shift: u8) -> Span {
        let mask = (1 << shift) - 1;
        Span { start: self.start & !mask, end: (self.end + mask) & !mask }
    }
    #[inline(always)]
    fn meets(self, other: Span) -> bool {
        self.start < other.end && other.start < self.end
    }
    #[inline(always)]
    fn holds(self, other: Span) -> bool {
        self.start <= other.start && other.end <= self.end
    }
}

/// A store that younger loads may depend on.
#[derive(Clone, Copy, Default, serde::Deserialize, serde::Serialize)]
pub struct Store {
    /// Its bytes, and the bytes dependency detection takes it to write.
    pub bytes: Span,
    /// See `bytes`.
    pub checked: Span,
    /// When its address was known.
    pub known: Cycle,
    /// When its access to the tags (ST0) ran.
    pub tags: Cycle,
    /// When its line arrives; 0 if it hit.
    pub line: Cycle,
    /// From when on loads find its data and have them forwarded.
    pub found: Cycle,
    /// When it committed.
    pub committed: Cycle,
    /// When its first write (ST2) ran.
    pub writes: Cycle,
    /// When its last write was completed.
    pub done: Cycle,
    /// Forwarding class (see [`forwards`]); 0 when its data are not in one write buffer entry.
    pub forward: u8,
}

/// A flow that reads memory.
#[derive(Clone, Copy)]
pub struct Read {
    /// Bytes it reads, and those dependency detection takes it to read.
    pub bytes: Span,
    /// See `bytes`.
    pub checked: Span,
    /// Forwarding class (see [`forwards`]).
    pub forward: u8,
}

/// The outcome of a lookup for a read at a given time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lookup {
    /// No older store conflicts, or the one that does forwards its data in time.
    Passed,
    /// The flow is cancelled. A replay before this time would be cancelled, too.
    Cancelled(Cycle),
    /// The same because of a store to another address that has the same low bits.
    Aliased(Cycle),
    /// An ordering violation: it went ahead of a store whose address was not known, which commits at this time.
    TooEarly(Cycle),
}

/// The stores into a block.
#[derive(Clone, Copy, Default, serde::Deserialize, serde::Serialize)]
struct Block {
    /// When the last of them completes.
    done: Cycle,
    /// Their places in the queue, a bit for each.
    stores: u64,
}

// A word has a bit for each place in the queue.
const _: () = assert!(REMEMBERED == u64::BITS as usize);

/// The last stores in program order.
#[derive(Clone, serde::Deserialize, serde::Serialize)]
pub struct StoreQueue {
    #[serde(with = "fxscope_calendar::array")]
    stores: Box<[Store; REMEMBERED]>,
    count: usize,
    /// Blocks by the compared part of their addresses.
    blocks: Box<[Block]>,
    /// The address bits that are compared when the whole address is not known, and the log2 of their span.
    partial: u64,
    partial_shift: u8,
    /// Cycles after which a flow in the pipes knows its whole physical address.
    partial_stages: Cycle,
}

impl StoreQueue {
    /// An empty queue.
    #[must_use]
    pub fn new(spec: &LoadStore) -> StoreQueue {
        let partial_bits = spec.partial_address_bits;
        let blocks = 1 << partial_bits.saturating_sub(BLOCK_SHIFT.into());
        StoreQueue {
            stores: Box::new([Store { checked: Span::of(0, 1), ..Store::default() }; REMEMBERED]),
            count: 0,
            blocks: vec![Block::default(); blocks].into(),
            partial: (1 << partial_bits) - 1,
            partial_shift: partial_bits as u8,
            partial_stages: spec.partial_address_stages,
        }
    }

    /// A store's flow replaces the oldest store. It will be [complete](StoreQueue::done) after `others` that
    /// are not complete either.
    #[inline(always)]
    pub fn begin(&mut self, others: usize, store: Store) {
        let place = (self.count + others) % REMEMBERED;
        for block in self.stores[place].checked.blocks(BLOCK_SHIFT) {
            let block = self.place_of(block);
            self.blocks[block].stores &= !(1 << place);
        }
        self.stores[place] = store;
    }

    /// The first store that is not complete.
    #[inline(always)]
    pub fn next(&mut self) -> &mut Store {
        &mut self.stores[self.count % REMEMBERED]
    }

    /// The first store that was not complete is: it is younger than all complete ones.
    #[inline(always)]
    pub fn done(&mut self) {
        let place = self.count % REMEMBERED;
        let Store { checked, done, .. } = self.stores[place];
        for block in checked.blocks(BLOCK_SHIFT) {
            let block = self.place_of(block);
            let block = &mut self.blocks[block];
            block.done = block.done.max(done);
            block.stores |= 1 << place;
        }
        self.count += 1;
    }

    /// The index of a block.
    #[inline(always)]
    fn place_of(&self, block: u64) -> usize {
        block as usize & (self.partial >> BLOCK_SHIFT) as usize
    }

    /// Whether a store that is not complete at `t` may overlap these bytes. `false` is certain.
    #[inline(always)]
    #[must_use]
    pub fn may_conflict(&self, checked: Span, t: Cycle) -> bool {
        let busy = |block: u64| self.blocks[self.place_of(block)].done > t;
        let mut blocks = checked.blocks(BLOCK_SHIFT);
        busy(blocks.start) || (blocks.start + 1 < blocks.end && blocks.any(busy))
    }

    /// Looks up `read`, whose flow runs at `t`. The youngest conflicting store decides.
    #[inline(always)]
    #[must_use]
    pub fn look_up(&self, read: &Read, t: Cycle) -> Lookup {
        let blocks = read.checked.blocks(BLOCK_SHIFT);
        let stores = blocks.fold(0, |stores, block| stores | self.blocks[self.place_of(block)].stores);
        // The youngest in the highest bit.
        let youngest = self.count.wrapping_sub(1) % REMEMBERED;
        let mut stores = stores.rotate_right(youngest as u32 + 1);
        while stores != 0 {
            let back = stores.leading_zeros();
            stores ^= 1 << 63 >> back;
            let store = &self.stores[youngest.wrapping_sub(back as usize) % REMEMBERED];
            if store.done <= t || !self.overlaps_partly(read.checked, store.checked) {
                continue;
            }
            let meets = read.checked.meets(store.checked);
            if store.known > t {
                if meets {
                    return Lookup::TooEarly(store.committed);
                }
            } else if meets && forwards(store.forward, read.forward) && store.bytes.holds(read.bytes) {
                // A flow that comes before the data is cancelled, too, and does not know when they come.
                return if store.found <= t { Lookup::Passed } else { Lookup::Cancelled(0) };
            } else if meets {
                return Lookup::Cancelled(store.line);
            } else if self.seems_to_overlap(read, store, t) {
                return Lookup::Aliased(store.line);
            }
        }
        Lookup::Passed
    }

    /// Whether two spans overlap in the compared address bits.
    #[inline(always)]
    fn overlaps_partly(&self, a: Span, b: Span) -> bool {
        let within = |start: u64, other: Span| start.wrapping_sub(other.start) & self.partial < other.end - other.start;
        within(a.start, b) | within(b.start, a)
    }

    /// Whether a store that overlaps in the compared address bits must be taken to overlap: for a read across a page,
    /// and for stores whose flow is young in the pipes or that wait for their line (manual 7.5.2).
    fn seems_to_overlap(&self, read: &Read, store: &Store, t: Cycle) -> bool {
        let in_pipes = |from: Cycle| from <= t && t < from + self.partial_stages;
        read.bytes.crosses(self.partial_shift) || in_pipes(store.tags) || in_pipes(store.writes) || t < store.line
    }
}
