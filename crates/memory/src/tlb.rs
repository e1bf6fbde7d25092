//! Translation: a small fully associative first level, a set-associative second level, table walks.

use fxscope_base::{Cycle, Pool};
use fxscope_machine::spec::Tlb as TlbSpec;

/// A range of the address space with one page size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageRange {
    /// First address.
    pub start: u64,
    /// Address behind the last byte.
    pub end: u64,
    /// Log2 of the page size.
    pub shift: u32,
}

/// How a translation went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Translation {
    /// Hit in the first level: no delay.
    L1,
    /// Hit in the second level.
    L2,
    /// Table walk.
    Walk,
}

#[derive(Clone, Copy)]
struct Entry {
    /// First address of the page.
    base: u64,
    /// Address bits that select the page.
    mask: u64,
    /// When the translation is there.
    ready: Cycle,
}

const NONE: Entry = Entry { base: 1, mask: 0, ready: 0 };

/// Number of remembered first-level hits; each address picks one by its page.
const RECENT: usize = 16;

/// The TLBs of one side (data or instructions) of a core.
pub struct Tlb {
    l1: Box<[Entry]>,
    /// Next first-level entry to replace (FIFO).
    fifo: usize,
    /// Where recent hits stand, by low bits of the numbers of 64 KiB and 2 MiB pages: arrays lie at round distances.
    recent: [u8; RECENT],
    /// Second level: page base with its size in the low bits, or 0; `l2_ways` for each set, most recent first.
    l2: Box<[u64]>,
    ways: usize,
    walkers: Pool,
    hit_cycles: Cycle,
    walk_cycles: Cycle,
}

impl Tlb {
    /// Empty TLBs.
    #[must_use]
    pub fn new(spec: &TlbSpec) -> Tlb {
        Tlb {
            l1: vec![NONE; spec.l1_entries as usize].into(),
            fifo: 0,
            recent: [0; RECENT],
            l2: vec![0; spec.l2_entries as usize].into(),
            ways: spec.l2_ways as usize,
            walkers: Pool::new(spec.walkers as usize),
            hit_cycles: spec.l2_hit,
            walk_cycles: spec.walk,
        }
    }

    /// When the first level has the translation of `addr`, if it has one or waits for it.
    #[inline(always)]
    pub fn ready(&mut self, addr: u64) -> Option<Cycle> {
        let hint = (addr >> 16 ^ addr >> 21) as usize % RECENT;
        let entry = self.l1[usize::from(self.recent[hint])];
        if addr & entry.mask == entry.base { Some(entry.ready) } else { self.search_l1(addr, hint) }
    }

    fn search_l1(&mut self, addr: u64, hint: usize) -> Option<Cycle> {
        let i = self.l1.iter().position(|e| addr & e.mask == e.base)?;
        self.recent[hint] = i as u8;
        Some(self.l1[i].ready)
    }

    /// Whether either level has the page of `addr` (of size `1 << shift`); nothing changes.
    pub fn holds(&mut self, addr: u64, shift: u32) -> bool {
        self.ready(addr).is_some() || {
            let (set, tag) = self.l2_place(addr, shift);
            self.l2[set..set + self.ways].contains(&tag)
        }
    }

    /// Fills the first level after a miss at `t`; returns when the translation is there and how it was had.
    pub fn refill(&mut self, addr: u64, shift: u32, t: Cycle) -> (Cycle, Translation) {
        let (ready, how) = self.look_up_l2(addr, shift, t);
        let mask = !((1 << shift) - 1);
        self.l1[self.fifo] = Entry { base: addr & mask, mask, ready };
        self.fifo = (self.fifo + 1) % self.l1.len();
        (ready, how)
    }

    fn look_up_l2(&mut self, addr: u64, shift: u32, t: Cycle) -> (Cycle, Translation) {
        let (set, tag) = self.l2_place(addr, shift);
        let ways = &mut self.l2[set..set + self.ways];
        if let Some(way) = ways.iter().position(|&e| e == tag) {
            ways[..=way].rotate_right(1);
            return (t + self.hit_cycles, Translation::L2);
        }
        ways.rotate_right(1);
        ways[0] = tag;
        let walker = self.walkers.first_free(t + self.hit_cycles);
        let end = walker.at + self.walk_cycles;
        self.walkers.hold(walker, walker.at, end);
        (end, Translation::Walk)
    }

    /// First way of the set and the tag of a page in the second level.
    fn l2_place(&self, addr: u64, shift: u32) -> (usize, u64) {
        let page = addr >> shift;
        let sets = self.l2.len() / self.ways;
        (page as usize % sets * self.ways, page << shift | u64::from(shift))
    }
}
