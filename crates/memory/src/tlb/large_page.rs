//! A separate set-associative TLB for certain page sizes, mostly large ones.

use fxscope_machine::spec::Tlb as TlbSpec;

use super::{Entry, Hit, NONE, take_in};

/// Holds certain page sizes exclusively. Each set replaces the least recently used page.
#[derive(Clone, serde::Deserialize, serde::Serialize)]
pub(super) struct LargePageTlb {
    /// `ways` for each set, most recent first.
    entries: Box<[Entry]>,
    ways: usize,
    /// Log2 of the sizes of its pages.
    shifts: Box<[u32]>,
}

impl LargePageTlb {
    /// An empty one, if the machine has it.
    pub fn new(spec: &TlbSpec) -> Option<LargePageTlb> {
        let shifts: Box<[u32]> = spec.l2_only_sizes.iter().map(|bytes| bytes.trailing_zeros()).collect();
        let entries = vec![NONE; spec.l2_entries as usize].into();
        (!shifts.is_empty()).then_some(LargePageTlb { entries, ways: spec.l2_ways as usize, shifts })
    }

    /// Whether it has pages of this size.
    pub fn serves(&self, shift: u32) -> bool {
        self.shifts.contains(&shift)
    }

    /// The set of a page of this size: its number, modulo.
    fn set(&self, addr: u64, shift: u32) -> usize {
        (addr >> shift) as usize % (self.entries.len() / self.ways) * self.ways
    }

    /// The place of the page of `addr`: the first way of its set, and its way.
    fn find(&self, addr: u64) -> Option<(usize, usize)> {
        self.shifts.iter().find_map(|&shift| {
            let set = self.set(addr, shift);
            let way = self.entries[set..set + self.ways].iter().position(|entry| entry.has(addr))?;
            Some((set, way))
        })
    }

    /// The translation of `addr`, which counts as used.
    pub fn hit(&mut self, addr: u64) -> Option<Hit> {
        let (set, way) = self.find(addr)?;
        self.entries[set..=set + way].rotate_right(1);
        Some(self.entries[set].hit)
    }

    /// The translation of `addr`, which does not count as used.
    pub fn peek(&self, addr: u64) -> Option<Hit> {
        self.find(addr).map(|(set, way)| self.entries[set + way].hit)
    }

    /// A page of a size that it serves is known.
    pub fn insert(&mut self, addr: u64, shift: u32, entry: Entry) {
        let set = self.set(addr, shift);
        take_in(&mut self.entries[set..set + self.ways], entry);
    }

    /// All its entries.
    pub fn entries(&mut self) -> &mut [Entry] {
        &mut self.entries
    }
}
