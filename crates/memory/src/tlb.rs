//! Translation look-aside buffers: a small fully associative first level, and a set-associative TLB, which is either
//! the second level or a separate TLB for certain page sizes.

mod large_page;

use fxscope_calendar::Cycle;
use fxscope_machine::spec::{Tlb as TlbSpec, TlbReplacement};

use crate::reserve::delay;
use large_page::LargePageTlb;

#[derive(Clone, Copy, serde::Deserialize, serde::Serialize)]
struct Entry {
    /// The first address that it translates.
    first: u64,
    /// How many it translates: those of a page within its bounds, or none.
    bytes: u64,
    /// [`Extent::kind`] of its page.
    kind: u64,
    /// When the translation is available, and its result.
    hit: Hit,
}

impl Entry {
    /// Whether it translates `addr`.
    #[inline(always)]
    fn has(&self, addr: u64) -> bool {
        addr.wrapping_sub(self.first) < self.bytes
    }
}

/// The addresses that a page of a range translates at most, both ends included.
///
/// Every segment of a program has pages of its own, as if it was linked to begin and end with one: the large page that holds the end of
/// `.data` does not translate what lies behind `.data`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub struct Bounds {
    /// Which segment: below 64. TLBs tell pages of several segments with the same number apart by it.
    pub segment: u8,
    /// The first address.
    pub first: u64,
    /// The last address.
    pub last: u64,
}

impl Bounds {
    /// All addresses.
    pub const ALL: Bounds = Bounds { segment: 0, first: 0, last: u64::MAX };
}

/// The size and the bounds of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Log2 of the size, bytes.
    pub shift: u32,
    /// What it translates at most.
    pub bounds: Bounds,
}

impl Extent {
    /// What distinguishes pages that begin at the same address: their segment and size.
    fn kind(self) -> u64 {
        u64::from(self.bounds.segment) << SHIFT_BITS | u64::from(self.shift)
    }
}

impl From<u32> for Extent {
    /// A page of `1 << shift` bytes without bounds.
    fn from(shift: u32) -> Extent {
        Extent { shift, bounds: Bounds::ALL }
    }
}

/// A translation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub struct Hit {
    /// When it is available.
    pub ready: Cycle,
    /// The physical address minus the virtual one.
    pub offset: u64,
}

const NONE: Entry = Entry { first: 0, bytes: 0, kind: 0, hit: Hit { ready: 0, offset: 0 } };

/// A page in the second level.
#[derive(Clone, Copy, Default, serde::Deserialize, serde::Serialize)]
struct Page {
    /// Its first address, with its segment and size in the low bits, or 0.
    tag: u64,
    offset: u64,
}

/// Bits of log2 of a page's size in the tag of a page.
const SHIFT_BITS: u32 = 6;

/// Number of remembered first-level hits. Each address selects one by its page.
const RECENT: usize = 16;

/// The TLBs of one side (data or instructions) of a core.
#[derive(Clone, serde::Deserialize, serde::Serialize)]
pub struct Tlb {
    /// The first level; with LRU replacement, most recently used first.
    l1: Box<[Entry]>,
    /// The first level replaces the least recently used entry.
    lru: bool,
    /// Next first-level entry to replace (FIFO).
    fifo: usize,
    /// The places of recent hits, by low bits of the numbers of 64 KiB and 2 MiB pages, since arrays lie at round
    /// distances. With LRU all of them are the first place: a hit there does not change the order.
    recent: [u8; RECENT],
    /// The set-associative TLB, where it is a separate one.
    large_page: Option<LargePageTlb>,
    /// The second level, where there is one; `ways` entries for each set, most recently used first.
    l2: Box<[Page]>,
    ways: usize,
    hit_cycles: Cycle,
}

impl Tlb {
    /// Empty TLBs.
    #[must_use]
    pub fn new(spec: &TlbSpec) -> Tlb {
        Tlb {
            l1: vec![NONE; spec.l1_entries as usize].into(),
            lru: spec.l1_replacement == TlbReplacement::Lru,
            fifo: 0,
            recent: [0; RECENT],
            large_page: LargePageTlb::new(spec),
            l2: vec![Page::default(); spec.l2_entries as usize].into(),
            ways: spec.l2_ways as usize,
            hit_cycles: if spec.free_misses { 0 } else { spec.l2_hit },
        }
    }

    /// Whether hits do not change what will be replaced.
    pub(crate) fn keeps_order(&self) -> bool {
        !self.lru && self.large_page.is_none()
    }

    /// The translation of `addr`, if the first level, or the separate TLB, has it or waits for it.
    #[inline(always)]
    pub fn hit(&mut self, addr: u64) -> Option<Hit> {
        let hint = (addr >> 16 ^ addr >> 21) as usize % RECENT;
        let entry = self.l1[usize::from(self.recent[hint])];
        if entry.has(addr) { Some(entry.hit) } else { self.search(addr, hint) }
    }

    #[inline(never)]
    fn search(&mut self, addr: u64, hint: usize) -> Option<Hit> {
        if let Some(hit) = self.large_page.as_mut().and_then(|large_page| large_page.hit(addr)) {
            return Some(hit);
        }
        let i = self.l1.iter().position(|e| e.has(addr))?;
        if self.lru {
            self.l1[..=i].rotate_right(1);
            return Some(self.l1[0].hit);
        }
        self.recent[hint] = i as u8;
        Some(self.l1[i].hit)
    }

    /// As [`Tlb::hit`], without counting as a use.
    #[inline(always)]
    pub fn peek(&mut self, addr: u64) -> Option<Hit> {
        if self.lru || self.large_page.is_some() { self.look_through(addr) } else { self.hit(addr) }
    }

    /// Same, for replacement policies that depend on use.
    #[inline(never)]
    fn look_through(&self, addr: u64) -> Option<Hit> {
        let large_page = self.large_page.as_ref().and_then(|large_page| large_page.peek(addr));
        large_page.or_else(|| self.l1.iter().find(|e| e.has(addr)).map(|e| e.hit))
    }

    /// Whether either level has the page of `addr` at `t`. A walk for it may be in progress. Does not count as a use.
    pub fn holds(&mut self, addr: u64, page: impl Into<Extent>, t: Cycle) -> bool {
        if let Some(hit) = self.peek(addr) {
            return hit.ready <= t + self.hit_cycles;
        }
        if self.large_page.is_some() {
            return false;
        }
        let (set, tag) = self.l2_place(addr, page.into());
        self.l2[set..set + self.ways].iter().any(|page| page.tag == tag)
    }

    /// After a miss of the first level at `t`: the translation, if the second level has it.
    ///
    /// # Errors
    /// When it is known that the second level does not have it either.
    pub fn second_level<const TIMED: bool>(
        &mut self,
        addr: u64,
        page: impl Into<Extent>,
        t: Cycle,
    ) -> Result<Hit, Cycle> {
        let extent = page.into();
        if self.large_page.is_some() {
            // Both TLBs were accessed at once.
            return Err(t);
        }
        let known = t + delay::<TIMED>(self.hit_cycles);
        let (set, tag) = self.l2_place(addr, extent);
        let ways = &mut self.l2[set..set + self.ways];
        let Some(way) = ways.iter().position(|page| page.tag == tag) else { return Err(known) };
        ways[..=way].rotate_right(1);
        let hit = Hit { ready: known, offset: ways[0].offset };
        self.fill(entry(addr, extent, hit));
        Ok(hit)
    }

    /// Inserts the page of `addr`, whose walk found its frame at `frame` and ends at `ready`.
    pub fn insert(&mut self, addr: u64, page: impl Into<Extent>, frame: u64, ready: Cycle) -> Hit {
        let extent = page.into();
        let shift = extent.shift;
        let offset = frame.wrapping_sub(addr >> shift << shift);
        let hit = Hit { ready, offset };
        let entry = entry(addr, extent, hit);
        if let Some(large_page) = &mut self.large_page {
            match large_page.serves(shift) {
                true => large_page.insert(addr, shift, entry),
                false => self.fill(entry),
            }
            return hit;
        }
        let (set, tag) = self.l2_place(addr, extent);
        let ways = &mut self.l2[set..set + self.ways];
        ways.rotate_right(1);
        ways[0] = Page { tag, offset };
        self.fill(entry);
        hit
    }

    /// Fills the first level.
    fn fill(&mut self, entry: Entry) {
        if self.lru {
            take_in(&mut self.l1, entry);
            return;
        }
        self.l1[self.fifo] = entry;
        self.fifo = (self.fifo + 1) % self.l1.len();
    }

    /// Drops the translations of pages in `start..end`.
    pub fn forget(&mut self, start: u64, end: u64) {
        self.forget_where(|entry| start <= entry.first && entry.first < end);
        for page in self.l2.iter_mut().filter(|page| start <= page.tag && page.tag < end) {
            *page = Page::default();
        }
    }

    /// `start..end` now has pages of `extent`: drops entries of other pages that overlap it.
    pub(crate) fn give_way(&mut self, start: u64, end: u64, extent: Extent) {
        let meets = |entry: &Entry| entry.first < end && start <= entry.first.saturating_add(entry.bytes - 1);
        // Tags of the second level distinguish pages of several kinds.
        self.forget_where(|entry| entry.kind != extent.kind() && meets(entry));
    }

    /// Drops entries that translate anything.
    fn forget_where(&mut self, is_one: impl Fn(&Entry) -> bool) {
        let large_page = self.large_page.as_mut().map(LargePageTlb::entries).unwrap_or_default();
        for entry in self.l1.iter_mut().chain(large_page).filter(|entry| entry.bytes != 0 && is_one(entry)) {
            *entry = NONE;
        }
    }

    /// First way of the set and the tag of a page in the second level.
    fn l2_place(&self, addr: u64, extent: Extent) -> (usize, u64) {
        let page = addr >> extent.shift;
        let sets = self.l2.len() / self.ways;
        (page as usize % sets * self.ways, page << extent.shift | extent.kind())
    }
}

/// Inserts an entry as the most recently used of a list, in place of a free one or the last.
fn take_in(list: &mut [Entry], entry: Entry) {
    let free = list.iter().position(|e| e.bytes == 0).unwrap_or(list.len() - 1);
    list[..=free].rotate_right(1);
    list[0] = entry;
}

/// The entry for the page of `addr`, an address within its bounds.
fn entry(addr: u64, extent: Extent, hit: Hit) -> Entry {
    let Extent { shift, bounds } = extent;
    let inner = (1 << shift) - 1;
    let (first, last) = ((addr & !inner).max(bounds.first), (addr | inner).min(bounds.last));
    Entry { first, bytes: last.saturating_sub(first).saturating_add(1), kind: extent.kind(), hit }
}
