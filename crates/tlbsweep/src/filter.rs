//! Which lanes are known to hold which pages: accesses that change nothing are passed over.
//!
//! An access to a page that a lane holds is a hit, which changes nothing where the first come first go. Where the least
//! recently used goes, several such hits in a row leave a TLB as one hit of each page would in the order in which each was
//! touched last. So times of last touches are kept, and made good in a TLB before a page of it goes, or before a page is
//! forgotten here.

use crate::bits::Bits;
use crate::choice::{Key, Sizes};

/// Pages that are remembered.
const SLOTS: usize = 64;
/// Places in which pages are looked for that all lanes hold.
const PLACES: usize = 256;
/// No page's number.
const NONE: u64 = u64::MAX;

/// Pages of the smallest size, and the lanes that are known to hold them.
pub struct Filter {
    shift: u32,
    /// Numbers of pages that all lanes hold, each in the place that [`Filter::place`] says, and their slots.
    by_all: [(u64, u32); PLACES],
    /// Numbers of pages that some lanes may hold.
    pages: [u64; SLOTS],
    /// For each slot, the lanes that hold its page.
    held: Bits,
    /// Whether the set-associative TLB beside the lanes is known to hold the page of each slot.
    in_sets: [bool; SLOTS],
    /// When the page of each slot was last touched, or 0.
    touched: [u64; SLOTS],
    now: u64,
    /// Slots in the order in which their pages were touched last, as it was at a time.
    order: [u8; SLOTS],
    ordered: u64,
    /// Whether slots have got other pages since then.
    replaced: bool,
    /// A page that was forgotten, and when it had been touched last.
    forgotten: Option<(u64, Key)>,
    /// The page that left last, as its number and shift, and the slots with pages in it.
    gone: (u64, u32, u64),
}

impl Filter {
    /// Nothing is known. Pages have `1 << shift` bytes.
    #[must_use]
    pub fn new(shift: u32) -> Filter {
        Filter {
            shift,
            by_all: [(NONE, 0); PLACES],
            pages: [NONE; SLOTS],
            held: Bits::new(SLOTS),
            in_sets: [false; SLOTS],
            touched: [0; SLOTS],
            now: 0,
            order: std::array::from_fn(|slot| slot as u8),
            ordered: 0,
            replaced: true,
            forgotten: None,
            gone: (NONE, 0, 0),
        }
    }

    /// Nothing is known any more, as lanes have other numbers.
    pub fn forget(&mut self) {
        self.by_all = [(NONE, 0); PLACES];
        self.pages = [NONE; SLOTS];
        self.held.clear();
        self.touched = [0; SLOTS];
        self.replaced = true;
    }

    /// Accesses so far.
    pub fn now(&self) -> u64 {
        self.now
    }

    /// So many accesses were seen by all TLBs without being noted here, where nothing is known.
    pub fn seen_elsewhere(&mut self, accesses: u64) {
        self.now += accesses;
    }

    /// Where a page is looked for (Fibonacci hashing).
    #[inline(always)]
    fn place(page: u64) -> usize {
        (page.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as usize % PLACES
    }

    /// Whether all lanes hold the page of an access.
    #[inline(always)]
    pub fn passes(&mut self, key: Key) -> bool {
        let page = key.page(self.shift);
        let (known, slot) = self.by_all[Filter::place(page)];
        if known == page {
            self.now += 1;
            self.touched[slot as usize % SLOTS] = self.now;
        }
        known == page
    }

    /// An access is looked up: gives its page a slot. The lanes that the bits of [`Filter::lanes`] are set for hold it:
    /// those that were known to, and those that hold a page so near that it is in the same page of theirs, as
    /// `at_least` says, which from row `first_row` on has for each size the lanes whose pages for the segment are that
    /// large or larger.
    pub fn open(&mut self, key: Key, sizes: &Sizes, at_least: &Bits, first_row: usize) -> usize {
        let page = key.page(self.shift);
        let (near, apart) = self.nearest(page);
        if apart <= self.shift {
            return near;
        }
        let slot = self.take_slot();
        let row = sizes.holding(apart).trailing_zeros() as usize;
        if row < sizes.len() {
            for (word, &large) in at_least.row(first_row + row).iter().enumerate() {
                self.held.row_mut(slot)[word] = self.held.row(near)[word] & large;
            }
        } else {
            self.held.row_mut(slot).fill(0);
        }
        self.pages[slot] = page;
        slot
    }

    /// The slot whose page was touched longest ago, for another page.
    fn take_slot(&mut self) -> usize {
        let mut slot = 0;
        for other in 1..SLOTS {
            if self.touched[other] < self.touched[slot] {
                slot = other;
            }
        }
        self.not_by_all(slot);
        let known = (self.touched[slot], Key::from_page(self.pages[slot], self.shift));
        self.forgotten = (known.0 > 0).then_some(known);
        (self.touched[slot], self.in_sets[slot]) = (0, false);
        // What was found out about slots does not hold any more.
        self.gone = (NONE, 0, 0);
        self.replaced = true;
        slot
    }

    /// The page that was forgotten since this was asked last, if one was: when it had been touched last, and how far the nearest
    /// of those is apart that were touched after it.
    pub fn forgotten(&mut self) -> Option<(u64, Key, u32)> {
        let (time, key) = self.forgotten.take()?;
        Some((time, key, self.nearest(key.page(self.shift)).1))
    }

    /// Some lane may not hold the page of a slot.
    fn not_by_all(&mut self, slot: usize) {
        let place = &mut self.by_all[Filter::place(self.pages[slot])];
        if place.0 == self.pages[slot] {
            *place = (NONE, 0);
        }
    }

    /// The slot whose page is nearest, and in how many low bits of their addresses the two differ at most.
    fn nearest(&self, page: u64) -> (usize, u32) {
        let mut best = (0, u64::MAX);
        for (slot, &other) in self.pages.iter().enumerate() {
            if other ^ page < best.1 {
                best = (slot, other ^ page);
            }
        }
        (best.0, (u64::BITS - best.1.leading_zeros() + self.shift).min(u64::BITS))
    }

    /// The lanes that are known to hold the page of a slot, a bit each.
    #[inline(always)]
    pub fn lanes(&self, slot: usize) -> &[u64] {
        self.held.row(slot)
    }

    /// Whether the TLB beside the lanes is known to hold the page of a slot.
    pub fn in_sets(&self, slot: usize) -> bool {
        self.in_sets[slot]
    }

    /// All TLBs hold the page of a slot now, which is touched.
    pub fn close(&mut self, slot: usize) {
        self.now += 1;
        (self.touched[slot], self.in_sets[slot]) = (self.now, true);
        self.held.row_mut(slot).fill(u64::MAX);
        self.by_all[Filter::place(self.pages[slot])] = (self.pages[slot], slot as u32);
    }

    /// A lane holds the page of `1 << shift` bytes around `key` no more; without a number, the TLB beside the lanes.
    #[inline(always)]
    pub fn evicted(&mut self, lane: Option<usize>, key: Key, shift: u32) {
        let page = key.page(shift);
        // Lanes mostly lose the same page.
        if (self.gone.0, self.gone.1) != (page, shift) {
            self.gone = (page, shift, self.slots_in(page, shift));
        }
        let mut slots = self.gone.2;
        while slots != 0 {
            let slot = slots.trailing_zeros() as usize;
            slots &= slots - 1;
            self.not_by_all(slot);
            match lane {
                Some(lane) => self.held.put(slot, lane, false),
                None => self.in_sets[slot] = false,
            }
        }
    }

    /// The slots with pages that are in a page of `1 << shift` bytes, a bit each.
    fn slots_in(&self, page: u64, shift: u32) -> u64 {
        let above = shift - self.shift;
        self.pages.iter().rev().fold(0, |slots, &known| slots << 1 | u64::from(known >> above == page))
    }

    /// There are so many lanes now.
    pub fn reserve(&mut self, lanes: usize) {
        self.held.reserve(lanes);
    }

    /// A new lane holds what another does.
    pub fn copy_lane(&mut self, from: usize, to: usize) {
        self.reserve(to + 1);
        self.held.copy_column(from, to);
    }

    /// The pages that were touched after a time, each when it was touched last, in this order.
    pub fn touched_after(&mut self, time: u64) -> impl Iterator<Item = (u64, Key)> {
        if self.replaced || self.ordered != self.now {
            self.put_in_order();
        }
        let touched = |&slot: &u8| self.touched[usize::from(slot) % SLOTS];
        let from = self.order.partition_point(|slot| touched(slot) <= time);
        let page = |&slot: &u8| Key::from_page(self.pages[usize::from(slot) % SLOTS], self.shift);
        self.order[from..].iter().map(move |slot| (touched(slot), page(slot)))
    }

    /// Orders slots by their last touches: those that were touched since this was done last, and before them the others, which
    /// are in order but for some that were never touched.
    fn put_in_order(&mut self) {
        let mut parts = [[0; SLOTS]; 3];
        let mut ends = [0; 3];
        for &slot in &self.order {
            let touched = self.touched[usize::from(slot) % SLOTS];
            let part = usize::from(touched > 0) + usize::from(touched > self.ordered);
            parts[part][ends[part] % SLOTS] = slot;
            ends[part] += 1;
        }
        let [never, _, since] = ends;
        parts[2][..since].sort_unstable_by_key(|&slot| self.touched[usize::from(slot) % SLOTS]);
        self.order[..never].copy_from_slice(&parts[0][..never]);
        self.order[never..SLOTS - since].copy_from_slice(&parts[1][..ends[1]]);
        self.order[SLOTS - since..].copy_from_slice(&parts[2][..since]);
        (self.ordered, self.replaced) = (self.now, false);
    }
}
