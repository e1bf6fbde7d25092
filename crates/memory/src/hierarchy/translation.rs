//! Virtual to physical addresses: page ranges, TLBs, page frames.

use std::sync::Arc;

use fxscope_calendar::Cycle;
use fxscope_counts::{Signal, Signals};

use super::{Cause, CoreMemory, Hierarchy};
use crate::chip::Chip;
use crate::frames::{PageRange, Placement, VIRTUAL};
use crate::pointer::Pointer;
use crate::refills::RefillKind;
use crate::tables::VIRTUAL_BITS;
use crate::tlb::{Bounds, Extent};
use crate::walks::Walk;

/// The range of addresses outside all ranges: it has no pages. Addresses in it are looked up as in pages of
/// `1 << shift` bytes.
pub(super) fn no_pages(shift: u32) -> PageRange {
    PageRange { start: 0, end: 0, shift, placement: Placement::FirstTouch, moved: 0, shared: None, bounds: Bounds::ALL }
}

/// A translated data address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Located {
    /// When the translation is known.
    pub ready: Cycle,
    /// The virtual address, with its tag.
    pub pointer: Pointer,
    /// The physical address.
    pub physical: u64,
}

impl<const TIMED: bool> Hierarchy<'_, TIMED> {
    /// Translates a data address for an access at `t`.
    #[inline(always)]
    pub fn translate(&mut self, pointer: Pointer, t: Cycle, signals: &mut Signals) -> Located {
        let addr = self.core.in_space(pointer.addr);
        match self.core.data_tlb.hit(addr) {
            Some(hit) => Located { ready: t.max(hit.ready), pointer, physical: addr.wrapping_add(hit.offset) },
            None => self.translate_slow(pointer, t, signals),
        }
    }

    #[cold]
    #[inline(never)]
    fn translate_slow(&mut self, pointer: Pointer, t: Cycle, signals: &mut Signals) -> Located {
        if !TIMED {
            // The first level gives up another translation.
            self.core.repeats.forget_all();
        }
        let range = self.core.page_of(pointer.addr);
        let addr = self.core.in_space(pointer.addr);
        signals.add(Signal::L1dTlbRefill, 1);
        signals.add(Signal::L2dTlb, 1);
        let page = self.core.extent(&range);
        let hit = match self.core.data_tlb.second_level::<TIMED>(addr, page, t) {
            Ok(hit) => hit,
            Err(missed) => {
                signals.add(Signal::L2dTlbRefill, 1);
                if TIMED {
                    self.core.refills.add(pointer.addr, RefillKind::Walk, Cause::Demand, false, t);
                }
                let (frame, ready) = self.walk(pointer.addr, range, missed, signals);
                self.core.walks.note(addr, missed);
                self.core.data_tlb.insert(addr, page, frame, ready)
            }
        };
        Located { ready: hit.ready, pointer, physical: addr.wrapping_add(hit.offset) }
    }

    /// Translates the address of an instruction for a fetch at `t`. Returns when that is done, and the physical
    /// address.
    pub(super) fn translate_code(&mut self, virtual_addr: u64, t: Cycle, signals: &mut Signals) -> (Cycle, u64) {
        let addr = self.core.in_space(virtual_addr);
        if let Some(hit) = self.core.code_tlb.hit(addr) {
            return (t.max(hit.ready), addr.wrapping_add(hit.offset));
        }
        let range = self.core.page_of(virtual_addr);
        signals.add(Signal::L1iTlbRefill, 1);
        signals.add(Signal::L2iTlb, 1);
        let page = self.core.extent(&range);
        let hit = match self.core.code_tlb.second_level::<TIMED>(addr, page, t) {
            Ok(hit) => hit,
            Err(missed) => {
                signals.add(Signal::L2iTlbRefill, 1);
                let (frame, ready) = self.walk(virtual_addr, range, missed, signals);
                self.core.walks.note(addr, missed);
                self.core.code_tlb.insert(addr, page, frame, ready)
            }
        };
        (hit.ready, addr.wrapping_add(hit.offset))
    }

    /// The physical line of a virtual one, if a hardware prefetch at `t` can know it.
    #[inline(always)]
    pub(super) fn translated(&mut self, line: u64, t: Cycle) -> Option<u64> {
        match self.core.translated(line, t) {
            None if self.core.free_misses => self.translated_freely(line),
            known => known,
        }
    }

    /// The same where misses are free, for an address that the first level does not have.
    #[cold]
    #[inline(never)]
    fn translated_freely(&mut self, line: u64) -> Option<u64> {
        let addr = line << self.core.line_shift;
        if addr >> VIRTUAL_BITS != 0 {
            return None;
        }
        let range = self.core.page_of(addr);
        let offset = addr & ((1 << range.shift) - 1);
        (range.end != 0).then(|| (self.frame_of(addr, range) + offset) >> self.core.line_shift)
    }

    /// The physical address of the page of `addr`. Addresses outside all ranges are physical ones.
    pub(super) fn frame_of(&mut self, addr: u64, range: PageRange) -> u64 {
        let page = addr >> range.shift << range.shift;
        if range.end == 0 {
            return page;
        }
        let page = self.core.in_space(page);
        self.chip.frame(page, range, self.core.id.cmg)
    }
}

impl CoreMemory {
    /// Address space number `space` is in use and has these pages: drops the translations that are no longer valid.
    pub fn follow_pages(&mut self, space: u16, pages: Arc<[PageRange]>) {
        let space = u64::from(space) << VIRTUAL_BITS;
        if space == self.space && !Arc::ptr_eq(&pages, &self.pages) {
            for gone in unmapped(&self.pages, &pages) {
                self.forget_translations(space + gone.start, space + gone.end);
            }
            for moved in moved(&self.pages, &pages) {
                self.forget_translations(space + moved.start, space + moved.end);
            }
            for range in &*pages {
                let extent = self.extent(range);
                for new in unmapped(std::slice::from_ref(range), &self.pages) {
                    self.data_tlb.give_way(space + new.start, space + new.end, extent);
                    self.code_tlb.give_way(space + new.start, space + new.end, extent);
                }
            }
        }
        self.space = space;
        self.pages = pages;
        self.page = self.no_pages;
        self.fetched = u64::MAX;
        self.repeats.forget_all();
    }

    /// Has the address space and the pages that `other` has.
    pub fn take_pages_of(&mut self, other: &CoreMemory) {
        if self.space != other.space || !Arc::ptr_eq(&self.pages, &other.pages) {
            self.follow_pages((other.space >> VIRTUAL_BITS) as u16, Arc::clone(&other.pages));
        }
    }

    /// Returns whether it belongs to the same core as `other`, of the same chip or of a copy.
    #[must_use]
    pub fn is_same_core(&self, other: &CoreMemory) -> bool {
        self.id == other.id
    }

    /// Takes the walks since the last call, on machines whose system moves pages by heat. `empty` has room for the following ones.
    pub fn take_walks(&mut self, empty: Vec<Walk>) -> Vec<Walk> {
        self.walks.take(empty)
    }

    /// Returns whether walks were noted since they were last taken.
    #[inline(always)]
    #[must_use]
    pub fn has_walks(&self) -> bool {
        self.walks.are_there()
    }

    /// Removes the translations of a range of address space number `space`: the next access walks the tables.
    pub fn drop_translations(&mut self, space: u16, range: std::ops::Range<u64>) {
        let space = u64::from(space) << VIRTUAL_BITS;
        self.forget_translations(space + range.start, space + range.end);
        self.fetched = u64::MAX;
        self.repeats.forget_all();
    }

    fn forget_translations(&mut self, start: u64, end: u64) {
        self.data_tlb.forget(start, end);
        self.code_tlb.forget(start, end);
    }

    /// The range that `addr` is in.
    #[inline(always)]
    pub(super) fn page_of(&mut self, addr: u64) -> PageRange {
        if self.page.start <= addr && addr < self.page.end { self.page } else { self.search_pages(addr) }
    }

    #[cold]
    #[inline(never)]
    fn search_pages(&mut self, addr: u64) -> PageRange {
        let i = self.pages.partition_point(|p| p.end <= addr);
        match self.pages.get(i) {
            Some(page) if page.start <= addr => {
                self.page = *page;
                *page
            }
            _ => self.no_pages,
        }
    }

    /// The address with the number of its address space above it.
    #[inline(always)]
    pub(super) fn in_space(&self, addr: u64) -> u64 {
        addr | self.space
    }

    /// The size and the bounds of the pages of a range, with the number of the address space above addresses. Without a range, nothing
    /// bounds them.
    pub(super) fn extent(&self, range: &PageRange) -> Extent {
        let Bounds { segment, first, last } = range.bounds;
        let (first, last) = (self.in_space(first), self.in_space(last & VIRTUAL));
        let bounds = if range.bounds == Bounds::ALL { Bounds::ALL } else { Bounds { segment, first, last } };
        Extent { shift: range.shift, bounds }
    }

    /// Whether an address is mapped.
    pub(super) fn is_mapped(&mut self, addr: u64) -> bool {
        self.page_of(addr).end != 0
    }

    /// Whether either level of the TLB has the page of an address at `t`.
    pub(super) fn has_translation(&mut self, addr: u64, t: Cycle) -> bool {
        let range = self.page_of(addr);
        let (addr, page) = (self.in_space(addr), self.extent(&range));
        self.free_misses && range.end != 0 || self.data_tlb.holds(addr, page, t)
    }

    /// The physical line of a virtual one if the first-level TLB has its page at `t`, without counting as a use.
    /// Otherwise a hardware prefetch stops (manual 11.3, which does not name the level): measured copies of 8 to 32 MiB
    /// in 64 KiB pages, whose translations the second level holds, are slower than copies without first-level misses.
    #[inline(always)]
    pub(super) fn translated(&mut self, line: u64, t: Cycle) -> Option<u64> {
        let addr = line << self.line_shift;
        if addr >> VIRTUAL_BITS != 0 {
            return None;
        }
        let addr = self.in_space(addr);
        self.data_tlb
            .peek(addr)
            .filter(|hit| hit.ready <= t)
            .map(|hit| addr.wrapping_add(hit.offset) >> self.line_shift)
    }
}

impl Chip {
    /// Has the page frames that `other` has.
    pub fn take_frames_of(&mut self, other: &Chip) {
        self.frames = Arc::clone(&other.frames);
    }

    /// Address space number `space` had the pages `before` and now has `pages`: frees the frames of the pages that are
    /// gone. One core does this for all.
    pub fn release_pages(&mut self, space: u16, before: &[PageRange], pages: &[PageRange]) {
        let space = u64::from(space) << VIRTUAL_BITS;
        for gone in unmapped(before, pages) {
            // Added, not combined by "or": the last range may end where the address space does.
            self.frames_mut().release(space + gone.start, space + gone.end);
        }
    }

    /// Iterates over the sets of shared pages that have frames.
    pub fn shared_sets(&self) -> impl Iterator<Item = u64> + '_ {
        self.frames().shared_sets()
    }

    /// Frees the frames of the sets of shared pages that `exists` does not know any more.
    pub fn release_sets(&mut self, exists: impl Fn(u64) -> bool) {
        if self.frames().have_lost(&exists) {
            self.frames_mut().release_sets(exists);
        }
    }
}

/// The parts of ranges that are no longer mapped with the same page size and the same shared pages. Both lists are in address order.
fn unmapped(before: &[PageRange], after: &[PageRange]) -> Vec<std::ops::Range<u64>> {
    let mut gone = Vec::new();
    for old in before {
        let mut at = old.start;
        let first = after.partition_point(|new| new.end <= old.start);
        for new in after[first..].iter().take_while(|new| new.start < old.end) {
            if (new.shift, new.shared) != (old.shift, old.shared) {
                continue;
            }
            if new.start > at {
                gone.push(at..new.start);
            }
            at = at.max(new.end);
        }
        if at < old.end {
            gone.push(at..old.end);
        }
    }
    gone
}

/// The parts of ranges whose pages have been moved. Both lists are in address order.
fn moved(before: &[PageRange], after: &[PageRange]) -> Vec<std::ops::Range<u64>> {
    let mut moved = Vec::new();
    for new in after.iter().filter(|new| new.moved > 0) {
        let first = before.partition_point(|old| old.end <= new.start);
        let old = before[first..].iter().take_while(|old| old.start < new.end).filter(|old| old.moved < new.moved);
        moved.extend(old.map(|old| old.start.max(new.start)..old.end.min(new.end)));
    }
    moved
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frames::SharedPages;

    fn range(start: u64, end: u64, shift: u32) -> PageRange {
        PageRange { start, end, shift, placement: Placement::FirstTouch, moved: 0, shared: None, bounds: Bounds::ALL }
    }

    #[test]
    fn what_is_moved_is_what_has_been_moved_more_often_than_before() {
        let before = [range(0, 100, 16), PageRange { moved: 2, ..range(100, 200, 16) }];
        let after = [
            range(0, 50, 16),
            PageRange { moved: 2, ..range(50, 150, 16) },
            PageRange { moved: 3, ..range(150, 300, 16) },
        ];
        assert_eq!(moved(&before, &after), [50..100, 150..200]);
        assert_eq!(moved(&after, &after), []);
    }

    #[test]
    fn what_is_gone_is_what_no_range_with_the_same_page_size_covers() {
        let before = [range(0, 100, 16), range(200, 300, 16), range(400, 500, 21)];
        let after = [range(20, 40, 16), range(60, 250, 16), range(250, 300, 16), range(400, 450, 16)];
        assert_eq!(unmapped(&before, &after), [0..20, 40..60, 400..500]);
        assert_eq!(unmapped(&before, &before), []);
        assert_eq!(unmapped(&[], &after), []);
        let shared = |set| PageRange { shared: Some(SharedPages { set, origin: 0 }), ..range(0, 100, 16) };
        assert_eq!(unmapped(&[shared(1)], &[shared(1)]), []);
        assert_eq!(unmapped(&[shared(1)], &[shared(2)]), unmapped(&[shared(1)], &[]));
    }
}
