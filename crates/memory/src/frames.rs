//! Physical memory: the page frame, and so the memory node, of each page.
//!
//! A page gets its frame at its first translation, on the node that its range names, and keeps it until the range is
//! unmapped or the system moves the page. Frames of a node are allocated from its first address up. Small frames come
//! from chunks, so that small pages leave no holes between large ones. Translation tables are allocated from the last
//! address down.

use std::collections::BTreeMap;

use fxscope_machine::Spec;

use crate::tables::VIRTUAL_BITS;
use crate::tlb::Bounds;

/// Where the pages of a range are put. Nodes are counted from 0, as CMGs are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, serde::Deserialize, serde::Serialize)]
pub enum Placement {
    /// On the node of the core that touches them first.
    #[default]
    FirstTouch,
    /// On this node.
    Node(u8),
    /// Page by page, in turns on several nodes.
    Interleave(Turns),
}

/// Most nodes that pages can be interleaved over: as many as a machine can have.
pub const MOST_NODES: usize = 24;

/// Nodes that get pages in turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Deserialize, serde::Serialize)]
pub struct Turns {
    /// How many pages in a row each node gets, by its number.
    pub pages: [u8; MOST_NODES],
}

impl Turns {
    /// One page for each node whose bit is set.
    #[must_use]
    pub fn equal(nodes: u64) -> Turns {
        Turns { pages: std::array::from_fn(|node| (nodes >> node & 1) as u8) }
    }

    /// The node of page number `page`, counted from address 0; `None`: no node gets any.
    fn node(&self, page: u64) -> Option<usize> {
        let round: u64 = self.pages.iter().map(|&pages| u64::from(pages)).sum();
        let mut rest = page.checked_rem(round)?;
        self.pages.iter().position(|&pages| {
            let here = rest < u64::from(pages);
            rest = rest.saturating_sub(pages.into());
            here
        })
    }
}

/// A set of pages that ranges of several address spaces, or several of one, share: memory shared by processes, or a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Deserialize, serde::Serialize)]
pub struct SharedPages {
    /// The number of the set.
    pub set: u64,
    /// The address of the set's first byte, modulo the size of an address space.
    pub origin: u64,
}

/// A range of an address space with one page size and one placement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub struct PageRange {
    /// First address.
    pub start: u64,
    /// One past the last address.
    pub end: u64,
    /// Log2 of the page size.
    pub shift: u32,
    /// Nodes of its pages.
    pub placement: Placement,
    /// How often the system has moved its pages to another node: moved pages get new frames.
    pub moved: u32,
    /// The set that its pages belong to; `None`: they are only its own.
    pub shared: Option<SharedPages>,
    /// What its pages translate at most: more than the range where the range is a part of a segment.
    pub bounds: Bounds,
}

impl PageRange {
    /// The set of the page at `page`, and the page's offset in it with its size in the low bits. `None`: it is not shared, or
    /// the set does not begin at the boundary of a page.
    fn shared_page(&self, page: u64) -> Option<(u64, u64)> {
        let shared = self.shared.filter(|shared| shared.origin & ((1 << self.shift) - 1) == 0)?;
        Some((shared.set, key(page.wrapping_sub(shared.origin) & VIRTUAL, self.shift)))
    }
}

/// Log2 bytes of the chunks from which smaller frames are allocated: 2 MiB.
const CHUNK_SHIFT: u32 = 21;

/// The bits of a virtual address without the number of its address space.
pub(crate) const VIRTUAL: u64 = (1 << VIRTUAL_BITS) - 1;

/// The frame of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub struct Frame {
    /// Log2 of its size.
    pub shift: u32,
    /// Its physical address.
    pub physical: u64,
    /// How often its page had been moved when it got this frame ([`PageRange::moved`]).
    pub moved: u32,
}

/// The memory of one node.
#[derive(Clone, Debug, Default, serde::Deserialize, serde::Serialize)]
struct Node {
    /// Its size.
    bytes: u64,
    /// Bytes allocated, from the first address up.
    used: u64,
    /// The free part of the current chunk.
    chunk: std::ops::Range<u64>,
    /// Freed frames, by size.
    free: BTreeMap<u32, Vec<u64>>,
    /// Bytes of translation tables, with their alignment gaps, from the last address down.
    tables: u64,
}

/// The node of each physical address. Nodes begin at multiples of a power of two, so that a shift finds the node of an
/// address whatever the size of nodes is.
#[derive(Clone, Copy, Debug, Default, serde::Deserialize, serde::Serialize)]
pub struct Nodes {
    /// Log2 of the distance between the first addresses of nodes.
    shift: u32,
    /// The last node.
    last: usize,
}

impl Nodes {
    fn new(spec: &Spec) -> Nodes {
        let tiers = spec.memory_tiers.bytes.iter().copied();
        let largest = tiers.fold(spec.topology.node_bytes, u64::max);
        Nodes { shift: largest.next_power_of_two().trailing_zeros(), last: spec.nodes() as usize - 1 }
    }

    /// The first physical address of a node.
    fn first(self, node: usize) -> u64 {
        (node as u64) << self.shift
    }

    /// The node of a physical address. Memory beyond that of the machine belongs to the last one.
    #[inline(always)]
    #[must_use]
    pub fn of(self, physical: u64) -> usize {
        ((physical >> self.shift) as usize).min(self.last)
    }
}

/// The page frames of all nodes.
#[derive(Clone, Default, serde::Deserialize, serde::Serialize)]
pub struct Frames {
    /// Those of the CMGs, then the tiers.
    nodes: Box<[Node]>,
    cmgs: usize,
    addresses: Nodes,
    /// Frames by virtual page: its first address with the number of its address space above it.
    pages: BTreeMap<u64, Frame>,
    /// Frames of shared pages: by the number of their set, and by offset in it.
    shared: BTreeMap<(u64, u64), Frame>,
    /// Physical addresses of translation tables by [`crate::tables::Path::name`].
    tables: BTreeMap<u64, u64>,
}

impl Frames {
    /// All memory free.
    #[must_use]
    pub fn new(spec: &Spec) -> Frames {
        let cmgs = std::iter::repeat_n(spec.topology.node_bytes, spec.topology.cmgs as usize);
        let sizes = cmgs.chain(spec.memory_tiers.bytes.iter().copied());
        Frames {
            nodes: sizes.map(|bytes| Node { bytes, ..Node::default() }).collect(),
            cmgs: spec.topology.cmgs as usize,
            addresses: Nodes::new(spec),
            pages: BTreeMap::new(),
            shared: BTreeMap::new(),
            tables: BTreeMap::new(),
        }
    }

    /// The node of each address.
    #[must_use]
    pub fn nodes(&self) -> Nodes {
        self.addresses
    }

    /// The node of a physical address.
    #[must_use]
    pub fn node_of(&self, physical: u64) -> usize {
        self.addresses.of(physical)
    }

    /// The frame of the page at `page` in `range`.
    fn of(&self, page: u64, range: PageRange) -> Option<&Frame> {
        match range.shared_page(page) {
            Some(shared) => self.shared.get(&shared),
            None => self.pages.get(&key(page, range.shift)),
        }
    }

    /// The physical address of the page at `page` in `range`, if it has a current frame.
    #[must_use]
    pub fn known(&self, page: u64, range: PageRange) -> Option<u64> {
        let frame = self.of(page, range)?;
        (frame.moved >= range.moved).then_some(frame.physical)
    }

    /// The physical address of the page at `page` in `range`, which a core of node `local` translates.
    pub fn frame(&mut self, page: u64, range: PageRange, local: usize) -> u64 {
        let PageRange { shift, placement, moved, .. } = range;
        if let Some(physical) = self.known(page, range) {
            return physical;
        }
        if let Some(&frame) = self.of(page, range) {
            self.give_back(frame);
        }
        let wanted = match placement {
            Placement::FirstTouch => local,
            Placement::Node(node) => usize::from(node),
            Placement::Interleave(turns) => turns.node((page & VIRTUAL) >> shift).unwrap_or(local),
        };
        let physical = self.take(wanted.min(self.nodes.len() - 1), shift);
        let frame = Frame { shift, physical, moved };
        match range.shared_page(page) {
            Some(shared) => self.shared.insert(shared, frame),
            None => self.pages.insert(key(page, shift), frame),
        };
        physical
    }

    /// Whether the page at `page` in `range` has a frame.
    #[must_use]
    pub fn has(&self, page: u64, range: PageRange) -> bool {
        self.of(page, range).is_some()
    }

    /// A free frame on `node`, or on the next node with room when that is full: tiers come after the nodes of all CMGs.
    fn take(&mut self, node: usize, shift: u32) -> u64 {
        let (nodes, cmgs) = (self.nodes.len(), self.cmgs);
        let others = (0..cmgs).map(|i| (node + i) % cmgs).chain(cmgs..nodes);
        let with_room = std::iter::once(node).chain(others).find(|&n| self.nodes[n].has_room(shift));
        // A program larger than the machine's memory: the last node continues beyond its end.
        let node = with_room.unwrap_or(nodes - 1);
        self.addresses.first(node) + self.nodes[node].take(shift)
    }

    /// The physical address of the translation table `name`, if it has one.
    #[must_use]
    pub fn known_table(&self, name: u64) -> Option<u64> {
        self.tables.get(&name).copied()
    }

    /// The physical address of the translation table `name` of `bytes` bytes, a power of two. It lies on the node of
    /// the core that needs it first, and stays there: tables outlive the pages they lead to.
    pub fn table(&mut self, name: u64, bytes: u64, local: usize) -> u64 {
        let (nodes, addresses) = (&mut self.nodes, self.addresses);
        *self.tables.entry(name).or_insert_with(|| addresses.first(local) + nodes[local].take_table(bytes))
    }

    /// `start..end` of one address space is unmapped: frees the frames of pages that are completely in it.
    pub fn release(&mut self, start: u64, end: u64) {
        let whole = |(&key, frame): (&u64, &Frame)| (page(key) + (1 << frame.shift) <= end).then_some(key);
        let gone: Vec<u64> = self.pages.range(start..end).filter_map(whole).collect();
        for key in gone {
            if let Some(frame) = self.pages.remove(&key) {
                self.give_back(frame);
            }
        }
    }

    /// Whether frames are those of sets that `exists` does not know any more.
    #[must_use]
    pub fn have_lost(&self, exists: impl Fn(u64) -> bool) -> bool {
        self.shared.keys().any(|&(set, _)| !exists(set))
    }

    /// Iterates over the sets of shared pages that have frames.
    pub fn shared_sets(&self) -> impl Iterator<Item = u64> + '_ {
        let first_from = |set: u64| self.shared.range((set, 0)..).next().map(|(&(set, _), _)| set);
        std::iter::successors(first_from(0), move |&set| first_from(set + 1))
    }

    /// Frees the frames of the sets that `exists` does not know any more.
    pub fn release_sets(&mut self, exists: impl Fn(u64) -> bool) {
        let gone: Vec<(u64, u64)> = self.shared.keys().copied().filter(|&(set, _)| !exists(set)).collect();
        for key in gone {
            if let Some(frame) = self.shared.remove(&key) {
                self.give_back(frame);
            }
        }
    }

    fn give_back(&mut self, frame: Frame) {
        let node = self.node_of(frame.physical);
        let offset = frame.physical - self.addresses.first(node);
        self.nodes[node].free.entry(frame.shift).or_default().push(offset);
    }

    /// The pages of `start..end` that have a frame, by address.
    pub fn touched(&self, start: u64, end: u64) -> impl Iterator<Item = (u64, Frame)> + '_ {
        self.pages.range(start..end).map(|(&key, &frame)| (page(key), frame))
    }
}

/// Bits of the log2 of a page's size.
const SHIFT_BITS: u64 = 0x3f;

/// Pages of several sizes may begin at one address, where segments share a large page: the lowest bits, which are 0 in
/// a page's address, distinguish them.
fn key(page: u64, shift: u32) -> u64 {
    page | u64::from(shift)
}

fn page(key: u64) -> u64 {
    key & !SHIFT_BITS
}

impl Node {
    fn has_room(&self, shift: u32) -> bool {
        let size = 1 << shift;
        let large = size.max(1 << CHUNK_SHIFT);
        let whole = self.used.next_multiple_of(large) + large + self.tables <= self.bytes;
        let cut = shift < CHUNK_SHIFT && self.chunk.start.next_multiple_of(size) + size <= self.chunk.end;
        whole || cut || self.free.get(&shift).is_some_and(|free| !free.is_empty())
    }

    /// Offset of a table of `bytes` bytes in the node's memory.
    fn take_table(&mut self, bytes: u64) -> u64 {
        // When tables fill a whole node, they start again at its end.
        let end = if self.tables + 2 * bytes > self.bytes { self.bytes } else { self.bytes - self.tables };
        let offset = (end - bytes) & !(bytes - 1);
        self.tables = self.bytes - offset;
        offset
    }

    /// Offset of a free frame in the node's memory.
    fn take(&mut self, shift: u32) -> u64 {
        if let Some(offset) = self.free.get_mut(&shift).and_then(Vec::pop) {
            return offset;
        }
        let size = 1 << shift;
        if shift >= CHUNK_SHIFT {
            let start = self.used.next_multiple_of(size);
            self.used = start + size;
            return start;
        }
        if self.chunk.start.next_multiple_of(size) + size > self.chunk.end {
            let start = self.take(CHUNK_SHIFT);
            self.chunk = start..start + (1 << CHUNK_SHIFT);
        }
        let start = self.chunk.start.next_multiple_of(size);
        self.chunk.start = start + size;
        start
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames() -> Frames {
        Frames::new(&fxscope_machine::load("a64fx", &[]).expect("built in"))
    }

    fn range(shift: u32, placement: Placement) -> PageRange {
        PageRange { start: 0, end: u64::MAX, shift, placement, moved: 0, shared: None, bounds: Bounds::ALL }
    }

    #[test]
    fn a_page_is_put_where_it_is_first_touched_and_stays_there() {
        let mut f = frames();
        let first = f.frame(0x10000, range(16, Placement::FirstTouch), 2);
        assert_eq!(f.node_of(first), 2);
        assert_eq!(f.frame(0x10000, range(16, Placement::FirstTouch), 0), first);
    }

    #[test]
    fn pages_of_one_set_have_one_frame_wherever_they_are_until_the_set_is_gone() {
        let mut f = frames();
        let mapped =
            |origin| PageRange { shared: Some(SharedPages { set: 7, origin }), ..range(16, Placement::FirstTouch) };
        let first = f.frame(3 << 48 | 0x5_0000, mapped(0x4_0000), 2);
        assert_eq!(f.frame(0x9_0000, mapped(0x8_0000), 0), first);
        assert_ne!(f.frame(0xa_0000, mapped(0x8_0000), 0), first);
        // The range begins with the second page of the set, at the first address.
        assert_eq!(f.frame(0, mapped(0_u64.wrapping_sub(0x1_0000)), 0), first);
        assert_ne!(f.frame(0x5_0000, range(16, Placement::FirstTouch), 2), first);
        f.release(0, 1 << 48);
        assert!(f.has(0x9_0000, mapped(0x8_0000)) && !f.have_lost(|set| set == 7));
        f.release_sets(|set| set != 7);
        assert!(!f.has(0x9_0000, mapped(0x8_0000)));
    }

    #[test]
    fn a_small_and_a_large_page_at_one_address_keep_their_own_frames() {
        let mut f = frames();
        let place = Placement::FirstTouch;
        let frames = [16, 21].map(|shift| f.frame(0x40_0000, range(shift, place), 0));
        assert_ne!(frames[0], frames[1]);
        assert_eq!([16, 21].map(|shift| f.frame(0x40_0000, range(shift, place), 0)), frames);
    }

    #[test]
    fn pages_follow_each_other_in_turn_over_the_nodes_of_a_mask() {
        let mut f = frames();
        let nodes: Vec<usize> = (0..6u64)
            .map(|i| {
                let at = f.frame(i << 21, range(21, Placement::Interleave(Turns::equal(0b1011))), 2);
                f.node_of(at)
            })
            .collect();
        assert_eq!(nodes, [0, 1, 3, 0, 1, 3]);
    }

    #[test]
    fn nodes_with_weights_get_as_many_pages_in_a_row() {
        let mut f = frames();
        let mut turns = Turns::equal(0);
        (turns.pages[1], turns.pages[3]) = (3, 1);
        let nodes: Vec<usize> = (0..8u64)
            .map(|i| {
                let at = f.frame(i << 21, range(21, Placement::Interleave(turns)), 2);
                f.node_of(at)
            })
            .collect();
        assert_eq!(nodes, [1, 1, 1, 3, 1, 1, 1, 3]);
    }

    #[test]
    fn a_tier_has_its_own_size_and_gets_pages_when_all_cmgs_are_full() {
        let mut spec = fxscope_machine::load("a64fx", &[]).expect("built in");
        let tier = fxscope_machine::spec::MemoryTier {
            name: "cxl".to_owned(),
            latency_ns: 250,
            read_bytes_per_second: 32_000_000_000,
            write_bytes_per_second: 32_000_000_000,
            total_bytes_per_second: 64_000_000_000,
            bytes: 16 << 30,
            distance: 40,
        };
        spec.tables.memory_tiers.add(&tier);
        let mut f = Frames::new(&spec);
        let mut nodes = [0; 5];
        for i in 0..48u64 {
            let at = f.frame(i << 40, range(30, Placement::Node(3)), 0);
            nodes[f.node_of(at)] += 1;
        }
        assert_eq!(nodes, [8, 8, 8, 8, 16]);
        let mut f = Frames::new(&spec);
        let bound = f.frame(0, range(21, Placement::Node(4)), 0);
        assert_eq!(f.node_of(bound), 4);
    }

    #[test]
    fn frames_of_all_sizes_are_aligned_and_do_not_overlap() {
        let mut f = frames();
        let mut taken: Vec<(u64, u64)> = Vec::new();
        for i in 0..400u64 {
            let shift = [12, 16, 21, 25][(i * 7 % 11 % 4) as usize];
            let at = f.frame(i << 32, range(shift, Placement::Node(1)), 0);
            assert_eq!(at % (1 << shift), 0);
            assert!(taken.iter().all(|&(start, end)| at + (1 << shift) <= start || end <= at));
            taken.push((at, at + (1 << shift)));
        }
    }

    #[test]
    fn a_full_node_hands_over_to_the_next() {
        let mut f = frames();
        let nodes: Vec<usize> = (0..20u64)
            .map(|i| {
                let at = f.frame(i << 40, range(30, Placement::Node(3)), 0);
                f.node_of(at)
            })
            .collect();
        assert!(nodes[..8].iter().all(|&n| n == 3) && nodes[8..16].iter().all(|&n| n == 0), "{nodes:?}");
    }

    #[test]
    fn translation_tables_lie_at_the_end_of_a_node_aligned_and_apart_and_stay() {
        let mut f = frames();
        let first = f.table(1, 1 << 16, 1);
        assert_eq!(first, 2 * f.nodes[1].bytes - (1 << 16));
        assert_eq!(f.table(2, 1 << 12, 1), first - (1 << 12));
        assert_eq!(f.table(3, 1 << 16, 1), first - (2 << 16));
        assert_eq!(f.table(1, 1 << 16, 3), first);
    }

    #[test]
    fn pages_and_tables_lie_on_their_node_and_apart_whatever_size_nodes_have() {
        const MIB: u64 = 1 << 20;
        for node_bytes in [64 * MIB, 96 * MIB, 100_000_000, 6 << 30, 8 << 30, 48 << 30, (48 << 30) + 4096] {
            for cmgs in [1, 2, 3, 4, 16] {
                let mut spec = fxscope_machine::load("a64fx", &[]).expect("built in");
                (spec.tables.topology.node_bytes, spec.tables.topology.cmgs) = (node_bytes, cmgs);
                let mut f = Frames::new(&spec);
                let mut taken: Vec<(u64, u64)> = Vec::new();
                for i in 0..24 {
                    for node in 0..cmgs as usize {
                        let name = i * 16 + node as u64;
                        let (shift, table) = ([12, 16, 21][i as usize % 3], [1 << 12, 1 << 16][i as usize % 2]);
                        let page = f.frame(name << 32, range(shift, Placement::Node(node as u8)), 0);
                        for (at, bytes) in [(page, 1 << shift), (f.table(name, table, node), table)] {
                            let ends = [at, at + bytes - 1].map(|address| f.node_of(address));
                            assert_eq!(ends, [node, node], "{at:#x} of nodes of {node_bytes} bytes");
                            assert_eq!(at % bytes, 0, "{at:#x} is aligned");
                            assert!(taken.iter().all(|&(start, end)| at + bytes <= start || end <= at), "{at:#x}");
                            taken.push((at, at + bytes));
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn a_page_that_would_reach_into_translation_tables_goes_to_the_next_node() {
        let mut f = frames();
        f.table(1, 1 << 16, 1);
        let nodes: Vec<usize> = (0..8u64)
            .map(|i| {
                let at = f.frame(i << 40, range(30, Placement::Node(1)), 0);
                f.node_of(at)
            })
            .collect();
        assert_eq!(nodes, [1, 1, 1, 1, 1, 1, 1, 2]);
    }

    #[test]
    fn turns_of_nodes_are_the_same_in_all_address_spaces() {
        let mut f = frames();
        let mut node = |space: u64| {
            let at = f.frame(space << 48 | 5 << 21, range(21, Placement::Interleave(Turns::equal(0b111))), 0);
            f.node_of(at)
        };
        assert_eq!((node(0), node(1), node(2)), (2, 2, 2));
    }

    #[test]
    fn a_page_that_is_unmapped_in_part_keeps_its_frame() {
        let mut f = frames();
        let first = f.frame(0, range(21, Placement::Node(0)), 0);
        f.release(0, 0x10000);
        assert_eq!(f.frame(0, range(21, Placement::Node(0)), 0), first);
    }

    #[test]
    fn a_page_that_has_been_moved_gets_a_frame_on_its_new_node_once_and_its_old_one_is_free() {
        let mut f = frames();
        let old = f.frame(0x10000, range(16, Placement::FirstTouch), 2);
        let moved = PageRange { moved: 1, ..range(16, Placement::Node(1)) };
        let new = f.frame(0x10000, moved, 0);
        assert_eq!(f.node_of(new), 1);
        assert_eq!(f.frame(0x10000, moved, 3), new);
        assert_eq!(f.frame(0x20000, range(16, Placement::Node(2)), 0), old);
    }

    #[test]
    fn an_unmapped_page_s_frame_is_used_again() {
        let mut f = frames();
        let first = f.frame(0x10000, range(16, Placement::Node(0)), 0);
        f.frame(0x20000, range(16, Placement::Node(0)), 0);
        f.release(0x10000, 0x20000);
        assert_eq!(f.touched(0, u64::MAX).count(), 1);
        assert_eq!(f.frame(0x50000, range(16, Placement::Node(0)), 0), first);
    }
}
