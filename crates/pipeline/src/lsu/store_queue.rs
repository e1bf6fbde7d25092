//! What older stores do to a load: forwarding, interlocks and ordering violations (manual 7.5).

use std::ops::Range;

use fxscope_calendar::Cycle;
use fxscope_machine::spec::LoadStore;

use super::rules::forwards;

/// Stores remembered: all that can be in the store ports and the write buffer.
const REMEMBERED: usize = 64;
/// Bytes of the blocks by which stores are looked up first, as a power of two.
const BLOCK_SHIFT: u8 = 6;

/// Bytes `[start, end)`, at least one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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

/// A store that younger loads may run into.
#[derive(Clone, Copy, Default)]
pub struct Store {
    /// Its bytes, and the bytes dependency detection takes it to write.
    pub bytes: Span,
    /// See `bytes`.
    pub checked: Span,
    /// When its address was known.
    pub known: Cycle,
    /// When its access to the tags (ST0) ran.
    pub tags: Cycle,
    /// When its line arrives; 0 if it was there.
    pub line: Cycle,
    /// From when on flows of loads find its data and have them forwarded.
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

/// What a read that runs at a given time meets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meeting {
    /// No older store is in the way, or the one that is hands its data over in time.
    Passed,
    /// The flow is cancelled. It is of no use to send it again before this time.
    Cancelled(Cycle),
    /// It went ahead of a store whose address was not known, which commits at this time.
    TooEarly(Cycle),
}

/// What is known of the stores into a block.
#[derive(Clone, Copy, Default)]
struct Block {
    /// When the last of them is done.
    done: Cycle,
    /// Which of the remembered stores they are, a bit for the place of each.
    stores: u64,
}

// A word has a bit for each store that is remembered.
const _: () = assert!(REMEMBERED == u64::BITS as usize);

/// The last stores, oldest first.
pub struct StoreQueue {
    stores: Box<[Store; REMEMBERED]>,
    count: usize,
    /// Blocks by the compared part of their addresses.
    blocks: Box<[Block]>,
    /// The compared bits of addresses where whole ones are not at hand, and the log2 of what they span.
    partial: u64,
    partial_shift: u8,
    /// Cycles after which a flow in the pipes has its whole physical address.
    partial_stages: Cycle,
}

impl StoreQueue {
    /// No stores.
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

    /// The flow of a store that will be [done](StoreQueue::done) after `others` that are not either takes the place of
    /// the oldest store.
    #[inline(always)]
    pub fn begin(&mut self, others: usize, store: Store) {
        let place = (self.count + others) % REMEMBERED;
        for block in self.stores[place].checked.blocks(BLOCK_SHIFT) {
            let block = self.place_of(block);
            self.blocks[block].stores &= !(1 << place);
        }
        self.stores[place] = store;
    }

    /// The first store that is not done yet.
    #[inline(always)]
    pub fn next(&mut self) -> &mut Store {
        &mut self.stores[self.count % REMEMBERED]
    }

    /// All is known now of the first store that was not done, which is younger than all before.
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

    /// Where a block stands.
    #[inline(always)]
    fn place_of(&self, block: u64) -> usize {
        block as usize & (self.partial >> BLOCK_SHIFT) as usize
    }

    /// Whether a store that is not done at `t` may meet these bytes; `false` is certain.
    #[inline(always)]
    #[must_use]
    pub fn may_meet(&self, checked: Span, t: Cycle) -> bool {
        let busy = |block: u64| self.blocks[self.place_of(block)].done > t;
        let mut blocks = checked.blocks(BLOCK_SHIFT);
        busy(blocks.start) || (blocks.start + 1 < blocks.end && blocks.any(busy))
    }

    /// What `read` meets when its flow runs at `t`: the youngest store in its way decides.
    #[inline(always)]
    #[must_use]
    pub fn meet(&self, read: &Read, t: Cycle) -> Meeting {
        let blocks = read.checked.blocks(BLOCK_SHIFT);
        let stores = blocks.fold(0, |stores, block| stores | self.blocks[self.place_of(block)].stores);
        // The youngest in the highest bit.
        let youngest = self.count.wrapping_sub(1) % REMEMBERED;
        let mut stores = stores.rotate_right(youngest as u32 + 1);
        while stores != 0 {
            let back = stores.leading_zeros();
            stores ^= 1 << 63 >> back;
            let store = &self.stores[youngest.wrapping_sub(back as usize) % REMEMBERED];
            if store.done <= t || !self.meets_partly(read.checked, store.checked) {
                continue;
            }
            let meets = read.checked.meets(store.checked);
            if store.known > t {
                if meets {
                    return Meeting::TooEarly(store.committed);
                }
            } else if meets && forwards(store.forward, read.forward) && store.bytes.holds(read.bytes) {
                // A flow that comes before the data is cancelled too, and knows of no time at which to come again.
                return if store.found <= t { Meeting::Passed } else { Meeting::Cancelled(0) };
            } else if meets || self.seems_to_meet(read, store, t) {
                return Meeting::Cancelled(store.line);
            }
        }
        Meeting::Passed
    }

    /// Whether bytes meet others when only the compared parts of their addresses are looked at.
    #[inline(always)]
    fn meets_partly(&self, a: Span, b: Span) -> bool {
        let within = |start: u64, other: Span| start.wrapping_sub(other.start) & self.partial < other.end - other.start;
        within(a.start, b) | within(b.start, a)
    }

    /// Whether nothing but the compared part of its address, which meets, is known of a store: for a read across a page,
    /// and for stores whose flow is young in the pipes or that wait for their line (manual 7.5.2).
    fn seems_to_meet(&self, read: &Read, store: &Store, t: Cycle) -> bool {
        let in_pipes = |from: Cycle| from <= t && t < from + self.partial_stages;
        read.bytes.crosses(self.partial_shift) || in_pipes(store.tags) || in_pipes(store.writes) || t < store.line
    }
}
